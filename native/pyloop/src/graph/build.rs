//! A graph of `erlang.dag`, made of its nodes.
//!
//! Thread: attached, the caller's.

use std::collections::{BTreeSet, HashMap};

use dag::{Graph, Value};
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};

use super::arguments::{items, text, wrong};
use super::describe::Body;
use super::nodes::{self, Function};
use super::py_node::PyNode;
use super::values::{self, Needs, PyValue};

/// The hidden input that every node has first.
pub const SHARED: &str = "";

pub struct Built {
    pub graph: Graph,
    pub inputs: Vec<String>,
    /// What it was made of, for who makes its own graph of it.
    pub nodes: Vec<PyNode>,
    /// As what inputs and nodes are taken.
    pub needs: HashMap<String, Needs>,
}

impl Built {
    pub fn needs(&self, name: &str) -> Needs {
        self.needs.get(name).copied().unwrap_or_default()
    }

    pub fn name(&self, index: usize) -> Option<&str> {
        let node = self.nodes.get(index)?;
        Some(node.described.name.as_str())
    }
}

/// `inputs`: a list of names, or `None` for those that the nodes take and no node has.
pub fn build<'py>(inputs: &Obj<'py>, nodes: &Obj<'py>, class: &Obj<'py>) -> PyResult<'py, Built> {
    let py = nodes.py();
    let nodes = items(nodes)?;
    let nodes = nodes.iter().map(|tuple| PyNode::of(tuple, class));
    let nodes: Vec<PyNode> = nodes.collect::<Result<_, _>>()?;
    let inputs: Vec<String> = match inputs.is_none() {
        true => taken(&nodes),
        false => items(inputs)?.iter().map(text).collect::<Result<_, _>>()?,
    };
    let needs = needs(&nodes);
    let mut builder = Graph::builder().input(SHARED);
    for name in &inputs {
        builder.add_input(name.clone());
    }
    for (index, node) in nodes.iter().enumerate() {
        let needs = needs.get(&node.described.name).copied().unwrap_or_default();
        builder.add(vertex(py, node, index, needs)?);
    }
    match builder.build() {
        Ok(graph) => Ok(Built {
            graph,
            inputs,
            nodes,
            needs,
        }),
        Err(error) => Err(PyError::new(py, Builtin::ValueError, &error.to_string())),
    }
}

/// What the nodes take and no node has.
fn taken(nodes: &[PyNode]) -> Vec<String> {
    let mut taken: BTreeSet<&String> = BTreeSet::new();
    for node in nodes {
        taken.extend(node.described.inputs.iter().map(|(name, _)| name));
        taken.extend(&node.described.condition);
    }
    for node in nodes {
        taken.remove(&node.described.name);
    }
    taken.into_iter().cloned().collect()
}

fn needs(nodes: &[PyNode]) -> HashMap<String, Needs> {
    let mut needs: HashMap<String, Needs> = HashMap::new();
    for node in nodes {
        let node = &node.described;
        if let Body::Redis(_) = &node.body {
            for (name, _) in &node.inputs {
                needs.entry(name.clone()).or_default().words = true;
            }
        }
        if let Some(name) = &node.condition {
            needs.entry(name.clone()).or_default().condition = true;
        }
    }
    needs
}

fn vertex<'py>(
    py: Attached<'py>,
    node: &PyNode,
    index: usize,
    needs: Needs,
) -> PyResult<'py, dag::Node> {
    let described = &node.described;
    let made = match (&described.body, &node.callable) {
        (Body::Function { is_async }, Some(callable)) => {
            let function = Function {
                callable: callable.clone(),
                index,
                inputs: described.inputs.len(),
                needs,
                is_async: *is_async,
            };
            nodes::python(&described.name, function)
        }
        (Body::Redis(commands), _) => nodes::redis(&described.name, commands.clone()),
        _ => return Err(wrong(py)),
    };
    let made = described.around(made, SHARED, values::is_true);
    Ok(match node.default.as_ref().and_then(|kept| kept.get(py)) {
        Some(default) => made.default(Value::new(PyValue::default(default, needs)?)),
        None => made,
    })
}
