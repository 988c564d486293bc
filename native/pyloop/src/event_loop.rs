//! `LoopCore`: the native base of `ErlangEventLoop`, what runs per callback, timer and packet.
//!
//! Thread: the one that runs the loop; `call_soon`, `call_later` and `call_at` of any other go
//! through the inbox (I5). Never: lets a borrow of the reactor live while Python runs (I3).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyrt::deferred::Call;
use pyrt::error::Builtin;
use pyrt::native::{self, Native, Nobody};
use pyrt::running::copy_context;
use pyrt::{Attached, Flag, Member, Number, Obj, Place, PyError, PyResult, Visit};
use reactor::turn::Post;
use reactor::{Key, Reactor};

use crate::handle::{Plain, Timer};
use crate::stopwatch::Stopwatch;
use crate::types::Types;

mod accept;
mod attributes;
mod run;
mod schedule;
mod sockets;
mod streams;
pub(crate) mod watch;

/// A piece of work of a loop.
pub enum Work {
    Soon(Call<Plain>),
    Due(Call<Timer>),
    /// A timer set by another thread.
    Set(Call<Timer>),
    /// A handle of asyncio's own: signals, debug mode.
    Other(Foreign),
    /// A transport whose `connection_made` is to be called.
    Start(Foreign),
    /// A transport whose `connection_lost` is to be called.
    Lost(Foreign),
    /// Another thread has sent an exception to this one.
    Interrupt,
    /// Work of another thread.
    Visit(Box<dyn crate::Visit>),
}

impl Work {
    /// Its time never comes. A timer may be what its callback has, and the garbage collector does not see
    /// it: a task in `asyncio.timeout` has the timer that would cancel it.
    fn forget(&self, py: Attached<'_>) {
        if let Work::Due(call) | Work::Set(call) = self {
            call.clear(py);
        }
    }

    /// Whether it is a timer that was cancelled.
    fn is_stale(&self) -> bool {
        matches!(self, Work::Due(call) if call.extra().cancelled.get())
    }
}

/// A Python object in a queue of a loop.
pub struct Foreign(pub Member);

impl Foreign {
    pub fn of(object: &Obj<'_>) -> Self {
        Foreign(Member::new(object.clone()))
    }
}

// SAFETY: the inbox moves it to the loop's thread, which is attached when it uses or drops it; a
// loop's queues are emptied by `close` or by the end of the loop object, on attached threads.
unsafe impl Send for Foreign {}

/// What a descriptor stands for.
pub enum Source {
    /// `add_reader` and `add_writer`.
    Callbacks(watch::Callbacks),
    /// A stream transport.
    Stream(Foreign),
    /// A datagram transport.
    Datagram(Foreign),
    /// A socket of the user's own: `sock_recv` and the like, and callbacks beside them.
    Waits(sockets::Waits),
}

/// What the loop keeps for its descriptors.
pub struct Io {
    /// Sources by descriptor.
    keys: RefCell<Vec<Option<Key>>>,
    /// Every transport of the loop reads into it; made when first needed.
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// Counts turns.
    pub(crate) turn: Cell<u32>,
    /// Transports that send at the end of the turn.
    flushes: RefCell<Vec<Foreign>>,
    /// A visitor came since the loop last looked.
    pub(crate) visited: Cell<bool>,
}

/// What the loop keeps for its tasks and futures.
#[derive(Default)]
pub struct Tasks {
    factory: Place,
    /// The dict `{"loop": loop}` that plain ones are made with.
    options: Place,
    /// When the loop was made, the classes of asyncio were not those we know: it makes them itself.
    replaced: bool,
}

pub type LoopReactor = Reactor<Work, Source>;

