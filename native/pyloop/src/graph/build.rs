//! A graph as `erlang.dag` describes it: tuples of plain values, checked there.
//!
//! Thread: attached, the caller's.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use dag::{Graph, Node, Value};
use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult};

use super::command::{Commands, Part};
use super::nodes::{self, Function};
use super::queue::Queue;
use super::values::PyValue;

/// The hidden input that every node has first.
pub const SHARED: &str = "";

pub struct Built {
    pub graph: Graph,
    pub names: Vec<String>,
    /// Inputs whose words commands take.
    pub as_words: HashSet<String>,
}

/// One node: `(name, body, inputs, policy, default)`.
struct Line<'py> {
    name: String,
    body: Obj<'py>,
    inputs: Vec<(String, bool)>,
    policy: Obj<'py>,
    default: Obj<'py>,
}

pub fn build<'py>(inputs: &Obj<'py>, nodes: &Obj<'py>, queue: &Arc<Queue>) -> PyResult<'py, Built> {
    let py = nodes.py();
    let lines: Vec<Line<'py>> = items(nodes)?.iter().map(line).collect::<Result<_, _>>()?;
    let mut as_words = HashSet::new();
    for line in &lines {
        if text(&at(&line.body, 0)?)? == "redis" {
            as_words.extend(line.inputs.iter().map(|(name, _)| name.clone()));
        }
    }
    let mut builder = Graph::builder().input(SHARED);
    for name in items(inputs)? {
        builder.add_input(text(&name)?);
    }
    for line in &lines {
        let node = body(line, as_words.contains(&line.name), queue)?;
        builder.add(shaped(line, node, as_words.contains(&line.name))?);
    }
    let names = lines.into_iter().map(|line| line.name).collect();
    match builder.build() {
        Ok(graph) => Ok(Built {
            graph,
            names,
            as_words,
        }),
        Err(error) => Err(PyError::new(py, Builtin::ValueError, &error.to_string())),
    }
}

fn wrong(py: Attached<'_>) -> PyError<'_> {
    PyError::new(py, Builtin::TypeError, "not the description of a graph")
}

fn at<'py>(tuple: &Obj<'py>, index: usize) -> PyResult<'py, Obj<'py>> {
    let item = tuple.is_tuple().then(|| tuple.tuple_item(index)).flatten();
    item.map(|item| item.clone())
        .ok_or_else(|| wrong(tuple.py()))
}

pub fn items<'py>(list: &Obj<'py>) -> PyResult<'py, Vec<Obj<'py>>> {
    if !list.is_list() {
        return Err(wrong(list.py()));
    }
    Ok((0..list.list_len())
        .map_while(|n| list.list_item(n))
        .collect())
}

pub fn text<'py>(object: &Obj<'py>) -> PyResult<'py, String> {
    Ok(object.as_utf8()?.to_owned())
}

fn line<'py>(tuple: &Obj<'py>) -> PyResult<'py, Line<'py>> {
    let mut inputs = Vec::new();
    for input in items(&at(tuple, 2)?)? {
        let optional = at(&input, 1)?.is_truthy()?;
        inputs.push((text(&at(&input, 0)?)?, optional));
    }
    Ok(Line {
        name: text(&at(tuple, 0)?)?,
        body: at(tuple, 1)?,
        inputs,
        policy: at(tuple, 3)?,
        default: at(tuple, 4)?,
    })
}

fn body<'py>(line: &Line<'py>, as_words: bool, queue: &Arc<Queue>) -> PyResult<'py, Node> {
    let (how, what) = (at(&line.body, 1)?, at(&line.body, 2)?);
    if text(&at(&line.body, 0)?)? == "python" {
        let function = Function {
            callable: Kept::new(how),
            as_words,
            is_async: what.is_truthy()?,
        };
        return Ok(nodes::python(&line.name, function, queue));
    }
    let commands = match how.as_utf8()? {
        "one" => Commands::One(parts(&what)?),
        "many" => {
            let list = items(&what)?;
            Commands::Many(list.iter().map(parts).collect::<Result<_, _>>()?)
        }
        _ => Commands::Given(place(&what)?),
    };
    Ok(nodes::redis(&line.name, commands))
}

fn place<'py>(object: &Obj<'py>) -> PyResult<'py, usize> {
    let number = object.as_i64()?.and_then(|n| usize::try_from(n).ok());
    number.ok_or_else(|| wrong(object.py()))
}

/// `bytes` are themselves, a number an input, a list one word of several parts.
fn parts<'py>(list: &Obj<'py>) -> PyResult<'py, Vec<Part>> {
    let part = |item: &Obj<'py>| {
        if let Some(bytes) = item.as_bytes() {
            Ok(Part::Text(bytes.to_vec()))
        } else if item.is_list() {
            parts(item).map(Part::Join)
        } else {
            place(item).map(Part::Input)
        }
    };
    items(list)?.iter().map(part).collect()
}

/// Seconds, or nothing for `None`.
pub fn seconds<'py>(object: &Obj<'py>) -> PyResult<'py, Option<Duration>> {
    if object.is_none() {
        return Ok(None);
    }
    let time = Duration::try_from_secs_f64(object.as_f64()?);
    let wrong = |_| PyError::new(object.py(), Builtin::ValueError, "not a time in seconds");
    time.map(Some).map_err(wrong)
}

fn shaped<'py>(line: &Line<'py>, node: Node, as_words: bool) -> PyResult<'py, Node> {
    let mut node = node.inputs([SHARED]);
    for (name, optional) in &line.inputs {
        node = match optional {
            true => node.maybe([name]),
            false => node.inputs([name]),
        };
    }
    if let Some(time) = seconds(&at(&line.policy, 0)?)? {
        node = node.timeout(time);
    }
    let retries = place(&at(&line.policy, 1)?)?;
    if retries > 0 {
        let backoff = seconds(&at(&line.policy, 2)?)?.unwrap_or_default();
        node = node.retries(u32::try_from(retries).unwrap_or(u32::MAX), backoff);
    }
    if let Some(time) = seconds(&at(&line.policy, 3)?)? {
        node = node.hedge(time);
    }
    if line.default.is_tuple() {
        let default = PyValue::new(at(&line.default, 0)?, as_words);
        node = node.default(Value::new(default));
    }
    Ok(node)
}
