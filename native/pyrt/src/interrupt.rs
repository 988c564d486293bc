//! Stops code of another thread by an exception, where that does no harm.
//!
//! An exception from outside is raised where the code looks for one, and that may be just after a lock was
//! taken, or as the function that gives it back begins. So the frames of the thread are looked at first.
//! The caller has the GIL: the thread rests, at a look or in a call that has let go of the GIL, and moves no
//! step until the exception is on its way.
//!
//! Thread: attached ones, to the interpreter of the target.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3_ffi as ffi;

use crate::thread::{self, raise_in};
use crate::{Attached, Obj, PyResult};

/// Python 3.13 and later: a look that lets another thread run does not see what that one has sent.
const GOES_ON: bool = crate::BUILT_FOR.1 >= 13;

mod frame;
mod opcode;
mod order;
mod pace;
mod place;
mod rest;
mod world;

pub use opcode::prepare;
pub use order::{Aim, Order, carry_out, pause};
pub use rest::Rest;
pub use world::while_stopped;

use frame::{Frame, Module};
use place::Stands;

/// Code that its thread runs, and others may interrupt.
#[derive(Clone, Copy)]
pub struct Target {
    ident: u64,
    state: NonNull<ffi::PyThreadState>,
    /// The frame that was innermost when it began: what is below belongs to others.
    base: *mut ffi::PyFrameObject,
}

// SAFETY: only used while the thread runs that code, as `here` demands; nothing of it is written to.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

/// What may be interrupted.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// Modules of the standard library that have locks are left to themselves: they are done soon.
    pub patient: bool,
    /// Imports, too, whose locks are those of modules.
    pub imports: bool,
    /// It is for what an event loop of this package runs now, not for what that runs next: the exception must
    /// not outlive the call that the thread is in.
    pub briefly: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It is raised when the thread looks for it.
    Yes,
    /// The same; but it has to be taken back soon (`take_back`), since it could do harm later.
    Briefly,
    /// It would do harm now.
    No,
}

impl Target {
    /// What the calling thread runs from here on. `nested`: on top of other code.
    ///
    /// # Safety
    /// The value is used only until that code ends.
    pub unsafe fn here(_py: Attached<'_>, nested: bool) -> Self {
        let base = if nested {
            // SAFETY: I1, attached; a borrowed reference or NULL.
            unsafe { ffi::PyEval_GetFrame() }
        } else {
            std::ptr::null_mut()
        };
        // SAFETY: I1, attached, so there is one.
        let state = unsafe { NonNull::new_unchecked(ffi::PyThreadState_Get()) };
        Target {
            ident: thread::ident(),
            state,
            base,
        }
    }

    /// Sends `class` as an exception, if that does no harm.
    /// `rest` is what the tries before have found.
    pub fn interrupt(
        &self,
        py: Attached<'_>,
        class: &Obj<'_>,
        manner: Manner,
        rest: &mut Option<Rest>,
    ) -> Sent {
        if !world::can_stop() {
            self.interrupt_anywhere(py, class);
            return Sent::Yes;
        }
        let _still = world::NoCollection::begin(py);
        let sent = match self.frames(py) {
            // What can't be seen can't be judged.
            Err(error) => {
                drop(error);
                Sent::No
            }
            Ok(frames) => judge(&frames, manner, || {
                Rest::is(self.ident, longer_than_a_switch(py), rest)
            }),
        };
        if sent != Sent::No {
            raise_in(py, self.ident, Some(class));
        }
        sent
    }

    /// Sends it wherever the thread is.
    pub fn interrupt_anywhere(&self, py: Attached<'_>, class: &Obj<'_>) {
        raise_in(py, self.ident, Some(class));
    }

    /// Takes back an exception that was not raised yet. `false`: it was.
    pub fn take_back(&self, py: Attached<'_>, class: &Obj<'_>) -> bool {
        let before = world::references(class);
        raise_in(py, self.ident, None);
        world::references(class) < before
    }

    /// The frames of the code, the innermost first.
    fn frames<'py>(&self, py: Attached<'py>) -> PyResult<'py, Vec<Frame<'py>>> {
        let mut frames = Vec::new();
        // SAFETY: I1, attached; the thread runs the code, so its state is alive (`here`).
        let mut next = unsafe { ffi::PyThreadState_GetFrame(self.state.as_ptr()) };
        while let Some(raw) = NonNull::new(next) {
            // SAFETY: a new reference.
            let frame = unsafe { Frame::of(py, raw) };
            if raw.as_ptr() == self.base {
                break;
            }
            let frame = frame?;
            next = frame.back();
            frames.push(frame);
        }
        Ok(frames)
    }
}

/// A thread that waits for the GIL wakes up at each switch interval; so one that sleeps for longer than
/// that does not.
fn longer_than_a_switch(py: Attached<'_>) -> Duration {
    let sys = crate::call::import_c(py, c"sys");
    let interval = sys.and_then(|sys| sys.call_method(c"getswitchinterval", &[]));
    let seconds = interval.and_then(|interval| interval.as_f64()).ok();
    let interval = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    interval
        .unwrap_or_default()
        .saturating_mul(3)
        .max(Duration::from_millis(3))
}