pub struct LoopCore {
    pub(crate) types: Arc<Types>,
    /// Owned; freed with the loop.
    reactor: *mut LoopReactor,
    /// The way to the reactor now: `reactor`, or what `turn` lent for the callback that runs.
    current: Cell<*mut LoopReactor>,
    post: Post<Work>,
    /// Work of other attached threads: the GIL is its lock. Where there is none it goes by `post`.
    guests: RefCell<VecDeque<Work>>,
    closed: Flag,
    debug: Flag,
    stopping: Flag,
    /// This process is a child of the one that made the loop.
    forked: Flag,
    /// A turn is on the stack of some thread.
    turning: Flag,
    /// Somebody runs it step by step and sleeps in between: who comes from elsewhere must wake it.
    stepped: Flag,
    /// The thread that runs the loop, as Python counts them; 0 for none.
    owner: Number,
    /// It does not run: its owner is a thread that was let into a transport, and will leave again.
    lent: Flag,
    pub(crate) io: Io,
    tasks: Tasks,
    pub(crate) stopwatch: Arc<Stopwatch>,
    /// Timers that were cancelled and are still there, more or less.
    stale: AtomicUsize,
}

impl LoopCore {
    /// The core of a loop object.
    pub fn of<'a>(event_loop: &'a Obj<'_>) -> &'a LoopCore {
        // SAFETY: called with what a `LoopCore` method gave as `this` only.
        unsafe { native::body(event_loop) }
    }

    /// The way in for other threads.
    pub(crate) fn visitors(&self) -> Post<Work> {
        self.post.clone()
    }

    /// Uses the reactor; `body` runs no Python and drops nothing of it.
    #[inline]
    pub(crate) fn reactor<R>(&self, body: impl FnOnce(&mut LoopReactor) -> R) -> R {
        // SAFETY: the loop's thread, or no thread runs the loop and this one is attached; `body`
        // is the only user: whoever lent `current` waits for the callback to return.
        body(unsafe { &mut *self.current.get() })
    }

    /// Takes work of another attached thread to the loop's own.
    #[inline]
    fn leave(&self, work: Work) {
        if pyrt::FREE_THREADED {
            // The inbox refuses only when the loop object itself is going.
            let _ = self.post.post(work);
            return;
        }
        self.guests.borrow_mut().push_back(work);
        self.post.nudge();
    }

    /// What other threads have left, in their order.
    #[inline]
    fn collect(&self, ready: &mut VecDeque<Work>) {
        let mut guests = self.guests.borrow_mut();
        if guests.is_empty() {
            return;
        }
        if ready.is_empty() {
            std::mem::swap(ready, &mut guests);
        } else {
            ready.append(&mut guests);
        }
    }

    /// Whether the calling thread may use the reactor.
    #[inline]
    fn is_here(&self) -> bool {
        let owner = self.owner.get();
        owner == pyrt::thread::ident() || owner == 0 && !self.stepped.get()
    }

