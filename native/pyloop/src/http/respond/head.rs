//! The head of a response: checked, so that no value of an application can add a line.
//!
//! Thread: the loop's own.

use std::io::Write;

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::io::Errno;

use super::{Framing, Outgoing, Stage, reason, wrong};
use crate::http::head::length;
use crate::http::request::Request;
use crate::http::server::Server;

/// `http.response.start`: the head is made, and waits for the body.
pub fn start<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let names = &own.connection(py).server(py).types.names;
    if own.gone.get() {
        return Err(PyError::from_io(py, &Errno::CONNRESET.into()));
    }
    if own.out.borrow().stage != Stage::Fresh {
        return wrong(py, "http.response.start came twice");
    }
    let Some(status) = message.dict_get(&names.status.get(py))? else {
        return Err(PyError::new(py, Builtin::KeyError, "status"));
    };
    // An `IntEnum` is good, too.
    let status = status
        .as_i64()?
        .and_then(|status| u16::try_from(status).ok());
    let Some(status) = status.filter(|status| (200..=999).contains(status)) else {
        let text = "the status of a response is a number from 200 to 999";
        return Err(PyError::new(py, Builtin::ValueError, text));
    };
    let mut made = Outgoing::new(own.out.borrow().keep_alive);
    made.status = status;
    made.head.reserve(256);
    if status == 200 {
        made.head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        // Writing to memory does not fail.
        let _ = write!(made.head, "HTTP/1.1 {status} {}\r\n", reason(status));
    }
    if let Some(headers) = message.dict_get(&names.headers.get(py))? {
        each(&headers, |name, value| made.add(py, name, value))?;
    }
    if let Some(trailers) = message.dict_get(&names.trailers.get(py))? {
        made.trailers = trailers.is_truthy()?;
    }
    made.stage = Stage::Ready;
    *own.out.borrow_mut() = made;
    Ok(())
}

/// Each name and value of an iterable of pairs of bytes.
pub fn each<'py>(
    headers: &Obj<'py>,
    mut take: impl FnMut(&[u8], &[u8]) -> PyResult<'py, ()>,
) -> PyResult<'py, ()> {
    let iterator = headers.iter()?;
    while let Some(item) = iterator.next()? {
        if let (Some(name), Some(value)) = (item.tuple_item(0), item.tuple_item(1))
            && let (Some(name), Some(value)) = (name.as_bytes(), value.as_bytes())
        {
            take(name, value)?;
            continue;
        }
        let parts = item.iter()?;
        let (Some(name), Some(value)) = (parts.next()?, parts.next()?) else {
            let text = "a header is a pair of name and value";
            return Err(PyError::new(headers.py(), Builtin::ValueError, text));
        };
        take(&copied(&name)?, &copied(&value)?)?;
    }
    Ok(())
}

fn copied<'py>(part: &Obj<'py>) -> PyResult<'py, Vec<u8>> {
    if part.is_text() {
        let text = "names and values of headers are bytes, not str";
        return Err(PyError::new(part.py(), Builtin::TypeError, text));
    }
    let mut bytes = Vec::new();
    Buffer::of(part)?.append_to(&mut bytes)?;
    Ok(bytes)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Refuses what would be another header, or none.
pub fn check<'py>(py: Attached<'py>, name: &[u8], value: &[u8]) -> PyResult<'py, ()> {
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        let name = String::from_utf8_lossy(name);
        let text = format!("{name:?} is not a name of a header");
        return Err(PyError::new(py, Builtin::ValueError, &text));
    }
    let fits = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    if value.iter().all(fits) {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    let text = format!("the value of the header {name} has a control character");
    Err(PyError::new(py, Builtin::ValueError, &text))
}

pub fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

impl Outgoing {
    fn add<'py>(&mut self, py: Attached<'py>, name: &[u8], value: &[u8]) -> PyResult<'py, ()> {
        check(py, name, value)?;
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"date") => self.has_date = true,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                if value.trim_ascii().eq_ignore_ascii_case(b"close") {
                    self.keep_alive = false;
                }
                // Said by `seal`.
                return Ok(());
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let new = length(value.trim_ascii());
                if new.is_none() || self.length.is_some() {
                    let text = "content-length is given once, as a number";
                    return Err(PyError::new(py, Builtin::ValueError, text));
                }
                self.length = new;
            }
            // How the body ends is the server's business.
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => return Ok(()),
            _ => {}
        }
        line(&mut self.head, name, value);
        Ok(())
    }
}

/// The first piece of the body is here: how the body will end.
pub(super) fn framing(state: &Outgoing, own: &Request, len: usize, more: bool) -> Framing {
    let bare = own.facts.is_head || matches!(state.status, 204 | 304);
    match state.length {
        _ if bare => Framing::Nothing,
        Some(length) => Framing::Length(length),
        None if !(more || state.trailers && own.facts.modern) => Framing::Length(len as u64),
        None if own.facts.modern => Framing::Chunked,
        None => Framing::Close,
    }
}

/// Ends the head, with what its framing needs to be said.
pub(super) fn seal(state: &mut Outgoing, own: &Request, server: &Server, len: usize, more: bool) {
    let own_length = match state.framing {
        Framing::Length(length) => Some(length),
        // What GET would have said, where it is known.
        Framing::Nothing if own.facts.is_head && !more && len > 0 => Some(len as u64),
        _ => None,
    };
    let head = &mut state.head;
    if let (Some(length), None) = (own_length, state.length) {
        // Writing to memory does not fail.
        let _ = write!(head, "content-length: {length}\r\n");
    }
    if state.framing == Framing::Chunked {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    if !state.has_date {
        server.add_date(head);
    }
    if let Some(name) = server.name() {
        let _ = write!(head, "server: {name}\r\n");
    }
    let keep = state.keep_alive && state.framing != Framing::Close;
    if !keep {
        head.extend_from_slice(b"connection: close\r\n");
    } else if !own.facts.modern {
        head.extend_from_slice(b"connection: keep-alive\r\n");
    }
    head.extend_from_slice(b"\r\n");
}
