//! Calls on their way in, results on their way out.

use etf::{Input, NoNode, Value};
use pyrt::Obj;

use crate::harness::{eval, python, repr, term, why, x};

fn atom(name: &str) -> Vec<u8> {
    [&[119, name.len() as u8], name.as_bytes()].concat()
}

fn call(parts: &[&[u8]]) -> Vec<u8> {
    term(&[&[104, 4], parts.concat().as_slice()].concat())
}

fn shown(bytes: &[u8]) -> String {
    python(|bound| {
        let mut args = vec![Obj::none(bound.py())];
        match etf::decode_call(bound, &NoNode, Input::one(bytes), &mut args) {
            Ok(call) => {
                let args: Vec<String> = args.iter().map(repr).collect();
                let names = call.names.as_ref().map_or(String::new(), repr);
                let (module, function) = (repr(&call.module), repr(&call.function));
                format!("{module} {function} [{}] {names}", args.join(", "))
            }
            Err(error) => {
                assert!(args.is_empty());
                why(&error)
            }
        }
    })
}

const NO_KEYWORDS: &[u8] = &[116, 0, 0, 0, 0];

#[test]
fn names_may_be_atoms_binaries_or_strings() {
    let math = atom("math");
    for name in [
        math.clone(),
        [&[109, 0, 0, 0, 4][..], b"math"].concat(),
        [&[107, 0, 4][..], b"math"].concat(),
        [&[100, 0, 4][..], b"math"].concat(),
    ] {
        let bytes = call(&[&name, &atom("sqrt"), &[107, 0, 1, 4], NO_KEYWORDS]);
        assert_eq!(shown(&bytes), "'math' 'sqrt' [4] ");
    }
    for name in [
        &[100, 0, 1, 0xe9][..],
        &[107, 0, 1, 0xe9],
        &[119, 2, 0xc3, 0xa9],
    ] {
        let bytes = call(&[name, &math, &[106], NO_KEYWORDS]);
        assert_eq!(shown(&bytes), "'é' 'math' [] ");
    }
}

#[test]
fn a_name_is_the_same_object_each_time() {
    python(|bound| {
        let bytes = call(&[&atom("math"), &atom("sqrt"), &[106], NO_KEYWORDS]);
        let mut args = Vec::new();
        let first = etf::decode_call(bound, &NoNode, Input::one(&bytes), &mut args).unwrap();
        let second = etf::decode_call(bound, &NoNode, Input::one(&bytes), &mut args).unwrap();
        assert!(first.module.is(&second.module));
        assert!(
            first
                .function
                .is(&eval(bound.py(), "__import__('sys').intern('sqrt')"))
        );
    });
}

#[test]
fn keyword_values_follow_the_positional_ones() {
    let list = [108, 0, 0, 0, 2, 97, 1, 119, 1, b'x', 106];
    let keywords = [
        &[116, 0, 0, 0, 2][..],
        &atom("a"),
        &[97, 5],
        &[109, 0, 0, 0, 1, b'b', 106],
    ];
    let bytes = call(&[&atom("m"), &atom("f"), &list, &keywords.concat()]);
    assert_eq!(shown(&bytes), "'m' 'f' [1, 'x', 5, []] ('a', 'b')");
}

#[test]
fn a_decoded_call_can_be_made() {
    python(|bound| {
        let keywords = [&[116, 0, 0, 0, 1][..], &atom("base"), &[97, 16]].concat();
        let args = [&[108, 0, 0, 0, 1, 109, 0, 0, 0, 2][..], b"ff", &[106]].concat();
        let bytes = call(&[&atom("builtins"), &atom("int"), &args, &keywords]);
        let mut args = Vec::new();
        let call = etf::decode_call(bound, &NoNode, Input::one(&bytes), &mut args).unwrap();
        let module = pyrt::call::import(&call.module).unwrap();
        let function = module.getattr(&call.function).unwrap();
        let result = function.call_owned(&args, call.names.as_ref()).unwrap();
        assert_eq!(repr(&result), "255");
    });
}

