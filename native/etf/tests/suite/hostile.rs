//! Objects that do what they like while they are converted.

use etf::{Host, Input};

use crate::harness::{
    decode, encode, encoded, exec, python, python_deep, term, text, there_and_back, why, x,
};

#[test]
fn a_list_that_changes_while_it_is_converted_is_a_runtime_error() {
    let change = |how: &str| {
        encoded(&format!(
            "import pathlib\nclass E(pathlib.PurePosixPath):\n  def __str__(self):\n    {how}\n    return 'e'\n\
             x = [E(), 1, 2, 3]"
        ))
    };
    for how in ["x.clear()", "x.append(1)", "x.pop()", "x[:] = []"] {
        let error = change(how).unwrap_err();
        assert_eq!(
            error, "RuntimeError: list changed size during conversion",
            "{how}"
        );
    }
    assert!(change("x[1:] = [4, 5, 6]").is_ok());
}

#[test]
fn a_dict_that_changes_while_it_is_converted_is_a_runtime_error() {
    let change = |how: &str| {
        encoded(&format!(
            "import pathlib\nclass E(pathlib.PurePosixPath):\n  def __str__(self):\n    {how}\n    return 'e'\n\
             x = {{i: i for i in range(20)}}; x[0] = E(); x[10] = E()"
        ))
    };
    for how in [
        "x.clear()",
        "x[object()] = 1",
        "x.popitem()",
        "x.update((i, i) for i in range(9999))",
    ] {
        // Without a GIL a copy is converted: other threads may change the dict at any time.
        if pyrt::FREE_THREADED {
            assert!(change(how).is_ok(), "{how}");
            continue;
        }
        let error = change(how).unwrap_err();
        assert_eq!(
            error, "RuntimeError: dictionary changed size during conversion",
            "{how}"
        );
    }
    // As many as before, but one of them is met twice.
    if pyrt::FREE_THREADED {
        assert!(change("x[0] = x.pop(0)").is_ok());
        return;
    }
    let error = change("x[0] = x.pop(0)").unwrap_err();
    assert!(
        error.contains("become one map key") || error.contains("changed size"),
        "{error}"
    );
}

#[test]
fn a_set_that_changes_while_it_is_converted_is_pythons_own_error() {
    let error = encoded(
        "import pathlib\nx = set()\nclass E(pathlib.PurePosixPath):\n  def __str__(self):\n    x.add(object())\n    return 'e'\n\
         x = {E(), 1}",
    );
    // Whether the size is noticed depends on the order: the object that was added is the other way.
    let error = error.unwrap_err();
    assert!(
        error.contains("changed size during iteration") || error.contains("not convertible"),
        "{error}"
    );
}

#[test]
fn an_item_freed_by_the_one_before_it_is_not_used() {
    let source = "import pathlib\nclass E(pathlib.PurePosixPath):\n  def __str__(self):\n    x[1] = 0\n    x[2] = 0\n    return 'e'\n\
        x = [E(), ['a' * 1000] * 3, 'b' * 1000]";
    assert_eq!(there_and_back(source), "['e', 0, 0]");
    let source = "import pathlib\nclass E(pathlib.PurePosixPath):\n  def __str__(self):\n    x[0] = 0\n    return 'e'\n\
        x = [[E(), 'a' * 3]]";
    assert_eq!(there_and_back(source), "[['e', 'aaa']]");
}

#[test]
fn mappings_may_give_anything() {
    let mapping = |items: &str| {
        encoded(&format!(
            "import collections.abc\nclass M(collections.abc.Mapping):\n\
             \x20 def __getitem__(self, k): raise KeyError\n  def __len__(self): return 1\n\
             \x20 def __iter__(self): return iter(())\n  def items(self): {items}\nx = M()"
        ))
    };
    assert_eq!(
        mapping("return [(1, 2)]").unwrap(),
        [116, 0, 0, 0, 1, 97, 1, 97, 2]
    );
    assert_eq!(mapping("return ()").unwrap(), [116, 0, 0, 0, 0]);
    assert!(mapping("return 5").unwrap_err().starts_with("TypeError"));
    assert_eq!(
        mapping("return [5]").unwrap_err(),
        "TypeError: items() gave 5 instead of a pair"
    );
    assert!(
        mapping("return [(1, 2, 3)]")
            .unwrap_err()
            .starts_with("TypeError")
    );
    assert!(
        mapping("raise LookupError('x')")
            .unwrap_err()
            .starts_with("LookupError")
    );
    assert!(
        mapping("return [(1, 2), (1, 3)]")
            .unwrap_err()
            .contains("become one map key: 1")
    );
    assert!(
        mapping("yield 1, 2; raise LookupError")
            .unwrap_err()
            .starts_with("LookupError")
    );
}

