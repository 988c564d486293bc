//! `erlang._native` as Python sees it: in the main interpreter and in others.
//!
//! One test, since Python starts once per process.
#![allow(clippy::unwrap_used)]

use pyrt::call::{Source, builtins, compile, run_code};
use pyrt::embed::{Inbuilt, initialize};
use pyrt::{Attached, Obj};

/// What every interpreter must be able to do.
const USE: &str = "
import sys, types
if 'erlang' not in sys.modules:
    sys.modules['erlang'] = types.ModuleType('erlang')
    sys.modules['erlang'].__path__ = []
import erlang._native as n
sys.modules['erlang'].Atom = n.Atom
value = {'a': [1, 2.5, None, (True, b'\\xff')], 'big': 2 ** 100, 'text': 'h\\xe9 \\u20ac'}
assert n.bytes_to_term(n.term_to_bytes(value)) == value
assert n.bytes_to_term(bytearray(n.term_to_bytes(value))) == value
assert n.term_to_bytes(n.Atom('ok')) == b'\\x83w\\x02ok'
assert n.Atom('ok') is n.Atom('ok')
class C: pass
n.register_converter(C, lambda c: 'a C')
n.register_constructor('made_in_test', lambda *args: args)
assert n.bytes_to_term(n.term_to_bytes([C()])) == ['a C']
assert n.bytes_to_term(n.term_to_bytes((n.Atom('made_in_test'), 1))) == (1,)
def refused(f, *args):
    try: f(*args)
    except (TypeError, ValueError, RecursionError) as error: return type(error)
assert refused(n.term_to_bytes, object()) is TypeError
assert refused(n.term_to_bytes) is TypeError
assert refused(n.bytes_to_term, b'\\x83') is ValueError
assert refused(n.bytes_to_term, 'text') is TypeError
assert refused(n.bytes_to_term, b'\\x83Xw\\x01n' + bytes(12)) is ValueError
deep = []; deep.append(deep)
assert refused(n.term_to_bytes, deep) is RecursionError
assert refused(n.Pid) is TypeError
assert [c.__module__ for c in (n.Atom, n.Pid, n.Ref, n.Port, n.Fun)] == ['erlang'] * 5
";

/// Runs `USE` in fresh interpreters with a GIL of their own (3.12 on), two at the same time.
const ELSEWHERE: &str = "
import sys, threading
if sys.version_info >= (3, 13):
    import _interpreters as si
    create, run = (lambda: si.create('isolated')), si.exec
else:
    import _xxsubinterpreters as si
    create, run = (lambda: si.create(isolated=True)), si.run_string
failures = []
def elsewhere(interp):
    try:
        failure = run(interp, use)
        if failure is not None: failures.append(failure)
    except BaseException as error:
        failures.append(error)
for _ in range(3):
    interps = [create(), create()]
    threads = [threading.Thread(target=elsewhere, args=(interp,)) for interp in interps]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for interp in interps: si.destroy(interp)
assert not failures, failures
";

#[test]
fn erlang_native_works_in_the_main_interpreter_and_in_others() {
    let program = std::env::var("PYO3_PYTHON")
        .ok()
        .or(option_env!("PYO3_PYTHON").map(str::to_owned))
        .unwrap_or("python3".to_owned());
    let native = Inbuilt {
        name: c"erlang._native",
        init: pyloop::init,
    };
    let mut state = initialize(&program, &[native]).unwrap();
    state.attached(|py| {
        let loaded = pyloop::load(py).unwrap();
        assert!(pyloop::load(py).unwrap().is(&loaded));
        assert!(pyloop::state(&loaded).is_some());
        assert!(pyloop::state(&Obj::none(py)).is_none());
        exec(py, USE, "");
        // Early 3.11 has no way to import it there without `load`.
        let early = pyrt::embed::version().starts_with("3.11.2 ");
        if !early {
            exec(py, ELSEWHERE, USE);
        }
        exec(py, USE, "");
    });
    // Python ends with the process.
    std::mem::forget(state);
}

fn exec(py: Attached<'_>, source: &str, code: &str) {
    let globals = Obj::dict(py).unwrap();
    globals.dict_set_c(c"__builtins__", &builtins(py)).unwrap();
    let code = Obj::text(py, code).unwrap();
    globals.dict_set_c(c"use", &code).unwrap();
    let code = compile(py, source.as_bytes(), c"<test>", Source::Statements);
    if let Err(error) = code.and_then(|code| run_code(&code, &globals, &globals)) {
        let value = error.value();
        panic!("{}: {}", value.type_name(), value.display());
    }
}
