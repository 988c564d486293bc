//! A node of `erlang.dag`: its description, read once, and in a graph the objects that belong to it.
//!
//! Thread: attached, the caller's.

use std::sync::Arc;

use etf::{NoNode, Plain};
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Kept, Obj, PyError, PyResult, class};

use super::arguments::{elements, text, wrong};
use super::describe::{Described, Refused};
use super::functions::LimitBody;
use super::key::Side;
use crate::own;

/// A node of a graph.
pub struct PyNode {
    pub described: Arc<Described>,
    /// What is called; nothing for a command.
    pub callable: Option<Arc<Kept>>,
    pub default: Option<Kept>,
}

impl PyNode {
    /// `(node, function, default)`: the default in a tuple, since it may be `None`.
    pub fn of<'py>(tuple: &Obj<'py>, class: &Obj<'py>) -> PyResult<'py, Self> {
        let [node, function, default] = elements(tuple)?;
        let Some(NodeBody(described)) = class::body(&node, class) else {
            return Err(wrong(tuple.py()));
        };
        let default = match default.is_none() {
            true => None,
            false => elements(&default).map(|[value]| Some(Kept::new(value)))?,
        };
        Ok(PyNode {
            described: described.clone(),
            callable: (!function.is_none()).then(|| Arc::new(Kept::new(function))),
            default,
        })
    }
}

/// `dag_node(name, keys, limit)`
pub(crate) fn new<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let state = own(module)?;
    let name = text(&*args.want(0, "name")?)?;
    let limit = args.want(2, "limit")?;
    let limit = class::body::<LimitBody>(&limit, &state.graphs.limit.get(py));
    let limits = [limit.map(|limit| limit.0.clone())];
    let mut bytes = Vec::new();
    let keys = args.want(1, "keys")?;
    etf::encode(&state.types.bind(py), &NoNode, &keys, &mut bytes)
        .map_err(|error| error.into_python(py))?;
    let keys = Plain::inside(&bytes).ok_or_else(|| wrong(py))?;
    let described = Described::of(name, &keys, Side::Python, &limits).map_err(|refused| {
        let class = match refused {
            Refused::Unknown(_) => Builtin::TypeError,
            Refused::Wrong(_) => Builtin::ValueError,
        };
        PyError::new(py, class, &refused.to_string())
    })?;
    class::instance(&state.graphs.node.get(py), NodeBody(Arc::new(described)))
}

pub(crate) struct NodeBody(Arc<Described>);

impl class::Class for NodeBody {
    const NAME: &'static std::ffi::CStr = c"erlang._native.DagNode";
    const DOC: &'static std::ffi::CStr = c"A node, checked.";

    fn repr(&self) -> String {
        format!("<node {}>", self.0.name)
    }

    fn hash(&self) -> u64 {
        Arc::as_ptr(&self.0) as u64
    }

    fn equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
