//! A node's function asks for more nodes: it gives a graph, and the value of one of its nodes
//! becomes that of the asking one.
//!
//! Thread: attached.

use std::sync::Arc;

use dag::{Expansion, Value};
use pyrt::module::Args;
use pyrt::{Obj, PyResult, class};

use super::build::{Built, SHARED};
use super::functions::{graph_of, inputs_of, wrong};
use super::nodes::{Shared, Wish};
use crate::own;

/// What `erlang.dag.more` gives.
pub struct More {
    built: Arc<Built>,
    inputs: Vec<(String, Value)>,
    result: usize,
}

impl class::Class for More {
    const NAME: &'static std::ffi::CStr = c"erlang._native.DagMore";
    const DOC: &'static std::ffi::CStr = c"Nodes that a node asks for.";

    fn repr(&self) -> String {
        let asked = self.built.names.get(self.result);
        format!("<more nodes for {}>", asked.map_or("", String::as_str))
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
        .queue
        .more
        .get()
        .and_then(|class| class.get(value.py()));
    let more = class.and_then(|class| class::body::<More>(value, &class))?;
    let shared = Shared {
        redis: wish.shared.redis.clone(),
        result: Some((more.result, wish.needs)),
    };
    let mut inputs = more.inputs.clone();
    inputs.push((SHARED.to_owned(), Value::new(shared)));
    Some(Expansion {
        graph: more.built.graph.clone(),
        inputs,
        result: more
            .built
            .names
            .get(more.result)
            .cloned()
            .unwrap_or_default(),
    })
}
