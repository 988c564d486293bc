//! `erlang._node`: what Python code in a node can ask of Erlang. The package `erlang` wraps it.
//!
//! Thread: any that runs Python, attached.

use pyrt::error::Builtin;
use pyrt::module::{Args, Definition, END, Function, Module};
use pyrt::{Attached, Kept, Obj, PyError, PyResult, function};
use rustler::LocalPid;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock, Weak};

use crate::ask;
use crate::callback::{self, Answer, NoAnswer};
use crate::current::{self, Current};
use crate::interp::{Interp, World};
use crate::{census, fork, log, runtime};
use crate::{py_output, py_send};
use etf::write::{self, write_list_header};

/// The module's state in one interpreter.
pub struct NodeModule {
    /// Set once the interpreter is known; weak, since that keeps this module.
    interp: OnceLock<Weak<Interp>>,
    erlang_error: Kept,
    cancelled: Kept,
}

static FUNCTIONS: [Function; 18] = [
    function!(
        c"call",
        call_,
        c"call(name, *args): calls a function registered in Erlang"
    ),
    function!(
        c"ask",
        ask::ask,
        c"ask(loop, future, name, *args): call, for a coroutine"
    ),
    function!(
        c"current",
        ask::current_,
        c"current(): whom this code runs for"
    ),
    function!(
        c"begin_loop",
        ask::begin_loop,
        c"begin_loop(): starts the loop of this sub-interpreter"
    ),
    function!(c"send", py_send::send, c"send(dest, term): sends a message"),
    function!(
        c"whereis",
        py_send::whereis,
        c"whereis(name): the pid registered under a name, or None"
    ),
    function!(
        c"self",
        self_,
        c"self(): the pid of the process this code runs for"
    ),
    function!(
        c"log",
        py_output::log_,
        c"log(level, logger, message, meta)"
    ),
    function!(
        c"write",
        py_output::write,
        c"write(text): to the group leader of the process this code runs for, unless it is behind"
    ),
    function!(
        c"write_behind",
        py_output::write_behind,
        c"write_behind(text, wait): to a leader that is behind: waits for it, or drops the text"
    ),
    function!(
        c"line_begun",
        py_output::line_begun,
        c"line_begun(): output of this thread waits to be flushed"
    ),
    function!(
        c"sleep",
        py_output::sleep,
        c"sleep(seconds): blocks this thread, the GIL released"
    ),
    function!(
        c"tracing",
        py_output::tracing,
        c"tracing(original, function): calls it; what it sets ends with the job"
    ),
    function!(
        c"interpreters",
        census::count,
        c"interpreters(): how many sub-interpreters there are"
    ),
    function!(
        c"begin_fork",
        census::begin_fork,
        c"begin_fork(seconds): whether there is no sub-interpreter, and none is made until end_fork()"
    ),
    function!(c"end_fork", census::end_fork, c"end_fork(): in the parent"),
    function!(
        c"current_frames",
        census::current_frames,
        c"current_frames(): the frames of the threads of this interpreter"
    ),
    END,
];

impl Module for NodeModule {
    const NAME: &'static CStr = c"erlang._node";
    const DOC: &'static CStr = c"What Python code in a node can ask of Erlang.";

    fn init<'py>(module: &Obj<'py>) -> PyResult<'py, Self> {
        let errors = pyrt::call::import_c(module.py(), c"erlang._errors")?;
        Ok(NodeModule {
            interp: OnceLock::new(),
            erlang_error: Kept::new(errors.getattr_c(c"ErlangError")?),
            cancelled: Kept::new(errors.getattr_c(c"Cancelled")?),
        })
    }
}

fn definition() -> &'static Definition<NodeModule> {
    static DEFINITION: OnceLock<&'static Definition<NodeModule>> = OnceLock::new();
    DEFINITION.get_or_init(|| Definition::new(&FUNCTIONS))
}

pub extern "C" fn init() -> *mut pyrt::module::__ffi::PyObject {
    definition().init()
}

/// Tells the module of this interpreter which one it is.
pub fn belong<'py>(py: Attached<'py>, interp: &Arc<Interp>) -> PyResult<'py, ()> {
    let module = pyrt::call::import_c(py, c"erlang._node")?;
    if let Some(state) = definition().state(&module) {
        let _ = state.interp.set(Arc::downgrade(interp));
    }
    Ok(())
}

/// The interpreter a function of this module was called in.
pub fn interp<'py>(module: &Obj<'py>) -> PyResult<'py, Arc<Interp>> {
    definition()
        .state(module)
        .and_then(|state| state.interp.get()?.upgrade())
        .ok_or_else(|| {
            let text = "this interpreter does not belong to the node";
            PyError::new(module.py(), Builtin::RuntimeError, text)
        })
}

/// The codec's surroundings outside of a job's own decoding and encoding.
pub struct NodeHost<'a> {
    pub interp: &'a Interp,
    pub current: Option<&'a Current>,
}

impl etf::Host for NodeHost<'_> {
    fn node(&self) -> etf::NodeId {
        runtime::node(&runtime::a_pid())
    }

    fn object<'py>(
        &self,
        py: Attached<'py>,
        number: u64,
        index: u64,
        generation: u64,
    ) -> Option<Obj<'py>> {
        self.interp.object(py, number, index, generation)
    }

    fn cancelled(&self) -> bool {
        self.current.is_some_and(|current| current.must_stop())
    }

    fn max_depth(&self) -> usize {
        runtime::max_depth()
    }

    fn knows(&self, fun: &[u8]) -> bool {
        runtime::knows(fun)
    }
}

