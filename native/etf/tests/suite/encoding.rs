//! Objects to terms, rule by rule.

use crate::harness::{encode, encoded, eval, python, python_deep, there_and_back, x};

fn bytes_of(expression: &str) -> Vec<u8> {
    encoded(&format!("x = {expression}")).unwrap()
}

fn binary(text: &str) -> Vec<u8> {
    [
        &[109][..],
        &(text.len() as u32).to_be_bytes(),
        text.as_bytes(),
    ]
    .concat()
}

fn atom(name: &str) -> Vec<u8> {
    [&[119, name.len() as u8], name.as_bytes()].concat()
}

#[test]
fn integers_take_the_shortest_form_that_holds_them() {
    assert_eq!(bytes_of("0"), [97, 0]);
    assert_eq!(bytes_of("255"), [97, 255]);
    assert_eq!(bytes_of("256"), [98, 0, 0, 1, 0]);
    assert_eq!(bytes_of("-1"), [98, 255, 255, 255, 255]);
    assert_eq!(bytes_of("-2**31"), [98, 128, 0, 0, 0]);
    assert_eq!(bytes_of("2**31"), [110, 4, 0, 0, 0, 0, 128]);
    assert_eq!(bytes_of("-2**63"), [110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128]);
    assert_eq!(bytes_of("2**63"), [110, 8, 0, 0, 0, 0, 0, 0, 0, 0, 128]);
    assert_eq!(bytes_of("-2**64"), [110, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let large = bytes_of("-(2**2040)");
    assert_eq!(large[..6], [111, 0, 0, 1, 0, 1]);
    assert_eq!(large.len(), 6 + 256);
    assert_eq!(bytes_of("2**2040 - 1")[..3], [110, 255, 0]);
}

#[test]
fn constants_and_odd_floats_are_atoms() {
    assert_eq!(bytes_of("True"), atom("true"));
    assert_eq!(bytes_of("False"), atom("false"));
    assert_eq!(bytes_of("None"), atom("none"));
    assert_eq!(bytes_of("float('inf')"), atom("infinity"));
    assert_eq!(bytes_of("float('-inf')"), atom("neg_infinity"));
    assert_eq!(bytes_of("float('nan')"), atom("nan"));
    assert_eq!(bytes_of("1.5"), [70, 63, 248, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn text_of_every_width_is_a_binary_in_utf8() {
    for text in [
        "",
        "a",
        "hello",
        "é",
        "naïve ÿ",
        "日本語",
        "a€b",
        "🎉x",
        "\u{10ffff}",
    ] {
        assert_eq!(
            bytes_of(
                &format!("{text:?}")
                    .replace("\\u{", "\\U00")
                    .replace('}', "")
            ),
            binary(text)
        );
    }
}

#[test]
fn a_lone_surrogate_is_pythons_own_error() {
    for text in [
        "'\\ud800'",
        "'a\\udfffb'",
        "'🎉\\ud800'",
        "['x', '\\ud800']",
    ] {
        let error = encoded(&format!("x = {text}")).unwrap_err();
        assert!(error.starts_with("UnicodeEncodeError"), "{error}");
    }
}

#[test]
fn bytes_and_everything_like_them_are_binaries() {
    for source in [
        "b'abc'",
        "bytearray(b'abc')",
        "memoryview(b'abc')",
        "memoryview(b'axbxc')[::2]",
        "memoryview(bytearray(b'abc'))",
        "type('B', (bytes,), {})(b'abc')",
    ] {
        assert_eq!(bytes_of(source), binary("abc"), "{source}");
    }
    let released = "x = memoryview(b'abc'); x.release()";
    assert!(encoded(released).unwrap_err().starts_with("ValueError"));
}

#[test]
fn a_list_of_small_integers_is_a_list_not_a_string() {
    assert_eq!(bytes_of("[1, 2]"), [108, 0, 0, 0, 2, 97, 1, 97, 2, 106]);
    assert_eq!(bytes_of("[]"), [106]);
}

#[test]
fn tuples_named_or_not_are_tuples() {
    assert_eq!(bytes_of("()"), [104, 0]);
    assert_eq!(bytes_of("(1,)"), [104, 1, 97, 1]);
    let named = "import collections; x = collections.namedtuple('P', 'a b')(1, 2)";
    assert_eq!(encoded(named).unwrap(), [104, 2, 97, 1, 97, 2]);
    assert_eq!(bytes_of("(0,) * 256")[..5], [105, 0, 0, 1, 0]);
}

#[test]
fn dicts_and_mappings_are_maps() {
    let expected = [116, 0, 0, 0, 1, 97, 1, 97, 2];
    assert_eq!(bytes_of("{1: 2}"), expected);
    for source in [
        "import collections; x = collections.OrderedDict({1: 2})",
        "import collections; x = collections.defaultdict(int, {1: 2})",
        "import collections; x = collections.ChainMap({1: 2})",
        "import types; x = types.MappingProxyType({1: 2})",
        "import collections; x = collections.UserDict({1: 2})",
    ] {
        assert_eq!(encoded(source).unwrap(), expected, "{source}");
    }
}

#[test]
fn sets_are_lists() {
    assert_eq!(bytes_of("{7}"), [108, 0, 0, 0, 1, 97, 7, 106]);
    assert_eq!(bytes_of("frozenset({7})"), [108, 0, 0, 0, 1, 97, 7, 106]);
    assert_eq!(bytes_of("set()"), [106]);
}

#[test]
fn subclasses_go_by_their_value() {
    for (source, expected) in [
        ("import enum; x = enum.IntEnum('E', 'A B').B", vec![97, 2]),
        (
            "import enum\nclass S(str, enum.Enum):\n  A = 'a'\nx = S.A",
            binary("a"),
        ),
        (
            "x = type('F', (float,), {})(1.5)",
            vec![70, 63, 248, 0, 0, 0, 0, 0, 0],
        ),
        (
            "x = type('L', (list,), {})([1])",
            vec![108, 0, 0, 0, 1, 97, 1, 106],
        ),
        ("x = type('I', (int,), {})(2**70)", bytes_of("2**70")),
        ("import signal; x = signal.SIGINT", vec![97, 2]),
    ] {
        assert_eq!(encoded(source).unwrap(), expected, "{source}");
    }
}

#[test]
fn a_dataclass_is_a_map_of_its_fields() {
    let source = "import dataclasses\n\
        @dataclasses.dataclass\n\
        class P:\n  a: int\n  b: object\n\
        x = P(1, P(2, [3]))";
    assert_eq!(there_and_back(source), "{'a': 1, 'b': {'a': 2, 'b': [3]}}");
    let class = format!("{source}; x = P");
    assert!(
        encoded(&class)
            .unwrap_err()
            .starts_with("not convertible: <class")
    );
}

#[test]
fn dates_numbers_and_paths_are_their_text() {
    for (source, expected) in [
        (
            "import datetime as d; x = d.datetime(2024, 1, 2, 3, 4, 5)",
            "2024-01-02T03:04:05",
        ),
        ("import datetime as d; x = d.date(2024, 1, 2)", "2024-01-02"),
        ("import datetime as d; x = d.time(1, 2, 3)", "01:02:03"),
        ("import decimal; x = decimal.Decimal('1.10')", "1.10"),
        (
            "import uuid; x = uuid.UUID('12345678123456781234567812345678')",
            "12345678-1234-5678-1234-567812345678",
        ),
        ("import pathlib; x = pathlib.Path('/a/b')", "/a/b"),
    ] {
        assert_eq!(encoded(source).unwrap(), binary(expected), "{source}");
    }
}

#[test]
fn anything_else_is_named_by_a_bounded_repr() {
    assert_eq!(encoded("x = 1j").unwrap_err(), "not convertible: 1j");
    assert_eq!(
        encoded("x = range(3)").unwrap_err(),
        "not convertible: range(0, 3)"
    );
    assert!(
        encoded("x = [object()]")
            .unwrap_err()
            .starts_with("not convertible: <object")
    );
    let long = "class L:\n  def __repr__(self): return 'é' * 1000\nx = L()";
    let text = encoded(long).unwrap_err();
    assert_eq!(
        text.trim_start_matches("not convertible: ").chars().count(),
        200
    );
    let raising = "class R:\n  def __repr__(self): raise KeyboardInterrupt\nx = R()";
    assert_eq!(
        encoded(raising).unwrap_err(),
        "not convertible: <unprintable R>"
    );
    let surrogate = "class R:\n  def __repr__(self): return '\\ud800'\nx = R()";
    assert!(
        encoded(surrogate)
            .unwrap_err()
            .starts_with("not convertible: ")
    );
}

#[test]
fn keys_that_become_one_are_named() {
    let same = |name: &str| Err(format!("bad argument: two keys become one map key: {name}"));
    assert_eq!(encoded("x = {'a': 1, b'a': 2}"), same("'a'"));
    assert_eq!(encoded("x = {('a',): 1, (b'a',): 2}"), same("('a',)"));
    assert_eq!(
        encoded("x = {float('nan'): 1, float('nan'): 2}"),
        same("'nan'")
    );
    assert_eq!(
        encoded("import erlang; x = {None: 1, erlang.Atom('none'): 2}"),
        same("None")
    );
    assert_eq!(
        encoded("import datetime as d; x = {'2024-01-02': 1, d.date(2024, 1, 2): 2}"),
        same("'2024-01-02'")
    );
    // Of every kind at once.
    assert_eq!(
        encoded("import erlang; x = {'a': 1, (1,): 2, None: 3, erlang.Atom('b'): 4, b'a': 5}"),
        same("'a'")
    );
    assert!(encoded("x = {'a': 1, b'b': 2, 3: 4, None: 5, (1, 2): 6}").is_ok());
}

#[test]
fn a_value_that_contains_itself_is_too_deep() {
    python_deep(|bound| {
        let py = bound.py();
        for source in [
            "x = []; x.append(x)",
            "x = {}; x['x'] = x",
            "x = []; x.append((x,))",
            "import collections; x = collections.ChainMap({}); x['x'] = x",
            "import dataclasses\n@dataclasses.dataclass\nclass D:\n  d: object\nx = D(0); x.d = x",
        ] {
            assert_eq!(
                encode(bound, &x(py, source)).unwrap_err(),
                "too deep",
                "{source}"
            );
        }
        let deep = x(py, "x = []\nfor _ in range(100000): x = [x]");
        assert_eq!(encode(bound, &deep).unwrap_err(), "too deep");
    });
}

#[test]
fn the_summary_tells_the_widest_map() {
    python(|bound| {
        let object = eval(bound.py(), "[{i: i for i in range(40)}, {1: {2: 3}}]");
        let summary = etf::encode(bound, &etf::NoNode, &object, &mut Vec::new()).unwrap();
        assert_eq!(summary.widest_map, 40);
        assert!(!summary.local_funs);
    });
}
