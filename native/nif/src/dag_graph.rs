//! A graph as `py_dag` describes it, checked and built.
//!
//! Thread: a scheduler, a dirty one for a large graph.

use std::collections::HashSet;
use std::time::Duration;

use dag::{Graph, Node, Value};
use pyloop::graph::command::{Commands, Part};
use rustler::types::atom::Atom;
use rustler::types::tuple::get_tuple;
use rustler::{NifResult, ResourceArc, Term};

use crate::atoms;
use crate::dag::LimitRef;
use crate::dag_python::Function;
use crate::dag_value::{self, NodeValue};
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
    inputs: Vec<(String, bool)>,
    /// Milliseconds, or below zero for none: timeout, retries, backoff, hedge.
    policy: (i64, u32, i64, i64),
    default: Term<'a>,
    /// The node or input that must be true.
    condition: Option<String>,
    limit: Option<ResourceArc<LimitRef>>,
}

/// Who takes the value of a node, and as what.
#[derive(Default)]
struct Taken<'a> {
    as_terms: HashSet<&'a str>,
    as_conditions: HashSet<&'a str>,
}

/// The graph, or the sentence that says what is wrong with it.
pub fn build(inputs: Vec<String>, nodes: Vec<Term<'_>>) -> NifResult<Result<GraphRef, String>> {
    let lines: Vec<Line<'_>> = nodes.into_iter().map(line).collect::<NifResult<_>>()?;
    let mut taken = Taken::default();
    for line in &lines {
        if !is_python(line.body) {
            let names = line.inputs.iter().map(|(name, _)| name.as_str());
            taken.as_terms.extend(names);
        }
        taken.as_conditions.extend(line.condition.as_deref());
    }
    let mut builder = Graph::builder().input(CONTEXT);
    inputs.into_iter().for_each(|name| builder.add_input(name));
    for (index, line) in lines.iter().enumerate() {
        builder.add(shaped(line, body(line, index, &taken)?)?);
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
    Ok(Line {
        name: name.decode()?,
        body,
        inputs: inputs.decode()?,
        policy: policy.decode()?,
        default,
        condition: condition.decode().ok(),
        limit: limit.decode().ok(),
    })
}

fn head(body: Term<'_>) -> NifResult<(Atom, Vec<Term<'_>>)> {
    let parts = get_tuple(body)?;
    Ok((parts.first().ok_or(BAD)?.decode()?, parts))
}

fn is_python(body: Term<'_>) -> bool {
    head(body).is_ok_and(|(kind, _)| kind == atoms::python())
}

fn body(line: &Line<'_>, index: usize, taken: &Taken<'_>) -> NifResult<Node> {
    let (kind, parts) = head(line.body)?;
    let name = &line.name;
    match &parts[1..] {
        [module, function, is_io] if kind == atoms::python() => {
            let function = Function {
                module: module.decode()?,
                name: function.decode()?,
                index,
                inputs: line.inputs.len(),
                is_io: is_io.decode()?,
                as_term: taken.as_terms.contains(name.as_str()),
                as_condition: taken.as_conditions.contains(name.as_str()),
            };
            Ok(dag_python::node(name, function))
        }
        [function] if kind == atoms::erlang() => {
            let inputs = line.inputs.len();
            Ok(dag_erlang::node(name, function.decode()?, inputs))
        }
        [how, what] if kind == atoms::redis() => Ok(dag_redis::node(name, commands(*how, *what)?)),
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

fn shaped(line: &Line<'_>, node: Node) -> NifResult<Node> {
    let mut node = node.inputs([CONTEXT]);
    for (name, maybe) in &line.inputs {
        node = if *maybe {
            node.maybe([name])
        } else {
            node.inputs([name])
        };
    }
    if let Some(condition) = &line.condition {
        // The last of the values, which no function is given.
        let holds = |values: &[Value]| values.last().is_some_and(dag_value::is_true);
        node = node.inputs([condition]).when(holds);
    }
    if let Some(limit) = &line.limit {
        node = node.limit(&limit.0);
    }
    let millis = |time: i64| u64::try_from(time).ok().map(Duration::from_millis);
    let (timeout, retries, backoff, hedge) = line.policy;
    if let Some(time) = millis(timeout) {
        node = node.timeout(time);
    }
    if retries > 0 {
        node = node.retries(retries, millis(backoff).unwrap_or_default());
    }
    if let Some(time) = millis(hedge) {
        node = node.hedge(time);
    }
    if !line.default.is_atom() {
        let bytes = binary_of(line.default).ok_or(BAD)?;
        node = node.default(Value::new(NodeValue::Term(bytes.into())));
    }
    Ok(node)
}
