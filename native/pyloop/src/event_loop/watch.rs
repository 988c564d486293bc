//! `add_reader`, `add_writer` and their removal, level-triggered, by descriptor.
//!
//! Thread: the loop's own.

use std::os::fd::{BorrowedFd, RawFd};

use pyrt::deferred::Call;
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::running::copy_context;
use pyrt::{Attached, Obj, PyError, PyResult, section};
use reactor::{Key, Readiness};
use rustix::io::Errno;

use super::{Foreign, LoopCore, Source, Work};
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

/// `add_reader` and `add_writer` of one descriptor.
#[derive(Default)]
pub struct Callbacks {
    reader: Option<Call<Plain>>,
    writer: Option<Call<Plain>>,
    /// What Python gave in place of a number: by it one that was closed meanwhile is found.
    file: Option<Foreign>,
}

impl Callbacks {
    fn place(&mut self, way: Way) -> &mut Option<Call<Plain>> {
        match way {
            Way::Read => &mut self.reader,
            Way::Write => &mut self.writer,
        }
    }

    fn put(&mut self, way: Way, call: Call<Plain>, file: Option<Foreign>) -> Option<Call<Plain>> {
        self.file = self.file.take().or(file);
        self.place(way).replace(call)
    }

    /// Clones of those that are called now.
    pub(super) fn ready(&self, is: Readiness) -> [Option<Call<Plain>>; 2] {
        let reader = self.reader.as_ref().filter(|_| is.readable);
        // Both bits are served in this turn: a skipped writer would wait a whole turn.
        let writer = self.writer.as_ref().filter(|_| is.writable);
        [reader.cloned(), writer.cloned()]
    }

    pub(super) fn interest(&self) -> Readiness {
        Readiness {
            readable: self.reader.is_some(),
            writable: self.writer.is_some(),
        }
    }

    /// Whether no callback watches this way.
    pub(super) fn has_room(&self, write: bool) -> bool {
        let watched = if write { &self.writer } else { &self.reader };
        watched.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.interest().is_none()
    }

    /// They will not run any more, even if they are in the queue.
    pub(super) fn cancel(self) {
        for call in [self.reader, self.writer].into_iter().flatten() {
            call.extra().cancelled.set(true);
        }
    }
}

/// Lends a descriptor that Python code says is open.
pub(crate) fn lend<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: used for one system call; if it is not open, the kernel answers EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

pub(crate) fn want_fd<'py>(args: &Args<'_, 'py>) -> PyResult<'py, RawFd> {
    let Some(fd) = number_of(args)? else {
        let text = "Invalid file descriptor: -1";
        return Err(PyError::new(args.py(), Builtin::ValueError, text));
    };
    Ok(fd)
}

/// The number of a descriptor; `None` for a file object that was closed.
pub(super) fn number_of<'py>(args: &Args<'_, 'py>) -> PyResult<'py, Option<RawFd>> {
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
        match number.as_i64()? {
            Some(-1) => return Ok(None),
            number => number,
        }
    };
    let number = number.and_then(|number| RawFd::try_from(number).ok());
    let number = number.filter(|fd| *fd >= 0).ok_or_else(|| {
        let text = format!("Invalid file descriptor: {}", fd.display());
        PyError::new(args.py(), Builtin::ValueError, &text)
    })?;
    Ok(Some(number))
}

