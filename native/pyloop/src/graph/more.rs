//! A node's function asks for more nodes: it gives a graph, and the value of one of its nodes
//! becomes that of the asking one. A run of `py_dag` makes its own graph of it, whose functions run
//! where its other functions of Python do.
//!
//! Thread: attached.

use std::sync::Arc;

use dag::{Expansion, Value};
use pyrt::module::Args;
use pyrt::{Attached, Obj, PyResult, class};

use super::arguments::wrong;
use super::build::{Built, SHARED};
use super::functions::{graph_of, inputs_of};
use super::nodes::{Shared, Wish};
use super::py_node::PyNode;
use super::values;
use crate::own;

/// What `erlang.dag.more` gives.
pub struct More {
    built: Arc<Built>,
    inputs: Vec<(String, Value)>,
    result: usize,
}

impl More {
    /// What a value asks for, in the interpreter whose `erlang._native` this is; most ask for nothing.
    pub fn of<'a>(native: &Obj<'_>, value: &'a Obj<'_>) -> Option<&'a Self> {
        let queue = &crate::state(native)?.graphs.queue;
        let class = queue.more.get()?.get(value.py())?;
        class::body(value, &class)
    }

    pub fn nodes(&self) -> &[PyNode] {
        &self.built.nodes
    }

    /// The names that the graph is given values for.
    pub fn names(&self) -> &[String] {
        &self.built.inputs
    }

    pub fn inputs<'py>(&self, py: Attached<'py>) -> PyResult<'py, Vec<(&str, Obj<'py>)>> {
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|(name, value)| Ok((name.as_str(), values::to_python(py, value)?)));
        inputs.collect()
    }

    /// The place of the node whose value is wanted.
    pub fn place(&self) -> usize {
        self.result
    }

    /// Its name.
    pub fn result(&self) -> &str {
        self.built.name(self.result).unwrap_or_default()
    }
}

impl class::Class for More {
    const NAME: &'static std::ffi::CStr = c"erlang._native.DagMore";
    const DOC: &'static std::ffi::CStr = c"Nodes that a node asks for.";

    fn repr(&self) -> String {
        format!("<more nodes for {}>", self.result())
    }

    fn hash(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    fn equal(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// `dag_more(graph, inputs, result)`
pub(crate) fn new<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let built = graph_of(module, args)?;
    let inputs = inputs_of(&*args.want(1, "inputs")?, &built)?;
    let result = args.want(2, "result")?.as_i64()?;
    let result = result.and_then(|place| usize::try_from(place).ok());
    let result = result.ok_or_else(|| wrong(py))?;
    let more = More {
        built,
        inputs,
        result,
    };
    match own(module)?
        .graphs
        .queue
        .more
        .get()
        .and_then(|class| class.get(py))
    {
        Some(class) => class::instance(&class, more),
        None => Err(wrong(py)),
    }
}

/// The nodes that a value stands for; for most values none.
pub fn of(value: &Obj<'_>, wish: &Wish) -> Option<Expansion> {
    let class = wish
        .shared
        .queue
        .more
        .get()
        .and_then(|class| class.get(value.py()));
    let more = class.and_then(|class| class::body::<More>(value, &class))?;
    let shared = Shared {
        redis: wish.shared.redis.clone(),
        queue: wish.shared.queue.clone(),
        result: Some((more.result, wish.needs)),
    };
    let mut inputs = more.inputs.clone();
    inputs.push((SHARED.to_owned(), Value::new(shared)));
    Some(Expansion {
        graph: more.built.graph.clone(),
        inputs,
        result: more.result().to_owned(),
    })
}