#[test]
fn methods_that_give_another_type_are_refused() {
    for source in [
        "import datetime\nclass D(datetime.date):\n  def isoformat(self): return 5\nx = D(2024, 1, 1)",
        "import decimal\nclass D(decimal.Decimal):\n  def __str__(self): return 5\nx = D(1)",
        "import decimal\nclass D(decimal.Decimal):\n  def __str__(self): raise LookupError\nx = D(1)",
        "class D:\n  __dataclass_fields__ = 5\nx = D()",
        "class D:\n  __dataclass_fields__ = {'a': 5}\nx = D()",
        "class M(type):\n  def __getattr__(c, n): raise LookupError(n)\nclass D(metaclass=M): pass\nx = D()",
        "class D:\n  @property\n  def __class__(self): raise LookupError\nx = D()",
    ] {
        assert!(encoded(source).is_err(), "{source}");
    }
}

#[test]
fn a_str_method_that_recurses_ends_in_pythons_own_bound() {
    python_deep(|bound| {
        let object = x(
            bound.py(),
            "import erlang._native as n, decimal\nclass D(decimal.Decimal):\n\
             \x20 def __str__(self): return n.term_to_bytes([self]).decode()\nx = D(1)",
        );
        assert!(
            encode(bound, &object)
                .unwrap_err()
                .starts_with("RecursionError")
        );
    });
}

#[test]
fn keys_made_by_a_constructor_may_hash_and_compare_as_they_like() {
    python(|bound| {
        exec(
            bound.py(),
            "import erlang._native as n\n\
             class NoHash:\n  __hash__ = None\n\
             class Raises:\n  def __hash__(self): raise LookupError('hash')\n\
             class Equal:\n  def __hash__(self): return 1\n  def __eq__(self, o): return True\n\
             class BadEqual:\n  def __hash__(self): return 1\n  def __eq__(self, o): raise LookupError('eq')\n\
             for c in (NoHash, Raises, Equal, BadEqual): n.register_constructor(c.__name__, c)\n",
        );
        let map = |names: &[&str]| {
            let mut bytes = vec![116, 0, 0, 0, names.len() as u8];
            for name in names {
                bytes.extend([104, 1, 119, name.len() as u8]);
                bytes.extend(name.as_bytes());
                bytes.extend([97, 1]);
            }
            why(&decode(bound, &bytes).unwrap_err())
        };
        assert!(map(&["NoHash"]).starts_with("bad argument: a map key that cannot be hashed"));
        assert_eq!(map(&["Raises"]), "LookupError: hash");
        assert!(map(&["Equal", "Equal"]).starts_with("bad argument: two map keys become one"));
        assert_eq!(map(&["BadEqual", "BadEqual"]), "LookupError: eq");
        drop(text(bound.py(), ""));
    });
}

#[test]
fn a_collector_that_looks_at_everything_finds_no_half_made_container() {
    python(|bound| {
        exec(
            bound.py(),
            "import erlang._native as n, gc\n\
             def look():\n  for o in gc.get_objects():\n    if type(o) in (list, tuple) and len(o) == 77:\n      repr(o)\n  return 0\n\
             n.register_constructor('look_around', look)\n",
        );
        let look = [&[104, 1, 119, 11][..], b"look_around"].concat();
        for head in [&[108, 0, 0, 0, 77][..], &[104, 77], &[105, 0, 0, 0, 77]] {
            let mut bytes = [head, &look].concat();
            bytes.extend([106].repeat(76));
            if head[0] == 108 {
                bytes.push(106);
            }
            assert!(decode(bound, &bytes).is_ok());
        }
    });
}

