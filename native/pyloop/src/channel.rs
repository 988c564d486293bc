//! What every transport has: a descriptor on the loop, a protocol, a life from made to lost.
//!
//! Thread: the loop's own. `connection_lost` is called once, by the loop, after everything else.

use std::cell::Cell;
use std::os::fd::RawFd;

use pyrt::native::Native;
use pyrt::running::{copy_context, in_context};
use pyrt::{Attached, Attributes, Member, Obj, Place, PyError, PyResult, Visit};
use reactor::{Key, Readiness};

use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, LoopCore, Source, Work};
use crate::own_loop::OwnLoop;

pub(crate) mod attributes;
pub(crate) mod flow;

pub(crate) use flow::Limits;

/// How far a transport is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Life {
    Open,
    /// `close` was called: what is queued still goes out.
    Closing,
    /// `connection_lost` is on its way.
    Lost,
    /// `connection_lost` has run, the descriptor is closed.
    Gone,
}

/// What only the beginning, the end and questions need.
pub(crate) struct Rare {
    pub(crate) extra: Place,
    pub(crate) waiter: Place,
    /// Why it was lost.
    pub(crate) error: Place,
}

/// No descriptor has this number: the system answers EBADF. (-1 is none for `BorrowedFd`.)
const NO_FD: RawFd = RawFd::MAX;

/// A key or none, in eight bytes: there is one for each connection.
struct KeyPlace(Cell<u64>);

impl Default for KeyPlace {
    fn default() -> Self {
        KeyPlace(Cell::new(Self::NONE))
    }
}

impl KeyPlace {
    /// No table has so many entries.
    const NONE: u64 = u64::MAX;

    fn get(&self) -> Option<Key> {
        Some(self.0.get())
            .filter(|key| *key != Self::NONE)
            .map(Key::from_u64)
    }

    fn set(&self, key: Option<Key>) {
        self.0.set(key.map_or(Self::NONE, Key::to_u64));
    }

    fn take(&self) -> Option<Key> {
        let key = self.get();
        self.set(None);
        key
    }
}

pub(crate) struct Channel {
    fd: Cell<RawFd>,
    /// Python's socket object counts this transport among those who use it.
    held: Cell<bool>,
    key: KeyPlace,
    pub(crate) event_loop: OwnLoop,
    pub(crate) context: Member,
    /// The object Python has for the descriptor: a socket or a file.
    pub(crate) file: Place,
    pub(crate) protocol: Place,
    pub(crate) limits: Cell<Limits>,
    pub(crate) life: Cell<Life>,
    /// Reading begins when `connection_made` has been called.
    pub(crate) started: Cell<bool>,
    /// `pause_writing` was called.
    pub(crate) protocol_paused: Cell<bool>,
    pub(crate) rare: Rare,
    /// What programs set on the transport: some replace its methods.
    pub(crate) attributes: Attributes,
}

/// A class of transports.
pub(crate) trait Transport: Native {
    fn channel(&self) -> &Channel;

    /// How much waits to be sent.
    fn queued(&self) -> usize;

    /// The socket object, where the descriptor is a socket's.
    fn socket<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        Ok(self.channel().file.get(py))
    }

    /// What the transport itself knows of `get_extra_info(name)`.
    fn known<'py>(&self, name: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>>;
}

