//! How long a loop's callbacks take, where somebody wants to hear of the slow ones.
//!
//! One look at the coarse clock after each callback: its begin is the end of the one before.
//! Thread: the loop's own; any may set the limit.

use std::time::Duration;

use pyrt::{Number, Obj, PyResult};
use reactor::clock;

use crate::event_loop::LoopCore;

#[derive(Default)]
pub struct Stopwatch {
    /// Nanoseconds from which on a callback is slow; 0: nobody wants to know.
    limit: Number,
    /// When the last callback was over; 0 while the loop rests.
    last: Number,
}

impl Stopwatch {
    pub(crate) fn set_limit(&self, nanos: u64) {
        self.limit.set(nanos);
        self.begin();
    }

    /// What comes next begins now.
    #[inline]
    pub(crate) fn begin(&self) {
        if self.limit.get() != 0 {
            self.last.set(clock::coarse());
        }
    }

    /// Nothing comes next for now.
    #[inline]
    pub(crate) fn rest(&self) {
        self.last.set(0);
    }

    /// For how long the loop has been in what it runs, if that is slow, and when it began. Any thread asks.
    pub fn runs_slowly(&self) -> Option<(Duration, u64)> {
        let (limit, last) = (self.limit.get(), self.last.get());
        let took = clock::coarse().saturating_sub(last);
        (limit != 0 && last != 0 && took >= limit).then_some((Duration::from_nanos(took), last))
    }

    /// Something is over: how many nanoseconds it took, if it was slow.
    #[inline]
    fn lap(&self) -> Option<u64> {
        let limit = self.limit.get();
        if limit == 0 {
            return None;
        }
        let now = clock::coarse();
        let took = now.saturating_sub(self.last.get());
        self.last.set(now);
        (took >= limit).then_some(took)
    }
}

/// Something has run on the loop, for which `subject` stands (a handle, a coroutine, a transport): if it
/// was slow, the loop tells so.
#[inline]
pub fn lap<'py>(
    event_loop: &Obj<'py>,
    subject: impl FnOnce() -> PyResult<'py, Obj<'py>>,
) -> PyResult<'py, ()> {
    match LoopCore::of(event_loop).stopwatch.lap() {
        None => Ok(()),
        Some(took) => tell(event_loop, &subject()?, took),
    }
}

#[cold]
fn tell<'py>(event_loop: &Obj<'py>, subject: &Obj<'py>, took: u64) -> PyResult<'py, ()> {
    let took = Obj::float(event_loop.py(), clock::to_seconds(took))?;
    event_loop.call_method(c"_slow", &[subject, &took])?;
    // What was told took its time, too.
    LoopCore::of(event_loop).stopwatch.begin();
    Ok(())
}
