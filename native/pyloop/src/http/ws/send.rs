//! What the application says in a WebSocket connection.
//!
//! Thread: the loop's own.

use std::cell::RefCell;

use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::io::Errno;

use super::frame::{self, Opcode, code, may_be_sent};
use super::{Deflate, Session, State};
use crate::http::request::Request;
use crate::http::respond::{self, head, with_bytes, wrong};

/// Does what a message of the application says.
pub fn message<'py>(
    own: &Request,
    session: &RefCell<Session>,
    message: &Obj<'py>,
) -> PyResult<'py, ()> {
    let py = message.py();
    let kind = respond::kind(own, message)?;
    let kind = kind.as_utf8()?;
    let state = session.borrow().state;
    if own.gone.get() || (state == State::Closed && kind == "websocket.send") {
        return Err(PyError::from_io(py, &Errno::CONNRESET.into()));
    }
    let denies = !own.out.borrow().is_fresh();
    match (kind, state) {
        ("websocket.accept", State::Asked) if !denies => accept(own, session, message),
        ("websocket.close", State::Asked) if !denies => deny(own, session, py),
        ("websocket.http.response.start", State::Asked) => head::start(own, message),
        ("websocket.http.response.body", State::Asked) => {
            respond::body(own, message)?;
            if own.out.borrow().is_done() {
                session.borrow_mut().state = State::Closed;
            }
            Ok(())
        }
        ("websocket.send", State::Open) => send(own, session, message),
        ("websocket.close", State::Open) => {
            let (number, reason) = close_words(own, message)?;
            close(own, session, py, number, &reason)
        }
        ("websocket.close", State::Closed) => Ok(()),
        (_, state) => {
            let state = match state {
                State::Asked => "before the WebSocket is accepted",
                State::Open => "after the WebSocket was accepted",
                State::Closing | State::Closed => "after the WebSocket was closed",
            };
            wrong(py, &format!("{kind:?} is not sent {state}"))
        }
    }
}

fn accept<'py>(own: &Request, session: &RefCell<Session>, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let connection = own.connection(py);
    let names = &connection.server(py).types.names;
    let mut out = session.borrow().asked.answer().into_bytes();
    if let Some(chosen) = message.dict_get(&names.subprotocol.get(py))?
        && !chosen.is_none()
    {
        let chosen = chosen.as_utf8()?;
        let offered = &session.borrow().asked.subprotocols;
        if !offered.iter().any(|name| name == chosen) {
            let text = format!("the client did not offer the subprotocol {chosen:?}");
            return Err(PyError::new(py, Builtin::ValueError, &text));
        }
        head::line(&mut out, b"sec-websocket-protocol", chosen.as_bytes());
    }
    if let Some(headers) = message.dict_get(&names.headers.get(py))?
        && !headers.is_none()
    {
        head::each(&headers, |name, value| {
            head::check(py, name, value)?;
            if is_ours(name) {
                let name = String::from_utf8_lossy(name);
                let text = format!("the header {name} is the server's to send");
                return Err(PyError::new(py, Builtin::ValueError, &text));
            }
            head::line(&mut out, name, value);
            Ok(())
        })?;
    }
    connection.server(py).add_date(&mut out);
    out.extend_from_slice(b"\r\n");
    {
        let mut state = session.borrow_mut();
        state.state = State::Open;
        state.deflate = state.asked.terms.map(Deflate::new);
    }
    connection.wait_begins(py);
    connection.write(py, &out)?;
    respond::log_access(own, py, 101)?;
    connection.pump_soon(&own.connection.obj(py))
}

/// Headers that belong to the handshake.
fn is_ours(name: &[u8]) -> bool {
    const OURS: [&[u8]; 5] = [
        b"sec-websocket-accept",
        b"sec-websocket-extensions",
        b"sec-websocket-protocol",
        b"upgrade",
        b"connection",
    ];
    OURS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn deny<'py>(own: &Request, session: &RefCell<Session>, py: Attached<'py>) -> PyResult<'py, ()> {
    session.borrow_mut().state = State::Closed;
    own.gone.set(true);
    let connection = own.connection(py);
    connection.request.set(None);
    respond::log_access(own, py, 403)?;
    connection.refuse(py, 403)
}

fn send<'py>(own: &Request, session: &RefCell<Session>, message: &Obj<'py>) -> PyResult<'py, ()> {
    let py = message.py();
    let names = &own.connection(py).server(py).types.names;
    let given = |value: &Obj<'_>| !value.is_none();
    let text = message.dict_get(&names.text.get(py))?.filter(given);
    if let Some(text) = text {
        return write(own, session, py, Opcode::Text, text.as_utf8()?.as_bytes());
    }
    let bytes = message.dict_get(&names.bytes.get(py))?.filter(given);
    if bytes.is_none() {
        let text = "websocket.send has either text or bytes";
        return Err(PyError::new(py, Builtin::ValueError, text));
    }
    with_bytes(bytes, |bytes, _| {
        write(own, session, py, Opcode::Binary, bytes)
    })
}

fn write<'py>(
    own: &Request,
    session: &RefCell<Session>,
    py: Attached<'py>,
    opcode: Opcode,
    payload: &[u8],
) -> PyResult<'py, ()> {
    let mut out = Vec::new();
    let packed = match &mut session.borrow_mut().deflate {
        Some(deflate) => deflate.deflate(payload),
        None => None,
    };
    match packed {
        Some(packed) => frame::write(&mut out, opcode, true, &packed),
        None => frame::write(&mut out, opcode, false, payload),
    }
    own.connection(py).write(py, &out)
}

fn close_words<'py>(own: &Request, message: &Obj<'py>) -> PyResult<'py, (u16, String)> {
    let py = message.py();
    let names = &own.connection(py).server(py).types.names;
    let number = match message.dict_get(&names.code.get(py))? {
        Some(number) if !number.is_none() => number.as_i64()?,
        _ => Some(i64::from(code::NORMAL)),
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    let Some(number) = number.filter(|number| may_be_sent(*number)) else {
        let text = "the code of websocket.close is 1000, or another that may be sent";
        return Err(PyError::new(py, Builtin::ValueError, text));
    };
    let reason = match message.dict_get(&names.reason.get(py))? {
        Some(reason) if !reason.is_none() => reason.as_utf8()?.to_owned(),
        _ => String::new(),
    };
    Ok((number, reason))
}

/// Sends a close frame; the connection ends when the peer has answered it.
pub fn close<'py>(
    own: &Request,
    session: &RefCell<Session>,
    py: Attached<'py>,
    number: u16,
    reason: &str,
) -> PyResult<'py, ()> {
    if session.borrow().state != State::Open {
        return Ok(());
    }
    session.borrow_mut().state = State::Closing;
    let mut out = Vec::new();
    frame::write_close(&mut out, number, reason);
    let connection = own.connection(py);
    connection.wait_begins(py);
    connection.write(py, &out)
}
