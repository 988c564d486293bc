//! A graph of `erlang.dag`, made of its lines.
//!
//! Thread: attached, the caller's.

use std::collections::HashMap;
use std::sync::Arc;

use dag::{Graph, Node, Value};
use pyrt::error::Builtin;
use pyrt::{Obj, PyError, PyResult};

use super::line::{Body, Line, items, text};
use super::nodes::{self, Function};
use super::queue::Queue;
use super::values::{self, Needs, PyValue};

/// The hidden input that every node has first.
pub const SHARED: &str = "";

pub struct Built {
    pub graph: Graph,
    pub inputs: Vec<String>,
    /// What it was made of, for who makes its own graph of it.
    pub lines: Vec<Line>,
    /// As what inputs and nodes are taken.
    pub needs: HashMap<String, Needs>,
}

impl Built {
    pub fn needs(&self, name: &str) -> Needs {
        self.needs.get(name).copied().unwrap_or_default()
    }

    pub fn name(&self, index: usize) -> Option<&str> {
        self.lines.get(index).map(|line| line.name.as_str())
    }
}

pub fn build<'py>(
    inputs: &Obj<'py>,
    nodes: &Obj<'py>,
    queue: &Arc<Queue>,
    limits: &Obj<'py>,
) -> PyResult<'py, Built> {
    let py = nodes.py();
    let lines = items(nodes)?;
    let lines = lines.iter().map(|tuple| Line::of(tuple, limits));
    let lines: Vec<Line> = lines.collect::<Result<_, _>>()?;
    let inputs = items(inputs)?;
    let inputs: Vec<String> = inputs.iter().map(text).collect::<Result<_, _>>()?;
    let needs = needs(&lines);
    let mut builder = Graph::builder().input(SHARED);
    for name in &inputs {
        builder.add_input(name.clone());
    }
    for (index, line) in lines.iter().enumerate() {
        let needs = needs.get(&line.name).copied().unwrap_or_default();
        let node = node(line, index, needs, queue);
        let node = line.shape.give(node, SHARED, values::is_true);
        builder.add(match line.default.as_ref().and_then(|kept| kept.get(py)) {
            Some(default) => node.default(Value::new(PyValue::default(default, needs)?)),
            None => node,
        });
    }
    match builder.build() {
        Ok(graph) => Ok(Built {
            graph,
            inputs,
            lines,
            needs,
        }),
        Err(error) => Err(PyError::new(py, Builtin::ValueError, &error.to_string())),
    }
}

fn needs(lines: &[Line]) -> HashMap<String, Needs> {
    let mut needs: HashMap<String, Needs> = HashMap::new();
    for line in lines {
        if let Body::Redis(_) = &line.body {
            for (name, _) in &line.shape.inputs {
                needs.entry(name.clone()).or_default().words = true;
            }
        }
        if let Some(name) = &line.shape.condition {
            needs.entry(name.clone()).or_default().condition = true;
        }
    }
    needs
}

fn node(line: &Line, index: usize, needs: Needs, queue: &Arc<Queue>) -> Node {
    match &line.body {
        Body::Python { callable, is_async } => {
            let function = Function {
                callable: callable.clone(),
                index,
                inputs: line.shape.inputs.len(),
                needs,
                is_async: *is_async,
            };
            nodes::python(&line.name, function, queue)
        }
        Body::Redis(commands) => nodes::redis(&line.name, commands.clone()),
    }
}
