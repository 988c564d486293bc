//! Failures as values: what went wrong in a job, and the one place that makes External Term Format
//! of it (API.md, "Errors").
//!
//! Thread: attached, the job's own.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::story;
use etf::write::{write_atom, write_binary, write_tuple};
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, call};

/// Why a job has no value.
pub enum Failure<'py> {
    Raised(PyError<'py>),
    BadArgument(String),
    TooDeep,
    NotConvertible(String),
    Interrupted,
    Cancelled,
    Died,
}

impl<'py> From<PyError<'py>> for Failure<'py> {
    fn from(error: PyError<'py>) -> Self {
        Failure::Raised(error)
    }
}

impl<'py> From<etf::Error<'py>> for Failure<'py> {
    fn from(error: etf::Error<'py>) -> Self {
        match error {
            etf::Error::Python(error) => Failure::Raised(error),
            etf::Error::BadArgument(what) => Failure::BadArgument(what),
            etf::Error::NotConvertible(what) => Failure::NotConvertible(what),
            etf::Error::TooDeep => Failure::TooDeep,
            etf::Error::Cancelled => Failure::Cancelled,
        }
    }
}

impl<'py> Failure<'py> {
    /// Whether the job would do better in the main interpreter.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Failure::Raised(error) if refused(error).is_some())
    }

    /// Appends the reason: what stands in `{error, Reason}`. Gives the whole story, if there is one,
    /// for `py:last_error/0`: with the version byte, a term of its own.
    pub fn write(&self, out: &mut Vec<u8>, traceback: bool) -> Option<Vec<u8>> {
        match self {
            Failure::Raised(error) => return Some(write_raised(out, error, traceback)),
            Failure::BadArgument(what) => write_tagged(out, "bad_argument", what),
            Failure::TooDeep => {
                write_tuple(out, 2);
                write_atom(out, "bad_argument");
                write_atom(out, "too_deep");
            }
            Failure::NotConvertible(what) => write_tagged(out, "not_convertible", what),
            Failure::Interrupted => write_atom(out, "interrupted"),
            Failure::Cancelled => write_atom(out, "cancelled"),
            Failure::Died => {
                write_tuple(out, 2);
                write_atom(out, "context_died");
                write_atom(out, "killed");
            }
        }
        None
    }
}

fn write_tagged(out: &mut Vec<u8>, tag: &str, what: &str) {
    write_tuple(out, 2);
    write_atom(out, tag);
    write_binary(out, what.as_bytes());
}

fn write_raised(out: &mut Vec<u8>, error: &PyError<'_>, traceback: bool) -> Vec<u8> {
    let mut told = vec![etf::tag::VERSION];
    story::write(&mut told, error, traceback);
    write_tuple(out, if traceback { 3 } else { 2 });
    write_class(out, error.value());
    write_binary(out, message(error).as_bytes());
    if traceback {
        out.extend_from_slice(&told[1..]);
    }
    told
}

/// The exception's own words; where a module refuses sub-interpreters, also what to do about it.
fn message(error: &PyError<'_>) -> String {
    let mut text = error.value().display();
    let Some(module) = refused(error) else {
        return text;
    };
    if !text.contains("does not support loading in subinterp") {
        text.push_str(&format!(". {module} refuses sub-interpreters"));
    }
    text.push_str(
        ". Call it in the main interpreter: without the context, or with #{fallback => main}",
    );
    text
}

/// The extension module that refused this sub-interpreter, if the exception comes from that: packages
/// catch the refusal, and a name is missing later (`erlang._refusals`, which no other interpreter has).
fn refused(error: &PyError<'_>) -> Option<String> {
    let py = error.py();
    let name = Obj::text(py, "erlang._refusals").ok()?;
    let refusals = call::imported(&name).ok()??;
    let module = refusals.call_method(c"hint", &[error.value()]).ok()?;
    (!module.is_none()).then(|| module.display())
}

/// An atom for the classes built into Python, from a fixed table; a binary for all others.
pub fn write_class(out: &mut Vec<u8>, value: &Obj<'_>) {
    let class = value.type_of();
    let name = text(&class, c"__qualname__");
    match text(&class, c"__module__").as_str() {
        "builtins" if BUILT_IN.contains(name.as_str()) => write_atom(out, &name),
        module => write_binary(out, format!("{module}.{name}").as_bytes()),
    }
}

pub fn text(object: &Obj<'_>, name: &std::ffi::CStr) -> String {
    match object.getattr_c(name) {
        Ok(value) => value.display(),
        Err(_) => String::new(),
    }
}

/// An error of our own making, for a job that can't run.
pub fn recursion(py: Attached<'_>) -> Failure<'_> {
    let text = "Erlang and Python have called each other too deep for this thread's stack";
    Failure::Raised(PyError::new(py, Builtin::RecursionError, text))
}

/// The exception classes built into Python. Each is an atom since load.
pub static BUILT_IN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let names = include_str!("../../../src/py_exceptions.hrl").lines();
    let name = |line: &'static str| Some(line.trim_start().strip_prefix('\'')?.split_once('\'')?.0);
    names.filter_map(name).collect()
});
