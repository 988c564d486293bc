//! What users register, on both sides.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::harness::{decode, encode, exec, python, repr, text, there_and_back, why, x};

/// There is one `erlang._structs`.
static STRUCTS: Mutex<()> = Mutex::new(());

#[test]
fn a_registered_class_is_converted_by_its_converter_and_so_are_its_subclasses() {
    let source = "import erlang._native as n\n\
        class Money:\n  def __init__(self, v): self.v = v\n\
        class Euro(Money): pass\n\
        n.register_converter(Money, lambda m: ('money', m.v))\n\
        x = [Money(5), Euro([6])]";
    assert_eq!(there_and_back(source), "[('money', 5), ('money', [6])]");
}

#[test]
fn a_converter_comes_before_the_value_of_a_subclass() {
    let source = "import erlang._native as n, enum\n\
        class Color(enum.IntEnum):\n  RED = 1\n\
        n.register_converter(Color, lambda c: c.name)\nx = [Color.RED, 1]";
    assert_eq!(there_and_back(source), "['RED', 1]");
}

#[test]
fn a_converter_that_raises_or_gives_its_argument_back_is_an_error() {
    let source = "import erlang._native as n\nclass C: pass\n\
        def f(c): raise LookupError('no')\nn.register_converter(C, f)\nx = C()";
    assert_eq!(there_and_back(source), "LookupError: no");
    let source = "import erlang._native as n\nclass C: pass\n\
        n.register_converter(C, lambda c: c)\nx = C()";
    assert_eq!(there_and_back(source), "too deep");
}

#[test]
fn a_registered_tag_gives_its_tuple_to_the_constructor() {
    python(|bound| {
        let py = bound.py();
        exec(
            py,
            "import erlang._native as n\n\
             n.register_constructor('point_of_test', lambda x, y: complex(x, y))\n\
             n.register_constructor('raises_in_test', lambda: [][0])\n",
        );
        let tagged = |name: &str, rest: &[u8]| {
            let count = rest.len() as u8 / 2 + 1;
            [
                &[104, count, 119, name.len() as u8][..],
                name.as_bytes(),
                rest,
            ]
            .concat()
        };
        let point = decode(bound, &tagged("point_of_test", &[97, 1, 97, 2])).unwrap();
        assert_eq!(repr(&point), "(1+2j)");
        let error = decode(bound, &tagged("point_of_test", &[97, 1])).unwrap_err();
        assert!(why(&error).starts_with("TypeError"));
        let error = decode(bound, &tagged("raises_in_test", &[])).unwrap_err();
        assert!(why(&error).starts_with("IndexError"));
        let other = decode(bound, &tagged("another", &[97, 1])).unwrap();
        assert_eq!(repr(&other), "('another', 1)");
        let key = [
            &[116, 0, 0, 0, 1][..],
            &tagged("point_of_test", &[97, 1, 97, 2]),
            &[97, 3],
        ];
        let dict = decode(bound, &key.concat()).unwrap();
        assert_eq!(repr(&dict), "{(1+2j): 3}");
    });
}

#[test]
fn a_struct_is_made_by_the_constructor_of_its_module_or_by_the_package() {
    let _one = STRUCTS.lock().unwrap_or_else(PoisonError::into_inner);
    python(|bound| {
        let py = bound.py();
        exec(
            py,
            "import erlang._native as n, sys, types\n\
             n.register_constructor('Elixir.OfTest', lambda fields: sorted(fields.items()))\n",
        );
        let structure = |module: &str| {
            let atom = |name: &str| [&[119, name.len() as u8][..], name.as_bytes()].concat();
            [
                &[116, 0, 0, 0, 3][..],
                &atom("b"),
                &atom("paid"),
                &atom("__struct__"),
                &atom(module),
                &atom("a"),
                &[104, 1, 97, 1],
            ]
            .concat()
        };
        let made = decode(bound, &structure("Elixir.OfTest")).unwrap();
        assert_eq!(repr(&made), "[('a', (1,)), ('b', 'paid')]");
        // The native module alone.
        let plain = decode(bound, &structure("Elixir.Another")).unwrap();
        assert_eq!(repr(&plain), "{'b': erlang.Atom('paid'), 'a': (1,)}");
        exec(
            py,
            "import sys, types\nstructs = types.ModuleType('erlang._structs')\n\
             structs.make = lambda module, fields: (module, fields)\n\
             sys.modules['erlang._structs'] = structs",
        );
        let told = decode(bound, &structure("Elixir.Another")).unwrap();
        exec(py, "import sys\ndel sys.modules['erlang._structs']");
        assert_eq!(
            repr(&told),
            "('Elixir.Another', {'b': erlang.Atom('paid'), 'a': (1,)})"
        );
        let text = [
            &[116, 0, 0, 0, 1][..],
            &[109, 0, 0, 0, 10],
            b"__struct__",
            &[97, 1],
        ];
        assert_eq!(
            repr(&decode(bound, &text.concat()).unwrap()),
            "{'__struct__': 1}"
        );
    });
}

