//! A graph as `py_dag` describes it, checked and built.
//!
//! Thread: a scheduler, a dirty one for a large graph.

use std::collections::HashMap;

use dag::{Graph, Limit, Node, Value};
use pyloop::graph::describe::{self, Body, Described};

use crate::dag_python::{Called, Function};
use crate::dag_value::{self, Needs, NodeValue};
use crate::{dag_erlang, dag_python, dag_redis};

/// The hidden input that every node has first: the context of its run.
pub const CONTEXT: &str = "";

/// A graph, shared by its runs.
pub struct GraphRef {
    pub graph: Graph,
    pub names: Vec<String>,
}

#[rustler::resource_impl]
impl rustler::Resource for GraphRef {}

/// As what the values of nodes and inputs are taken.
#[derive(Default)]
pub struct Taken<'a>(HashMap<&'a str, Needs>);

impl<'a> Taken<'a> {
    /// By a node.
    pub fn add(&mut self, node: &'a Described) {
        if !node.is_python() {
            for (name, _) in &node.inputs {
                self.0.entry(name).or_default().term = true;
            }
        }
        if let Some(name) = &node.condition {
            self.0.entry(name).or_default().condition = true;
        }
    }

    pub fn needs(&self, name: &str) -> Needs {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// The graph, or the sentence that says what is wrong with it.
pub fn build(
    inputs: Vec<String>,
    nodes: &[u8],
    limits: &[Option<Limit>],
) -> Result<GraphRef, String> {
    let nodes = describe::all(nodes, limits).map_err(|refused| refused.to_string())?;
    let mut taken = Taken::default();
    nodes.iter().for_each(|node| taken.add(node));
    let mut builder = Graph::builder().input(CONTEXT);
    inputs.into_iter().for_each(|name| builder.add_input(name));
    for (index, described) in nodes.iter().enumerate() {
        let node = node(described, index, taken.needs(&described.name))?;
        let node = described.around(node, CONTEXT, dag_value::is_true);
        builder.add(match &described.default {
            None => node,
            Some(bytes) => node.default(Value::new(NodeValue::Term(bytes.clone()))),
        });
    }
    let names = nodes.into_iter().map(|node| node.name).collect();
    let graph = builder.build().map_err(|error| error.to_string())?;
    Ok(GraphRef { graph, names })
}

fn node(described: &Described, index: usize, needs: Needs) -> Result<Node, String> {
    let (name, inputs) = (&described.name, described.inputs.len());
    Ok(match &described.body {
        Body::Named {
            module,
            name: called,
        } => {
            let function = Function {
                called: Called::Named {
                    module: module.clone(),
                    name: called.clone(),
                },
                index,
                inputs,
                is_io: described.is_io(),
                needs,
            };
            dag_python::node(name, function)
        }
        Body::Erlang(number) => dag_erlang::node(name, *number, inputs),
        Body::Redis(commands) => dag_redis::node(name, commands.clone()),
        Body::Function { .. } | Body::Nothing => return Err(format!("node {name} runs nothing")),
    })
}