#[test]
fn what_is_no_call_is_refused() {
    let (m, f) = (atom("m"), atom("f"));
    for (bytes, expected) in [
        (term(&[97, 1]), "a call is a tuple of four"),
        (
            call(&[&[97, 1], &f, &[106], NO_KEYWORDS]),
            "the module must be an atom or a binary",
        ),
        (
            call(&[&m, &[106], &[106], NO_KEYWORDS]),
            "the function must be an atom or a binary",
        ),
        (
            call(&[&m, &f, &[97, 1], NO_KEYWORDS]),
            "the arguments must be a list",
        ),
        (
            call(&[&m, &f, &[108, 0, 0, 0, 1, 97, 1, 97, 2], NO_KEYWORDS]),
            "the arguments are an improper list",
        ),
        (
            call(&[&m, &f, &[106], &[106]]),
            "the keyword arguments must be a map",
        ),
        (
            call(&[&m, &[109, 0, 0, 0, 1, 255], &[106], NO_KEYWORDS]),
            "the function is not UTF-8",
        ),
        (
            call(&[&m, &f, &[106], &[116, 0, 0, 0, 1, 97, 1, 97, 1]]),
            "the name of a keyword argument must be an atom or a binary",
        ),
        (
            call(&[
                &m,
                &f,
                &[106],
                &[
                    116, 0, 0, 0, 2, 119, 1, b'a', 97, 1, 109, 0, 0, 0, 1, b'a', 97, 1,
                ],
            ]),
            "two keyword arguments become one: 'a'",
        ),
        (
            call(&[&m, &f, &[106], NO_KEYWORDS, &[1]]),
            "1 bytes after the term",
        ),
        (
            call(&[&m, &f, &[108, 255, 255, 255, 255]]),
            "the term ends too early",
        ),
    ] {
        assert_eq!(shown(&bytes), format!("bad argument: {expected}"));
    }
}

fn value(source: &str) -> String {
    python(|bound| {
        let object = x(bound.py(), source);
        let mut out = Vec::new();
        match etf::to_value(bound, &NoNode, &object, &mut out) {
            Ok(Value::Int(value)) => format!("int {value}"),
            Ok(Value::Float(value)) => format!("float {value}"),
            Ok(Value::Atom(name)) => format!("atom {name}"),
            Ok(Value::Bytes(held)) => {
                let bytes = held.as_slice();
                format!("lent {} {:?}", bytes.len(), &bytes[..2])
            }
            Ok(Value::Array { .. }) => "array".to_owned(),
            Ok(Value::Encoded(_)) => format!("encoded {}", out.len()),
            Err(error) => why(&error),
        }
    })
}

#[test]
fn scalars_at_the_top_need_no_encoding() {
    assert_eq!(value("x = 5"), "int 5");
    assert_eq!(value("x = -2**63"), "int -9223372036854775808");
    assert_eq!(value("x = 2**63"), "encoded 11");
    assert_eq!(value("x = 1.5"), "float 1.5");
    assert_eq!(value("x = float('nan')"), "atom nan");
    assert_eq!(value("x = True"), "atom true");
    assert_eq!(value("x = None"), "atom none");
    assert_eq!(value("x = [1]"), "encoded 8");
    assert_eq!(value("x = object"), "not convertible: <class 'object'>");
}

#[test]
fn large_bytes_and_text_at_the_top_are_lent() {
    assert_eq!(value("x = b'ab' * 32768"), "lent 65536 [97, 98]");
    assert_eq!(value("x = 'ab' * 32768"), "lent 65536 [97, 98]");
    assert_eq!(value("x = 'é' * 65536"), "lent 131072 [195, 169]");
    assert_eq!(value("x = b'ab' * 100"), "encoded 205");
    assert_eq!(value("x = bytearray(65536)"), "encoded 65541");
    assert!(value("x = '\\ud800' * 65536").starts_with("UnicodeEncodeError"));
}

#[test]
fn lent_memory_outlives_the_object() {
    python(|bound| {
        let object = eval(bound.py(), "b'ab' * 32768");
        let Ok(Value::Bytes(held)) = etf::to_value(bound, &NoNode, &object, &mut Vec::new()) else {
            panic!("not lent");
        };
        drop(object);
        let sum =
            std::thread::spawn(move || held.as_slice().iter().map(|&b| b as usize).sum::<usize>());
        assert_eq!(sum.join().unwrap(), 32768 * (97 + 98));
    });
}