#[test]
fn atoms_of_a_wide_struct_are_told_from_texts() {
    let _one = STRUCTS.lock().unwrap_or_else(PoisonError::into_inner);
    python(|bound| {
        let mut wide = vec![116, 0, 0, 0, 201];
        for pair in 0..200 {
            wide.extend([97, pair]);
            wide.extend(if pair % 3 == 0 {
                [119, 1, b'z'].as_slice()
            } else {
                &[109, 0, 0, 0, 1, b'z']
            });
        }
        wide.extend([119, 10]);
        wide.extend(b"__struct__");
        wide.extend([119, 1, b'M']);
        let fields = decode(bound, &wide).unwrap();
        let pairs = (0..200).map(|pair| {
            format!(
                "{pair}: {}",
                if pair % 3 == 0 {
                    "erlang.Atom('z')"
                } else {
                    "'z'"
                }
            )
        });
        let expected = pairs.collect::<Vec<_>>().join(", ");
        assert_eq!(repr(&fields), format!("{{{expected}}}"));
    });
}

/// What is in it is read once, and not again by each struct around it.
#[test]
fn structs_in_structs_cost_as_much_as_maps_in_maps() {
    let _one = STRUCTS.lock().unwrap_or_else(PoisonError::into_inner);
    let nested = |key: &[u8]| {
        let levels = 200;
        let mut bytes = Vec::new();
        for _ in 0..levels {
            bytes.extend([116, 0, 0, 0, 2, 119, 10]);
            bytes.extend(key);
            bytes.extend([119, 1, b'M', 97, 1]);
        }
        bytes.extend([109, 1, 0, 0, 0]);
        bytes.resize(bytes.len() + 0x100_0000, b'x');
        bytes
    };
    python(|bound| {
        let took = |bytes: &[u8]| {
            let times = (0..5).map(|_| {
                let begun = Instant::now();
                decode(bound, bytes).unwrap();
                begun.elapsed()
            });
            times.min().unwrap()
        };
        exec(
            bound.py(),
            "import sys, types\nstructs = types.ModuleType('erlang._structs')\n\
             structs.make = lambda module, fields: fields\n\
             sys.modules['erlang._structs'] = structs",
        );
        let (maps, structs) = (took(&nested(b"__plain___")), took(&nested(b"__struct__")));
        exec(bound.py(), "import sys\ndel sys.modules['erlang._structs']");
        assert!(
            structs < 8 * maps,
            "maps took {maps:?}, structs {structs:?}"
        );
    });
}

#[test]
fn what_has_a_fixed_meaning_cannot_be_registered() {
    python(|bound| {
        let refused = x(
            bound.py(),
            "import erlang._native as n\nx = []\n\
             def tries(f, *args):\n  try: f(*args)\n  except TypeError as e: x.append(str(e))\n\
             for cls in (int, str, dict, object, type(None), n.Atom, n.Pid): tries(n.register_converter, cls, repr)\n\
             tries(n.register_converter, 5, repr)\n\
             tries(n.register_converter, set, 5)\n\
             for tag in ('bytes', 'view', 'ndarray', '$py_ref'): tries(n.register_constructor, tag, repr)\n\
             tries(n.register_constructor, 5, repr)\n\
             tries(n.register_constructor, 'x', 5)\n\
             tries(n.register_constructor, 'x')\nx = len(x)",
        );
        assert_eq!(repr(&refused), "16");
    });
}

#[test]
fn a_converter_may_register_another_and_convert_by_itself() {
    python(|bound| {
        let object = x(
            bound.py(),
            "import erlang._native as n\nclass A: pass\nclass B: pass\n\
             def f(a):\n  n.register_converter(B, lambda b: 2)\n  return [n.term_to_bytes(B()), B()]\n\
             n.register_converter(A, f)\nx = A()",
        );
        let bytes = encode(bound, &object).unwrap();
        let back = decode(bound, &bytes).unwrap();
        assert_eq!(repr(&back), "[b'\\x83a\\x02', 2]");
        drop(text(bound.py(), ""));
    });
}
