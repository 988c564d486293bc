//! Turns of a loop: Python's side of `Reactor::turn`.
//!
//! Thread: the one that runs the loop, attached except while it sleeps.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::Ordering;

use crew::Patience;
use pyrt::deferred::{Call, Deferrable};
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::running::{Pause, check_signals};
use pyrt::{Attached, Obj, Parks, PyError, PyResult, section};
use reactor::{Host, Key, Outcome, Readiness};

use super::{LoopCore, LoopReactor, Source, Work};
use crate::stopwatch::lap;

/// Turns without a sleep after which the GIL is offered to others: callbacks in C never look.
const POLITE: u32 = 64;
/// Turns of one step: other loops wait for this thread, too.
const STEP: u32 = 64;

/// When to come back from a loop's turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Stopped,
    /// After one turn.
    Once,
    /// When nothing is to be done: whoever drives the loop waits in its own way.
    Idle,
}

/// Runs the work of a loop in Python.
pub(super) struct Driver<'a, 'py> {
    core: &'a LoopCore,
    this: &'a Obj<'py>,
    pause: Option<Pause>,
    slept: bool,
    until: Until,
    /// With the next visitor.
    patience: Patience,
    /// What ends `run_forever`: `KeyboardInterrupt`, `SystemExit`, a bug in the exception handler.
    failure: Option<PyError<'py>>,
}

impl<'py> Driver<'_, 'py> {
    fn py(&self) -> Attached<'py> {
        self.this.py()
    }

    fn finish(&mut self, done: PyResult<'py, ()>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    #[inline]
    fn call<T: Deferrable>(&self, call: &Call<T>, lasting: bool) -> PyResult<'py, ()> {
        let py = self.py();
        let done = match call.run(py) {
            Ok(()) => Ok(()),
            Err(error) => self.report(&call.obj(py), error),
        };
        let done = done.and_then(|()| lap(self.this, || Ok(call.obj(py))));
        if !lasting {
            call.clear(py);
        }
        done
    }

    /// The loop's exception handler hears of it, unless it is for whoever runs the loop.
    #[cold]
    fn report(&self, handle: &Obj<'py>, error: PyError<'py>) -> PyResult<'py, ()> {
        if error.is_a(Builtin::KeyboardInterrupt) || error.is_a(Builtin::SystemExit) {
            return Err(error);
        }
        let name = self.core.types.names._callback_failed.get(self.py());
        self.this.call_named(&name, [handle, error.value()])?;
        Ok(())
    }

    #[inline]
    fn work(&self, work: Work) -> PyResult<'py, ()> {
        match work {
            Work::Soon(call) => {
                if call.extra().cancelled.get() {
                    return Ok(());
                }
                let lasting = call.extra().lasting;
                self.call(&call, lasting)
            }
            Work::Due(call) => {
                call.extra().set.set(false);
                if call.extra().cancelled.get() {
                    return Ok(());
                }
                self.call(&call, false)
            }
            Work::Set(call) => {
                if !call.extra().cancelled.get() {
                    self.core.set_timer(call);
                }
                Ok(())
            }
            Work::Start(transport) => {
                let transport = transport.0.obj(self.py());
                self.core.start(&transport)?;
                lap(self.this, || Ok(transport))
            }
            Work::Lost(transport) => {
                let transport = transport.0.obj(self.py());
                self.core.lost(&transport)?;
                lap(self.this, || Ok(transport))
            }
            // Any Python function will do: an exception that another thread has sent here is raised
            // when one begins.
            Work::Interrupt => {
                let name = self.core.types.names._interrupted.get(self.py());
                self.this.call_named(&name, []).map(drop)
            }
            Work::Visit(visit) => {
                self.core.io.visited.set(true);
                visit.visit(self.this)?;
                self.core.stopwatch.begin();
                Ok(())
            }
            Work::Other(handle) => {
                let (handle, names) = (handle.0.get(self.py()), &self.core.types.names);
                let cancelled = handle.getattr(&names._cancelled.get(self.py()))?;
                if cancelled.is_truthy()? {
                    return Ok(());
                }
                if self.core.debug.get() {
                    let run = names._debug_run.get(self.py());
                    self.this.call_named(&run, [&handle])?;
                    // In debug mode asyncio's own way tells of slow ones.
                    self.core.stopwatch.begin();
                    Ok(())
                } else {
                    handle.call_named(&names._run.get(self.py()), [])?;
                    lap(self.this, || Ok((*handle).clone()))
                }
            }
        }
    }
}

impl Host<Work, Source> for Driver<'_, '_> {
    fn before_wait(&mut self) {
        self.slept = true;
        self.core.stopwatch.rest();
        // SAFETY: attached; the reactor touches nothing of Python until `after_wait`.
        self.pause = Some(unsafe { Pause::detach() });
    }

    fn after_wait(&mut self) {
        self.pause = None;
        self.core.stopwatch.begin();
    }

    #[inline]
    fn collect(&mut self, ready: &mut VecDeque<Work>) {
        self.core.collect(ready);
    }