pub fn with_world<'py, T>(
    interp: &Interp,
    py: Attached<'py>,
    body: impl FnOnce(&World<'_, 'py>) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    match interp.with(py, body) {
        Some(result) => result,
        None => Err(PyError::new(
            py,
            Builtin::RuntimeError,
            "not this interpreter's node",
        )),
    }
}

pub fn raised<'py>(py: Attached<'py>, error: etf::Error<'py>) -> PyError<'py> {
    unconverted(py, error, "an Erlang term")
}

/// `error`, of a value on its way to `form`.
fn unconverted<'py>(py: Attached<'py>, error: etf::Error<'py>, form: &str) -> PyError<'py> {
    match error {
        etf::Error::Python(error) => error,
        etf::Error::BadArgument(what) | etf::Error::NotConvertible(what) => {
            let text = format!("can't be converted to {form}: {what}");
            PyError::new(py, Builtin::TypeError, &text)
        }
        etf::Error::TooDeep => {
            let text = format!("nested too deep for {form}");
            PyError::new(py, Builtin::RecursionError, &text)
        }
        etf::Error::Cancelled => PyError::new(py, Builtin::RuntimeError, "the job was cancelled"),
    }
}

fn call_<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let name = args.want(0, "name")?;
    let name = name.as_utf8()?;
    let interp = interp(module)?;
    let current = current::current(py, &interp);
    let host = NodeHost {
        interp: &interp,
        current: current.as_ref(),
    };
    let bytes = encode_args(py, &host, args, 1)?;
    match callback::call(py, &interp, name, &bytes) {
        Ok((answer, _named)) => value_of(module, &host, answer),
        Err(NoAnswer::Stopped) => Err(stopped(module)),
        Err(NoAnswer::NotRunning) => {
            let text = "erlang_python is not running: start the application first";
            Err(PyError::new(py, Builtin::RuntimeError, text))
        }
    }
}

/// The arguments from `first` on, as an encoded list.
pub fn encode_args<'py>(
    py: Attached<'py>,
    host: &NodeHost<'_>,
    args: &Args<'_, 'py>,
    first: usize,
) -> PyResult<'py, Vec<u8>> {
    with_world(host.interp, py, |world| {
        let mut out = vec![etf::tag::VERSION];
        if args.len() > first {
            write_list_header(&mut out, args.len() - first);
        }
        for index in first..args.len() {
            let arg = args.want(index, "arg")?;
            etf::encode(&world.bound, host, &arg, &mut out).map_err(|error| raised(py, error))?;
        }
        write::write_nil(&mut out);
        Ok(out)
    })
}

/// What Erlang has answered: a value, or an exception.
pub fn value_of<'py>(
    module: &Obj<'py>,
    host: &NodeHost<'_>,
    answer: Answer,
) -> PyResult<'py, Obj<'py>> {
    let py = module.py();
    match answer {
        Answer::Value(bytes) => decode(py, host, &bytes),
        Answer::Raised(bytes) => {
            let triple = decode(py, host, &bytes)?;
            Err(erlang_error(module, &triple))
        }
        Answer::Gone => {
            let text = "the Erlang process that ran the function was killed";
            Err(PyError::new(py, Builtin::RuntimeError, text))
        }
        Answer::Deadlock => {
            let text = "erlang.call() blocks this event loop, and the Erlang function waits for a \
                        task of it: use `await erlang.async_call(...)`";
            Err(PyError::new(py, Builtin::RuntimeError, text))
        }
    }
}

pub fn decode<'py>(
    py: Attached<'py>,
    host: &NodeHost<'_>,
    bytes: &[u8],
) -> PyResult<'py, Obj<'py>> {
    with_world(host.interp, py, |world| {
        etf::decode(&world.bound, host, etf::Input::one(bytes))
            .map_err(|error| unconverted(py, error, "a Python object"))
    })
}

fn erlang_error<'py>(module: &Obj<'py>, triple: &Obj<'py>) -> PyError<'py> {
    let py = module.py();
    let class = definition()
        .state(module)
        .and_then(|state| state.erlang_error.get(py));
    let items = [0, 1, 2].map(|index| triple.tuple_item(index).map(|item| (*item).clone()));
    match (class, items) {
        (Some(class), [Some(kind), Some(reason), Some(trace)]) => {
            PyError::of_class(&class, &[&kind, &reason, &trace])
        }
        _ => PyError::new(py, Builtin::RuntimeError, "an Erlang function failed"),
    }
}

pub fn stopped<'py>(module: &Obj<'py>) -> PyError<'py> {
    let py = module.py();
    let class = definition()
        .state(module)
        .and_then(|state| state.cancelled.get(py));
    match class {
        Some(class) => PyError::of_class(&class, &[]),
        None => PyError::new(py, Builtin::RuntimeError, "the job was cancelled"),
    }
}

fn self_<'py>(module: &Obj<'py>, _args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    fork::refuse_child(module.py())?;
    let pid = match current::current(module.py(), &*interp(module)?) {
        Some(current) => *current.slot.pid(),
        None => runtime::a_pid(),
    };
    pid_object(module, &pid)
}

pub fn pid_object<'py>(module: &Obj<'py>, pid: &LocalPid) -> PyResult<'py, Obj<'py>> {
    let bytes = log::with_env(|env| env.encode_pid(pid)).unwrap_or_default();
    let interp = interp(module)?;
    let host = NodeHost {
        interp: &interp,
        current: None,
    };
    decode(module.py(), &host, &bytes)
}
