//! A graph as `py_dag` describes it, checked and built.
//!
//! Thread: a scheduler, a dirty one for a large graph.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dag::{Graph, Node, Value};
use pyloop::graph::command::{Commands, Part};
use pyloop::graph::shape::Shape;
use rustler::types::atom::Atom;
use rustler::types::tuple::get_tuple;
use rustler::{NifResult, ResourceArc, Term};

use crate::atoms;
use crate::dag::LimitRef;
use crate::dag_python::{Called, Function};
use crate::dag_value::{self, Needs, NodeValue};
use crate::erts::binary_of;
use crate::{dag_erlang, dag_python, dag_redis};

const BAD: rustler::Error = rustler::Error::BadArg;

/// The hidden input that every node has first: the context of its run.
pub const CONTEXT: &str = "";

/// A graph, shared by its runs.
pub struct GraphRef {
    pub graph: Graph,
    pub names: Vec<String>,
}

#[rustler::resource_impl]
impl rustler::Resource for GraphRef {}

/// What stands in one line of the description.
struct Line<'a> {
    name: String,
    body: Term<'a>,
    shape: Shape,
    default: Term<'a>,
}

/// As what the values of nodes and inputs are taken.
#[derive(Default)]
pub struct Taken<'a>(HashMap<&'a str, Needs>);

impl<'a> Taken<'a> {
    /// By a node.
    pub fn add(&mut self, shape: &'a Shape, is_python: bool) {
        if !is_python {
            for (name, _) in &shape.inputs {
                self.0.entry(name).or_default().term = true;
            }
        }
        if let Some(name) = &shape.condition {
            self.0.entry(name).or_default().condition = true;
        }
    }

    pub fn needs(&self, name: &str) -> Needs {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// The graph, or the sentence that says what is wrong with it.
pub fn build(inputs: Vec<String>, nodes: Vec<Term<'_>>) -> NifResult<Result<GraphRef, String>> {
    let lines: Vec<Line<'_>> = nodes.into_iter().map(line).collect::<NifResult<_>>()?;
    let mut taken = Taken::default();
    for line in &lines {
        taken.add(&line.shape, is_python(line.body));
    }
    let mut builder = Graph::builder().input(CONTEXT);
    inputs.into_iter().for_each(|name| builder.add_input(name));
    for (index, line) in lines.iter().enumerate() {
        let node = body(line, index, taken.needs(&line.name))?;
        let node = line.shape.give(node, CONTEXT, dag_value::is_true);
        builder.add(match line.default.is_atom() {
            true => node,
            false => {
                let bytes = binary_of(line.default).ok_or(BAD)?;
                node.default(Value::new(NodeValue::Term(bytes.into())))
            }
        });
    }
    let names = lines.into_iter().map(|line| line.name).collect();
    Ok(match builder.build() {
        Ok(graph) => Ok(GraphRef { graph, names }),
        Err(error) => Err(error.to_string()),
    })
}

fn line<'a>(term: Term<'a>) -> NifResult<Line<'a>> {
    let [name, body, inputs, policy, default, condition, limit] = get_tuple(term)?[..] else {
        return Err(BAD);
    };
    // Milliseconds, or below zero for none.
    let (timeout, retries, backoff, hedge): (i64, u32, i64, i64) = policy.decode()?;
    let millis = |time: i64| u64::try_from(time).ok().map(Duration::from_millis);
    let limit: Option<ResourceArc<LimitRef>> = limit.decode().ok();
    let shape = Shape {
        inputs: inputs.decode()?,
        timeout: millis(timeout),
        retries,
        backoff: millis(backoff).unwrap_or_default(),
        hedge: millis(hedge),
        condition: condition.decode().ok(),
        limit: limit.map(|limit| limit.0.clone()),
    };
    Ok(Line {
        name: name.decode()?,
        body,
        shape,
        default,
    })
}

fn head(body: Term<'_>) -> NifResult<(Atom, Vec<Term<'_>>)> {
    let parts = get_tuple(body)?;
    Ok((parts.first().ok_or(BAD)?.decode()?, parts))
}

fn is_python(body: Term<'_>) -> bool {
    head(body).is_ok_and(|(kind, _)| kind == atoms::python())
}

fn body(line: &Line<'_>, index: usize, needs: Needs) -> NifResult<Node> {
    let (kind, parts) = head(line.body)?;
    let (name, inputs) = (&line.name, line.shape.inputs.len());
    match &parts[1..] {
        [module, function, is_io] if kind == atoms::python() => {
            let function = Function {
                called: Called::Named {
                    module: module.decode()?,
                    name: function.decode()?,
                },
                index,
                inputs,
                is_io: is_io.decode()?,
                needs,
            };
            Ok(dag_python::node(name, function))
        }
        [function] if kind == atoms::erlang() => {
            Ok(dag_erlang::node(name, function.decode()?, inputs))
        }
        [how, what] if kind == atoms::redis() => {
            let commands = commands(*how, *what)?;
            Ok(dag_redis::node(name, Arc::new(commands)))
        }
        _ => Err(BAD),
    }
}

fn commands(how: Term<'_>, what: Term<'_>) -> NifResult<Commands> {
    let how: Atom = how.decode()?;
    if how == atoms::one() {
        Ok(Commands::One(parts(what)?))
    } else if how == atoms::many() {
        let list: Vec<Term<'_>> = what.decode()?;
        let list = list.into_iter().map(parts).collect::<NifResult<_>>()?;
        Ok(Commands::Many(list))
    } else {
        Ok(Commands::Given(what.decode()?))
    }
}

/// A binary is itself, a number an input, a list one word of several parts.
fn parts(term: Term<'_>) -> NifResult<Vec<Part>> {
    let list: Vec<Term<'_>> = term.decode()?;
    let part = |term: Term<'_>| {
        if let Some(text) = binary_of(term) {
            return Ok(Part::Text(text.to_vec()));
        }
        match term.decode() {
            Ok(input) => Ok(Part::Input(input)),
            Err(_) => parts(term).map(Part::Join),
        }
    };
    list.into_iter().map(part).collect()
}
