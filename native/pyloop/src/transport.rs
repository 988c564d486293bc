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
use pyrt::{Attached, Member, Obj, Place, PyError, PyResult, Visit, section};
use reactor::Readiness;

use crate::channel::{Channel, Life, Transport};
use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, LoopCore, Work};
use crate::own_loop::OwnLoop;

mod attributes;
mod below;
mod info;
mod life;
mod medium;
mod methods;
pub(crate) mod pipe;
mod read;
mod write;

use medium::Medium;
pub(crate) use read::ROOM;

/// How the protocol takes its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Buffered,
    /// To the TLS transport above.
    Tls,
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

/// Small flags and counters.
struct Flags {
    medium: Medium,
    kind: Cell<Kind>,
    /// `pause_reading` was called.
    paused: Cell<bool>,
    /// The peer has ended its side.
    eof: Cell<bool>,
    /// `write_eof` was called.
    wrote_eof: Cell<bool>,
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
    server: Place,
    /// For `sendfile`: told when the queue is empty.
    empty_waiter: Place,
    /// Where an accepted connection came from.
    peer: Cell<Option<SocketAddr>>,
}

pub struct Stream {
    channel: Channel,
    /// The TLS transport that takes what comes, in place of the protocol.
    tls: Place,
    queue: RefCell<Queue>,
    flags: Flags,
    rare: Rare,
}

impl Stream {
    /// Uses a stream while no other thread is in a method of it.
    #[inline]
    pub(crate) fn alone<T>(transport: &Obj<'_>, body: impl FnOnce(&Stream) -> T) -> T {
        section::alone(transport, || body(Stream::of(transport)))
    }

    /// The core of a transport object.
    pub fn of<'a>(transport: &'a Obj<'_>) -> &'a Stream {
        // SAFETY: called with what a `Stream` method or a source of the loop gave only.
        unsafe { pyrt::native::body(transport) }
    }

    /// The descriptor, and where an accepted connection came from.
    pub(crate) fn ends(&self) -> (RawFd, Option<SocketAddr>) {
        (self.channel.fd(), self.rare.peer.get())
    }

    /// What the source should be watched for now.
    fn interest(&self) -> Readiness {
        let (flags, life) = (&self.flags, self.channel.life.get());
        let reads = match flags.medium {
            Medium::Socket | Medium::Reader => {
                !flags.paused.get() && !flags.eof.get() && life == Life::Open
            }
            Medium::Writer { hears } => hears && life < Life::Lost,
        };
        Readiness {
            readable: self.channel.started.get() && reads,
            writable: life < Life::Lost
                && !flags.listed.get()
                && !self.queue.borrow().chunks.is_empty(),
        }
    }

    fn watch(&self, py: Attached<'_>) {
        let _ = self.channel.watch(py, self.interest());
    }

    /// Closes the descriptor where no socket object of Python's does.
    fn close_own(&self) {
        if self.flags.owns.replace(false) {
            // SAFETY: `accepted` gave it up to this transport, and nobody else closes it.
            drop(unsafe { OwnedFd::from_raw_fd(self.channel.fd()) });
        }
    }

    /// The socket object; made now, for an accepted connection, and the owner from now on.
    fn socket_object<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        if self.flags.owns.get() {
            // Others may come here while it is made. One object is the owner, the first that is done.
            let class = pyrt::call::import_c(py, c"socket")?.getattr_c(c"socket")?;
            let names = Obj::tuple(py, [Obj::interned(py, "fileno")?].into_iter())?;
            let fd = Obj::int(py, i64::from(self.channel.fd()))?;
            let socket = class.call_few([&fd], Some(&names))?;
            if self.flags.owns.replace(false) {
                self.channel.file.set(Some(socket));
            } else {
                socket.call_method(c"detach", &[])?;
            }
        }
        Ok(self.channel.file.get(py))
    }

    /// Another descriptor has the number of ours: it is not ours to close.
    pub(crate) fn lose_fd(&self) {
        self.flags.owns.set(false);
        self.channel.lose_fd();
    }

    pub(crate) fn let_go<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.channel.let_go(py)
    }

    fn set_protocol(&self, protocol: &Obj<'_>, buffered: bool) {
        let kind = if buffered {
            Kind::Buffered
        } else {
            Kind::Plain
        };
        self.flags.kind.set(kind);
        self.tls.set(None);
        self.channel.protocol.set(Some(protocol.clone()));
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
    // Only TCP has it; for the others the kernel says no, and that is fine.
    let _ = rustix::net::sockopt::set_tcp_nodelay(lend(fd), true);
    let channel = Channel::new(event_loop, socket, fd, protocol, [waiter, extra])?;
    let class = LoopCore::of(event_loop).types.stream.obj(event_loop.py());
    let transport = begin(&class, channel, Medium::Socket, server)?;
    Stream::of(&transport).channel.hold(event_loop.py())?;
    Ok(transport)
}

