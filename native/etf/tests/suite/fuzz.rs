//! Any bytes at all: never a panic, never a reference lost or dropped twice.

use etf::{Host, Input, NoNode};
use proptest::prelude::*;
use pyrt::{Attached, Kept, Obj};

use crate::harness::{encode, eval, python, x};

/// Every object reference is one object, whose references can be counted.
struct Sentinel(Kept);

impl Host for Sentinel {
    fn object<'py>(&self, py: Attached<'py>, _: u64, _: u64, _: u64) -> Option<Obj<'py>> {
        self.0.get(py)
    }
}

fn count(object: &Obj<'_>) -> i64 {
    let count = eval(object.py(), "__import__('sys').getrefcount");
    count.call(&[object]).unwrap().as_i64().unwrap().unwrap()
}

/// A term with many tags in it, and the sentinel in all kinds of places.
fn seed() -> Vec<u8> {
    let object = [
        &[104, 5, 119, 7][..],
        b"$py_ref",
        &[97, 0, 97, 0, 97, 0, 97, 0],
    ]
    .concat();
    let mut bytes = vec![131, 108, 0, 0, 0, 7];
    bytes.extend(&object);
    bytes.extend([104, 3, 97, 1]);
    bytes.extend(&object);
    bytes.extend([110, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    bytes.extend([116, 0, 0, 0, 2, 119, 1, b'k']);
    bytes.extend(&object);
    bytes.extend(&object);
    bytes.extend([107, 0, 2, 1, 2, 104, 2, 119, 5]);
    bytes.extend(b"bytes");
    bytes.extend([
        109, 0, 0, 0, 2, 255, 254, 70, 63, 248, 0, 0, 0, 0, 0, 0, 108, 0, 0, 0, 1,
    ]);
    bytes.extend(&object);
    bytes.extend([
        106, 88, 119, 1, b'n', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 106,
    ]);
    bytes
}

#[test]
fn the_seed_of_the_mutations_is_a_term() {
    python(|bound| {
        let host = Sentinel(Kept::new(eval(bound.py(), "object()")));
        etf::decode(bound, &host, Input::one(&seed())).unwrap();
        host.0.release(bound.py());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        python(|bound| {
            let bytes = crate::harness::term(&bytes);
            if let Ok(object) = etf::decode(bound, &NoNode, Input::one(&bytes)) {
                let _ = encode(bound, &object);
            }
            let _ = etf::decode_call(bound, &NoNode, Input::one(&bytes), &mut Vec::new());
        });
    }

    #[test]
    fn mutated_terms_leak_nothing(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        tags in any::<bool>(),
    ) {
        const TAGS: [u8; 24] = [
            70, 77, 88, 89, 90, 97, 98, 99, 100, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112,
            113, 116, 118, 119, 120,
        ];
        let mut bytes = seed();
        for (place, value) in changes {
            let value = if tags { TAGS[value as usize % TAGS.len()] } else { value };
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let (start, end) = bytes.split_at(cut.index(bytes.len()));
        python(|bound| {
            let object = eval(bound.py(), "object()");
            let before = count(&object);
            let host = Sentinel(Kept::new(object.clone()));
            let parts = [start, end];
            let whole = etf::decode(bound, &host, Input::segments(&parts));
            if let Ok(value) = &whole {
                let _ = encode(bound, value);
            }
            drop(whole);
            let _ = etf::decode(bound, &host, Input::one(start));
            let mut args = Vec::new();
            let _ = etf::decode_call(bound, &host, Input::one(&bytes), &mut args);
            drop(args);
            host.0.release(bound.py());
            prop_assert_eq!(count(&object), before);
            Ok(())
        })?;
    }
}

#[test]
fn conversions_that_fail_leak_nothing() {
    python(|bound| {
        let py = bound.py();
        let object = eval(py, "object()");
        let wrap = x(
            py,
            "import collections\nclass M(collections.UserDict): pass\n\
             def x(o): return [[1, (2, o)], {'a': o}, {1: [o]}, M(a=o), {o}, o, {o: 1}, [M({o: o})]]",
        );
        let values = wrap.call(&[&object]).unwrap();
        let before = count(&object);
        for _ in 0..10 {
            for index in 0..values.list_len() {
                let value = values.list_item(index).unwrap();
                assert!(
                    encode(bound, &value)
                        .unwrap_err()
                        .starts_with("not convertible")
                );
            }
        }
        assert_eq!(count(&object), before);
    });
}

/// What is decoded can be encoded, comes back as the same, and leaves no reference behind.
#[test]
fn fuzz_codec() {
    fuzz::fuzz("codec", |data| {
        python(|bound| {
            let object = eval(bound.py(), "object()");
            let before = count(&object);
            let host = Sentinel(Kept::new(object.clone()));
            let _ = etf::decode_plain(bound, &NoNode, Input::one(data));
            let mut args = Vec::new();
            let called = etf::decode_call(bound, &host, Input::one(data), &mut args).is_ok();
            drop(args);
            let kind = match etf::decode(bound, &host, Input::one(data)) {
                Ok(value) => Ok(encode(bound, &value).map(|bytes| again(bound, &value, &bytes))),
                Err(error) => Err(kind_of(&error)),
            };
            host.0.release(bound.py());
            assert_eq!(count(&object), before);
            (called, kind.map(|kind| kind.is_ok()))
        })
    });
}

/// The encoded value, decoded again, has the same encoding.
fn again(bound: &etf::Bound<'_, '_>, value: &Obj<'_>, bytes: &[u8]) {
    let back = crate::harness::decode(bound, bytes);
    let back = back.unwrap_or_else(|error| panic!("{}", crate::harness::why(&error)));
    assert_eq!(
        encode(bound, &back).as_deref(),
        Ok(bytes),
        "{}",
        value.display()
    );
}

/// The error, without the numbers in its words.
fn kind_of(error: &etf::Error<'_>) -> String {
    let words = crate::harness::why(error);
    words
        .chars()
        .filter(|char| !char.is_ascii_digit())
        .take(40)
        .collect()
}
