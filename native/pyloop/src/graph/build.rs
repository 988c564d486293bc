//! A graph as `erlang.dag` describes it: tuples of plain values, checked there.
//!
//! Thread: attached, the caller's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dag::{Graph, Limit, Node, Value};
use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult, class};

use super::command::{Commands, Part};
use super::functions::LimitBody;
use super::nodes::{self, Function};
use super::queue::Queue;
use super::values::{self, Needs, PyValue};

/// The hidden input that every node has first.
pub const SHARED: &str = "";

pub struct Built {
    pub graph: Graph,
    pub names: Vec<String>,
    /// As what inputs and nodes are taken.
    pub needs: HashMap<String, Needs>,
}

impl Built {
    pub fn needs(&self, name: &str) -> Needs {
        self.needs.get(name).copied().unwrap_or_default()
    }
}

/// One node: `(name, body, inputs, policy, default, condition, limit)`.
struct Line<'py> {
    name: String,
    body: Obj<'py>,
    inputs: Vec<(String, bool)>,
    policy: Obj<'py>,
    default: Obj<'py>,
    condition: Option<String>,
    limit: Option<Limit>,
}

pub fn build<'py>(
    inputs: &Obj<'py>,
    nodes: &Obj<'py>,
    queue: &Arc<Queue>,
    limits: &Obj<'py>,
) -> PyResult<'py, Built> {
    let py = nodes.py();
    let lines = items(nodes)?;
    let lines = lines.iter().map(|tuple| line(tuple, limits));
    let lines: Vec<Line<'py>> = lines.collect::<Result<_, _>>()?;
    let mut needs: HashMap<String, Needs> = HashMap::new();
    for line in &lines {
        if text(&at(&line.body, 0)?)? == "redis" {
            for (name, _) in &line.inputs {
                needs.entry(name.clone()).or_default().words = true;
            }
        }
        if let Some(name) = &line.condition {
            needs.entry(name.clone()).or_default().condition = true;
        }
    }
    let mut builder = Graph::builder().input(SHARED);
    for name in items(inputs)? {
        builder.add_input(text(&name)?);
    }
    for (index, line) in lines.iter().enumerate() {
        let needs = needs.get(&line.name).copied().unwrap_or_default();
        builder.add(shaped(line, body(line, index, needs, queue)?, needs)?);
    }
    let names = lines.into_iter().map(|line| line.name).collect();
    match builder.build() {
        Ok(graph) => Ok(Built {
            graph,
            names,
            needs,
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

fn line<'py>(tuple: &Obj<'py>, limits: &Obj<'py>) -> PyResult<'py, Line<'py>> {
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
        condition: match at(tuple, 5)? {
            none if none.is_none() => None,
            name => Some(text(&name)?),
        },
        limit: class::body::<LimitBody>(&at(tuple, 6)?, limits).map(|limit| limit.0.clone()),
    })
}

fn body<'py>(
    line: &Line<'py>,
    index: usize,
    needs: Needs,
    queue: &Arc<Queue>,
) -> PyResult<'py, Node> {
    let (how, what) = (at(&line.body, 1)?, at(&line.body, 2)?);
    if text(&at(&line.body, 0)?)? == "python" {
        let function = Function {
            callable: Kept::new(how),
            index,
            inputs: line.inputs.len(),
            needs,
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

fn shaped<'py>(line: &Line<'py>, node: Node, needs: Needs) -> PyResult<'py, Node> {
    let mut node = node.inputs([SHARED]);
    for (name, optional) in &line.inputs {
        node = match optional {
            true => node.maybe([name]),
            false => node.inputs([name]),
        };
    }
    if let Some(condition) = &line.condition {
        // The last of the values, which no function is given.
        let holds = |given: &[Value]| given.last().is_some_and(values::is_true);
        node = node.inputs([condition]).when(holds);
    }
    if let Some(limit) = &line.limit {
        node = node.limit(limit);
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
        let default = PyValue::new(at(&line.default, 0)?, needs)?;
        node = node.default(Value::new(default));
    }
    Ok(node)
}
