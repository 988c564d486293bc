//! `HttpConnection`: the protocol of one connection, in the sense of asyncio.
//!
//! Way E: the transport's bytes → `incoming` → a request → the application's task → `respond` →
//! the transport. Thread: the loop's own. Never: has the input borrowed while Python runs (I3).

use std::cell::{Cell, RefCell};

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter, Native};
use pyrt::{Attached, Member, Obj, Place, PyError, PyResult, Visit, method};

use super::chunked::Decoder;
use super::home::Home;
use super::request::Request;
use super::server::Server;
use super::status::reason;
use crate::transport::Stream;

type Answer<'py> = PyResult<'py, Obj<'py>>;

/// More than this waits in the transport, not here.
pub const HIGH: usize = 64 * 1024;

/// Ticks that a refused peer has to read its answer.
pub const LINGER_TICKS: u32 = 2;

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// The head of a request.
    Head,
    /// This much of a body.
    Length(u64),
    Chunked(Decoder),
    /// The next request, which has to wait for the answer to this one.
    Answer,
    /// Frames of a WebSocket.
    Socket,
    /// Of no interest: the connection ends when the peer has read its answer.
    Linger,
    Closed,
}

#[derive(Default)]
pub struct Flags {
    /// `incoming` is on the stack.
    pub pumping: Cell<bool>,
    pub write_paused: Cell<bool>,
    pub read_paused: Cell<bool>,
    /// The transport is a socket of our own loop.
    pub direct: Cell<bool>,
    /// More connections than the limit: answered with 503.
    pub surplus: Cell<bool>,
}

pub struct Connection {
    pub server: Member,
    pub id: u64,
    pub transport: Place,
    /// The request that is read or answered.
    pub request: Place,
    /// The scope of a request whose application was not called yet.
    pub pending: Place,
    /// What is the same in the scopes of all requests.
    pub template: Place,
    pub input: RefCell<Vec<u8>>,
    pub phase: Cell<Phase>,
    pub flags: Flags,
    /// The tick at which the wait for the peer began.
    pub since: Cell<u32>,
    /// How much of a long head has no end (`head::parse`).
    pub searched: Cell<u32>,
    /// What the peer had not taken yet when its time was over the last time.
    pub unsent: Cell<i64>,
}

/// The protocol of a connection that is about to be made.
pub fn make<'py>(server: &Obj<'py>) -> Answer<'py> {
    let body = Server::of(server);
    let connection = Connection {
        server: Member::new(server.clone()),
        id: body.number(),
        transport: Place::default(),
        request: Place::default(),
        pending: Place::default(),
        template: Place::default(),
        input: RefCell::default(),
        phase: Cell::new(Phase::Head),
        flags: Flags::default(),
        since: Cell::new(body.live.tick.get()),
        searched: Cell::new(0),
        unsent: Cell::new(0),
    };
    let class = body.types.connection.obj(server.py());
    // SAFETY: the class of `Connection`.
    unsafe { pyrt::native::instance(&class, connection) }
}

impl Connection {
    pub fn of<'a>(connection: &'a Obj<'_>) -> &'a Connection {
        // SAFETY: called with objects of this class only.
        unsafe { pyrt::native::body(connection) }
    }

    pub fn server<'a>(&'a self, py: Attached<'_>) -> &'a Server {
        let server = self.server.get(py);
        let body: *const Server = Server::of(&server);
        // SAFETY: `server` keeps the object, and so its body, as long as `self`.
        unsafe { &*body }
    }

    /// Marks the begin of a wait for the peer.
    pub fn wait_begins(&self, py: Attached<'_>) {
        self.since.set(self.server(py).live.tick.get());
    }

