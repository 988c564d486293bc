//! Failures as values: what went wrong in a job, and the one place that makes External Term Format
//! of it (API.md, "Errors").
//!
//! Thread: attached, the job's own.

use crate::out::{
    write_atom, write_binary, write_int, write_list_header, write_map_header, write_nil,
    write_tuple,
};
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError};

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

/// Most frames of a traceback that are told, most links of a chain of exceptions.
const MAX_FRAMES: usize = 100;
const MAX_CHAIN: usize = 16;

impl<'py> Failure<'py> {
    /// Appends the reason: what stands in `{error, Reason}`.
    pub fn write(&self, out: &mut Vec<u8>, traceback: bool) {
        match self {
            Failure::Raised(error) => write_raised(out, error, traceback),
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
    }

    /// The full story, for `py:last_error/0`: with the version byte, a term of its own.
    pub fn details(&self) -> Option<Vec<u8>> {
        let Failure::Raised(error) = self else {
            return None;
        };
        let mut out = vec![131];
        write_details(&mut out, error.value(), 0);
        Some(out)
    }
}

fn write_tagged(out: &mut Vec<u8>, tag: &str, what: &str) {
    write_tuple(out, 2);
    write_atom(out, tag);
    write_binary(out, what.as_bytes());
}

fn write_raised(out: &mut Vec<u8>, error: &PyError<'_>, traceback: bool) {
    write_tuple(out, if traceback { 3 } else { 2 });
    write_class(out, error.value());
    write_binary(out, message(error).as_bytes());
    if traceback {
        write_details(out, error.value(), 0);
    }
}

/// The exception's own words; where a module refuses sub-interpreters, also what to do about it.
fn message(error: &PyError<'_>) -> String {
    let mut text = error.value().display();
    if error.is_a(Builtin::ImportError) && text.contains("does not support loading in subinterp") {
        text.push_str(
            ". Call it in the main interpreter: without the context, or with #{fallback => main}",
        );
    }
    text
}

/// An atom for the classes built into Python, from a fixed table; a binary for all others.
fn write_class(out: &mut Vec<u8>, value: &Obj<'_>) {
    let class = value.type_of();
    let name = text(&class, c"__qualname__");
    match text(&class, c"__module__").as_str() {
        "builtins" if BUILT_IN.binary_search(&name.as_str()).is_ok() => write_atom(out, &name),
        module => write_binary(out, format!("{module}.{name}").as_bytes()),
    }
}

fn text(object: &Obj<'_>, name: &std::ffi::CStr) -> String {
    match object.getattr_c(name) {
        Ok(value) => value.display(),
        Err(_) => String::new(),
    }
}

/// A map small enough to be built on any thread.
fn write_details(out: &mut Vec<u8>, value: &Obj<'_>, depth: usize) {
    write_map_header(out, 7);
    pair(out, "type", |out| write_class(out, value));
    pair(out, "message", |out| {
        write_binary(out, value.display().as_bytes());
    });
    pair(out, "args", |out| write_args(out, value));
    pair(out, "traceback", |out| write_frames(out, value));
    for (name, attribute) in [("cause", c"__cause__"), ("context", c"__context__")] {
        pair(out, name, |out| match value.getattr_c(attribute) {
            Ok(other) if !other.is_none() && depth < MAX_CHAIN => {
                write_details(out, &other, depth + 1);
            }
            _ => write_atom(out, "undefined"),
        });
    }
    pair(out, "notes", |out| write_notes(out, value));
}

fn pair(out: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    write_atom(out, name);
    value(out);
}

fn write_args(out: &mut Vec<u8>, value: &Obj<'_>) {
    let args = value.getattr_c(c"args").ok();
    let count = args.as_ref().map_or(0, Obj::tuple_len).min(MAX_FRAMES);
    write_texts(
        out,
        (0..count).map(|index| {
            let item = args.as_ref().and_then(|args| args.tuple_item(index));
            item.map_or_else(String::new, |item| shown(&item))
        }),
    );
}

fn shown(item: &Obj<'_>) -> String {
    let text = match item.repr() {
        Ok(repr) => repr.display(),
        Err(_) => format!("<{}>", item.type_name()),
    };
    text.chars().take(1000).collect()
}

fn write_notes(out: &mut Vec<u8>, value: &Obj<'_>) {
    let notes: Vec<String> = match value.getattr_c(c"__notes__").and_then(|notes| notes.iter()) {
        Ok(iter) => std::iter::from_fn(|| iter.next().ok().flatten())
            .take(MAX_FRAMES)
            .map(|note| note.display())
            .collect(),
        Err(_) => Vec::new(),
    };
    write_texts(out, notes.into_iter());
}

fn write_texts(out: &mut Vec<u8>, texts: impl ExactSizeIterator<Item = String>) {
    if texts.len() > 0 {
        write_list_header(out, texts.len());
        texts.for_each(|text| write_binary(out, text.as_bytes()));
    }
    write_nil(out);
}

/// `#{file, line, function, text}` of each frame, outermost first; the source line is added later. The frames themselves are not kept:
/// they would keep every local variable alive.
fn write_frames(out: &mut Vec<u8>, value: &Obj<'_>) {
    let mut frames = Vec::new();
    let mut next = value.getattr_c(c"__traceback__").ok();
    while let Some(trace) = next.take().filter(|trace| !trace.is_none()) {
        if frames.len() == MAX_FRAMES {
            break;
        }
        frames.extend(frame(&trace));
        next = trace.getattr_c(c"tb_next").ok();
    }
    if !frames.is_empty() {
        write_list_header(out, frames.len());
    }
    for (file, line, function) in frames {
        write_map_header(out, 4);
        pair(out, "file", |out| write_binary(out, file.as_bytes()));
        pair(out, "line", |out| write_int(out, line));
        pair(out, "function", |out| {
            write_binary(out, function.as_bytes())
        });
        pair(out, "text", |out| write_atom(out, "none"));
    }
    write_nil(out);
}

fn frame(trace: &Obj<'_>) -> Option<(String, i64, String)> {
    let code = trace
        .getattr_c(c"tb_frame")
        .ok()?
        .getattr_c(c"f_code")
        .ok()?;
    let line = trace.getattr_c(c"tb_lineno").ok()?.as_i64().ok()??;
    let function = if pyrt::BUILT_FOR >= (3, 11) {
        text(&code, c"co_qualname")
    } else {
        text(&code, c"co_name")
    };
    Some((text(&code, c"co_filename"), line, function))
}

/// An error of our own making, for a job that can't run.
pub fn recursion(py: Attached<'_>) -> Failure<'_> {
    let text = "Erlang and Python have called each other too deep for this thread's stack";
    Failure::Raised(PyError::new(py, Builtin::RecursionError, text))
}

/// The exception classes built into CPython 3.11 to 3.14, sorted. Each is an atom since load.
pub const BUILT_IN: [&str; 71] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "PythonFinalizationError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "WindowsError",
    "ZeroDivisionError",
];
