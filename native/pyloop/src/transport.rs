//! `_ErlangSocketTransport`: a connected stream socket, read and written in Rust.
//!
//! Way B: readable → `read` → the protocol; what it writes goes out now or waits for writable.
//! Thread: the loop's own. Never: has a queue borrowed while Python runs (I3).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

use pyrt::error::Builtin;
use pyrt::native::Native;
use pyrt::running::copy_context;
use pyrt::{Attached, Member, Obj, Place, PyError, PyResult, Visit};
use reactor::{Key, Readiness};

use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, LoopCore, Work};

mod attributes;
mod info;
mod life;
mod read;
mod write;

pub(crate) use read::ROOM;

/// How far a connection is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Life {
    Open,
    /// `close` was called: what is queued still goes out.
    Closing,
    /// `connection_lost` is on its way.
    Lost,
    /// `connection_lost` has run, the socket is closed.
    Gone,
}

/// How the protocol takes its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Buffered,
}

/// A piece of data that waits to be sent.
enum Chunk {
    /// A `bytes` of Python's, as it is.
    Bytes(Member),
    Copy(Box<[u8]>),
}

/// What waits to be sent.
#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    /// How much of the first one is sent already.
    sent: usize,
    size: usize,
}

/// The marks for `pause_writing` and `resume_writing`.
#[derive(Clone, Copy)]
struct Limits {
    high: usize,
    low: usize,
}

const HIGH: usize = 64 * 1024;

/// Small flags and counters.
struct Flags {
    life: Cell<Life>,
    kind: Cell<Kind>,
    /// `pause_reading` was called.
    paused: Cell<bool>,
    /// Reading begins when `connection_made` has been called.
    started: Cell<bool>,
    /// The peer has ended its side.
    eof: Cell<bool>,
    /// `write_eof` was called.
    wrote_eof: Cell<bool>,
    /// `pause_writing` was called.
    protocol_paused: Cell<bool>,
    /// The protocol's own callback runs: what it writes goes out when it returns.
    inside: Cell<bool>,
    /// In the loop's list of those to flush at the end of the turn.
    listed: Cell<bool>,
    /// Wrote more than once in its last turn: the writes of a turn are sent together.
    joins: Cell<bool>,
    /// The turn of the last write.
    turn: Cell<u32>,
    /// Writes after the connection was lost.
    lost_writes: Cell<u32>,
    /// The descriptor is ours to close: no socket object of Python's has it.
    owns: Cell<bool>,
}

/// What only the beginning, the end and questions need.
struct Rare {
    extra: Place,
    server: Place,
    waiter: Place,
    /// For `sendfile`: told when the queue is empty.
    empty_waiter: Place,
    /// Why the connection was lost.
    error: Place,
    /// Where an accepted connection came from.
    peer: Cell<Option<SocketAddr>>,
}

pub struct Stream {
    fd: RawFd,
    key: Cell<Option<Key>>,
    event_loop: Member,
    context: Member,
    socket: Place,
    protocol: Place,
    queue: RefCell<Queue>,
    limits: Cell<Limits>,
    flags: Flags,
    rare: Rare,
}

impl Stream {
    fn core<'a>(&'a self, py: Attached<'_>) -> &'a LoopCore {
        let event_loop = self.event_loop.get(py);
        let core: *const LoopCore = LoopCore::of(&event_loop);
        // SAFETY: `event_loop` keeps the loop object, and so its core, as long as `self`.
        unsafe { &*core }
    }

    /// The core of a transport object.
    pub fn of<'a>(transport: &'a Obj<'_>) -> &'a Stream {
        // SAFETY: called with what a `Stream` method or a source of the loop gave only.
        unsafe { pyrt::native::body(transport) }
    }

    /// What the source should be watched for now.
    fn interest(&self) -> Readiness {
        let flags = &self.flags;
        Readiness {
            readable: flags.started.get()
                && !flags.paused.get()
                && !flags.eof.get()
                && flags.life.get() == Life::Open,
            writable: flags.life.get() < Life::Lost
                && !flags.listed.get()
                && !self.queue.borrow().chunks.is_empty(),
        }
    }

    fn watch(&self, py: Attached<'_>) {
        if let Some(key) = self.key.get() {
            let interest = self.interest();
            let core = self.core(py);
            // A failure means that the socket was closed behind our back: nothing will be ready.
            let _ = core.reactor(|reactor| reactor.watch(key, lend(self.fd), interest));
        }
    }

    /// Closes the descriptor where no socket object of Python's does.
    fn close_own(&self) {
        if self.flags.owns.replace(false) {
            // SAFETY: `accepted` gave it up to this transport, and nobody else closes it.
            drop(unsafe { OwnedFd::from_raw_fd(self.fd) });
        }
    }

