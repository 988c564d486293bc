//! `_ErlangDatagramTransport`: a UDP socket, read and written in Rust.
//!
//! Thread: the loop's own. Never: has a queue borrowed while Python runs (I3).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use pyrt::error::Builtin;
use pyrt::native::Native;
use pyrt::running::{copy_context, in_context};
use pyrt::{Attached, Member, Obj, Place, PyError, PyResult, Visit};
use reactor::{Key, Readiness};

use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, LoopCore, Source, Work};

mod address;
mod attributes;
mod life;
mod receive;
mod send;

use address::Addresses;
pub(crate) use address::make as address_tuple;

/// A datagram that waits to be sent; without an address where the socket is connected.
struct Packet {
    data: Box<[u8]>,
    to: Option<SocketAddr>,
}

/// What a queued datagram counts beyond its data: the header that goes with it.
const HEADER: usize = 8;

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Life {
    Open,
    Closing,
    Lost,
    Gone,
}

/// Small flags.
struct Flags {
    life: Cell<Life>,
    started: Cell<bool>,
    protocol_paused: Cell<bool>,
    connected: bool,
    ipv6: bool,
    limits: Cell<(usize, usize)>,
}

/// What only the beginning, the end and questions need.
struct Rare {
    extra: Place,
    waiter: Place,
    error: Place,
    /// The address given to `create_datagram_endpoint`, if it is connected.
    remote: Place,
}

pub struct Datagram {
    fd: RawFd,
    key: Cell<Option<Key>>,
    event_loop: Member,
    context: Member,
    socket: Place,
    protocol: Place,
    queue: RefCell<Queue>,
    addresses: Addresses,
    flags: Flags,
    rare: Rare,
}

const HIGH: usize = 64 * 1024;

impl Datagram {
    /// The body of a transport object.
    pub fn of<'a>(transport: &'a Obj<'_>) -> &'a Datagram {
        // SAFETY: called with what a `Datagram` method or a source of the loop gave only.
        unsafe { pyrt::native::body(transport) }
    }

    fn core<'a>(&'a self, py: Attached<'_>) -> &'a LoopCore {
        let event_loop = self.event_loop.get(py);
        let core: *const LoopCore = LoopCore::of(&event_loop);
        // SAFETY: `event_loop` keeps the loop object, and so its core, as long as `self`.
        unsafe { &*core }
    }

    fn interest(&self) -> Readiness {
        let life = self.flags.life.get();
        Readiness {
            readable: self.flags.started.get() && life == Life::Open,
            writable: life < Life::Lost && !self.queue.borrow().packets.is_empty(),
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

    pub(crate) fn ready<'py>(&self, this: &Obj<'py>, is: Readiness) -> PyResult<'py, ()> {
        let context = self.context.obj(this.py());
        in_context(&context, || {
            if is.readable {
                self.readable(this)?;
            }
            // Both bits are served in this turn: a skipped writer would wait a whole turn.
            if is.writable && self.interest().writable {
                self.flush(this)?;
            }
            Ok(())
        })
    }
}

/// Makes the transport of a bound or connected socket and has the loop call `connection_made`.
pub(crate) fn open<'py>(
    event_loop: &Obj<'py>,
    socket: &Obj<'py>,
    fd: RawFd,
    protocol: &Obj<'py>,
    [remote, waiter, extra]: [Option<Obj<'py>>; 3],
) -> PyResult<'py, Obj<'py>> {
    let py = event_loop.py();
    let core = LoopCore::of(event_loop);
    let domain = rustix::net::sockopt::socket_domain(lend(fd));
    let datagram = Datagram {
        fd,
        key: Cell::new(None),
        event_loop: Member::new(event_loop.clone()),
        context: Member::new(copy_context(py)?),
        socket: Place::new(Some(socket.clone())),
        protocol: Place::new(Some(protocol.clone())),
        queue: RefCell::default(),
        addresses: Addresses::default(),
        flags: Flags {
            life: Cell::new(Life::Open),
            started: Cell::new(false),
            protocol_paused: Cell::new(false),
            connected: rustix::net::getpeername(lend(fd)).is_ok(),
            ipv6: domain == Ok(rustix::net::AddressFamily::INET6),
            limits: Cell::new((HIGH / 4, HIGH)),
        },
        rare: Rare {
            extra: Place::new(extra),
            waiter: Place::new(waiter),
            error: Place::default(),
            remote: Place::new(remote),
        },
    };
    // SAFETY: the class that `make::<Datagram>` made.
    let transport = unsafe { pyrt::native::instance(&core.types.datagram.get(py), datagram) }?;
    let key = core.register(py, fd, Source::Datagram(Foreign::of(&transport)))?;
    Datagram::of(&transport).key.set(Some(key));
    let work = Work::Start(Foreign::of(&transport));
    core.reactor(|reactor| reactor.push(work));
    Ok(transport)
}

impl Native for Datagram {
    const NAME: &'static std::ffi::CStr = c"erlang._native._ErlangDatagramTransport";
    const DOC: &'static std::ffi::CStr = c"A datagram socket.";

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

    fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.event_loop);
        visit.member(&self.context);
        let rare = &self.rare;
        let places = [&rare.extra, &rare.waiter, &rare.error, &rare.remote];
        for place in [&self.socket, &self.protocol].into_iter().chain(places) {
            visit.place(place);
        }
    }

    fn clear(&self, _py: Attached<'_>) {
        self.protocol.set(None);
        self.rare.extra.set(None);
        self.rare.waiter.set(None);
        self.rare.error.set(None);
        self.rare.remote.set(None);
    }
}
