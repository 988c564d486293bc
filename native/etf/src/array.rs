//! numpy arrays: `{ndarray, Dtype, Shape, Binary}`. numpy is imported when the first one comes.

use pyrt::Obj;
use pyrt::buffer::{Buffer, Held};
use pyrt::call::import_c;
use pyrt::kind::Kind;

use crate::encode::Encoder;
use crate::error::{Res, bad};
use crate::other::not_convertible;
use crate::tag;

/// The array over the memory of `data`, which it keeps; read-only. Nothing is allocated but what
/// `data` has already.
pub(crate) fn make<'py>(dtype: &Obj<'py>, shape: &Obj<'py>, data: &Obj<'py>) -> Res<'py, Obj<'py>> {
    if !dtype.is_text() {
        return Err(bad("an ndarray whose dtype is no name"));
    }
    let numpy = import_c(data.py(), c"numpy")?;
    let dtype = numpy.call_method(c"dtype", &[dtype])?;
    if dtype.getattr_c(c"hasobject")?.is_truthy()? {
        return Err(bad(
            "an ndarray of Python objects cannot be made from bytes",
        ));
    }
    if Buffer::of(data)?.is_empty() {
        if !is_empty(shape)? {
            return Err(bad("an ndarray whose data is too short"));
        }
        // `frombuffer` refuses an empty buffer.
        return Ok(numpy.call_method(c"zeros", &[shape, &dtype])?);
    }
    let flat = numpy.call_method(c"frombuffer", &[data, &dtype])?;
    Ok(flat.call_method(c"reshape", &[shape])?)
}

/// Whether an array of that shape, a list or a tuple of sizes, has no items.
fn is_empty<'py>(shape: &Obj<'py>) -> Res<'py, bool> {
    let strange = || bad("an ndarray whose shape is no list of sizes");
    if !shape.is_list() && !shape.is_tuple() {
        return Err(strange());
    }
    let mut empty = false;
    for index in 0..shape.list_len().max(shape.tuple_len()) {
        let size = match shape.list_item(index) {
            Some(size) => size,
            None => (*shape.tuple_item(index).ok_or_else(strange)?).clone(),
        };
        if size.kind() != Kind::Int {
            return Err(strange());
        }
        empty |= size.as_i64()? == Some(0);
    }
    Ok(empty)
}

/// What a receiver must know of an array besides its data.
pub(crate) struct Layout {
    pub dtype: String,
    pub shape: Vec<usize>,
}

/// Layout of an array whose data mean something outside this process.
pub(crate) fn layout<'py>(array: &Obj<'py>) -> Res<'py, Layout> {
    let dtype = array.getattr_c(c"dtype")?;
    let has_objects = dtype.getattr_c(c"hasobject")?.is_truthy()?;
    let has_fields = !dtype.getattr_c(c"names")?.is_none();
    if has_objects || has_fields {
        return Err(not_convertible(array));
    }
    let sizes = array.getattr_c(c"shape")?;
    let mut shape = Vec::with_capacity(sizes.tuple_len());
    for index in 0..sizes.tuple_len() {
        let size = match sizes.tuple_item(index) {
            Some(size) => size.as_i64()?.and_then(|size| usize::try_from(size).ok()),
            None => None,
        };
        shape.push(size.ok_or_else(|| bad("an array with a strange shape"))?);
    }
    let dtype = dtype.getattr_c(c"str")?.to_lossy()?;
    Ok(Layout { dtype, shape })
}

/// Appends `{ndarray, Dtype, Shape, Binary}`, the data copied in C order.
pub(crate) fn write<'py>(encoder: &mut Encoder<'_, 'py>, array: &Obj<'py>) -> Res<'py, ()> {
    let Layout { dtype, shape } = layout(array)?;
    encoder.out.extend_from_slice(&[tag::SMALL_TUPLE, 4]);
    encoder.atom("ndarray");
    encoder.binary(dtype.as_bytes())?;
    if !shape.is_empty() {
        encoder.head(tag::LIST, shape.len())?;
        for size in shape {
            encoder.small_int(size as i64);
        }
    }
    encoder.out.push(tag::NIL);
    match Buffer::of(array) {
        Ok(buffer) => {
            encoder.head(tag::BINARY, buffer.len())?;
            Ok(buffer.append_to(encoder.out)?)
        }
        // Dates have no buffer.
        Err(_) => {
            let bytes = array.call_method(c"tobytes", &[])?;
            encoder.binary(bytes.as_bytes().unwrap_or(&[]))
        }
    }
}

/// The data of an array, copied in C order.
pub(crate) fn copy<'py>(array: &Obj<'py>) -> Res<'py, Held> {
    let bytes = array.call_method(c"tobytes", &[])?;
    Held::bytes(&bytes).ok_or_else(|| bad("an array without bytes"))
}
