//! Terms to objects, tag by tag. The bytes are those of OTP 25's `term_to_binary`.

use crate::harness::{decode, encode, python, python_deep, repr, shown, why, x};

fn atom(name: &str) -> Vec<u8> {
    [&[119, name.len() as u8], name.as_bytes()].concat()
}

fn binary(data: &[u8]) -> Vec<u8> {
    [&[109][..], &(data.len() as u32).to_be_bytes(), data].concat()
}

#[test]
fn integers_of_every_size_become_int() {
    assert_eq!(shown(&[97, 255]), "255");
    assert_eq!(shown(&[98, 255, 255, 255, 255]), "-1");
    assert_eq!(shown(&[98, 127, 255, 255, 255]), "2147483647");
    assert_eq!(shown(&[110, 4, 0, 0, 0, 0, 128]), "2147483648");
    assert_eq!(
        shown(&[110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128]),
        "-9223372036854775808"
    );
    assert_eq!(
        shown(&[110, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        "18446744073709551616"
    );
    assert_eq!(shown(&[110, 0, 1]), "0");
    let mut large = vec![111, 0, 0, 1, 0, 1];
    large.extend([0; 255]);
    large.push(1);
    python(|bound| {
        let value = decode(bound, &large).unwrap();
        let power = crate::harness::eval(bound.py(), "-(1 << 2040)");
        assert_eq!(repr(&value), repr(&power));
    });
}

#[test]
fn floats_old_and_new_become_float() {
    assert_eq!(shown(&[70, 63, 248, 0, 0, 0, 0, 0, 0]), "1.5");
    assert_eq!(shown(&[70, 128, 0, 0, 0, 0, 0, 0, 0]), "-0.0");
    let mut old = vec![99];
    old.extend(b"1.50000000000000000000e+00");
    old.resize(32, 0);
    assert_eq!(shown(&old), "1.5");
}

#[test]
fn atoms_become_bool_none_or_str() {
    for (name, expected) in [
        ("true", "True"),
        ("false", "False"),
        ("none", "None"),
        ("nil", "None"),
        ("undefined", "None"),
        ("ok", "'ok'"),
        ("", "''"),
        ("日本", "'日本'"),
    ] {
        assert_eq!(shown(&atom(name)), expected);
        let long = [&[118, 0, name.len() as u8], name.as_bytes()].concat();
        assert_eq!(shown(&long), expected);
    }
    assert_eq!(shown(&[100, 0, 1, 0xe9]), "'é'");
    assert_eq!(shown(&[115, 1, 0xe9]), "'é'");
    assert_eq!(
        shown(&[119, 1, 0xe9]),
        "bad argument: an atom that is not UTF-8"
    );
}

#[test]
fn a_binary_becomes_str_if_it_is_utf8_and_bytes_if_not() {
    assert_eq!(shown(&binary(b"")), "''");
    assert_eq!(shown(&binary(b"a")), "'a'");
    assert_eq!(shown(&binary(b"hello")), "'hello'");
    assert_eq!(shown(&binary("héllo €".as_bytes())), "'héllo €'");
    assert_eq!(shown(&binary(b"a\0b")), "'a\\x00b'");
    assert_eq!(shown(&binary(b"\xff\xfe")), "b'\\xff\\xfe'");
    assert_eq!(shown(&binary(b"\xed\xa0\x80")), "b'\\xed\\xa0\\x80'");
}

#[test]
fn bytes_and_view_tuples_become_bytes_and_a_read_only_memoryview() {
    let tagged = |tag: &str, value: Vec<u8>| [vec![104, 2], atom(tag), value].concat();
    assert_eq!(shown(&tagged("bytes", binary(b"hi"))), "b'hi'");
    assert_eq!(shown(&tagged("bytes", vec![97, 1])), "('bytes', 1)");
    assert_eq!(shown(&tagged("view", vec![97, 1])), "('view', 1)");
    python(|bound| {
        let view = decode(bound, &tagged("view", binary(b"hi"))).unwrap();
        assert_eq!(view.type_name(), "memoryview");
        let readonly = view.getattr_c(c"readonly").unwrap();
        assert_eq!(readonly.as_bool(), Some(true));
        let bytes = view.call_method(c"tobytes", &[]).unwrap();
        assert_eq!(bytes.as_bytes(), Some(&b"hi"[..]));
    });
}

#[test]
fn lists_tuples_and_maps_become_list_tuple_and_dict() {
    assert_eq!(shown(&[106]), "[]");
    assert_eq!(shown(&[107, 0, 3, 1, 2, 3]), "[1, 2, 3]");
    assert_eq!(shown(&[108, 0, 0, 0, 2, 97, 1, 106, 106]), "[1, []]");
    assert_eq!(shown(&[104, 0]), "()");
    assert_eq!(shown(&[104, 2, 97, 1, 104, 0]), "(1, ())");
    assert_eq!(shown(&[105, 0, 0, 0, 1, 97, 1]), "(1,)");
    assert_eq!(shown(&[116, 0, 0, 0, 0]), "{}");
    let map = [
        &[116, 0, 0, 0, 2][..],
        &atom("a"),
        &[97, 1, 97, 2],
        &binary(b"b"),
    ]
    .concat();
    assert_eq!(shown(&map), "{'a': 1, 2: 'b'}");
}

#[test]
fn the_atoms_with_a_meaning_keep_it_as_map_keys_and_in_tuples() {
    let map = [&[116, 0, 0, 0, 1][..], &atom("undefined"), &atom("true")].concat();
    assert_eq!(shown(&map), "{None: True}");
    let tuple = [&[104, 2][..], &atom("false"), &atom("nil")].concat();
    assert_eq!(shown(&tuple), "(False, None)");
}

#[test]
fn an_improper_list_is_refused_by_name() {
    assert_eq!(
        shown(&[108, 0, 0, 0, 1, 97, 1, 97, 2]),
        "bad argument: an improper list: [1] with the tail 2"
    );
}

#[test]
fn a_bitstring_is_refused_by_its_length() {
    assert_eq!(
        shown(&[77, 0, 0, 0, 2, 5, 1, 2]),
        "bad argument: a bitstring of 13 bits"
    );
}

#[test]
fn a_key_that_python_cannot_hash_is_named() {
    assert_eq!(
        shown(&[116, 0, 0, 0, 1, 107, 0, 1, 5, 97, 1]),
        "bad argument: a map key that cannot be hashed: [5]"
    );
    assert_eq!(
        shown(&[116, 0, 0, 0, 1, 104, 1, 116, 0, 0, 0, 0, 97, 1]),
        "bad argument: a map key that cannot be hashed: ({},)"
    );
}

#[test]
fn keys_that_become_equal_are_named() {
    let two =
        |a: &[u8], b: &[u8]| shown(&[&[116, 0, 0, 0, 2][..], a, &[97, 1], b, &[97, 2]].concat());
    let one = [70, 63, 240, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        two(&[97, 1], &one),
        "bad argument: two map keys become one: 1.0"
    );
    assert_eq!(
        two(&atom("a"), &binary(b"a")),
        "bad argument: two map keys become one: 'a'"
    );
    assert_eq!(
        two(&atom("true"), &[97, 1]),
        "bad argument: two map keys become one: 1"
    );
    assert_eq!(
        two(&atom("nil"), &atom("none")),
        "bad argument: two map keys become one: None"
    );
}

#[test]
fn what_is_no_term_is_refused() {
    assert_eq!(shown(&[]), "bad argument: the term ends too early");
    assert_eq!(shown(&[97]), "bad argument: the term ends too early");
    assert_eq!(shown(&[97, 1, 1]), "bad argument: 1 bytes after the term");
    assert_eq!(shown(&[80, 0, 0, 0, 0]), "bad argument: a compressed term");
    assert_eq!(shown(&[82, 0]), "bad argument: unknown tag 82");
    assert_eq!(shown(&[121, 0]), "bad argument: unknown tag 121");
    python(|bound| {
        let result = etf::decode(bound, &etf::NoNode, etf::Input::one(&[130, 97, 1]));
        let text = "bad argument: a term starts with 131, not with 130";
        assert_eq!(why(&result.unwrap_err()), text);
    });
}

#[test]
fn a_count_larger_than_the_input_allocates_nothing() {
    for tag in [108, 105, 116] {
        assert_eq!(
            shown(&[tag, 255, 255, 255, 255, 97, 1]),
            "bad argument: the term ends too early"
        );
    }
    // Each level announces nearly all that is left: together more than there is.
    let mut nested = Vec::new();
    for level in 0..500 {
        nested.push(105);
        nested.extend((5000u32 - 10 * level).to_be_bytes());
    }
    nested.resize(8000, 106);
    assert_eq!(shown(&nested), "bad argument: the term ends too early");
}

#[test]
fn nesting_up_to_the_bound_works_and_beyond_it_is_refused_both_ways() {
    python_deep(|bound| {
        let nested = |depth: usize| {
            let mut bytes: Vec<u8> = [108, 0, 0, 0, 1].repeat(depth);
            bytes.push(106);
            bytes.extend(vec![106; depth]);
            bytes
        };
        // The innermost list is empty and costs no level.
        let most = nested(etf::DEFAULT_MAX_DEPTH);
        let object = decode(bound, &most).unwrap();
        assert_eq!(encode(bound, &object).unwrap(), most);
        for depth in [etf::DEFAULT_MAX_DEPTH + 1, 100_000] {
            assert_eq!(why(&decode(bound, &nested(depth)).unwrap_err()), "too deep");
        }
        for head in [
            &[104, 1][..],
            &[116, 0, 0, 0, 1, 97, 1],
            &[116, 0, 0, 0, 1, 104, 1],
        ] {
            let mut bytes = head.repeat(50_000);
            bytes.push(106);
            let error = decode(bound, &bytes).unwrap_err();
            assert!(["too deep", "bad argument: the term ends too early"].contains(&&*why(&error)));
        }
    });
}

#[test]
fn names_that_come_once_are_freed() {
    python(|bound| {
        let blocks = x(bound.py(), "import sys\nx = sys.getallocatedblocks");
        let count = || blocks.call(&[]).unwrap().as_i64().unwrap().unwrap();
        let before = count();
        for number in 0..100_000 {
            let key = atom(&format!("name_that_comes_once_{number}"));
            let map = [&[116, 0, 0, 0, 1][..], &key, &[97, 1]].concat();
            decode(bound, &map).unwrap();
        }
        // The table of names keeps a part of them, and other tests run meanwhile.
        assert!(count() - before < 50_000, "{} blocks", count() - before);
    });
}
