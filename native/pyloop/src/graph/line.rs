//! A node as `erlang.dag` describes it: a tuple of plain values, checked there.
//!
//! Thread: attached, the caller's.

use std::sync::Arc;
use std::time::Duration;

use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult, class};

use super::command::{Commands, Part};
use super::functions::LimitBody;
use super::shape::Shape;

/// What runs.
pub enum Body {
    Python {
        callable: Arc<Kept>,
        /// Calling it gives a coroutine.
        is_async: bool,
    },
    Redis(Arc<Commands>),
}

/// One node: `(name, body, inputs, policy, default, condition, limit)`.
pub struct Line {
    pub name: String,
    pub body: Body,
    pub shape: Shape,
    pub default: Option<Kept>,
}

impl Line {
    /// `limits` is the class of limits.
    pub fn of<'py>(tuple: &Obj<'py>, limits: &Obj<'py>) -> PyResult<'py, Self> {
        let mut inputs = Vec::new();
        for input in items(&at(tuple, 2)?)? {
            let optional = at(&input, 1)?.is_truthy()?;
            inputs.push((text(&at(&input, 0)?)?, optional));
        }
        let policy = at(tuple, 3)?;
        let default = at(tuple, 4)?;
        let retries = place(&at(&policy, 1)?)?;
        let shape = Shape {
            inputs,
            timeout: seconds(&at(&policy, 0)?)?,
            retries: u32::try_from(retries).unwrap_or(u32::MAX),
            backoff: seconds(&at(&policy, 2)?)?.unwrap_or_default(),
            hedge: seconds(&at(&policy, 3)?)?,
            condition: match at(tuple, 5)? {
                none if none.is_none() => None,
                name => Some(text(&name)?),
            },
            limit: class::body::<LimitBody>(&at(tuple, 6)?, limits).map(|limit| limit.0.clone()),
        };
        Ok(Line {
            name: text(&at(tuple, 0)?)?,
            body: body(&at(tuple, 1)?)?,
            shape,
            default: match default.is_tuple() {
                true => Some(Kept::new(at(&default, 0)?)),
                false => None,
            },
        })
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

/// `("python", callable, is_async)` or `("redis", how, what)`
fn body<'py>(tuple: &Obj<'py>) -> PyResult<'py, Body> {
    let (how, what) = (at(tuple, 1)?, at(tuple, 2)?);
    if text(&at(tuple, 0)?)? == "python" {
        return Ok(Body::Python {
            callable: Arc::new(Kept::new(how)),
            is_async: what.is_truthy()?,
        });
    }
    let commands = match how.as_utf8()? {
        "one" => Commands::One(parts(&what)?),
        "many" => {
            let list = items(&what)?;
            Commands::Many(list.iter().map(parts).collect::<Result<_, _>>()?)
        }
        _ => Commands::Given(place(&what)?),
    };
    Ok(Body::Redis(Arc::new(commands)))
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
