//! Why a conversion did not happen.

use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError};

/// The longest `repr` in a message, in characters.
const MAX_REPR: usize = 200;

#[derive(Debug)]
pub enum Error<'py> {
    /// Python raised: user code, or the interpreter itself.
    Python(PyError<'py>),
    /// The value has no counterpart on the other side; the text names it.
    BadArgument(String),
    /// The `repr` of an object that no rule converts.
    NotConvertible(String),
    TooDeep,
    Cancelled,
}

/// One word wide, so that a `Result` with an object travels in registers.
pub(crate) type Res<'py, T> = Result<T, Box<Error<'py>>>;

/// The input ends within a term.
pub(crate) struct Cut;

impl<'py> Error<'py> {
    /// The same as a Python exception, for functions that Python calls.
    pub fn into_python(self, py: Attached<'py>) -> PyError<'py> {
        match self {
            Error::Python(error) => error,
            Error::BadArgument(text) => PyError::new(py, Builtin::ValueError, &text),
            Error::NotConvertible(repr) => {
                let text = format!("cannot be converted to a term: {repr}");
                PyError::new(py, Builtin::TypeError, &text)
            }
            Error::TooDeep => PyError::new(py, Builtin::RecursionError, "nested too deeply"),
            Error::Cancelled => PyError::new(py, Builtin::RuntimeError, "cancelled"),
        }
    }
}

impl<'py> From<PyError<'py>> for Error<'py> {
    fn from(error: PyError<'py>) -> Self {
        Error::Python(error)
    }
}

impl<'py> From<PyError<'py>> for Box<Error<'py>> {
    #[cold]
    fn from(error: PyError<'py>) -> Self {
        Box::new(Error::Python(error))
    }
}

impl From<Cut> for Box<Error<'_>> {
    #[cold]
    fn from(_: Cut) -> Self {
        bad("the term ends too early")
    }
}

#[cold]
pub(crate) fn bad<'py>(text: impl Into<String>) -> Box<Error<'py>> {
    Box::new(Error::BadArgument(text.into()))
}

/// `repr(object)`, bounded; an object whose `repr` fails is named by its type.
pub(crate) fn describe(object: &Obj<'_>) -> String {
    let text = match object.repr().and_then(|repr| repr.to_lossy()) {
        Ok(text) => text,
        Err(_) => format!("<unprintable {}>", object.type_name()),
    };
    match text.char_indices().nth(MAX_REPR) {
        None => text,
        Some(_) => text.chars().take(MAX_REPR - 1).chain(['…']).collect(),
    }
}