/// The transport of a channel joins its server and the loop, which will call `connection_made`.
fn begin<'py>(
    class: &Obj<'py>,
    channel: Channel,
    medium: Medium,
    server: Option<Obj<'py>>,
) -> PyResult<'py, Obj<'py>> {
    let py = class.py();
    let event_loop = channel.event_loop.obj(py);
    let core = LoopCore::of(&event_loop);
    let buffered = match channel.protocol.get(py) {
        Some(protocol) => {
            let asyncio = core.types.asyncio(py)?;
            protocol.is_instance(&asyncio.buffered_protocol.get(py))?
        }
        None => false,
    };
    let stream = Stream {
        channel,
        tls: Place::default(),
        queue: RefCell::default(),
        flags: Flags::new(medium),
        rare: Rare {
            server: Place::new(server),
            empty_waiter: Place::default(),
            peer: Cell::new(None),
        },
    };
    if buffered {
        stream.flags.kind.set(Kind::Buffered);
    }
    // SAFETY: a class that `make::<Stream>` or `make_as::<Stream>` made, or derived from one.
    let transport = unsafe { pyrt::native::instance(class, stream) }?;
    let own = Stream::of(&transport);
    own.join_loop(&transport)?;
    if let Some(server) = own.rare.server.get(py) {
        let name = core.types.names._attach_transport.get(py);
        if let Err(error) = event_loop.call_named(&name, [&server, &transport]) {
            own.channel.leave_loop(py);
            own.rare.server.set(None);
            return Err(error);
        }
    }
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
    fn new(medium: Medium) -> Self {
        Flags {
            medium,
            kind: Cell::new(Kind::Plain),
            paused: Cell::new(false),
            eof: Cell::new(false),
            wrote_eof: Cell::new(false),
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
    const ATTRIBUTES: Option<pyrt::attributes::At<Self>> =
        pyrt::attributes_at!(Stream, channel.attributes);

    type Governor = OwnLoop;

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
        if self.flags.medium.is_pipe() {
            return pipe::repr(this, self);
        }
        info::repr(this, self)
    }

    fn governor(&self, _py: Attached<'_>) -> Option<&Self::Governor> {
        Some(&self.channel.event_loop)
    }

    fn traverse(&self, visit: &mut Visit) {
        self.channel.traverse(visit);
        visit.place(&self.tls);
        visit.place(&self.rare.server);
        visit.place(&self.rare.empty_waiter);
    }

    fn clear(&self, _py: Attached<'_>) {
        self.channel.clear();
        self.tls.set(None);
        self.rare.server.set(None);
        self.rare.empty_waiter.set(None);
    }
}

impl Transport for Stream {
    fn channel(&self) -> &Channel {
        &self.channel
    }

    fn queued(&self) -> usize {
        self.queue.borrow().size
    }

    fn socket<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        if self.flags.medium.is_pipe() {
            return Ok(None);
        }
        self.socket_object(py)
    }

    fn known<'py>(&self, name: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        match self.rare.peer.get() {
            Some(peer) if name.as_utf8().is_ok_and(|name| name == "peername") => {
                crate::datagram::address_tuple(name.py(), peer).map(Some)
            }
            _ => Ok(None),
        }
    }
}
