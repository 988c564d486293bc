//! `_ErlangSSLTransport`: what a protocol writes is encrypted, what comes is decrypted, in Rust.
//!
//! Way B: readable → `Stream` → `feed` → the engine → the protocol; what it writes goes through the
//! engine to the `Stream`. The engine is Python's own `ssl.SSLObject` over two `ssl.MemoryBIO`.
//! Handshake, shutdown and failures are asyncio's: `TlsProtocol` in `_loop_tls.py`, the `control`.
//! Thread: the loop's own. Never: has a queue borrowed while Python runs (I3).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use pyrt::error::Builtin;
use pyrt::native::Native;
use pyrt::{Attached, Attributes, Member, Obj, Place, PyError, PyResult, Visit};

use crate::channel::Limits;
use crate::event_loop::LoopCore;
use crate::own_loop::OwnLoop;

mod attributes;
mod info;
mod read;
mod records;
mod write;

use records::Records;

/// How far the connection is, as asyncio's `SSLProtocolState` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Unwrapped,
    Handshake,
    Open,
    /// `close` was called or the peer has ended: what is here is still read and written.
    Flushing,
    Shutdown,
}

/// A piece of data that waits to be encrypted.
enum Chunk {
    /// A `bytes` of Python's, as it is.
    Bytes(Member),
    Copy(Box<[u8]>),
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    /// How much of the first one is encrypted already.
    done: usize,
    size: usize,
}

const HIGH_WRITE: usize = 512 * 1024;
const HIGH_READ: usize = 256 * 1024;

/// Python's TLS, by its bound methods: nothing is looked up per packet.
struct Engine {
    /// `sslobj.read(len, buffer)`
    read: Member,
    /// `sslobj.write(data)`
    write: Member,
    incoming: Member,
    /// `incoming.write(data)`
    feed: Member,
    outgoing: Member,
    /// `outgoing.read()`
    drain: Member,
    /// What the engine raises when it needs more: `sslproto.SSLAgainErrors`.
    again: Member,
}

struct Flags {
    mode: Cell<Mode>,
    buffered: Cell<bool>,
    /// `close` or `abort` was called, or the connection is lost.
    closed: Cell<bool>,
    /// `close` was called again: nobody will ask any more.
    forgotten: Cell<bool>,
    /// `pause_reading` was called.
    reading_paused: Cell<bool>,
    /// The stream is not read: enough waits for the protocol.
    stream_stopped: Cell<bool>,
    /// The stream has enough to send.
    stream_full: Cell<bool>,
    /// `pause_writing` was called.
    protocol_paused: Cell<bool>,
}

pub struct Tls {
    event_loop: OwnLoop,
    /// asyncio's part of the connection.
    control: Place,
    /// The transport below; none when the connection is lost.
    stream: Place,
    protocol: Place,
    /// None when the connection is lost.
    engine: RefCell<Option<Rc<Engine>>>,
    records: RefCell<Records>,
    queue: RefCell<Queue>,
    write_limits: Cell<Limits>,
    read_limits: Cell<Limits>,
    flags: Flags,
    attributes: Attributes,
}

impl Tls {
    fn core<'a>(&'a self, py: Attached<'_>) -> &'a LoopCore {
        self.event_loop.core(py)
    }

    /// The core of a TLS transport.
    pub fn of<'a>(transport: &'a Obj<'_>) -> &'a Tls {
        // SAFETY: called with what a `Tls` method or the stream below gave only.
        unsafe { pyrt::native::body(transport) }
    }

    /// Whether data goes through.
    fn flows(&self) -> bool {
        matches!(self.flags.mode.get(), Mode::Open | Mode::Flushing)
    }

    /// The engine, kept while it is used: the connection may be lost meanwhile.
    #[inline]
    fn engine(&self) -> Option<Rc<Engine>> {
        self.engine.borrow().clone()
    }

    fn adopt<'py>(&self, protocol: &Obj<'py>) -> PyResult<'py, ()> {
        let py = protocol.py();
        let asyncio = self.core(py).types.asyncio(py)?;
        let buffered = protocol.is_instance(&asyncio.buffered_protocol.get(py))?;
        self.flags.buffered.set(buffered);
        self.protocol.set(Some(protocol.clone()));
        Ok(())
    }

    /// asyncio's part ends the connection; what is no failure is for whoever runs the loop.
    #[cold]
    fn failed<'py>(&self, error: PyError<'py>) -> PyResult<'py, ()> {
        if !error.is_a(Builtin::Exception) {
            return Err(error);
        }
        let py = error.py();
        let what = Obj::text(py, "Fatal error on SSL protocol")?;
        self.control(py, c"_fatal_error", &[error.value(), &what])?;
        Ok(())
    }

    /// A method of asyncio's part; nothing where that is gone with its connection.
    #[cold]
    fn control<'py>(
        &self,
        py: Attached<'py>,
        name: &std::ffi::CStr,
        args: &[&Obj<'py>],
    ) -> PyResult<'py, Option<Obj<'py>>> {
        match self.control.get(py) {
            Some(control) => control.call_method(name, args).map(Some),
            None => Ok(None),
        }
    }

    /// The connection is lost: nothing of it is kept but what questions need.
    fn release(&self) {
        self.flags.closed.set(true);
        self.stream.set(None);
        self.protocol.set(None);
        let (queued, engine) = (self.queue.take(), self.engine.take());
        drop((queued, engine));
        if self.flags.forgotten.get() {
            self.control.set(None);
        }
    }

    /// A second `close`: a protocol that keeps its transport keeps no more than that.
    fn forget(&self) {
        self.flags.forgotten.set(true);
        if !self.stream.is_some() {
            self.control.set(None);
        }
    }
}

