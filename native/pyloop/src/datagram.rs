//! `_ErlangDatagramTransport`: a UDP or Unix datagram socket, read and written in Rust.
//!
//! Thread: the loop's own. Never: has a queue borrowed while Python runs (I3).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use pyrt::error::Builtin;
use pyrt::native::Native;
use pyrt::running::in_context;
use pyrt::{Attached, Obj, Place, PyError, PyResult, Visit};
use reactor::Readiness;
use rustix::net::{AddressFamily, SocketAddrUnix};

use crate::channel::{Channel, Life, Transport};
use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, LoopCore, Source, Work};
use crate::own_loop::OwnLoop;

mod address;
mod attributes;
mod life;
mod receive;
mod send;
mod unix;

use address::Addresses;
pub(crate) use address::make as address_tuple;

/// Where a datagram goes.
enum To {
    Inet(SocketAddr),
    Unix(Box<SocketAddrUnix>),
    /// The socket is connected, or else the system will say what is wrong.
    Peer,
}

/// What kind of addresses the socket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    V4,
    V6,
    Unix,
}

/// A datagram that waits to be sent.
struct Packet {
    data: Box<[u8]>,
    to: To,
}

/// What a queued datagram counts beyond its data: the header that goes with it.
const HEADER: usize = 8;

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    size: usize,
}

pub struct Datagram {
    channel: Channel,
    queue: RefCell<Queue>,
    addresses: Addresses,
    /// The address given to `create_datagram_endpoint`, if it is connected.
    remote: Place,
    connected: bool,
    family: Family,
}

impl Datagram {
    /// The body of a transport object.
    pub fn of<'a>(transport: &'a Obj<'_>) -> &'a Datagram {
        // SAFETY: called with what a `Datagram` method or a source of the loop gave only.
        unsafe { pyrt::native::body(transport) }
    }

    fn interest(&self) -> Readiness {
        let life = self.channel.life.get();
        Readiness {
            readable: self.channel.started.get() && life == Life::Open,
            writable: life < Life::Lost && !self.queue.borrow().packets.is_empty(),
        }
    }

    fn watch(&self, py: Attached<'_>) {
        let _ = self.channel.watch(py, self.interest());
    }

    pub(crate) fn ready<'py>(&self, this: &Obj<'py>, is: Readiness) -> PyResult<'py, ()> {
        let context = self.channel.context.obj(this.py());
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
    let family = match rustix::net::sockopt::socket_domain(lend(fd)) {
        Ok(AddressFamily::UNIX) => Family::Unix,
        Ok(AddressFamily::INET6) => Family::V6,
        _ => Family::V4,
    };
    let datagram = Datagram {
        channel: Channel::new(event_loop, Some(socket), fd, protocol, [waiter, extra])?,
        queue: RefCell::default(),
        addresses: Addresses::default(),
        remote: Place::new(remote),
        connected: rustix::net::getpeername(lend(fd)).is_ok(),
        family,
    };
    // SAFETY: the class that `make::<Datagram>` made.
    let transport = unsafe { pyrt::native::instance(&core.types.datagram.get(py), datagram) }?;
    let source = Source::Datagram(Foreign::of(&transport));
    Datagram::of(&transport).channel.join_loop(py, source)?;
    Datagram::of(&transport).channel.hold(py)?;
    let work = Work::Start(Foreign::of(&transport));
    core.reactor(|reactor| reactor.push(work));
    Ok(transport)
}

impl Native for Datagram {
    const NAME: &'static std::ffi::CStr = c"erlang._native._ErlangDatagramTransport";
    const DOC: &'static std::ffi::CStr = c"A datagram socket.";
    const ATTRIBUTES: Option<pyrt::attributes::At<Self>> =
        pyrt::attributes_at!(Datagram, channel.attributes);

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

    fn governor(&self, _py: Attached<'_>) -> Option<&Self::Governor> {
        Some(&self.channel.event_loop)
    }

    fn traverse(&self, visit: &mut Visit) {
        self.channel.traverse(visit);
        visit.place(&self.remote);
    }

    fn clear(&self, _py: Attached<'_>) {
        self.channel.clear();
        self.remote.set(None);
    }
}

impl Transport for Datagram {
    fn channel(&self) -> &Channel {
        &self.channel
    }

    fn queued(&self) -> usize {
        self.queue.borrow().size
    }

    fn known<'py>(&self, _name: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        Ok(None)
    }
}