/// The callbacks of a source of the user's.
fn callbacks_of(source: Option<&mut Source>) -> Option<&mut Callbacks> {
    match source? {
        Source::Callbacks(callbacks) => Some(callbacks),
        Source::Waits(waits) => Some(&mut waits.callbacks),
        Source::Stream(_) | Source::Datagram(_) => None,
    }
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
        let context = copy_context(py)?;
        let call = Call::new(&class, plain, &callback, args.rest(2), context)?;
        let handle = call.obj(py);
        self.check_here(py)?;
        let given = args.want(0, "fd")?;
        let file = (!given.is_int()).then(|| Foreign::of(&given));
        let old = self
            .watch_call(fd, way, call, file)
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
        file: Option<Foreign>,
    ) -> std::io::Result<Option<Call<Plain>>> {
        let known = self.key_of(fd);
        let known = known.filter(|key| !self.drop_idle_waits(fd, *key));
        let key = match known {
            Some(key) if self.widen(key, fd, way)? => key,
            known => {
                // Closed and opened again behind our back: who watched the old one is not called.
                if let Some(stale) = known {
                    self.drop_user(fd, stale);
                }
                let none = Source::Callbacks(Callbacks::default());
                let key = self.reactor(|r| r.register(lend(fd), way.alone(), none))?;
                self.set_key(fd, Some(key));
                key
            }
        };
        Ok(
            self.reactor(|reactor| match callbacks_of(reactor.source_mut(key)) {
                Some(callbacks) => callbacks.put(way, call, file),
                None => None,
            }),
        )
    }

    /// Watches a source for one more way; `false` if the number is a new descriptor by now.
    fn widen(&self, key: Key, fd: RawFd, way: Way) -> std::io::Result<bool> {
        let watched = self.reactor(|reactor| {
            let interest = reactor.interest(key) | way.alone();
            match reactor.source(key) {
                // Others wait for it: it is watched for one event at a time.
                Some(Source::Waits(_)) => reactor.rewatch_once(key, lend(fd), interest),
                _ => reactor.watch_again(key, lend(fd), interest),
            }
        });
        match watched {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Forgets a source of the user's: its callbacks will not run, even if they are in the queue.
    pub(super) fn drop_user(&self, fd: RawFd, key: Key) {
        let gone = self.reactor(|reactor| match reactor.source(key) {
            Some(Source::Callbacks(_) | Source::Waits(_)) => reactor.unregister(key, lend(fd)),
            _ => None,
        });
        match gone {
            Some(Source::Callbacks(callbacks)) => callbacks.cancel(),
            Some(Source::Waits(waits)) => waits.drop_all(),
            _ => {}
        }
    }

    /// A socket that nobody waits for any more is watched by callbacks alone, without a system call
    /// for each event.
    fn drop_idle_waits(&self, fd: RawFd, key: Key) -> bool {
        let waits = self.reactor(|reactor| match reactor.source(key) {
            Some(Source::Waits(waits)) if waits.interest().is_none() => {
                reactor.unregister(key, lend(fd))
            }
            _ => None,
        });
        waits.is_some()
    }

    /// The number under which a file object is watched that was closed meanwhile.
    fn watched_as(&self, file: &Obj<'_>) -> Option<RawFd> {
        self.reactor(|reactor| {
            let key = reactor.find(|source| {
                let callbacks = match source {
                    Source::Callbacks(callbacks) => callbacks,
                    Source::Waits(waits) => &waits.callbacks,
                    Source::Stream(_) | Source::Datagram(_) => return false,
                };
                callbacks
                    .file
                    .as_ref()
                    .is_some_and(|known| known.0.is(file))
            })?;
            reactor.fd(key)
        })
    }

    /// Whether there was one.
    fn remove(&self, fd: RawFd, way: Way) -> bool {
        let Some(key) = self.key_of(fd) else {
            return false;
        };
        let (old, gone) = self.reactor(|reactor| {
            if let Some(Source::Waits(waits)) = reactor.source_mut(key) {
                // An event that comes all the same finds nobody.
                return (waits.callbacks.place(way).take(), None);
            }
            let mut interest = reactor.interest(key);
            match way {
                Way::Read => interest.readable = false,
                Way::Write => interest.writable = false,
            }
            // A descriptor closed too early is out of the set already.
            let _ = reactor.watch(key, lend(fd), interest);
            let Some(Source::Callbacks(callbacks)) = reactor.source_mut(key) else {
                return (None, None);
            };
            let old = callbacks.place(way).take();
            let empty = callbacks.is_empty();
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
            let ready = match reactor.source(key)? {
                Source::Stream(transport) => return Some(Owner::Stream(transport.0.obj(py))),
                Source::Datagram(transport) => return Some(Owner::Datagram(transport.0.obj(py))),
                Source::Waits(_) => return reactor.fd(key).map(Owner::Socket),
                Source::Callbacks(callbacks) => callbacks.ready(is),
            };
            for call in ready.into_iter().flatten() {
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
    let given = args.want(0, "fd")?;
    core.check_here(args.py())?;
    let fd = match number_of(args) {
        Ok(Some(fd)) => fd,
        // What is no descriptor was never watched.
        _ if given.is_int() => return Ok(Obj::bool(args.py(), false)),
        Ok(None) => match core.watched_as(&given) {
            Some(fd) => fd,
            None => want_fd(args)?,
        },
        Err(error) => return Err(error),
    };
    let removed = core.remove(fd, way);
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
