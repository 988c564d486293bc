//! WebSockets: a request that becomes a conversation.
//!
//! `handshake` → the application accepts → `frame` (`deflate`) → `receive`; `send` → `frame` → transport.
//! Thread: the loop's own.

use std::cell::RefCell;
use std::collections::VecDeque;

use pyrt::{Attached, Obj, PyResult};

use super::config::Ticks;
use super::connection::{Connection, HIGH, LINGER_TICKS, Phase};
use super::head::{Framing, Head};
use super::log::Entry;
use super::request::{self, Request};
use super::scope;

mod deflate;
mod frame;
#[cfg(test)]
mod fuzz;
mod handshake;
mod send;

use deflate::Deflate;
pub use frame::code;
use frame::{Opcode, Reader, Said};
use handshake::Asked;
pub use send::{close, message};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The application has not answered yet.
    Asked,
    Open,
    /// Our close frame is sent, the peer's has not come.
    Closing,
    Closed,
}

/// The conversation with one client.
pub struct Session {
    state: State,
    asked: Asked,
    reader: Reader,
    deflate: Option<Deflate>,
    /// Messages for the application, and their size.
    queue: VecDeque<Said>,
    size: usize,
    /// The application knows that somebody came.
    told: bool,
    /// Why it ended, for the application.
    end: Option<(u16, String)>,
    /// A ping of ours waits for its answer.
    pinged: bool,
    /// The last ping of the client's that was not answered.
    ping: Option<Vec<u8>>,
}

/// What a message costs beyond its data.
const EACH: usize = 64;

impl Session {
    pub fn unread(&self) -> usize {
        self.size
    }

    /// Whether the next frame may be looked at. Each one by itself: what is packed in a read can be
    /// a thousand times as much, so it waits in that form.
    fn takes_more(&self) -> bool {
        match self.state {
            State::Open => self.size <= HIGH,
            State::Closing => true,
            State::Asked | State::Closed => false,
        }
    }

    /// The client has ended it, though its connection may still be there.
    pub fn is_left(&self) -> bool {
        self.state == State::Closed && self.end.is_some()
    }

    pub fn is_asked(&self) -> bool {
        self.state == State::Asked
    }
}

/// A request asks for a WebSocket: refused, or put before the application.
pub fn open<'py>(
    connection: &Connection,
    this: &Obj<'py>,
    head: &Head<'_>,
    scope: &Obj<'py>,
    entry: Option<Box<Entry>>,
) -> PyResult<'py, ()> {
    let py = this.py();
    let given = &connection.server(py).parts(py)?.config.given;
    if head.facts.framing != Framing::None {
        return connection.refuse_head(py, Some(head), 400);
    }
    let asked = match handshake::read(head, given.ws_deflate) {
        Ok(asked) => asked,
        Err(status) => return connection.refuse_head(py, Some(head), status),
    };
    scope::for_socket(connection, scope, &asked.subprotocols)?;
    let session = Session {
        state: State::Asked,
        asked,
        reader: Reader::new(given.ws_max_size as usize),
        deflate: None,
        queue: VecDeque::new(),
        size: 0,
        told: false,
        end: None,
        pinged: false,
        ping: None,
    };
    let mut facts = head.facts;
    // If it is not accepted, it ends.
    facts.keep_alive = false;
    let request = request::make(this, facts, entry, Some(session))?;
    connection.request.set(Some(request));
    connection.pending.set(Some(scope.clone()));
    connection.phase.set(Phase::Socket);
    Ok(())
}

/// Works on frames; how much of `data` was used.
pub fn incoming<'py>(
    connection: &Connection,
    py: Attached<'py>,
    data: &[u8],
) -> PyResult<'py, usize> {
    let Some(request) = connection.request.get(py) else {
        return Ok(data.len());
    };
    let own = Request::of(&request);
    let Some(session) = &own.socket else {
        return Ok(0);
    };
    if session.borrow().state == State::Asked {
        return Ok(0);
    }
    let mut at = 0;
    // Whoever was told to close has a while for it, whatever else is sent.
    if !data.is_empty() && session.borrow().state == State::Open {
        connection.wait_begins(py);
        session.borrow_mut().pinged = false;
    }
    while session.borrow().takes_more() {
        let step = {
            let mut session = session.borrow_mut();
            let Session {
                reader, deflate, ..
            } = &mut *session;
            reader.next(&data[at..], deflate.as_mut())
        };
        match step {
            Ok(None) => break,
            Ok(Some((used, said))) => {
                at += used;
                if let Some(said) = said {
                    hear(connection, session, py, said)?;
                }
            }
            Err(number) => {
                fail(connection, session, py, number)?;
                at = data.len();
            }
        }
    }
    own.wake(py)?;
    Ok(at)
}