    fn check_closed<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if self.closed.get() {
            if self.forked.get() {
                let text = "this event loop belongs to the parent process: make a new one";
                return Err(PyError::new(py, Builtin::RuntimeError, text));
            }
            let text = "Event loop is closed";
            return Err(PyError::new(py, Builtin::RuntimeError, text));
        }
        Ok(())
    }

    /// Whether `close` was called.
    pub(crate) fn is_ended(&self) -> bool {
        self.closed.get()
    }

    pub(crate) fn check_here<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if self.is_here() {
            return Ok(());
        }
        let text = "Non-thread-safe operation invoked on an event loop other than the current one";
        Err(PyError::new(py, Builtin::RuntimeError, text))
    }

    /// Whether this thread runs the loop: then it does so until it returns.
    #[inline]
    pub(crate) fn runs_here(&self) -> bool {
        self.owner.get() == pyrt::thread::ident()
    }

    /// A method of a transport, called by a thread that does not run the loop; see `Governor::admit`.
    #[cold]
    pub(crate) fn admit<'py>(&self, this: &Obj<'py>, send: Option<&CStr>) -> PyResult<'py, bool> {
        let py = this.py();
        match send {
            Some(name) if !self.is_here() => {
                let (method, class) = (this.getattr_c(name)?, self.types.handle.get(py));
                let context = copy_context(py)?;
                let call = Call::new(&class, Plain::default(), &method, &[], context)?;
                self.leave(Work::Soon(call));
                Ok(false)
            }
            _ => {
                self.check_here(py)?;
                // Its section may be let go while Python runs: nobody may begin to run it then.
                self.owner.set(pyrt::thread::ident());
                self.lent.set(true);
                Ok(true)
            }
        }
    }

    /// The thread that was let in has left.
    #[cold]
    pub(crate) fn dismiss(&self) {
        self.lent.set(false);
        self.owner.set(0);
    }

    /// A timer was cancelled, on any thread: it has let go of its callback already, so that it
    /// may stay in the heap until it comes up or such ones are many.
    #[inline]
    pub fn timer_cancelled(&self) {
        // Not one operation: threads that cancel at once may count one only, and that is enough.
        let stale = self.stale.load(Ordering::Relaxed);
        self.stale.store(stale + 1, Ordering::Relaxed);
    }

    /// Drops all that waits in the loop, outside of any borrow: it may run Python. In a child of a fork it
    /// is the parent's, and a thread that the child does not have may hold the lock of the inbox.
    fn drop_all(&self) {
        if self.forked.get() {
            return;
        }
        drop(self.reactor(LoopReactor::clear));
        drop(self.guests.take());
        self.io.keys.borrow_mut().clear();
        drop(self.io.flushes.take());
    }

    /// Everything waits no more, and the descriptors are given back.
    fn end(&self, py: Attached<'_>) {
        if !self.forked.get() {
            let (ready, timers, sources) = self.reactor(LoopReactor::clear);
            ready.iter().chain(&timers).for_each(|work| work.forget(py));
            drop((ready, timers, sources));
        }
        self.drop_all();
        self.tasks.options.set(None);
        if !self.forked.get() {
            self.reactor(LoopReactor::close);
        }
    }

    /// This process is a child: the loop is the parent's, and so is what it watches. A turn that is on
    /// its way ends with the callback that has forked. What waits is kept: to drop a task is to run
    /// its `finally` blocks.
    fn part_from_parent(&self, py: Attached<'_>) {
        self.forked.set(true);
        self.closed.set(true);
        self.owner.set(0);
        self.part_transports(py);
        let left = self.reactor(LoopReactor::part_from_parent);
        std::mem::forget((left, self.io.flushes.take(), self.guests.take()));
    }
}

impl Native for LoopCore {
    const NAME: &'static std::ffi::CStr = c"erlang._native.LoopCore";
    const DOC: &'static std::ffi::CStr = c"The native base of ErlangEventLoop.";

    type Governor = Nobody;

    fn methods() -> &'static [pyrt::module::Function] {
        &attributes::METHODS
    }

    fn getters() -> &'static [pyrt::native::Getter] {
        &attributes::GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let py = class.py();
        let Some(state) = crate::state_of_class(class) else {
            let text = "erlang._native is not initialised";
            return Err(PyError::new(py, Builtin::SystemError, text));
        };
        let replaced = state.loops.asyncio(py)?.is_replaced(py)?;
        let reactor = LoopReactor::new(usize::MAX).map_err(|error| PyError::from_io(py, &error))?;
        let post = reactor.poster();
        let reactor = Box::into_raw(Box::new(reactor));
        Ok(LoopCore {
            types: Arc::clone(&state.loops),
            reactor,
            current: Cell::new(reactor),
            post,
            guests: RefCell::default(),
            closed: Flag::default(),
            debug: Flag::default(),
            stopping: Flag::default(),
            forked: Flag::default(),
            turning: Flag::default(),
            stepped: Flag::default(),
            owner: Number::default(),
            lent: Flag::default(),
            io: Io {
                keys: RefCell::default(),
                buffer: RefCell::default(),
                turn: Cell::new(0),
                flushes: RefCell::default(),
                visited: Cell::new(false),
            },
            tasks: Tasks {
                replaced,
                ..Tasks::default()
            },
            stopwatch: Arc::default(),
            stale: AtomicUsize::new(0),
        })
    }

    /// What waits in the queues is not shown: a loop that has work is alive until it is closed.
    fn traverse(&self, visit: &mut Visit) {
        visit.place(&self.tasks.factory);
        visit.place(&self.tasks.options);
    }

    fn clear(&self, _py: Attached<'_>) {
        self.tasks.factory.set(None);
        self.tasks.options.set(None);
    }
}

impl Drop for LoopCore {
    fn drop(&mut self) {
        if !self.forked.get() {
            self.post.stop();
        }
        self.drop_all();
        // SAFETY: made by `Box::into_raw` in `new`; nobody else has the loop any more.
        drop(unsafe { Box::from_raw(self.reactor) });
    }
}
