//! `sock_recv`, `sock_sendall` and the waiting of their relatives, completed without callbacks.
//!
//! A socket of the user's own is watched for one event per wait, so that it may be closed at any
//! time; what waits is served in the order it came. Thread: the loop's own.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Member, Obj, PyError, PyResult};
use reactor::{Key, Readiness};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::watch::{Callbacks, lend, number_of, want_fd};
use super::{LoopCore, Source, Work};
use crate::transport::ROOM;

type Answer<'py> = PyResult<'py, Obj<'py>>;

/// What is done when the socket is ready.
pub enum Deed {
    /// Tells that it is ready.
    Tell,
    Receive(usize),
    /// The data and how much of it is sent.
    Send(Box<[u8]>, usize),
}

/// A deed that waits, and the future that hears of it.
pub struct Op {
    future: Member,
    deed: Deed,
}

/// What waits for a socket, each way in its order, and who watches it beside that.
#[derive(Default)]
pub struct Waits {
    reads: VecDeque<Op>,
    writes: VecDeque<Op>,
    pub(super) callbacks: Callbacks,
}

impl Waits {
    fn queue(&mut self, write: bool) -> &mut VecDeque<Op> {
        if write {
            &mut self.writes
        } else {
            &mut self.reads
        }
    }

    /// The descriptor is a new one: all but the last op waited for one that was closed.
    fn split_last(&mut self, write: bool) -> Waits {
        let last = self.queue(write).pop_back();
        let stale = std::mem::take(self);
        self.queue(write).extend(last);
        stale
    }

    pub(super) fn interest(&self) -> Readiness {
        let waited = Readiness {
            readable: !self.reads.is_empty(),
            writable: !self.writes.is_empty(),
        };
        waited | self.callbacks.interest()
    }

    /// The descriptor is gone: nobody is told.
    pub(super) fn drop_all(self) {
        self.callbacks.cancel();
    }

    fn has(&self, write: bool, future: &Obj<'_>) -> bool {
        let queue = if write { &self.writes } else { &self.reads };
        queue.iter().any(|op| op.future.is(future))
    }

    /// Takes out what waits for a future.
    fn forget(&mut self, write: bool, future: &Obj<'_>) -> Option<Op> {
        let queue = self.queue(write);
        let place = queue.iter().position(|op| op.future.is(future))?;
        queue.remove(place)
    }
}

impl Source {
    /// Callbacks are of a socket that is waited for beside them.
    fn begin_waits(&mut self) {
        if let Source::Callbacks(callbacks) = self {
            *self = Source::Waits(Waits {
                callbacks: std::mem::take(callbacks),
                ..Waits::default()
            });
        }
    }
}