/// `rests`: whether the thread is in a call that has let go of the GIL, for certain.
fn judge(frames: &[Frame<'_>], manner: Manner, rests: impl FnOnce() -> bool) -> Sent {
    let Some((innermost, outer)) = frames.split_first() else {
        // The next thing it does in Python is the begin of a function.
        return Sent::Yes;
    };
    if !manner.imports && frames.iter().any(|frame| frame.module() == Module::Imports) {
        return Sent::No;
    }
    let waits = innermost.waits();
    if manner.patient && !waits && innermost.module() != Module::Other {
        return Sent::No;
    }
    let stands = innermost.place(|place| place.stands(waits));
    // Whoever called a function that only waits has got nothing yet.
    let own = match waits {
        true => {
            outer
                .iter()
                .take_while(|frame| frame.is_threading())
                .count()
                + 1
        }
        false => 0,
    };
    let edge = |frame: &Frame<'_>| frame.place(|place| place.is_edge()).unwrap_or(true);
    if outer.iter().skip(own).any(edge) {
        return Sent::No;
    }
    // What stands between two looks will see it at the next one; and so does, since 3.13, what has let go
    // of the GIL in a look: that after a call, unless it is still in the call.
    let goes_on = match stands {
        Some(Stands::Between) => true,
        Some(Stands::Looks | Stands::Calls) => GOES_ON,
        None | Some(Stands::Edge) => return Sent::No,
    };
    if goes_on
        && is_harmful_ahead(frames, manner.briefly)
        && (stands != Some(Stands::Calls) || !rests())
    {
        return Sent::No;
    }
    match stands {
        None | Some(Stands::Edge) => Sent::No,
        Some(Stands::Looks) => Sent::Yes,
        Some(Stands::Calls | Stands::Between) => {
            // Without a GIL nobody can tell whether it was raised.
            let briefly = !crate::FREE_THREADED && (manner.briefly || fails_into_with(frames));
            if briefly { Sent::Briefly } else { Sent::Yes }
        }
    }
}

/// Whether the next look, here or after a return, is where an exception does harm.
/// `briefly`: and whether that is where a loop goes on with something else.
fn is_harmful_ahead(frames: &[Frame<'_>], briefly: bool) -> bool {
    for frame in frames {
        if briefly && frame.is_ours() {
            return true;
        }
        match frame.place(|place| place.ahead()) {
            Some(ahead) if !ahead.harmful && !ahead.returns => return false,
            Some(ahead) if !ahead.harmful => {}
            _ => return true,
        }
    }
    briefly
}

/// Whether the end of a `with` is the first that would hear of a failure of the call.
fn fails_into_with(frames: &[Frame<'_>]) -> bool {
    frames
        .iter()
        .find_map(|frame| frame.place(|place| place.fails_into_with()).flatten())
        .unwrap_or(false)
}

/// Code that others may interrupt while it runs, and only then.
#[derive(Default)]
pub struct Spot(Mutex<Option<Running>>);

struct Running {
    target: Target,
    rest: Option<Rest>,
    sent: bool,
}

impl Spot {
    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `body` on the calling thread. An exception that comes too late for it is taken back.
    pub fn run<T>(&self, py: Attached<'_>, body: impl FnOnce() -> T) -> T {
        struct Leave<'a, 'py>(&'a Spot, Attached<'py>);
        impl Drop for Leave<'_, '_> {
            fn drop(&mut self) {
                let running = self.0.lock().take();
                if let Some(Running {
                    target, sent: true, ..
                }) = running
                {
                    raise_in(self.1, target.ident, None);
                }
            }
        }
        // SAFETY: `Leave` takes it out before the code ends, under the lock it is used under.
        let target = unsafe { Target::here(py, true) };
        *self.lock() = Some(Running {
            target,
            rest: None,
            sent: false,
        });
        let _leave = Leave(self, py);
        body()
    }

    /// See `Target::interrupt`. `None`: the code has ended, or is no longer the one that is `meant`, which is
    /// asked while nothing moves.
    pub fn interrupt(
        &self,
        py: Attached<'_>,
        class: &Obj<'_>,
        manner: Manner,
        meant: impl FnOnce() -> bool,
    ) -> Option<Sent> {
        while_stopped(py, || {
            let mut running = self.lock();
            let running = running.as_mut().filter(|_| meant())?;
            let (target, rest) = (running.target, &mut running.rest);
            let sent = target.interrupt(py, class, manner, rest);
            running.sent |= sent != Sent::No;
            Some(sent)
        })
    }

    /// The outermost coroutine of the code, as asyncio describes one that runs. Takes no lock that the thread
    /// could have: without a GIL it has that of its task.
    pub fn coroutine(&self, py: Attached<'_>) -> Option<String> {
        if !world::can_stop() {
            return None;
        }
        while_stopped(py, || {
            let running = self.lock();
            let frames = running.as_ref()?.target.frames(py).ok()?;
            frames.iter().rev().find_map(Frame::coroutine)
        })
    }

    /// See `Target::take_back`. `false` also when the code has ended.
    pub fn take_back(&self, py: Attached<'_>, class: &Obj<'_>) -> bool {
        while_stopped(py, || match &*self.lock() {
            Some(running) => running.target.take_back(py, class),
            None => false,
        })
    }
}
