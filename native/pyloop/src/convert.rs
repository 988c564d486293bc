//! The functions of `erlang._native` that convert, and those that say how.

use etf::{Input, NoNode};
use pyrt::buffer::Buffer;
use pyrt::module::Args;
use pyrt::{Obj, PyResult};

use crate::own;

pub(crate) fn term_to_bytes<'py>(
    module: &Obj<'py>,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let object = args.want(0, "obj")?;
    let mut out = vec![etf::tag::VERSION];
    etf::encode(&own(module)?.types.bind(py), &NoNode, &object, &mut out)
        .map_err(|error| error.into_python(py))?;
    Obj::bytes(py, &out)
}

/// Pids, references, ports and funs are refused: they can't be made from a user's bytes.
pub(crate) fn bytes_to_term<'py>(
    module: &Obj<'py>,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let data = args.want(0, "data")?;
    let bound = own(module)?.types.bind(py);
    let copy;
    let bytes = match data.as_bytes() {
        Some(bytes) => bytes,
        None => {
            // Copied: a constructor could change the memory while it is read.
            let mut bytes = Vec::new();
            Buffer::of(&data)?.append_to(&mut bytes)?;
            copy = bytes;
            &copy
        }
    };
    etf::decode_plain(&bound, &NoNode, Input::one(bytes)).map_err(|error| error.into_python(py))
}

pub(crate) fn register_converter<'py>(
    module: &Obj<'py>,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let bound = own(module)?.types.bind(py);
    let (class, callable) = (args.want(0, "cls")?, args.want(1, "fn")?);
    bound.register_converter(&class, &callable)?;
    Ok(Obj::none(py))
}

pub(crate) fn register_constructor<'py>(
    module: &Obj<'py>,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let bound = own(module)?.types.bind(py);
    let (tag, callable) = (args.want(0, "tag")?, args.want(1, "fn")?);
    bound.register_constructor(&tag, &callable)?;
    Ok(Obj::none(py))
}

pub(crate) fn set_atom_maker<'py>(
    module: &Obj<'py>,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let maker = args.want(0, "fn")?.clone();
    let bound = own(module)?.types.bind(py);
    bound.set_atom_maker((!maker.is_none()).then_some(maker));
    Ok(Obj::none(py))
}
