//! The loop's side of its transports: registered, started, flushed at the end of a turn.
//!
//! Thread: the loop's own.

use std::os::fd::RawFd;

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Obj, PyError, PyResult, section};
use reactor::{Key, Readiness};

use super::watch::{lend, number_of, want_fd};
use super::{Foreign, LoopCore, Source};
use crate::datagram::{self, Datagram};
use crate::tls;
use crate::transport::{self, Stream};

impl LoopCore {
    /// A source that is watched for nothing yet.
    pub(crate) fn register<'py>(
        &self,
        py: Attached<'py>,
        fd: RawFd,
        source: Source,
    ) -> PyResult<'py, Key> {
        self.check_here(py)?;
        // What waited for an earlier descriptor of this number, or watched it, does so no more.
        if let Some(old) = self.key_of(fd) {
            self.drop_user(fd, old);
            self.displace(py, fd, old);
        }
        let key = self
            .reactor(|reactor| reactor.register(lend(fd), Readiness::NONE, source))
            .map_err(|error| PyError::from_io(py, &error))?;
        self.set_key(fd, Some(key));
        Ok(key)
    }

    /// A transport whose number another descriptor has by now.
    fn displace(&self, py: Attached<'_>, fd: RawFd, old: Key) {
        let Some(transport) = self.transport_of(py, fd) else {
            return;
        };
        let source = self.reactor(|reactor| reactor.unregister(old, lend(fd)));
        if transport.is_exactly(&self.types.datagram.get(py)) {
            Datagram::of(&transport).lose_fd();
        } else {
            Stream::of(&transport).lose_fd();
        }
        drop(source);
    }

    /// Gives the socket objects of all transports back to their owners.
    pub(super) fn let_go_of_sockets(&self, py: Attached<'_>) {
        for transport in self.transports(py) {
            let done = if transport.is_exactly(&self.types.datagram.get(py)) {
                Datagram::of(&transport).let_go(py)
            } else {
                Stream::of(&transport).let_go(py)
            };
            if let Err(error) = done {
                error.unraisable(c"closing an event loop");
            }
        }
    }

    /// In a child of a fork: the connections are the parent's, and nothing is sent on them here.
    pub(super) fn part_transports(&self, py: Attached<'_>) {
        for transport in self.transports(py) {
            if transport.is_exactly(&self.types.datagram.get(py)) {
                Datagram::of(&transport).part_from_parent();
            } else {
                Stream::of(&transport).part_from_parent();
            }
        }
    }

    /// All transports that the loop watches.
    fn transports<'py>(&self, py: Attached<'py>) -> Vec<Obj<'py>> {
        self.reactor(|reactor| {
            let loads = reactor.loads().filter_map(|source| match source {
                Source::Stream(transport) | Source::Datagram(transport) => {
                    Some(transport.0.obj(py))
                }
                Source::Callbacks(_) | Source::Waits(_) => None,
            });
            loads.collect()
        })
    }

    /// The descriptor stands for this source no longer.
    pub(crate) fn forget_key(&self, fd: RawFd, key: Key) {
        if self.key_of(fd) == Some(key) {
            self.set_key(fd, None);
        }
    }

    /// Notes a transport to be flushed; `false` if no turn is on its way to do it.
    pub(crate) fn flush_at_turn_end(&self, transport: &Obj<'_>) -> bool {
        if self.turning.get() {
            self.io.flushes.borrow_mut().push(Foreign::of(transport));
        }
        self.turning.get()
    }

    /// The turn is over.
    #[inline]
    pub(super) fn end_turn<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.io.turn.set(self.io.turn.get().wrapping_add(1));
        if self.io.flushes.borrow().is_empty() {
            return Ok(());
        }
        let mut done = Ok(());
        for transport in self.io.flushes.take() {
            let transport = transport.0.obj(py);
            let flushed = Stream::alone(&transport, |stream| stream.end_of_turn(&transport));
            done = done.and(flushed);
        }
        done
    }

    /// A transport of either class is started.
    pub(super) fn start<'py>(&self, transport: &Obj<'py>) -> PyResult<'py, ()> {
        section::alone(transport, || {
            if transport.is_exactly(&self.types.datagram.get(transport.py())) {
                Datagram::of(transport).start(transport)
            } else {
                Stream::of(transport).start(transport)
            }
        })
    }

    /// A transport of either class is lost.
    pub(super) fn lost<'py>(&self, transport: &Obj<'py>) -> PyResult<'py, ()> {
        section::alone(transport, || {
            if transport.is_exactly(&self.types.datagram.get(transport.py())) {
                Datagram::of(transport).lost(transport)
            } else {
                Stream::of(transport).lost(transport)
            }
        })
    }

    /// Whether callbacks or a transport have the descriptor.
    pub(crate) fn has_owner(&self, fd: RawFd) -> bool {
        let Some(key) = self.key_of(fd) else {
            return false;
        };
        self.reactor(|reactor| match reactor.source(key) {
            None => false,
            Some(Source::Waits(waits)) => !waits.callbacks.is_empty(),
            Some(_) => true,
        })
    }

    /// Why a descriptor is not the user's.
    #[cold]
    pub(super) fn used_by_transport<'py>(&self, py: Attached<'py>, fd: RawFd) -> PyError<'py> {
        let what = match self.transport_of(py, fd).map(|transport| transport.repr()) {
            Some(Ok(what)) => what.display(),
            _ => String::new(),
        };
        let text = format!("File descriptor {fd} is used by transport {what}");
        PyError::new(py, Builtin::RuntimeError, &text)
    }

    /// The transport that uses the descriptor.
    fn transport_of<'py>(&self, py: Attached<'py>, fd: RawFd) -> Option<Obj<'py>> {
        let key = self.key_of(fd)?;
        self.reactor(|reactor| match reactor.source(key)? {
            Source::Stream(transport) | Source::Datagram(transport) => Some(transport.0.obj(py)),
            Source::Callbacks(_) | Source::Waits(_) => None,
        })
    }
}