    pub fn write<'py>(&self, py: Attached<'py>, data: &[u8]) -> PyResult<'py, ()> {
        let Some(transport) = self.transport.get(py) else {
            return Ok(());
        };
        if self.flags.direct.get() {
            return Stream::alone(&transport, |stream| stream.write_copy(&transport, data));
        }
        self.write_object(&Obj::bytes(py, data)?)
    }

    pub fn write_object<'py>(&self, data: &Obj<'py>) -> PyResult<'py, ()> {
        let py = data.py();
        if let Some(transport) = self.transport.get(py) {
            let name = self.server(py).types.names.write.get(py);
            transport.call_named(&name, [data])?;
        }
        Ok(())
    }

    /// Ends after what was written has gone out.
    pub fn close<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.phase.set(Phase::Closed);
        self.wait_begins(py);
        let Some(transport) = self.transport.get(py) else {
            return Ok(());
        };
        let server = self.server(py);
        if server.live.draining.get() && transport.is_exactly(&server.loops.tls.get(py)) {
            // A peer that never says its own end does not keep the server from ending.
            transport.call_method(c"_leave", &[])?;
            return Ok(());
        }
        transport.call_named(&server.types.names.close.get(py), [])?;
        Ok(())
    }

    pub fn abort<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.phase.set(Phase::Closed);
        if let Some(transport) = self.transport.get(this.py()) {
            transport.call_method(c"abort", &[])?;
        }
        Ok(())
    }

    /// Answers for the server itself, and ends the connection. A peer that still sends would not
    /// see the answer if the socket were closed under it, so what it sends is read for a while.
    #[cold]
    pub fn refuse<'py>(&self, py: Attached<'py>, status: u16) -> PyResult<'py, ()> {
        let text = reason(status);
        let more = if status == 426 {
            "upgrade: websocket\r\nsec-websocket-version: 13\r\n"
        } else {
            ""
        };
        let answer = format!(
            "HTTP/1.1 {status} {text}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\n{more}connection: close\r\n\r\n{text}",
            text.len()
        );
        self.write(py, answer.as_bytes())?;
        self.linger(py)
    }

    pub fn linger<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let Some(transport) = self.transport.get(py) else {
            return Ok(());
        };
        // All of a request was read, and no other will be: there is nothing to wait for.
        let alone =
            self.server(py).live.draining.get() && matches!(self.phase.get(), Phase::Answer);
        if alone || !transport.call_method(c"can_write_eof", &[])?.is_truthy()? {
            return self.close(py);
        }
        transport.call_method(c"write_eof", &[])?;
        self.phase.set(Phase::Linger);
        self.wait_begins(py);
        self.flow(py)
    }

    /// This answer is the last, complete or not: what was written goes out, then the peer sees the end.
    pub fn end<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        match self.phase.get() {
            // A socket that is closed while its peer sends is reset, with all that waits in it.
            Phase::Length(1..) | Phase::Chunked(_) => self.linger(py),
            _ => self.close(py),
        }
    }

    /// The server ends: at once where nothing is asked, else after the answer.
    pub fn stop<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        match self.request.get(py) {
            None => self.close(py),
            Some(request) => Request::of(&request).stop(&request),
        }
    }

    /// Its WebSocket is closed if one of these tasks serves it.
    pub fn restart<'py>(&self, py: Attached<'py>, tasks: &[Obj<'py>]) -> PyResult<'py, ()> {
        let Some(request) = self.request.get(py) else {
            return Ok(());
        };
        let own = Request::of(&request);
        match (&own.socket, self.server(py).task(py, own.task.get())) {
            (Some(session), Some(task)) if tasks.iter().any(|other| other.is(&task)) => {
                super::ws::stop(own, session, py)
            }
            _ => Ok(()),
        }
    }

    /// A peer that keeps us waiting for too long is left.
    pub fn look_at_time<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let server = self.server(py);
        let ticks = &server.parts(py)?.config.ticks;
        let waited = server.live.tick.get().wrapping_sub(self.since.get());
        let idle = waited > ticks.idle;
        if idle && self.is_read() && self.look_at_unsent(this)? {
            return Ok(());
        }
        match self.phase.get() {
            Phase::Head if self.input.borrow().is_empty() && idle => self.close(py),
            Phase::Head if self.input.borrow().is_empty() => Ok(()),
            Phase::Head if waited > ticks.head => self.refuse_head(py, None, 408),
            Phase::Length(_) | Phase::Chunked(_) if idle && !self.flags.read_paused.get() => {
                self.abort(this)
            }
            Phase::Socket => super::ws::look_at_time(self, this, waited, ticks),
            Phase::Linger if waited > LINGER_TICKS => self.close(py),
            _ => Ok(()),
        }
    }
}

/// A peer that does not read.
impl Connection {
    /// Whether it is the peer's turn to read, as long as there is something left.
    fn is_read(&self) -> bool {
        match self.phase.get() {
            Phase::Head | Phase::Closed => true,
            // A body that the application does not want waits, however long: who sends it may read.
            Phase::Answer | Phase::Length(_) | Phase::Chunked(_) => self.flags.write_paused.get(),
            Phase::Socket | Phase::Linger => false,
        }
    }

