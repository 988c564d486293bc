//! Terms that become no object of Python.

use std::borrow::Cow;

use etf::{Input, NoNode, Plain, is_false};
use proptest::prelude::*;

use crate::harness::{encode, eval, python};

fn atom(name: &str) -> Plain<'_> {
    Plain::Atom(name.into())
}

fn text(text: &str) -> Plain<'_> {
    Plain::Binary(text.as_bytes().into())
}

#[test]
fn every_kind_of_term_is_read() {
    let bytes = [
        &[131, 104, 9][..],
        &[97, 7],
        &[98, 255, 255, 255, 255],
        &[110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128],
        &[110, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[70, 63, 248, 0, 0, 0, 0, 0, 0],
        &[100, 0, 1, 228],
        &[107, 0, 2, 1, 2],
        &[116, 0, 0, 0, 1, 119, 1, b'k', 109, 0, 0, 0, 1, b'v'],
        &[108, 0, 0, 0, 1, 106, 106],
    ];
    let big = Plain::Big {
        negative: false,
        digits: Cow::Borrowed(&[0, 0, 0, 0, 0, 0, 0, 0, 1]),
    };
    let expected = Plain::Tuple(vec![
        Plain::Int(7),
        Plain::Int(-1),
        Plain::Int(i64::MIN),
        big,
        Plain::Float(1.5),
        atom("\u{e4}"),
        Plain::List(vec![Plain::Int(1), Plain::Int(2)]),
        Plain::Map(vec![(atom("k"), text("v"))]),
        Plain::List(vec![Plain::List(Vec::new())]),
    ]);
    assert_eq!(Plain::decode(&bytes.concat()), Some(expected));
}

#[test]
fn what_needs_a_node_is_passed_over() {
    let pid = [88, 119, 1, b'n', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
    let bits = [77, 0, 0, 0, 1, 3, 224];
    let improper = [108, 0, 0, 0, 1, 97, 1, 97, 2];
    let bytes = [&[131, 104, 4][..], &pid, &bits, &improper, &[97, 1]].concat();
    let others = vec![Plain::Other, Plain::Other, Plain::Other, Plain::Int(1)];
    assert_eq!(Plain::decode(&bytes), Some(Plain::Tuple(others)));
}

#[test]
fn bytes_that_are_no_term_are_none() {
    let none: [&[u8]; 8] = [
        &[],
        &[131],
        &[97, 1],
        &[131, 97],
        &[131, 97, 1, 97, 1],
        // As many items as no input can hold.
        &[131, 108, 255, 255, 255, 255, 97, 1],
        &[131, 116, 255, 255, 255, 255, 97, 1],
        &[131, 80, 0, 0, 0, 1],
    ];
    for bytes in none {
        assert_eq!(Plain::decode(bytes), None, "{bytes:?}");
    }
    let deep = [&[131][..], &[104, 1].repeat(1_000_000), &[97, 1]].concat();
    assert_eq!(Plain::decode(&deep), None);
}

#[test]
fn a_dict_of_python_is_read_as_it_was_written() {
    python(|bound| {
        let dict = eval(bound.py(), "{'a': (1.5, True, None), b'b': ['c', 2]}");
        let bytes = encode(bound, &dict).unwrap();
        let first = Plain::Tuple(vec![Plain::Float(1.5), atom("true"), atom("none")]);
        let second = Plain::List(vec![text("c"), Plain::Int(2)]);
        let expected = Plain::Map(vec![(text("a"), first), (text("b"), second)]);
        assert_eq!(Plain::inside(&bytes), Some(expected));
    });
}

#[test]
fn what_python_takes_for_false_is_false() {
    python(|bound| {
        for value in [
            "0", "0.0", "-0.0", "''", "b''", "()", "[]", "{}", "None", "False",
        ] {
            let bytes = encode(bound, &eval(bound.py(), value)).unwrap();
            assert!(is_false(&bytes), "{value}");
        }
        for value in [
            "1", "-1", "256", "0.5", "'0'", "(0,)", "[0]", "{0: 0}", "True",
        ] {
            let bytes = encode(bound, &eval(bound.py(), value)).unwrap();
            assert!(!is_false(&bytes), "{value}");
        }
        assert!(is_false(&[
            119, 9, b'u', b'n', b'd', b'e', b'f', b'i', b'n', b'e', b'd'
        ]));
        assert!(!is_false(&[]));
        assert!(!is_false(&[119]));
    });
}

proptest! {
    #[test]
    fn any_bytes_are_a_term_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [&[131][..], &bytes].concat();
        let plain = Plain::decode(&bytes);
        python(|bound| {
            // What becomes an object is read without one, too.
            if etf::decode(bound, &NoNode, Input::one(&bytes)).is_ok() {
                assert!(plain.is_some());
            }
        });
    }
}