    /// The socket object; made now, for an accepted connection, and the owner from now on.
    fn socket_object<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        if self.flags.owns.get() {
            let class = pyrt::call::import_c(py, c"socket")?.getattr_c(c"socket")?;
            let names = Obj::tuple(py, [Obj::interned(py, "fileno")?].into_iter())?;
            let fd = Obj::int(py, i64::from(self.fd))?;
            let socket = class.call_few([&fd], Some(&names))?;
            self.flags.owns.set(false);
            self.socket.set(Some(socket));
        }
        Ok(self.socket.get(py))
    }

    fn set_protocol(&self, protocol: &Obj<'_>, buffered: bool) {
        let kind = if buffered {
            Kind::Buffered
        } else {
            Kind::Plain
        };
        self.flags.kind.set(kind);
        self.protocol.set(Some(protocol.clone()));
    }
}

/// Makes the transport of a connected socket and has the loop call `connection_made`.
pub(crate) fn open<'py>(
    event_loop: &Obj<'py>,
    socket: Option<&Obj<'py>>,
    fd: RawFd,
    protocol: &Obj<'py>,
    [waiter, extra, server]: [Option<Obj<'py>>; 3],
) -> PyResult<'py, Obj<'py>> {
    let py = event_loop.py();
    let core = LoopCore::of(event_loop);
    let asyncio = core.types.asyncio(py)?;
    let buffered = protocol.is_instance(&asyncio.buffered_protocol.get(py))?;
    // Only TCP has it; for the others the kernel says no, and that is fine.
    let _ = rustix::net::sockopt::set_tcp_nodelay(lend(fd), true);
    let stream = Stream {
        fd,
        key: Cell::new(None),
        event_loop: Member::new(event_loop.clone()),
        context: Member::new(copy_context(py)?),
        socket: Place::new(socket.cloned()),
        protocol: Place::default(),
        queue: RefCell::default(),
        limits: Cell::new(Limits {
            high: HIGH,
            low: HIGH / 4,
        }),
        flags: Flags::new(),
        rare: Rare {
            extra: Place::new(extra),
            server: Place::new(server),
            waiter: Place::new(waiter),
            empty_waiter: Place::default(),
            error: Place::default(),
            peer: Cell::new(None),
        },
    };
    stream.set_protocol(protocol, buffered);
    // SAFETY: the class that `make::<Stream>` made.
    let transport = unsafe { pyrt::native::instance(&core.types.stream.get(py), stream) }?;
    Stream::of(&transport).join_loop(&transport)?;
    let work = Work::Start(Foreign::of(&transport));
    core.reactor(|reactor| reactor.push(work));
    Ok(transport)
}

/// The transport of a connection that was just accepted; a socket object is made when asked for.
pub(crate) fn accepted<'py>(
    event_loop: &Obj<'py>,
    connection: OwnedFd,
    peer: Option<SocketAddr>,
    protocol: &Obj<'py>,
    server: Option<Obj<'py>>,
) -> PyResult<'py, Obj<'py>> {
    use std::os::fd::AsRawFd;
    let fd = connection.as_raw_fd();
    let transport = open(event_loop, None, fd, protocol, [None, None, server])?;
    let stream = Stream::of(&transport);
    stream.rare.peer.set(peer);
    stream.flags.owns.set(true);
    let _ = connection.into_raw_fd();
    Ok(transport)
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close_own();
    }
}

impl Flags {
    fn new() -> Self {
        Flags {
            life: Cell::new(Life::Open),
            kind: Cell::new(Kind::Plain),
            paused: Cell::new(false),
            started: Cell::new(false),
            eof: Cell::new(false),
            wrote_eof: Cell::new(false),
            protocol_paused: Cell::new(false),
            inside: Cell::new(false),
            listed: Cell::new(false),
            joins: Cell::new(false),
            turn: Cell::new(u32::MAX),
            lost_writes: Cell::new(0),
            owns: Cell::new(false),
        }
    }
}

impl Native for Stream {
    const NAME: &'static std::ffi::CStr = c"erlang._native._ErlangSocketTransport";
    const DOC: &'static std::ffi::CStr = c"A connected stream socket.";

    fn methods() -> &'static [pyrt::module::Function] {
        &attributes::METHODS
    }

    fn getters() -> &'static [pyrt::native::Getter] {
        &attributes::GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let text = "transports are made by an event loop";
        Err(PyError::new(class.py(), Builtin::TypeError, text))
    }

    fn repr<'py>(&self, this: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
        info::repr(this, self)
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.event_loop);
        visit.member(&self.context);
        let Rare {
            extra,
            server,
            waiter,
            empty_waiter,
            error,
            peer: _,
        } = &self.rare;
        for place in [
            &self.socket,
            &self.protocol,
            extra,
            server,
            waiter,
            empty_waiter,
            error,
        ] {
            visit.place(place);
        }
    }

    fn clear(&self, _py: Attached<'_>) {
        self.protocol.set(None);
        self.rare.extra.set(None);
        self.rare.server.set(None);
        self.rare.waiter.set(None);
        self.rare.empty_waiter.set(None);
        self.rare.error.set(None);
    }
}
