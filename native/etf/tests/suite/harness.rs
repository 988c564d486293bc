//! Python for tests: initialised by one thread that stays, used by each test's own thread.

use std::sync::OnceLock;
use std::sync::mpsc::channel;

use etf::{Bound, Error, Host, Input, NoNode, NodeId};
use pyrt::call::{Source, compile, import_c, run_code};
use pyrt::embed::{Inbuilt, initialize};
use pyrt::thread::{Interp, ThreadState, spawn_named};
use pyrt::{Attached, Obj};

/// Starts Python once; the thread that did it keeps its state for ever.
fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let (started, wait) = channel();
        spawn_named("py-init", move || {
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
                exec(
                    py,
                    "import sys, types, datetime\n\
                     sys.modules['erlang'] = types.ModuleType('erlang')\n\
                     sys.modules['erlang'].__path__ = []\n",
                );
                let native = pyloop::load(py).unwrap();
                let erlang = import_c(py, c"erlang").unwrap();
                let atom = native.getattr_c(c"Atom").unwrap();
                erlang.setattr_c(c"Atom", &atom).unwrap();
                erlang.setattr_c(c"_native", &native).unwrap();
            });
            started.send(()).unwrap();
            loop {
                std::thread::park();
            }
        })
        .unwrap();
        wait.recv().unwrap();
    });
}

/// Runs `body` attached to the main interpreter.
pub fn python<T>(body: impl for<'py> FnOnce(&Bound<'_, 'py>) -> T) -> T {
    start();
    let mut state = ThreadState::new(Interp::main().unwrap()).unwrap();
    state.attached(|py| {
        let module = import_c(py, c"erlang._native").unwrap();
        let state = pyloop::state(&module).unwrap();
        body(&state.types.bind(py))
    })
}

/// As `python`, on a thread with the stack that threads of the node have.
pub fn python_deep(body: impl for<'py> FnOnce(&Bound<'_, 'py>) + Send + 'static) {
    let (done, wait) = channel();
    let thread = spawn_named("deep", move || {
        python(body);
        done.send(()).unwrap();
    });
    thread.unwrap().join().unwrap();
    wait.recv().expect("the body panicked");
}

/// Statements, in a namespace of their own; gives the namespace.
pub fn exec<'py>(py: Attached<'py>, source: &str) -> Obj<'py> {
    let globals = Obj::dict(py).unwrap();
    let builtins = pyrt::call::builtins(py);
    globals.dict_set_c(c"__builtins__", &builtins).unwrap();
    let name = Obj::text(py, "__test__").unwrap();
    globals.dict_set_c(c"__name__", &name).unwrap();
    let code = compile(py, source.as_bytes(), c"<test>", Source::Statements).unwrap();
    match run_code(&code, &globals, &globals) {
        Ok(_) => globals,
        Err(error) => panic!("{source}: {}", error.value().display()),
    }
}

/// The variable `x` after the statements.
pub fn x<'py>(py: Attached<'py>, source: &str) -> Obj<'py> {
    let globals = exec(py, source);
    globals.dict_get(&text(py, "x")).unwrap().unwrap()
}

pub fn eval<'py>(py: Attached<'py>, source: &str) -> Obj<'py> {
    x(py, &format!("x = ({source})"))
}

pub fn text<'py>(py: Attached<'py>, text: &str) -> Obj<'py> {
    Obj::text(py, text).unwrap()
}

/// A node with a name.
pub struct Node(pub NodeId);

impl Node {
    pub fn named(name: &str, creation: u32) -> Self {
        Node(NodeId {
            name: name.into(),
            creation,
        })
    }
}

impl Host for Node {
    fn node(&self) -> NodeId {
        self.0.clone()
    }
}

/// 131 and the bytes.
pub fn term(bytes: &[u8]) -> Vec<u8> {
    [&[131], bytes].concat()
}

pub fn decode<'py>(bound: &Bound<'_, 'py>, bytes: &[u8]) -> Result<Obj<'py>, Error<'py>> {
    etf::decode(bound, &NoNode, Input::one(&term(bytes)))
}

/// The `repr` of what the bytes become, or why they don't.
pub fn shown(bytes: &[u8]) -> String {
    python(|bound| match decode(bound, bytes) {
        Ok(object) => repr(&object),
        Err(error) => why(&error),
    })
}

pub fn repr(object: &Obj<'_>) -> String {
    object.repr().unwrap().to_lossy().unwrap()
}

pub fn why(error: &Error<'_>) -> String {
    match error {
        Error::Python(error) => {
            let value = error.value();
            format!("{}: {}", value.type_name(), value.display())
        }
        Error::BadArgument(text) => format!("bad argument: {text}"),
        Error::NotConvertible(text) => format!("not convertible: {text}"),
        Error::TooDeep => "too deep".to_owned(),
        Error::Cancelled => "cancelled".to_owned(),
    }
}

pub fn encode<'py>(bound: &Bound<'_, 'py>, object: &Obj<'py>) -> Result<Vec<u8>, String> {
    let mut out = vec![7];
    match etf::encode(bound, &NoNode, object, &mut out) {
        Ok(_) => Ok(out[1..].to_vec()),
        Err(error) => {
            assert_eq!(out, [7], "after an error the buffer is as before");
            Err(why(&error))
        }
    }
}

/// The term of `x` after the statements.
pub fn encoded(source: &str) -> Result<Vec<u8>, String> {
    python(|bound| encode(bound, &x(bound.py(), source)))
}

/// What `x` becomes, shown as Python shows it after it has come back.
pub fn there_and_back(source: &str) -> String {
    python(|bound| {
        let object = x(bound.py(), source);
        match encode(bound, &object) {
            Ok(bytes) => match decode(bound, &bytes) {
                Ok(object) => repr(&object),
                Err(error) => why(&error),
            },
            Err(error) => error,
        }
    })
}
