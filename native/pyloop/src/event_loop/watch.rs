//! `add_reader`, `add_writer` and their removal, level-triggered, by descriptor.
//!
//! Thread: the loop's own.

use std::os::fd::{BorrowedFd, RawFd};

use pyrt::deferred::{Call, Surrounding};
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::running::copy_context;
use pyrt::{Attached, Obj, PyError, PyResult, section};
use reactor::{Key, Readiness};
use rustix::io::Errno;

use super::{LoopCore, Source, Work};
use crate::datagram::Datagram;
use crate::handle::Plain;
use crate::stopwatch::lap;
use crate::transport::Stream;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

impl Way {
    fn alone(self) -> Readiness {
        match self {
            Way::Read => Readiness::READ,
            Way::Write => Readiness::WRITE,
        }
    }
}

/// Who is told that a source is ready.
enum Owner<'py> {
    Stream(Obj<'py>),
    Datagram(Obj<'py>),
    Socket(RawFd),
}

/// Lends a descriptor that Python code says is open.
pub(crate) fn lend<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: used for one system call; if it is not open, the kernel answers EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

pub(crate) fn want_fd<'py>(args: &Args<'_, 'py>) -> PyResult<'py, RawFd> {
    let fd = args.want(0, "fd")?;
    let number = if fd.is_int() {
        fd.as_i64()?
    } else {
        // As `int(fd.fileno())`.
        let number = fd.call_method(c"fileno", &[]);
        let number = number.and_then(|number| number.call_method(c"__int__", &[]));
        let Some(number) = number.ok().filter(|number| number.is_int()) else {
            let text = format!("Invalid file object: {}", fd.repr()?.display());
            return Err(PyError::new(args.py(), Builtin::ValueError, &text));
        };
        number.as_i64()?
    };
    let number = number.and_then(|number| RawFd::try_from(number).ok());
    number.filter(|fd| *fd >= 0).ok_or_else(|| {
        let text = format!("Invalid file descriptor: {}", fd.display());
        PyError::new(args.py(), Builtin::ValueError, &text)
    })
}

impl LoopCore {
    pub(super) fn key_of(&self, fd: RawFd) -> Option<Key> {
        self.io.keys.borrow().get(fd as usize).copied().flatten()
    }

    pub(super) fn set_key(&self, fd: RawFd, key: Option<Key>) {
        let mut keys = self.io.keys.borrow_mut();
        if keys.len() <= fd as usize {
            keys.resize(fd as usize + 1, None);
        }
        keys[fd as usize] = key;
    }

    fn add<'py>(&self, args: &Args<'_, 'py>, way: Way) -> PyResult<'py, Obj<'py>> {
        let py = args.py();
        self.check_closed(py)?;
        let fd = want_fd(args)?;
        let callback = args.want(1, "callback")?;
        let plain = Plain {
            lasting: true,
            ..Plain::default()
        };
        let class = self.types.handle.get(py);
        let context = Surrounding::Given(copy_context(py)?);
        let call = Call::new(&class, plain, &callback, args.rest(2), context)?;
        let handle = call.obj(py);
        self.check_here(py)?;
        let old = self
            .watch_call(fd, way, call)
            .map_err(|error| PyError::from_io(py, &error))?;
        // Dropped outside of the reactor; it will not run any more.
        if let Some(old) = old {
            old.extra().cancelled.set(true);
        }
        Ok(handle)
    }

    fn watch_call(
        &self,
        fd: RawFd,
        way: Way,
        call: Call<Plain>,
    ) -> std::io::Result<Option<Call<Plain>>> {
        let known = self.key_of(fd);
        let known = known.filter(|key| !self.drop_idle_waits(fd, *key));
        let key = match known {
            Some(key) if self.widen(key, fd, way)? => key,
            known => {
                // Closed and opened again behind our back: who watched the old one is not called.
                if let Some(stale) = known {
                    self.drop_callbacks(fd, stale);
                }
                let none = Source::Callbacks {
                    reader: None,
                    writer: None,
                };
                let key = self.reactor(|r| r.register(lend(fd), way.alone(), none))?;
                self.set_key(fd, Some(key));
                key
            }
        };
        Ok(self.reactor(|reactor| {
            let Some(Source::Callbacks { reader, writer }) = reactor.source_mut(key) else {
                return None;
            };
            let place = match way {
                Way::Read => reader,
                Way::Write => writer,
            };
            place.replace(call)
        }))
    }

    /// Watches a source for one more way; `false` if the number is a new descriptor by now.
    fn widen(&self, key: Key, fd: RawFd, way: Way) -> std::io::Result<bool> {
        let watched = self.reactor(|reactor| {
            let interest = reactor.interest(key) | way.alone();
            reactor.watch_again(key, lend(fd), interest)
        });
        match watched {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Forgets a source of callbacks; they will not run any more, even if they are in the queue.
    pub(super) fn drop_callbacks(&self, fd: RawFd, key: Key) {
        let gone = self.reactor(|reactor| match reactor.source(key) {
            Some(Source::Callbacks { .. }) => reactor.unregister(key, lend(fd)),
            _ => None,
        });
        if let Some(Source::Callbacks { reader, writer }) = gone {
            for call in [reader, writer].into_iter().flatten() {
                call.extra().cancelled.set(true);
            }
        }
    }

    /// A socket that nobody waits for any more may be watched by callbacks.
    fn drop_idle_waits(&self, fd: RawFd, key: Key) -> bool {
        let waits = self.reactor(|reactor| match reactor.source(key) {
            Some(Source::Waits(_)) => reactor.unregister(key, lend(fd)),
            _ => None,
        });
        waits.is_some()
    }

    /// Whether there was one.
    fn remove(&self, fd: RawFd, way: Way) -> bool {
        let Some(key) = self.key_of(fd) else {
            return false;
        };
        let (old, gone) = self.reactor(|reactor| {
            let mut interest = reactor.interest(key);
            match way {
                Way::Read => interest.readable = false,
                Way::Write => interest.writable = false,
            }
            // A descriptor closed too early is out of the set already.
            let _ = reactor.watch(key, lend(fd), interest);
            let Some(Source::Callbacks { reader, writer }) = reactor.source_mut(key) else {
                return (None, None);
            };
            let old = match way {
                Way::Read => reader.take(),
                Way::Write => writer.take(),
            };
            let empty = reader.is_none() && writer.is_none();
            let gone = empty.then(|| reactor.unregister(key, lend(fd)));
            (old, gone)
        });
        if gone.is_some() {
            self.set_key(fd, None);
        }
        match old {
            Some(call) => !call.extra().cancelled.replace(true),
            None => false,
        }
    }

    /// A source is ready: its callbacks take their place in the queue; a transport reads now.
    #[inline]
    pub(super) fn source_ready<'py>(
        &self,
        py: Attached<'py>,
        event_loop: &Obj<'py>,
        key: Key,
        is: Readiness,
    ) -> PyResult<'py, ()> {
        let owner = self.reactor(|reactor| {
            let (reader, writer) = match reactor.source(key)? {
                Source::Stream(transport) => return Some(Owner::Stream(transport.0.obj(py))),
                Source::Datagram(transport) => return Some(Owner::Datagram(transport.0.obj(py))),
                Source::Waits(_) => return reactor.fd(key).map(Owner::Socket),
                Source::Callbacks { reader, writer } => (reader.clone(), writer.clone()),
            };
            if is.readable
                && let Some(call) = reader
            {
                reactor.push_now(Work::Soon(call));
            }
            // Both bits are served in this turn: a skipped writer would wait a whole turn.
            if is.writable
                && let Some(call) = writer
            {
                reactor.push_now(Work::Soon(call));
            }
            None
        });
        match owner {
            // Other threads may be in a method that only looks.
            Some(Owner::Stream(transport)) => {
                Stream::alone(&transport, |stream| stream.ready(&transport, is))?;
                lap(event_loop, || Ok(transport))
            }
            Some(Owner::Datagram(transport)) => {
                let ready = || Datagram::of(&transport).ready(&transport, is);
                section::alone(&transport, ready)?;
                lap(event_loop, || Ok(transport))
            }
            Some(Owner::Socket(fd)) => self.socket_ready(py, key, fd, is),
            None => Ok(()),
        }
    }
}

/// `_watched(fd)`: what a descriptor is watched for, in the numbers of `selectors`.
pub(super) fn watched<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let fd = want_fd(args)?;
    core.check_here(args.py())?;
    let interest = match core.key_of(fd) {
        Some(key) => core.reactor(|reactor| reactor.interest(key)),
        None => Readiness::NONE,
    };
    let mask = i64::from(interest.readable) | i64::from(interest.writable) << 1;
    Obj::int(args.py(), mask)
}

pub(super) fn add_reader<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.add(args, Way::Read)
}

pub(super) fn add_writer<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.add(args, Way::Write)
}

fn remove<'py>(core: &LoopCore, args: &Args<'_, 'py>, way: Way) -> PyResult<'py, Obj<'py>> {
    if core.closed.get() {
        return Ok(Obj::bool(args.py(), false));
    }
    // What is no descriptor was never watched.
    let fd = want_fd(args).ok();
    core.check_here(args.py())?;
    let removed = fd.is_some_and(|fd| core.remove(fd, way));
    Ok(Obj::bool(args.py(), removed))
}

pub(super) fn remove_reader<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    remove(core, args, Way::Read)
}

pub(super) fn remove_writer<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    remove(core, args, Way::Write)
}
