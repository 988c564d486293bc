//! What the functions of `erlang._native` for graphs are given by `erlang.dag`.
//!
//! Thread: attached, the caller's.

use std::time::Duration;

use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};

pub fn wrong(py: Attached<'_>) -> PyError<'_> {
    let text = "not a graph, run or node of erlang._native";
    PyError::new(py, Builtin::TypeError, text)
}

pub fn items<'py>(list: &Obj<'py>) -> PyResult<'py, Vec<Obj<'py>>> {
    if !list.is_list() {
        return Err(wrong(list.py()));
    }
    Ok((0..list.list_len())
        .map_while(|n| list.list_item(n))
        .collect())
}

pub fn elements<'py, const N: usize>(tuple: &Obj<'py>) -> PyResult<'py, [Obj<'py>; N]> {
    let count = if tuple.is_tuple() {
        tuple.tuple_len()
    } else {
        0
    };
    let elements = (0..count).map_while(|n| tuple.tuple_item(n));
    let elements: Vec<Obj<'py>> = elements.map(|item| item.clone()).collect();
    elements.try_into().map_err(|_| wrong(tuple.py()))
}

pub fn text<'py>(object: &Obj<'py>) -> PyResult<'py, String> {
    Ok(object.as_utf8()?.to_owned())
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