impl Channel {
    pub(crate) fn new<'py>(
        event_loop: &Obj<'py>,
        file: Option<&Obj<'py>>,
        fd: RawFd,
        protocol: &Obj<'py>,
        [waiter, extra]: [Option<Obj<'py>>; 2],
    ) -> PyResult<'py, Self> {
        Ok(Channel {
            fd: Cell::new(fd),
            held: Cell::new(false),
            key: KeyPlace::default(),
            event_loop: OwnLoop::new(event_loop),
            context: Member::new(copy_context(event_loop.py())?),
            file: Place::new(file.cloned()),
            protocol: Place::new(Some(protocol.clone())),
            limits: Cell::default(),
            life: Cell::new(Life::Open),
            started: Cell::new(false),
            protocol_paused: Cell::new(false),
            rare: Rare {
                extra: Place::new(extra),
                waiter: Place::new(waiter),
                error: Place::default(),
            },
            attributes: Attributes::default(),
        })
    }

    pub(crate) fn core<'a>(&'a self, py: Attached<'_>) -> &'a LoopCore {
        self.event_loop.core(py)
    }

    /// The descriptor's number; another one has it no longer by now.
    #[inline]
    pub(crate) fn fd(&self) -> RawFd {
        self.fd.get()
    }

    pub(crate) fn has_fd(&self) -> bool {
        self.fd.get() != NO_FD
    }

    /// Another descriptor has the number: ours was closed behind our back, and can't be used again.
    pub(crate) fn lose_fd(&self) {
        self.fd.set(NO_FD);
        self.key.set(None);
    }

    /// Its owner may close the socket object at any time: as with `makefile`, the descriptor, and so
    /// its number, stays ours until the transport lets go of it.
    pub(crate) fn hold<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if let Some(file) = self.file.get(py)
            && let Ok(count) = file.getattr_c(c"_io_refs")
            && let Ok(Some(count)) = count.as_i64()
        {
            file.setattr_c(c"_io_refs", &Obj::int(py, count + 1)?)?;
            self.held.set(true);
        }
        Ok(())
    }

    /// The socket object is its owner's again.
    pub(crate) fn let_go<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        match self.file.get(py) {
            Some(file) if self.held.replace(false) => {
                file.call_method(c"_decref_socketios", &[]).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// A failure means that the descriptor was closed behind our back, or is of a kind that can't
    /// be watched: nothing will be ready.
    pub(crate) fn watch(&self, py: Attached<'_>, interest: Readiness) -> std::io::Result<()> {
        let Some(key) = self.key.get() else {
            return Ok(());
        };
        let core = self.core(py);
        core.reactor(|reactor| reactor.watch(key, lend(self.fd()), interest))
    }

    /// The loop knows the descriptor, and watches it for nothing yet.
    pub(crate) fn join_loop<'py>(&self, py: Attached<'py>, source: Source) -> PyResult<'py, ()> {
        if !self.has_fd() {
            return Err(PyError::from_io(py, &rustix::io::Errno::BADF.into()));
        }
        let key = self.core(py).register(py, self.fd(), source)?;
        self.key.set(Some(key));
        Ok(())
    }

    /// The loop watches the descriptor no longer.
    pub(crate) fn leave_loop(&self, py: Attached<'_>) {
        if let Some(key) = self.key.take() {
            let core = self.core(py);
            let source = core.reactor(|reactor| reactor.unregister(key, lend(self.fd())));
            core.forget_key(self.fd(), key);
            drop(source);
        }
    }

    /// `connection_made`, then reading begins, then whoever waits for the transport is told.
    pub(crate) fn start<'py>(
        &self,
        this: &Obj<'py>,
        begin: impl FnOnce() -> PyResult<'py, ()>,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        let context = self.context.obj(py);
        let made = in_context(&context, || {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let name = self.core(py).types.names.connection_made.get(py);
            protocol.call_named(&name, [this])?;
            Ok(())
        });
        self.started.set(true);
        let begun = begin();
        if let Some(waiter) = self.rare.waiter.take(py)
            && !waiter.call_method(c"done", &[])?.is_truthy()?
        {
            waiter.call_method(c"set_result", &[&Obj::none(py)])?;
        }
        match made.and(begun) {
            Ok(()) => Ok(()),
            Err(error) => self.report(this, error, "Exception in callback connection_made"),
        }
    }

    /// The transport is lost: the protocol will hear of it from the loop.
    pub(crate) fn lose<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        if self.life.get() >= Life::Lost {
            return;
        }
        self.life.set(Life::Lost);
        self.rare.error.set(error);
        let _ = self.watch(this.py(), Readiness::NONE);
        let work = Work::Lost(Foreign::of(this));
        self.core(this.py()).reactor(|reactor| reactor.push(work));
    }

    /// `connection_lost`, then `release` gives up what the transport has.
    pub(crate) fn lost<'py>(
        &self,
        this: &Obj<'py>,
        release: impl FnOnce() -> PyResult<'py, ()>,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        if self.life.replace(Life::Gone) == Life::Gone {
            return Ok(());
        }
        let context = self.context.obj(py);
        let told = in_context(&context, || {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let error = self.rare.error.get(py).unwrap_or_else(|| Obj::none(py));
            let name = self.core(py).types.names.connection_lost.get(py);
            protocol.call_named(&name, [&error])?;
            Ok(())
        });
        self.leave_loop(py);
        let released = release();
        for failed in [told, released] {
            if let Err(error) = failed {
                self.report(this, error, "Exception in callback connection_lost")?;
            }
        }
        self.protocol.set(None);
        Ok(())
    }

    /// Closes the object Python has for the descriptor.
    pub(crate) fn close_file<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.let_go(py)?;
        match self.file.get(py) {
            Some(file) => file.call_method(c"close", &[]).map(drop),
            None => Ok(()),
        }
    }

    /// The loop's exception handler hears of it.
    #[cold]
    pub(crate) fn report<'py>(
        &self,
        this: &Obj<'py>,
        error: PyError<'py>,
        what: &str,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        let event_loop = self.event_loop.get(py);
        flow::report(&event_loop, this, self.protocol.get(py), (error, what))
    }

    pub(crate) fn traverse(&self, visit: &mut Visit) {
        visit.member(&self.event_loop);
        visit.member(&self.context);
        let rare = &self.rare;
        for place in [
            &self.file,
            &self.protocol,
            &rare.extra,
            &rare.waiter,
            &rare.error,
        ] {
            visit.place(place);
        }
    }

    pub(crate) fn clear(&self) {
        self.protocol.set(None);
        self.rare.extra.set(None);
        self.rare.waiter.set(None);
        self.rare.error.set(None);
    }
}
