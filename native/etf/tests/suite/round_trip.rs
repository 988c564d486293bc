//! There and back again, on values of every shape.

use proptest::prelude::*;
use pyrt::container::Filling;
use pyrt::{Attached, Obj};

use crate::harness::{decode, encode, python, repr};

/// A value in its normal form: what it becomes, it stays.
#[derive(Clone, Debug)]
enum Normal {
    Constant(Option<bool>),
    Int(Vec<u8>, bool),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Normal>),
    Tuple(Vec<Normal>),
    Dict(Vec<(String, Normal)>),
}

fn normal() -> impl Strategy<Value = Normal> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(Normal::Constant),
        (proptest::collection::vec(any::<u8>(), 0..12), any::<bool>())
            .prop_map(|(digits, negative)| Normal::Int(digits, negative)),
        (
            proptest::collection::vec(any::<u8>(), 250..260),
            any::<bool>()
        )
            .prop_map(|(digits, negative)| Normal::Int(digits, negative)),
        (-1000i64..1000).prop_map(|value| {
            Normal::Int(value.unsigned_abs().to_le_bytes().to_vec(), value < 0)
        }),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(Normal::Float),
        any::<String>().prop_map(Normal::Text),
        "[a-z]{0,8}".prop_map(Normal::Text),
        proptest::collection::vec(any::<u8>(), 1..20)
            .prop_filter("not UTF-8", |bytes| std::str::from_utf8(bytes).is_err())
            .prop_map(Normal::Bytes),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Normal::List),
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Normal::Tuple),
            proptest::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Normal::Dict(map.into_iter().collect())),
        ]
    })
}

impl Normal {
    fn object<'py>(&self, py: Attached<'py>) -> Obj<'py> {
        match self {
            Normal::Constant(None) => Obj::none(py),
            Normal::Constant(Some(value)) => Obj::bool(py, *value),
            Normal::Int(digits, negative) => Obj::int_from_le(py, digits, *negative).unwrap(),
            Normal::Float(value) => Obj::float(py, *value).unwrap(),
            Normal::Text(text) => Obj::text(py, text).unwrap(),
            Normal::Bytes(bytes) => Obj::bytes(py, bytes).unwrap(),
            Normal::List(items) => {
                let mut list = Filling::list(py, items.len()).unwrap();
                items.iter().for_each(|item| list.push(item.object(py)));
                list.finish().unwrap()
            }
            Normal::Tuple(items) => {
                Obj::tuple(py, items.iter().map(|item| item.object(py))).unwrap()
            }
            Normal::Dict(pairs) => {
                let dict = Obj::dict(py).unwrap();
                for (key, value) in pairs {
                    let key = Obj::text(py, key).unwrap();
                    dict.dict_set(&key, &value.object(py)).unwrap();
                }
                dict
            }
        }
    }

    /// Written a second time, without a look at the first.
    fn term(&self, out: &mut Vec<u8>) {
        let head = |out: &mut Vec<u8>, tag: u8, len: usize| {
            out.push(tag);
            out.extend((len as u32).to_be_bytes());
        };
        match self {
            Normal::Constant(value) => {
                let name = match value {
                    None => "none",
                    Some(true) => "true",
                    Some(false) => "false",
                };
                out.extend([119, name.len() as u8]);
                out.extend(name.as_bytes());
            }
            Normal::Int(digits, negative) => int_term(digits, *negative, out),
            Normal::Float(value) => {
                out.push(70);
                out.extend(value.to_be_bytes());
            }
            Normal::Text(text) => {
                head(out, 109, text.len());
                out.extend(text.as_bytes());
            }
            Normal::Bytes(bytes) => {
                head(out, 109, bytes.len());
                out.extend(bytes);
            }
            Normal::List(items) if items.is_empty() => out.push(106),
            Normal::List(items) => {
                head(out, 108, items.len());
                items.iter().for_each(|item| item.term(out));
                out.push(106);
            }
            Normal::Tuple(items) => {
                out.extend([104, items.len() as u8]);
                items.iter().for_each(|item| item.term(out));
            }
            Normal::Dict(pairs) => {
                head(out, 116, pairs.len());
                for (key, value) in pairs {
                    Normal::Text(key.clone()).term(out);
                    value.term(out);
                }
            }
        }
    }
}

fn int_term(digits: &[u8], negative: bool, out: &mut Vec<u8>) {
    let len = digits.len() - digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let digits = &digits[..len];
    if len <= 8 {
        let mut word = [0; 16];
        word[..len].copy_from_slice(digits);
        let value = i128::from_le_bytes(word) * if negative { -1 } else { 1 };
        if let Ok(value) = u8::try_from(value) {
            return out.extend([97, value]);
        }
        if let Ok(value) = i32::try_from(value) {
            out.push(98);
            return out.extend(value.to_be_bytes());
        }
    }
    match u8::try_from(len) {
        Ok(len) => out.extend([110, len]),
        Err(_) => {
            out.push(111);
            out.extend((len as u32).to_be_bytes());
        }
    }
    out.push(negative.into());
    out.extend(digits);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_value_in_normal_form_stays_what_it_is_both_ways(value in normal()) {
        python(|bound| {
            let object = value.object(bound.py());
            let mut expected = Vec::new();
            value.term(&mut expected);
            let bytes = encode(bound, &object).unwrap();
            prop_assert_eq!(&bytes, &expected);
            let back = decode(bound, &bytes).unwrap();
            prop_assert_eq!(repr(&back), repr(&object));
            prop_assert_eq!(encode(bound, &back).unwrap(), expected);
            Ok(())
        })?;
    }

    #[test]
    fn text_of_any_characters_comes_back(text in any::<String>()) {
        python(|bound| {
            let object = Obj::text(bound.py(), &text).unwrap();
            let back = decode(bound, &encode(bound, &object).unwrap()).unwrap();
            prop_assert_eq!(back.as_utf8().unwrap(), &text);
            Ok(())
        })?;
    }
}