/// How a deed went.
enum Done<'py> {
    Value(Obj<'py>),
    Later(Deed),
    Failed(PyError<'py>),
}

impl LoopCore {
    /// The source of a user's socket; `None` where a callback watches it the same way.
    fn waits_key<'py>(
        &self,
        py: Attached<'py>,
        fd: RawFd,
        write: bool,
    ) -> PyResult<'py, Option<Key>> {
        if let Some(key) = self.key_of(fd) {
            let found = self.reactor(|reactor| match reactor.source_mut(key) {
                Some(Source::Waits(waits)) => Ok(waits.callbacks.has_room(write)),
                Some(Source::Callbacks(callbacks)) if !callbacks.has_room(write) => Ok(false),
                // It is watched for one event at a time from now on.
                Some(source @ Source::Callbacks(_)) => {
                    source.begin_waits();
                    Ok(true)
                }
                _ => Err(()),
            });
            return match found {
                Ok(found) => Ok(found.then_some(key)),
                Err(()) => Err(self.used_by_transport(py, fd)),
            };
        }
        let source = Source::Waits(Waits::default());
        self.register(py, fd, source).map(Some)
    }

    /// A future of the deed, or `NotImplemented` where a callback watches the same way.
    fn wait_for<'py>(&self, this: &Obj<'py>, fd: RawFd, write: bool, deed: Deed) -> Answer<'py> {
        let py = this.py();
        let Some(key) = self.waits_key(py, fd, write)? else {
            return Ok(Obj::not_implemented(py));
        };
        let future = self.future(this)?;
        let op = Op {
            future: Member::new(future.clone()),
            deed,
        };
        let stale = self
            .reactor(|reactor| {
                let Some(Source::Waits(waits)) = reactor.source_mut(key) else {
                    return Ok(Waits::default());
                };
                waits.queue(write).push_back(op);
                let interest = waits.interest();
                let new = reactor.watch_once(key, lend(fd), interest)?;
                Ok(match reactor.source_mut(key) {
                    Some(Source::Waits(waits)) if new => waits.split_last(write),
                    _ => Waits::default(),
                })
            })
            .map_err(|error| PyError::from_io(py, &error))?;
        stale.drop_all();
        Ok(future)
    }

    /// The futures of all that waits for a socket that is about to be closed.
    pub(crate) fn take_waits<'py>(&self, py: Attached<'py>, fd: RawFd) -> Vec<Obj<'py>> {
        let waits = self.reactor(|reactor| match reactor.source_mut(self.key_of(fd)?)? {
            Source::Waits(waits) => Some((
                std::mem::take(&mut waits.reads),
                std::mem::take(&mut waits.writes),
            )),
            _ => None,
        });
        let (reads, writes) = waits.unwrap_or_default();
        let ops = reads.iter().chain(&writes);
        ops.map(|op| op.future.obj(py)).collect()
    }

    /// A user's socket is ready: each way that is, until it would wait again.
    pub(super) fn socket_ready<'py>(
        &self,
        py: Attached<'py>,
        key: Key,
        fd: RawFd,
        is: Readiness,
    ) -> PyResult<'py, ()> {
        if is.readable {
            self.serve(py, key, fd, false)?;
        }
        // Both bits are served in this turn: a skipped writer would wait a whole turn.
        if is.writable {
            self.serve(py, key, fd, true)?;
        }
        self.reactor(|reactor| {
            let Some(Source::Waits(waits)) = reactor.source_mut(key) else {
                return Ok(());
            };
            let interest = waits.interest();
            for call in waits.callbacks.ready(is).into_iter().flatten() {
                reactor.push_now(Work::Soon(call));
            }
            if interest.is_none() {
                return Ok(());
            }
            reactor.watch_once(key, lend(fd), interest).map(drop)
        })
        .map_err(|error| PyError::from_io(py, &error))
    }

    fn serve<'py>(&self, py: Attached<'py>, key: Key, fd: RawFd, write: bool) -> PyResult<'py, ()> {
        loop {
            let op = self.reactor(|reactor| match reactor.source_mut(key) {
                Some(Source::Waits(waits)) if write => waits.writes.pop_front(),
                Some(Source::Waits(waits)) => waits.reads.pop_front(),
                _ => None,
            });
            let Some(op) = op else {
                return Ok(());
            };
            let future = op.future.obj(py);
            // Cancelled meanwhile: nothing is taken from the socket for nobody.
            if future.call_method(c"done", &[])?.is_truthy()? {
                continue;
            }
            match self.attempt(py, fd, op.deed)? {
                Done::Value(value) => future.call_method(c"set_result", &[&value])?,
                Done::Failed(error) => future.call_method(c"set_exception", &[error.value()])?,
                Done::Later(deed) => {
                    let op = Op {
                        future: op.future,
                        deed,
                    };
                    self.reactor(|reactor| match reactor.source_mut(key) {
                        Some(Source::Waits(waits)) if write => waits.writes.push_front(op),
                        Some(Source::Waits(waits)) => waits.reads.push_front(op),
                        _ => {}
                    });
                    return Ok(());
                }
            };
        }
    }

    fn attempt<'py>(&self, py: Attached<'py>, fd: RawFd, deed: Deed) -> PyResult<'py, Done<'py>> {
        let errno = match deed {
            Deed::Tell => return Ok(Done::Value(Obj::none(py))),
            Deed::Receive(room) => match self.receive(py, fd, room)? {
                Ok(data) => return Ok(Done::Value(data)),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Done::Later(deed)),
                Err(errno) => errno,
            },
            Deed::Send(data, sent) => match send(lend(fd), &data[sent..], SendFlags::NOSIGNAL) {
                Ok(more) if sent + more == data.len() => return Ok(Done::Value(Obj::none(py))),
                Ok(more) => return Ok(Done::Later(Deed::Send(data, sent + more))),
                Err(Errno::AGAIN | Errno::INTR) => {
                    return Ok(Done::Later(Deed::Send(data, sent)));
                }
                Err(errno) => errno,
            },
        };
        Ok(Done::Failed(PyError::from_io(py, &errno.into())))
    }

    fn receive<'py>(
        &self,
        py: Attached<'py>,
        fd: RawFd,
        room: usize,
    ) -> PyResult<'py, Result<Obj<'py>, Errno>> {
        let mut buffer = self.io.buffer.borrow_mut();
        if buffer.len() < room.max(ROOM) {
            buffer.resize(room.max(ROOM), 0);
        }
        match recv(lend(fd), &mut buffer[..room], RecvFlags::empty()) {
            Ok((_, len)) => Ok(Ok(Obj::bytes(py, &buffer[..len])?)),
            Err(errno) => Ok(Err(errno)),
        }
    }
}