/// The transport of a connection whose `control` has made its engine.
pub(crate) fn open<'py>(event_loop: &Obj<'py>, control: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let py = event_loop.py();
    let core = LoopCore::of(event_loop);
    let tls = Tls {
        event_loop: OwnLoop::new(event_loop),
        control: Place::new(Some(control.clone())),
        stream: Place::default(),
        protocol: Place::default(),
        engine: RefCell::new(Some(Rc::new(Engine::of(control)?))),
        records: RefCell::default(),
        queue: RefCell::default(),
        write_limits: Cell::new(Limits::of(HIGH_WRITE)),
        read_limits: Cell::new(Limits::of(HIGH_READ)),
        flags: Flags::new(),
        attributes: Attributes::default(),
    };
    tls.adopt(&control.getattr_c(c"_app_protocol")?)?;
    // SAFETY: the class that `make::<Tls>` made.
    unsafe { pyrt::native::instance(&core.types.tls.get(py), tls) }
}

impl Engine {
    /// Whether it raised because it needs more from the peer.
    fn is_again<'py>(&self, error: &PyError<'py>) -> PyResult<'py, bool> {
        error.value().is_instance(&self.again.get(error.py()))
    }

    fn of<'py>(control: &Obj<'py>) -> PyResult<'py, Self> {
        let py = control.py();
        let part = |name| control.getattr_c(name);
        let (incoming, outgoing) = (part(c"_incoming")?, part(c"_outgoing")?);
        let object = part(c"_sslobj")?;
        let class = pyrt::call::import_c(py, c"ssl")?.getattr_c(c"SSLObject")?;
        // `SSLObject` itself hands each call on to this one; a subclass may do more.
        let object = match object.getattr_c(c"_sslobj") {
            Ok(inner) if object.is_exactly(&class) => inner,
            _ => object,
        };
        let module = pyrt::call::import_c(py, c"asyncio.sslproto")?;
        let bound = |object: &Obj<'py>, name| object.getattr_c(name).map(Member::new);
        Ok(Engine {
            read: bound(&object, c"read")?,
            write: bound(&object, c"write")?,
            feed: bound(&incoming, c"write")?,
            drain: bound(&outgoing, c"read")?,
            incoming: Member::new(incoming),
            outgoing: Member::new(outgoing),
            again: bound(&module, c"SSLAgainErrors")?,
        })
    }
}

impl Flags {
    fn new() -> Self {
        Flags {
            mode: Cell::new(Mode::Unwrapped),
            buffered: Cell::new(false),
            closed: Cell::new(false),
            forgotten: Cell::new(false),
            reading_paused: Cell::new(false),
            stream_stopped: Cell::new(false),
            stream_full: Cell::new(false),
            protocol_paused: Cell::new(false),
        }
    }
}

impl Native for Tls {
    const NAME: &'static std::ffi::CStr = c"erlang._native._ErlangSSLTransport";
    const DOC: &'static std::ffi::CStr = c"A connection under TLS.";
    const ATTRIBUTES: Option<pyrt::attributes::At<Self>> = pyrt::attributes_at!(Tls, attributes);

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
        info::repr(this, self)
    }

    fn governor(&self, _py: Attached<'_>) -> Option<&Self::Governor> {
        Some(&self.event_loop)
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.event_loop);
        if let Ok(Some(engine)) = self.engine.try_borrow().as_deref() {
            let Engine {
                read,
                write,
                incoming,
                feed,
                outgoing,
                drain,
                again,
            } = &**engine;
            for member in [read, write, incoming, feed, outgoing, drain, again] {
                visit.member(member);
            }
        }
        visit.place(&self.control);
        visit.place(&self.stream);
        visit.place(&self.protocol);
    }

    fn clear(&self, _py: Attached<'_>) {
        drop(self.engine.take());
        self.control.set(None);
        self.stream.set(None);
        self.protocol.set(None);
    }
}
