//! The top of a result: scalars as they are, large buffers lent without a copy, the rest encoded.

use pyrt::Obj;
use pyrt::buffer::Held;
use pyrt::call::imported;
use pyrt::kind::Kind;

use crate::array::{self, Layout};
use crate::encode::{Summary, encode, fixed_float};
use crate::error::{Error, Res};
use crate::host::Host;
use crate::types::Bound;

/// From this many bytes on a `bytes` or `str` is lent, not copied.
pub const LENT_FROM: usize = 64 << 10;

/// A result on its way to Erlang.
pub enum Value {
    Int(i64),
    Float(f64),
    /// `true`, `false`, `none`, `infinity`, `neg_infinity` or `nan`.
    Atom(&'static str),
    /// The content of a large `bytes` or the UTF-8 of a large `str`.
    Bytes(Held),
    /// A large numpy array, in C order.
    Array {
        dtype: String,
        shape: Vec<usize>,
        data: Held,
    },
    /// The term is in the buffer, without the 131.
    Encoded(Summary),
}

/// The value of `object`; only `Encoded` appends to `out`.
pub fn to_value<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    object: &Obj<'py>,
    out: &mut Vec<u8>,
) -> Result<Value, Error<'py>> {
    match simple(object)? {
        Some(value) => Ok(value),
        None => encoded(bound, host, object, out),
    }
}

/// As `to_value`, for an object that is not needed any more: a large array that nobody else has
/// is lent without a copy. After an error the object comes back with it.
pub fn into_value<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    object: Obj<'py>,
    out: &mut Vec<u8>,
) -> Result<Value, (Error<'py>, Obj<'py>)> {
    match simple(&object) {
        Ok(Some(value)) => return Ok(value),
        Ok(None) => {}
        Err(error) => return Err((error, object)),
    }
    match large_array(bound, &object) {
        Ok(Some(layout)) => lend(layout, object),
        Ok(None) => encoded(bound, host, &object, out).map_err(|error| (error, object)),
        Err(error) => Err((*error, object)),
    }
}

/// What needs no encoding.
fn simple<'py>(object: &Obj<'py>) -> Result<Option<Value>, Error<'py>> {
    Ok(match object.kind() {
        Kind::Int => object.as_i64()?.map(Value::Int),
        Kind::Float => {
            let value = object.as_f64()?;
            Some(fixed_float(value).map_or(Value::Float(value), Value::Atom))
        }
        Kind::None => Some(Value::Atom("none")),
        Kind::Bool => Some(Value::Atom(match object.as_bool() {
            Some(true) => "true",
            _ => "false",
        })),
        Kind::Bytes
            if object
                .as_bytes()
                .is_some_and(|bytes| bytes.len() >= LENT_FROM) =>
        {
            Held::bytes(object).map(Value::Bytes)
        }
        // A character takes a byte at least.
        Kind::Text if object.text_len() >= LENT_FROM => Some(Value::Bytes(Held::text(object)?)),
        _ => None,
    })
}

fn encoded<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    object: &Obj<'py>,
    out: &mut Vec<u8>,
) -> Result<Value, Error<'py>> {
    encode(bound, host, object, out).map(Value::Encoded)
}

/// The layout of `object` if it is a numpy array of at least `LENT_FROM` bytes.
fn large_array<'py>(bound: &Bound<'_, 'py>, object: &Obj<'py>) -> Res<'py, Option<Layout>> {
    if object.kind() != Kind::Other {
        return Ok(None);
    }
    let Some(name) = bound.name(b"numpy")? else {
        return Ok(None);
    };
    let Some(numpy) = imported(&name)? else {
        return Ok(None);
    };
    // A numpy that has only begun to be imported has made no arrays yet.
    let Ok(class) = numpy.getattr_c(c"ndarray") else {
        return Ok(None);
    };
    if !object.is_exactly(&class) {
        return Ok(None);
    }
    let size = object.getattr_c(c"nbytes")?.as_i64()?.unwrap_or(0);
    if usize::try_from(size).unwrap_or(0) < LENT_FROM {
        return Ok(None);
    }
    array::layout(object).map(Some)
}

fn lend<'py>(layout: Layout, array: Obj<'py>) -> Result<Value, (Error<'py>, Obj<'py>)> {
    let Layout { dtype, shape } = layout;
    let held = match owns_its_memory(&array) {
        true => Held::sole(array),
        false => Err(array),
    };
    let data = match held {
        Ok(held) => held,
        Err(array) => array::copy(&array).map_err(|error| (*error, array))?,
    };
    Ok(Value::Array { dtype, shape, data })
}

/// Other memory can be written through its owner: another object (`base`), or a C library.
fn owns_its_memory(array: &Obj<'_>) -> bool {
    let flags = array.getattr_c(c"flags");
    let owns = flags.and_then(|flags| flags.getattr_c(c"owndata")?.is_truthy());
    owns.unwrap_or(false) && array.getattr_c(c"base").is_ok_and(|base| base.is_none())
}