/// `_sock_recv(sock, n)`: the data if there is some, else a future of it.
pub(super) fn sock_recv<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let fd = want_fd(args)?;
    let room = args.want(1, "n")?.as_i64()?;
    core.check_here(py)?;
    let Some(room) = room.and_then(|room| usize::try_from(room).ok()) else {
        let text = "negative buffersize in recv";
        return Err(PyError::new(py, Builtin::ValueError, text));
    };
    // A buffer of any size is the system's business, not ours.
    let room = room.min(ROOM);
    match core.receive(py, fd, room)? {
        Ok(data) => Ok(data),
        Err(Errno::AGAIN | Errno::INTR) => core.wait_for(this, fd, false, Deed::Receive(room)),
        Err(errno) => Err(PyError::from_io(py, &errno.into())),
    }
}

/// `_sock_sendall(sock, data)`: `None` if all went out, else a future of it, or how much was sent
/// where `add_writer` watches the socket.
pub(super) fn sock_sendall<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let fd = want_fd(args)?;
    let data = args.want(1, "data")?;
    let mut copy = Vec::new();
    let slice = match data.as_bytes() {
        Some(bytes) => bytes,
        None => {
            Buffer::of(&data)?.append_to(&mut copy)?;
            &copy[..]
        }
    };
    core.check_here(py)?;
    let sent = match send(lend(fd), slice, SendFlags::NOSIGNAL) {
        Ok(sent) if sent == slice.len() => return Ok(Obj::none(py)),
        Ok(sent) => sent,
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(errno) => return Err(PyError::from_io(py, &errno.into())),
    };
    let rest = Deed::Send(slice[sent..].into(), 0);
    let future = core.wait_for(this, fd, true, rest)?;
    if future.is(&Obj::not_implemented(py)) {
        return Obj::int(py, sent as i64);
    }
    Ok(future)
}

/// `_sock_forget(sock, write, future)`: whoever waited for the future was cancelled.
pub(super) fn sock_forget<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let (write, future) = (args.want(1, "write")?.is_truthy()?, args.want(2, "future")?);
    if core.is_here() && !core.closed.get() {
        let fd = number_of(args)?;
        let op = core.reactor(|reactor| {
            let has = |source: &Source| match source {
                Source::Waits(waits) => waits.has(write, &future),
                _ => false,
            };
            // A socket that was closed has no number any more.
            let key = match fd {
                Some(fd) => core.key_of(fd),
                None => reactor.find(has),
            };
            match reactor.source_mut(key?)? {
                Source::Waits(waits) => waits.forget(write, &future),
                _ => None,
            }
        });
        drop(op);
    }
    Ok(Obj::none(args.py()))
}

/// `_sock_wait(sock, write)`: a future of readiness.
pub(super) fn sock_wait<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let (fd, write) = (want_fd(args)?, args.want(1, "write")?.is_truthy()?);
    core.check_here(args.py())?;
    core.wait_for(this, fd, write, Deed::Tell)
}
