//! What Redis answers, as Python objects: strings are `bytes` whatever is in them.
//!
//! Thread: attached.

use dag::redis::Reply;
use pyrt::container::Filling;
use pyrt::{Attached, Obj, PyResult, call};

pub fn to_python<'py>(py: Attached<'py>, reply: &Reply) -> PyResult<'py, Obj<'py>> {
    match reply {
        Reply::Nil => Ok(Obj::none(py)),
        Reply::Int(value) => Obj::int(py, *value),
        Reply::Double(value) => Obj::float(py, *value),
        Reply::Bool(value) => Ok(Obj::bool(py, *value)),
        Reply::Bytes(bytes) => Obj::bytes(py, bytes),
        Reply::Simple(text) | Reply::Error(text) => Obj::bytes(py, text.as_bytes()),
        Reply::BigNumber(digits) => {
            let int = call::import_c(py, c"builtins")?.getattr_c(c"int")?;
            int.call(&[&Obj::text(py, digits)?])
        }
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            let mut list = Filling::list(py, items.len())?;
            for item in items {
                list.push(to_python(py, item)?);
            }
            list.finish()
        }
        Reply::Map(pairs) => {
            let dict = Obj::dict(py)?;
            for (key, value) in pairs {
                dict.dict_set(&to_python(py, key)?, &to_python(py, value)?)?;
            }
            Ok(dict)
        }
    }
}

/// As Python has it: what is false, nothing, zero or empty is not true.
pub fn is_true(reply: &Reply) -> bool {
    match reply {
        Reply::Nil | Reply::Int(0) | Reply::Bool(false) => false,
        Reply::Double(value) => *value != 0.0,
        Reply::Bytes(bytes) => !bytes.is_empty(),
        Reply::Simple(text) | Reply::Error(text) => !text.is_empty(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => !items.is_empty(),
        Reply::Map(pairs) => !pairs.is_empty(),
        Reply::Int(_) | Reply::Bool(true) | Reply::BigNumber(_) => true,
    }
}