#[test]
fn a_host_that_allows_any_depth_is_still_safe_on_the_stack_of_a_python_thread() {
    struct Bottomless;
    impl Host for Bottomless {
        fn max_depth(&self) -> usize {
            usize::MAX
        }
    }
    let body = || {
        python(|bound| {
            for head in [
                &[108, 0, 0, 0, 1][..],
                &[104, 1],
                &[116, 0, 0, 0, 1, 97, 1],
                &[104, 2, 119, 1, b'a'],
                &[104, 2, 119, 6, b'n', b'e', b's', b't', b'e', b'd'],
            ] {
                let nested = term(&head.repeat(100_000));
                let error = etf::decode(bound, &Bottomless, Input::one(&nested)).unwrap_err();
                assert!(
                    ["too deep", "bad argument: the term ends too early"].contains(&&*why(&error))
                );
            }
            let fun = [
                &[112, 0, 0, 0, 0][..],
                &[0; 21],
                &[0, 0, 0, 1, 106, 106, 106, 106],
            ]
            .concat();
            let nested = term(&fun.repeat(20_000));
            let error = etf::decode(bound, &Bottomless, Input::one(&nested)).unwrap_err();
            assert_eq!(why(&error), "too deep");
            for source in [
                "x = []; x.append(x)",
                "x = {}; x['x'] = x",
                "import types; a = {}; x = types.MappingProxyType(a); a['x'] = x",
                "import dataclasses\n@dataclasses.dataclass\nclass D:\n  d: object\nx = D(0); x.d = x",
                "import erlang._native as n\nclass C: pass\nn.register_converter(C, lambda c: (c,))\nx = C()",
            ] {
                let object = x(bound.py(), source);
                let result = etf::encode(bound, &Bottomless, &object, &mut Vec::new());
                assert_eq!(why(&result.unwrap_err()), "too deep", "{source}");
            }
        });
    };
    // Threads that Python itself starts have the system's usual stack.
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(body);
    thread.unwrap().join().unwrap();
}

/// A class whose metaclass runs `hook` when an attribute of the class is asked for; `x` is the only
/// instance, and its class is freed as soon as `x` gets another one.
fn with_metaclass(hook: &str) -> String {
    format!(
        "import dataclasses, gc, uuid\n\
         class Other: pass\n\
         class Meta(type):\n\
         \x20 def __getattribute__(cls, name):\n\
         \x20   if name in {hook} and x is not None and type(x) is not Other:\n\
         \x20     x.__class__ = Other\n\
         \x20     del cls\n\
         \x20     gc.collect()\n\
         \x20     [bytearray(1 << 10) for _ in range(1000)]\n\
         \x20     raise AttributeError(name)\n\
         \x20   return super().__getattribute__(name)\n\
         x = None\n\
         x = Meta('C', (), {{}})()\n\
         gc.collect()\n"
    )
}

#[test]
fn a_class_freed_while_its_instance_is_converted_is_not_used() {
    let error = encoded(&with_metaclass("('__dataclass_fields__',)")).unwrap_err();
    assert!(error.starts_with("not convertible"), "{error}");
}

#[test]
fn a_class_freed_while_its_name_is_asked_for_is_not_used() {
    python(|bound| {
        let object = x(bound.py(), &with_metaclass("('__name__',)"));
        assert_eq!(object.type_name(), "object");
    });
}

#[test]
fn the_depth_follows_the_stack_of_the_calling_thread() {
    for stack in [256 << 10, 512 << 10, 1 << 20] {
        let body = move || {
            python(|bound| {
                let py = bound.py();
                let nested = [&[108, 0, 0, 0, 1].repeat(1000)[..], &[106; 1001]].concat();
                assert_eq!(
                    why(&decode(bound, &nested).unwrap_err()),
                    "too deep",
                    "{stack}"
                );
                let few = [&[108, 0, 0, 0, 1].repeat(8)[..], &[106; 9]].concat();
                decode(bound, &few).unwrap();
                let list = x(py, "x = []\nfor _ in range(900): x = [x]");
                assert_eq!(encode(bound, &list).unwrap_err(), "too deep", "{stack}");
                encode(bound, &x(py, "x = [[[[[[[[]]]]]]]]")).unwrap();
            });
        };
        let thread = std::thread::Builder::new().stack_size(stack).spawn(body);
        thread.unwrap().join().unwrap();
    }
}