/// `_stream(sock, protocol, waiter, extra, server)`: the transport of a connected socket.
pub(super) fn stream<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.check_closed(args.py())?;
    let (socket, protocol) = (args.want(0, "sock")?, args.want(1, "protocol")?);
    let fd = want_fd(args)?;
    let given = [args.given(2), args.given(3), args.given(4)];
    transport::open(this, Some(&socket), fd, &protocol, given)
}

/// `_tls(control)`: the transport above a stream that speaks TLS.
pub(super) fn tls<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.check_closed(args.py())?;
    tls::open(this, &*args.want(0, "control")?)
}

/// `_datagram(sock, protocol, address, waiter, extra)`: the transport of a datagram socket.
pub(super) fn datagram<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.check_closed(args.py())?;
    let (socket, protocol) = (args.want(0, "sock")?, args.want(1, "protocol")?);
    let fd = want_fd(args)?;
    let given = [args.given(2), args.given(3), args.given(4)];
    datagram::open(this, &socket, fd, &protocol, given)
}

/// `_pipe(pipe, protocol, waiter, extra, cls)`: the transport of one end of a pipe.
pub(super) fn pipe<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.check_closed(args.py())?;
    let (file, protocol) = (args.want(0, "pipe")?, args.want(1, "protocol")?);
    let fd = want_fd(args)?;
    let class = args.want(4, "cls")?;
    let given = [args.given(2), args.given(3)];
    transport::pipe::open(this, &class, &file, fd, &protocol, given)
}

/// `_ensure_fd_no_transport(fd)`: a descriptor that a transport uses is not the user's.
pub(super) fn ensure_no_transport<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let fd = number_of(args)?;
    core.check_here(py)?;
    if fd.is_none_or(|fd| core.transport_of(py, fd).is_none()) {
        return Ok(Obj::none(py));
    }
    Err(core.used_by_transport(py, fd.unwrap_or(-1)))
}
