//! `erlang._native`: the native part of the Python package, in a node and in the wheel.
//!
//! Thread: any that Python calls it on. Never: knows the BEAM.

use std::sync::OnceLock;

use pyrt::module::{Definition, END, Function, Module};
use pyrt::{Attached, Obj, PyResult, function};

mod channel;
mod convert;
mod datagram;
mod event_loop;
pub mod graph;
mod handle;
mod http;
mod own_loop;
mod stopwatch;
mod tls;
mod transport;
mod types;
mod visit;

pub use http::options;
pub use stopwatch::{Stopwatch, lap};
pub use visit::{Visit, Visitors, interrupt};

/// What the module keeps in each interpreter.
pub struct State {
    pub types: etf::Types,
    pub(crate) loops: std::sync::Arc<types::Types>,
    pub(crate) graphs: graph::Classes,
    pub(crate) http: std::sync::Arc<http::Types>,
}

impl Module for State {
    const NAME: &'static std::ffi::CStr = c"erlang._native";
    const DOC: &'static std::ffi::CStr = c"The native part of the package erlang.";

    fn init<'py>(module: &Obj<'py>) -> PyResult<'py, Self> {
        let version = Obj::text(module.py(), env!("CARGO_PKG_VERSION"))?;
        module.setattr_c(c"__version__", &version)?;
        let types = etf::Types::make(module)?;
        let loops = types::Types::make(module)?;
        let graphs = graph::Classes::make(module)?;
        let http = http::Types::make(module)?;
        Ok(State {
            types,
            loops,
            graphs,
            http,
        })
    }

    fn free(self, py: Attached<'_>) {
        self.types.release(py);
    }
}

static FUNCTIONS: [Function; 21] = [
    function!(
        c"term_to_bytes",
        convert::term_to_bytes,
        c"term_to_bytes(obj, /)\n--\n\nThe External Term Format of an object."
    ),
    function!(
        c"bytes_to_term",
        convert::bytes_to_term,
        c"bytes_to_term(data, /)\n--\n\nThe object of a term in External Term Format."
    ),
    function!(
        c"register_converter",
        convert::register_converter,
        c"register_converter(cls, fn, /)\n--\n\nConvert fn(obj) in place of each obj of the class."
    ),
    function!(
        c"register_constructor",
        convert::register_constructor,
        c"register_constructor(tag, fn, /)\n--\n\nfn(*rest) for each tuple that starts with the atom."
    ),
    function!(
        c"_set_atom_maker",
        convert::set_atom_maker,
        c"_set_atom_maker(fn, /)\n--\n\nfn(text) is called for each new atom; it raises to refuse."
    ),
    function!(
        c"dag_new",
        graph::functions::new,
        c"dag_new(inputs, nodes, /)\n--\n\nA graph, checked."
    ),
    function!(
        c"dag_node",
        graph::py_node::new,
        c"dag_node(name, keys, limit, /)\n--\n\nA node, checked."
    ),
    function!(
        c"dag_limit",
        graph::functions::limit,
        c"dag_limit(at_once, /)\n--\n\nA bound that nodes may share."
    ),
    function!(
        c"dag_more",
        graph::more::new,
        c"dag_more(graph, inputs, result, /)\n--\n\nWhat a function gives that asks for more nodes."
    ),
    function!(
        c"dag_run",
        graph::functions::run,
        c"dag_run(graph, inputs, options, /)\n--\n\nStarts a run."
    ),
    function!(
        c"dag_wait",
        graph::functions::wait,
        c"dag_wait(run, seconds, /)\n--\n\nWhether the run has ended; waits for it."
    ),
    function!(
        c"dag_notify",
        graph::functions::notify,
        c"dag_notify(run, fn, /)\n--\n\nfn() is called on some thread after the end."
    ),
    function!(
        c"dag_cancel",
        graph::functions::cancel,
        c"dag_cancel(run, /)\n--\n\nEnds the run."
    ),
    function!(
        c"dag_report",
        graph::functions::report,
        c"dag_report(run, pictures, /)\n--\n\nWhat the run gave."
    ),
    function!(
        c"dag_work",
        graph::functions::work,
        c"dag_work(errands, /)\n--\n\nThe body of a thread: runs nodes, or what ends them."
    ),
    function!(
        c"dag_lost",
        graph::functions::lost,
        c"dag_lost(errands, /)\n--\n\nA thread could not be started."
    ),
    function!(
        c"dag_close",
        graph::functions::close_queue,
        c"dag_close()\n--\n\nEnds the threads that run nodes."
    ),
    function!(
        c"dag_complete",
        graph::functions::complete,
        c"dag_complete(completion, value, /)\n--\n\nEnds a node with its value."
    ),
    function!(
        c"dag_fail",
        graph::functions::fail,
        c"dag_fail(completion, error, /)\n--\n\nEnds a node with an exception."
    ),
    function!(
        c"server_options",
        http::options::server_options,
        c"server_options()\n--\n\nWhat a server can be told: a mapping for each option."
    ),
    END,
];

fn definition() -> &'static Definition<State> {
    static DEFINITION: OnceLock<&'static Definition<State>> = OnceLock::new();
    DEFINITION.get_or_init(|| Definition::new(&FUNCTIONS))
}

/// What `PyInit__native` returns; for `PyImport_AppendInittab`.
pub extern "C" fn init() -> *mut pyrt::module::__ffi::PyObject {
    pyrt::fork::watch(reactor::own::each);
    definition().init()
}

/// Imports the `erlang._native` that is part of this library, before the package around it.
pub fn load<'py>(py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    pyrt::module::load_inbuilt(py, "erlang._native")
}

/// The state of `erlang._native` in this interpreter, from the module object.
pub fn state<'a>(module: &'a Obj<'_>) -> Option<&'a State> {
    definition().state(module)
}

/// The state, from a class of this module or a subclass.
fn state_of_class<'a>(class: &'a Obj<'_>) -> Option<&'a State> {
    definition().state_of_class(class)
}

/// The state behind the module that a function of it was called with.
fn own<'a, 'py>(module: &'a Obj<'py>) -> PyResult<'py, &'a State> {
    state(module).ok_or_else(|| {
        let class = pyrt::error::Builtin::SystemError;
        pyrt::PyError::new(module.py(), class, "erlang._native is not initialised")
    })
}
