//! What the application sends becomes the bytes of a response, in one piece where it can.
//!
//! Thread: the loop's own.

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::io::Errno;

use super::log::Outcome;
use super::request::Request;
use super::status::reason;

pub mod head;
pub mod more;

/// A body of at least this size is not copied to lie behind its head.
const LARGE: usize = 128 * 1024;

/// How the body of a response ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// There is none: HEAD, 204, 304.
    Nothing,
    /// This much is still to come.
    Length(u64),
    Chunked,
    /// By the end of the connection.
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing was sent by the application.
    Fresh,
    /// The head is made, and waits for the first piece of the body.
    Ready,
    Body,
    /// The body is complete, what was announced to follow it is not.
    Trailers,
    Done,
}

/// The state of a response.
pub struct Outgoing {
    stage: Stage,
    framing: Framing,
    status: u16,
    /// Bytes of the body, for the log.
    sent: u64,
    pub keep_alive: bool,
    /// The head, until it is sent.
    head: Vec<u8>,
    /// The application gave its own.
    length: Option<u64>,
    has_date: bool,
    /// `http.response.trailers` will come.
    trailers: bool,
}

impl Outgoing {
    pub fn new(keep_alive: bool) -> Self {
        Outgoing {
            stage: Stage::Fresh,
            framing: Framing::Nothing,
            status: 0,
            sent: 0,
            keep_alive,
            head: Vec::new(),
            length: None,
            has_date: false,
            trailers: false,
        }
    }

    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub fn is_fresh(&self) -> bool {
        self.stage == Stage::Fresh
    }

    /// What the peer was told, once it was told something.
    pub fn status(&self) -> Option<u16> {
        self.has_begun().then_some(self.status)
    }

    pub fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Body | Stage::Trailers | Stage::Done)
    }
}

pub fn wrong<'py, T>(py: Attached<'py>, text: &str) -> PyResult<'py, T> {
    Err(PyError::new(py, Builtin::RuntimeError, text))
}

/// Does what a message of the application says.
pub fn message<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let kind = kind(own, message)?;
    if own.out.borrow().is_done() {
        // The specification wants it so: what comes after the response has no meaning.
        return Ok(());
    }
    match kind.as_utf8()? {
        "http.response.start" => head::start(own, message),
        "http.response.body" => body(own, message),
        "http.response.early_hint" => more::early_hint(own, message),
        "http.response.trailers" => more::trailers(own, message),
        other => wrong(py, &format!("{other:?} is not sent in an http connection")),
    }
}

/// Whether a message is `http.response.pathsend`, which is awaited otherwise.
pub fn is_path<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, bool> {
    let ready = own.out.borrow().stage == Stage::Ready;
    Ok(ready && kind(own, message)?.as_utf8()? == "http.response.pathsend")
}

/// The type of a message.
pub fn kind<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let py = message.py();
    if !message.is_dict() {
        let text = format!("send() takes a dict, not {}", message.type_name());
        return Err(PyError::new(py, Builtin::TypeError, &text));
    }
    let names = &own.connection(py).server(py).types.names;
    match message.dict_get(&names.kind.get(py))? {
        Some(kind) => Ok(kind),
        None => Err(PyError::new(py, Builtin::KeyError, "type")),
    }
}

/// A piece of the body, by reference where it is a `bytes`.
pub fn with_bytes<'py, T>(
    data: Option<Obj<'py>>,
    body: impl FnOnce(&[u8], Option<&Obj<'py>>) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    let Some(data) = data.filter(|data| !data.is_none()) else {
        return body(&[], None);
    };
    if let Some(bytes) = data.as_bytes() {
        return body(bytes, Some(&data));
    }
    let mut copy = Vec::new();
    Buffer::of(&data)?.append_to(&mut copy)?;
    body(&copy, None)
}