fn hear<'py>(
    connection: &Connection,
    session: &RefCell<Session>,
    py: Attached<'py>,
    said: Said,
) -> PyResult<'py, ()> {
    let mut own = session.borrow_mut();
    match said {
        Said::Text(_) | Said::Binary(_) if own.state != State::Open => Ok(()),
        Said::Text(_) | Said::Binary(_) => {
            own.size += EACH + said.len();
            own.queue.push_back(said);
            Ok(())
        }
        Said::Ping(data) => {
            own.ping = Some(data);
            drop(own);
            answer_ping(connection, session, py)
        }
        Said::Pong => Ok(()),
        Said::Close(number, reason) => {
            let answers = own.state == State::Open;
            own.state = State::Closed;
            own.end.get_or_insert((number, reason));
            drop(own);
            if answers {
                let mut out = Vec::new();
                frame::write_close(&mut out, number, "");
                connection.write(py, &out)?;
            }
            connection.close(py)
        }
    }
}

/// Answers the last ping, once there is room for it: the ones before it need no answer then
/// (RFC 6455, 5.5.3).
pub fn answer_ping<'py>(
    connection: &Connection,
    session: &RefCell<Session>,
    py: Attached<'py>,
) -> PyResult<'py, ()> {
    let open = session.borrow().state == State::Open;
    if !open || connection.flags.write_paused.get() {
        return Ok(());
    }
    let Some(data) = session.borrow_mut().ping.take() else {
        return Ok(());
    };
    let mut out = Vec::new();
    frame::write(&mut out, Opcode::Pong, false, &data);
    connection.write(py, &out)
}

/// The client broke a rule: it is told which, and left.
#[cold]
fn fail<'py>(
    connection: &Connection,
    session: &RefCell<Session>,
    py: Attached<'py>,
    number: u16,
) -> PyResult<'py, ()> {
    let told = {
        let mut own = session.borrow_mut();
        own.end.get_or_insert((number, String::new()));
        std::mem::replace(&mut own.state, State::Closed) == State::Open
    };
    if told {
        let mut out = Vec::new();
        frame::write_close(&mut out, number, "");
        connection.write(py, &out)?;
    }
    connection.linger(py)
}

/// The next event for the application.
pub fn event<'py>(
    own: &Request,
    session: &RefCell<Session>,
    py: Attached<'py>,
) -> PyResult<'py, Option<Obj<'py>>> {
    let connection = own.connection(py);
    let names = &connection.server(py).types.names;
    let event = Obj::dict(py)?;
    let mut state = session.borrow_mut();
    if !state.told {
        state.told = true;
        event.dict_set(&names.kind.get(py), &names.websocket_connect.get(py))?;
        return Ok(Some(event));
    }
    if let Some(said) = state.queue.pop_front() {
        let before = state.size;
        state.size -= EACH + said.len();
        let resumes = before > HIGH && state.size <= HIGH;
        drop(state);
        if resumes && connection.input.borrow().is_empty() {
            connection.flow(py)?;
        } else if resumes {
            // Frames that were read before come first; then it is seen whether more may be read.
            connection.pump_soon(&own.connection.obj(py))?;
        }
        event.dict_set(&names.kind.get(py), &names.websocket_receive.get(py))?;
        match said {
            Said::Text(text) => event.dict_set(&names.text.get(py), &Obj::text(py, &text)?)?,
            Said::Binary(data) => event.dict_set(&names.bytes.get(py), &Obj::bytes(py, &data)?)?,
            _ => {}
        }
        return Ok(Some(event));
    }
    let (number, reason) = match &state.end {
        Some((number, reason)) => (*number, reason.as_str()),
        None if own.gone.get() || own.out.borrow().is_done() => (code::LOST, ""),
        None => return Ok(None),
    };
    event.dict_set(&names.kind.get(py), &names.websocket_disconnect.get(py))?;
    event.dict_set(&names.code.get(py), &Obj::int(py, i64::from(number))?)?;
    event.dict_set(&names.reason.get(py), &Obj::text(py, reason)?)?;
    Ok(Some(event))
}

/// The server ends.
pub fn stop<'py>(
    own: &Request,
    session: &RefCell<Session>,
    py: Attached<'py>,
) -> PyResult<'py, ()> {
    if session.borrow().state == State::Open {
        session.borrow_mut().end = Some((code::RESTART, String::new()));
        close(own, session, py, code::RESTART, "")?;
        return own.wake(py);
    }
    Ok(())
}

/// A silent client is asked whether it is still there.
pub fn look_at_time<'py>(
    connection: &Connection,
    this: &Obj<'py>,
    waited: u32,
    ticks: &Ticks,
) -> PyResult<'py, ()> {
    let py = this.py();
    let Some(request) = connection.request.get(py) else {
        return Ok(());
    };
    let Some(session) = &Request::of(&request).socket else {
        return Ok(());
    };
    let (state, pinged) = (session.borrow().state, session.borrow().pinged);
    let silent = ticks.ping > 0 && waited > ticks.ping;
    match state {
        State::Closing | State::Closed if waited > LINGER_TICKS => connection.abort(this),
        State::Open if pinged && waited > ticks.ping.saturating_add(ticks.pong) => {
            session.borrow_mut().end = Some((code::FAILED, "no answer to a ping".to_owned()));
            connection.abort(this)
        }
        State::Open if silent && !pinged && !connection.flags.read_paused.get() => {
            session.borrow_mut().pinged = true;
            let mut out = Vec::new();
            frame::write(&mut out, Opcode::Ping, false, &[]);
            connection.write(py, &out)
        }
        _ => Ok(()),
    }
}