    /// The peer's time to read is over: it gets the same time again if it has read something, else it
    /// is left. `false`: nothing waits for it.
    fn look_at_unsent<'py>(&self, this: &Obj<'py>) -> PyResult<'py, bool> {
        let py = this.py();
        let unsent = match self.transport.get(py) {
            Some(transport) => transport
                .call_method(c"get_write_buffer_size", &[])?
                .as_i64()?
                .unwrap_or_default(),
            None => 0,
        };
        let before = self.unsent.replace(unsent);
        if unsent == 0 {
            return Ok(false);
        }
        if unsent == before {
            self.abort(this)?;
        } else {
            self.wait_begins(py);
        }
        Ok(true)
    }
}

fn connection_made<'py>(this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let transport = args.want(0, "transport")?;
    let server = own.server(py);
    own.flags
        .direct
        .set(transport.is_exactly(&server.loops.stream.get(py)));
    own.transport.set(Some(transport.clone()));
    let config = &server.parts(py)?.config;
    own.flags.surplus.set(!server.has_room(config));
    server.joined(&own.server.obj(py), own.id, this)?;
    if server.live.draining.get() {
        own.close(py)?;
    }
    Ok(Obj::none(py))
}

fn data_received<'py>(this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    let data = args.want(0, "data")?;
    if let Some(bytes) = data.as_bytes() {
        own.data(this, bytes)?;
        return Ok(Obj::none(args.py()));
    }
    let mut copy = Vec::new();
    pyrt::buffer::Buffer::of(&data)?.append_to(&mut copy)?;
    own.data(this, &copy)?;
    Ok(Obj::none(args.py()))
}

/// The end of what the peer sends is taken as its leave: so a handler hears of it while it waits.
fn eof_received<'py>(_: &Obj<'py>, _: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), false))
}

fn connection_lost<'py>(_this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    own.phase.set(Phase::Closed);
    own.transport.set(None);
    own.input.take();
    own.pending.set(None);
    own.template.set(None);
    if let Some(request) = own.request.take(py) {
        Request::of(&request).peer_left(&request)?;
    }
    own.server(py).left(py, own.id)?;
    Ok(Obj::none(py))
}

fn pause_writing<'py>(_this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    own.flags.write_paused.set(true);
    own.wait_begins(args.py());
    Ok(Obj::none(args.py()))
}

fn resume_writing<'py>(_this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    own.flags.write_paused.set(false);
    own.unsent.set(0);
    if let Some(request) = own.request.get(args.py()) {
        Request::of(&request).has_room(args.py())?;
    }
    Ok(Obj::none(args.py()))
}

fn pump<'py>(this: &Obj<'py>, own: &Connection, args: &Args<'_, 'py>) -> Answer<'py> {
    own.data(this, &[])?;
    Ok(Obj::none(args.py()))
}

static METHODS: [Function; 8] = [
    method!(Connection, c"connection_made", connection_made, c""),
    method!(Connection, c"data_received", data_received, c""),
    method!(Connection, c"eof_received", eof_received, c""),
    method!(Connection, c"connection_lost", connection_lost, c""),
    method!(Connection, c"pause_writing", pause_writing, c""),
    method!(Connection, c"resume_writing", resume_writing, c""),
    method!(
        Connection,
        c"_pump",
        pump,
        c"Goes on with what has been read."
    ),
    END,
];

static GETTERS: [Getter; 1] = [END_OF_GETTERS];

impl Native for Connection {
    const NAME: &'static std::ffi::CStr = c"erlang._native.HttpConnection";
    const DOC: &'static std::ffi::CStr = c"The protocol of one connection of an HttpServer.";

    type Governor = Home;

    fn methods() -> &'static [Function] {
        &METHODS
    }

    fn getters() -> &'static [Getter] {
        &GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let text = "made by HttpServer.connection() only";
        Err(PyError::new(class.py(), Builtin::TypeError, text))
    }

    fn governor(&self, py: Attached<'_>) -> Option<&Self::Governor> {
        self.server(py).home()
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.server);
        for place in [
            &self.transport,
            &self.request,
            &self.pending,
            &self.template,
        ] {
            visit.place(place);
        }
    }

    fn clear(&self, _py: Attached<'_>) {
        for place in [
            &self.transport,
            &self.request,
            &self.pending,
            &self.template,
        ] {
            place.set(None);
        }
    }
}