pub fn body<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let names = &own.connection(py).server(py).types.names;
    if own.gone.get() {
        return Err(PyError::from_io(py, &Errno::CONNRESET.into()));
    }
    match own.out.borrow().stage {
        Stage::Fresh => return wrong(py, "http.response.body came before http.response.start"),
        Stage::Trailers | Stage::Done => {
            return wrong(py, "http.response.body came after the end of the body");
        }
        Stage::Ready | Stage::Body => {}
    }
    let more = match message.dict_get(&names.more_body.get(py))? {
        Some(more) => more.is_truthy()?,
        None => false,
    };
    let data = message.dict_get(&names.body.get(py))?;
    with_bytes(data, |bytes, object| write(own, py, bytes, object, more))?;
    if more {
        return Ok(());
    }
    if own.out.borrow().trailers {
        own.out.borrow_mut().stage = Stage::Trailers;
        return Ok(());
    }
    finish(own, py)
}

/// Sends a piece of the body, and the head before it if that has waited.
fn write<'py>(
    own: &Request,
    py: Attached<'py>,
    bytes: &[u8],
    object: Option<&Obj<'py>>,
    more: bool,
) -> PyResult<'py, ()> {
    let connection = own.connection(py);
    let (mut out, framing) = {
        let mut state = own.out.borrow_mut();
        let is_first = state.stage == Stage::Ready;
        if is_first {
            state.framing = head::framing(&state, own, bytes.len(), more);
        }
        let framing = state.framing;
        // A piece that does not fit leaves the response as it was.
        let rest = match framing {
            Framing::Length(left) => Framing::Length(left_after(py, left, bytes.len(), more)?),
            other => other,
        };
        if is_first {
            head::seal(&mut state, own, connection.server(py), bytes.len(), more);
            state.stage = Stage::Body;
        }
        state.framing = rest;
        if framing != Framing::Nothing {
            state.sent += bytes.len() as u64;
        }
        (std::mem::take(&mut state.head), framing)
    };
    if framing == Framing::Nothing {
        return connection.write(py, &out);
    }
    let chunked = framing == Framing::Chunked;
    if chunked && !bytes.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    }
    match object {
        Some(object) if bytes.len() >= LARGE => {
            connection.write(py, &out)?;
            connection.write_object(object)?;
            out.clear();
        }
        _ => out.extend_from_slice(bytes),
    }
    if chunked && !bytes.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
    if chunked && !more {
        out.extend_from_slice(b"0\r\n");
        if !own.out.borrow().trailers {
            out.extend_from_slice(b"\r\n");
        }
    }
    if out.is_empty() {
        return Ok(());
    }
    connection.write(py, &out)
}

/// What of an announced length is still to come after a piece.
fn left_after(py: Attached<'_>, left: u64, len: usize, more: bool) -> PyResult<'_, u64> {
    match left.checked_sub(len as u64) {
        None => wrong(py, "the body is longer than its content-length"),
        Some(1..) if !more => wrong(py, "the body is shorter than its content-length"),
        Some(rest) => Ok(rest),
    }
}

/// The response is complete.
fn finish<'py>(own: &Request, py: Attached<'py>) -> PyResult<'py, ()> {
    let (status, keep) = {
        let mut state = own.out.borrow_mut();
        state.stage = Stage::Done;
        (
            state.status,
            state.keep_alive && state.framing != Framing::Close,
        )
    };
    log_access(own, py, status)?;
    // Whoever waits for the peer to leave is told that it is over.
    own.wake(py)?;
    let connection = own.connection.obj(py);
    own.connection(py)
        .answered(&connection, keep, own.continued.get())
}

/// Writes the line of a request, once.
pub fn log_access<'py>(own: &Request, py: Attached<'py>, status: u16) -> PyResult<'py, ()> {
    let Some(entry) = own.entry.take() else {
        return Ok(());
    };
    let bytes = own.out.borrow().sent;
    let server = own.connection(py).server(py);
    match &server.parts(py)?.log {
        Some(log) => log.write(py, server, &entry, Outcome { status, bytes }),
        None => Ok(()),
    }
}