    /// Looks only where visitors come.
    fn linger(&mut self) -> u64 {
        if !self.core.io.visited.replace(false) {
            return 0;
        }
        let time = self.patience.take().unwrap_or_default();
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn lingered(&mut self, came: bool) {
        self.patience.learn(came);
    }

    #[inline]
    fn hurries(&self) -> bool {
        self.core.stopping.get() || self.until == Until::Idle
    }

    #[inline]
    fn run(&mut self, reactor: &mut LoopReactor, work: Work) -> ControlFlow<()> {
        self.core.current.set(reactor);
        let done = self.work(work);
        self.finish(done)
    }

    #[inline]
    fn ready(&mut self, reactor: &mut LoopReactor, key: Key, is: Readiness) -> ControlFlow<()> {
        self.core.current.set(reactor);
        let done = self.core.source_ready(self.py(), self.this, key, is);
        self.finish(done)
    }

    #[inline]
    fn is_stale(&self, work: &Work) -> bool {
        work.is_stale()
    }

    #[inline]
    fn stale_timers(&self) -> usize {
        self.core.stale.load(Ordering::Relaxed)
    }

    fn discard(&mut self, reactor: &mut LoopReactor, stale: Vec<Work>, all: bool) {
        let known = self.stale_timers();
        let left = if all {
            0
        } else {
            known.saturating_sub(stale.len())
        };
        self.core.stale.store(left, Ordering::Relaxed);
        self.core.current.set(reactor);
        drop(stale);
    }

    #[inline]
    fn turn_end(&mut self, reactor: &mut LoopReactor) -> ControlFlow<()> {
        self.core.current.set(reactor);
        let done = self.core.end_turn(self.py());
        self.finish(done)
    }

    fn lend(&self, fd: RawFd) -> BorrowedFd<'_> {
        // SAFETY: registered, so its owner has not closed it; else epoll refuses it.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

/// `_run()`: turns until `stop`. `_run_once()`: one turn.
fn turns<'py>(this: &Obj<'py>, core: &LoopCore, until: Until) -> PyResult<'py, ()> {
    let py = this.py();
    // From here on other threads go through the inbox: so what they did before is done.
    let before = section::alone(this, || {
        core.check_closed(py)?;
        if core.lent.get() {
            core.check_here(py)?;
        }
        if core.turning.replace(true) {
            let text = "This event loop is already running";
            return Err(PyError::new(py, Builtin::RuntimeError, text));
        }
        let owner = core.owner.get();
        core.owner.set(pyrt::thread::ident());
        Ok(owner)
    })?;
    let _parks = Parks::here();
    let _here = crate::visit::runs_here(core.visitors());
    let mut driver = Driver {
        core,
        this,
        pause: None,
        slept: false,
        until,
        patience: Patience::serving(),
        failure: None,
    };
    core.stopwatch.begin();
    let done = drive(core, &mut driver);
    core.stopwatch.rest();
    section::alone(this, || {
        core.current.set(core.reactor);
        core.owner.set(before);
        core.turning.set(false);
    });
    done
}

fn drive<'py>(core: &LoopCore, driver: &mut Driver<'_, 'py>) -> PyResult<'py, ()> {
    let (py, until) = (driver.py(), driver.until);
    let mut busy = 0;
    loop {
        check_signals(py)?;
        // SAFETY: this thread owns the loop, and `current` is `reactor` outside of callbacks.
        let reactor = unsafe { &mut *core.reactor };
        let outcome = reactor.turn(driver);
        if core.forked.get() {
            core.check_closed(py)?;
        }
        match outcome.map_err(|error| PyError::from_io(py, &error))? {
            Outcome::Done => {}
            // The handlers of signals run at the next turn; `_run_once` has had its turn.
            Outcome::Interrupted => check_signals(py)?,
            Outcome::Broken => {
                return match driver.failure.take() {
                    Some(error) => Err(error),
                    None => Ok(()),
                };
            }
        }
        if until == Until::Once || core.stopping.get() {
            return Ok(());
        }
        if until == Until::Idle && (busy == STEP - 1 || is_idle(core)) {
            return Ok(());
        }
        busy = if std::mem::take(&mut driver.slept) {
            0
        } else {
            busy + 1
        };
        if busy == POLITE {
            busy = 0;
            py.detach(|| ());
            core.stopwatch.begin();
        }
    }
}

fn is_idle(core: &LoopCore) -> bool {
    core.guests.borrow().is_empty() && core.reactor(LoopReactor::is_idle)
}

pub(super) fn run<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    _args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    turns(this, core, Until::Stopped)?;
    Ok(Obj::none(this.py()))
}

pub(super) fn run_once<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    core.check_closed(args.py())?;
    turns(this, core, Until::Once)?;
    Ok(Obj::none(this.py()))
}

/// `_step()`: when to come again, in nanoseconds of the monotonic clock: 0 for now, -1 when the
/// descriptor of the loop says so.
pub(super) fn step<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    core.check_closed(py)?;
    core.stepped.set(true);
    core.reactor(LoopReactor::rise);
    turns(this, core, Until::Idle)?;
    let again = core.stopping.get()
        || !(core.guests.borrow().is_empty() && core.reactor(LoopReactor::rest));
    let next = match core.reactor(LoopReactor::next_deadline) {
        _ if again => 0,
        Some(deadline) => i64::try_from(deadline.max(1)).unwrap_or(i64::MAX),
        None => -1,
    };
    Obj::int(py, next)
}
