//! Addresses of Unix sockets: a path is `str`, an abstract name `bytes`, as the socket module has it.
//!
//! Thread: the loop's own.

use pyrt::buffer::Buffer;
use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::net::SocketAddrUnix;

/// The address that a path or an abstract name stands for.
pub(super) fn read<'py>(name: &Obj<'py>) -> PyResult<'py, SocketAddrUnix> {
    let py = name.py();
    let encoded;
    let bytes: &[u8] = if name.is_text() {
        encoded = pyrt::call::import_c(py, c"os")?.call_method(c"fsencode", &[name])?;
        encoded.as_bytes().unwrap_or_default()
    } else {
        let mut copy = Vec::new();
        Buffer::of(name)?.append_to(&mut copy)?;
        return address(py, &copy);
    };
    address(py, bytes)
}

fn address<'py>(py: Attached<'py>, bytes: &[u8]) -> PyResult<'py, SocketAddrUnix> {
    let made = match bytes.split_first() {
        Some((0, name)) => SocketAddrUnix::new_abstract_name(name),
        _ => SocketAddrUnix::new(bytes),
    };
    made.map_err(|errno| PyError::from_io(py, &errno.into()))
}

/// What Python has for the address; a socket that is not bound has none.
pub(super) fn make<'py>(py: Attached<'py>, address: &SocketAddrUnix) -> PyResult<'py, Obj<'py>> {
    if let Some(name) = address.abstract_name() {
        return Obj::bytes(py, &[b"\0", name].concat());
    }
    let Some(path) = address.path_bytes() else {
        return Ok(Obj::none(py));
    };
    match std::str::from_utf8(path) {
        Ok(path) => Obj::text(py, path),
        Err(_) => {
            let path = Obj::bytes(py, path)?;
            pyrt::call::import_c(py, c"os")?.call_method(c"fsdecode", &[&path])
        }
    }
}
