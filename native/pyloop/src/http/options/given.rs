//! What native code reads of the options, once per server: numbers, flags, times and texts.

use pyrt::error::Builtin;
use pyrt::{Obj, PyError, PyResult};

/// What Python uses by itself: files, sockets, how workers are started.
#[derive(Clone, Copy, Debug)]
pub struct OfPython;

/// The type of a field of `Given`, from the world and the kind of its row.
macro_rules! of {
    (EVERYWHERE $kind:ident) => {
        crate::http::options::given::of!($kind)
    };
    (WHEEL $kind:ident) => {
        crate::http::options::given::of!($kind)
    };
    (Boolean) => {
        bool
    };
    (Integer) => {
        u64
    };
    (Time) => {
        crate::http::options::given::Seconds
    };
    (Text) => {
        String
    };
    (Prefix) => {
        String
    };
    (OneOf) => {
        String
    };
    (TextOr) => {
        String
    };
    (Proxies) => {
        String
    };
    ($($other:ident)*) => {
        crate::http::options::given::OfPython
    };
}

pub(super) use of;

pub type Seconds = f64;

pub trait Read: Sized {
    fn read<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Self>;
}

pub fn want<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Obj<'py>> {
    let key = Obj::text(options.py(), name)?;
    options.dict_get(&key)?.ok_or_else(|| {
        let text = format!("the option {name} is missing");
        PyError::new(options.py(), Builtin::TypeError, &text)
    })
}

impl Read for OfPython {
    fn read<'py>(_options: &Obj<'py>, _name: &str) -> PyResult<'py, Self> {
        Ok(OfPython)
    }
}

impl Read for bool {
    fn read<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Self> {
        want(options, name)?.is_truthy()
    }
}

impl Read for u64 {
    fn read<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Self> {
        let value = want(options, name)?.as_i64()?;
        value
            .and_then(|value| u64::try_from(value).ok())
            .ok_or_else(|| {
                let text = format!("{name} must be zero or a positive number");
                PyError::new(options.py(), Builtin::ValueError, &text)
            })
    }
}

impl Read for Seconds {
    fn read<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Self> {
        want(options, name)?.as_f64()
    }
}

impl Read for String {
    fn read<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Self> {
        Ok(want(options, name)?.as_utf8()?.to_owned())
    }
}
