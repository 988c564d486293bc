//! A loop that does not come back from what it runs: it is told about, and interrupted if it should have
//! ended by now.
//!
//! A coroutine that never waits keeps its loop from all else, also from hearing that the coroutine is
//! cancelled. So cancellations that the loop has not seen for a moment are looked after from outside.
//!
//! Thread: `doubt` any; what needs Python `py-stop`, attached.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crew::sync::lock;
use pyrt::interrupt::{Manner, Sent};
use pyrt::{Attached, Obj};

use super::{Loop, Waiting};
use crate::ticket::{Ticket, Why};
use crate::{log, watch};

/// What is shorter is told when it is over.
const LONG: Duration = Duration::from_secs(1);

impl Loop {
    /// Something is to be cancelled: should the loop not see that soon, what it runs is interrupted.
    pub(super) fn doubt(self: &Arc<Self>) {
        // AcqRel, pairs with `trust`: who finds it unset sees to it.
        if !self.doubted.swap(true, Ordering::AcqRel) {
            watch::doubt(self.clone());
        }
    }

    /// Whether it has seen all that is to be cancelled; then nobody looks after it any more.
    pub fn hears(self: &Arc<Self>) -> bool {
        let hears = || !self.is_open() || !self.intake.has_cancels();
        if !hears() {
            return false;
        }
        self.doubted.store(false, Ordering::Release);
        // What came in between has found it doubted.
        hears() || self.doubted.swap(true, Ordering::AcqRel)
    }

    /// For how long it has been in what it runs, and a number that is another for the next; `None`: not so
    /// long that anybody wants to hear of it before it ends.
    pub fn is_slow(&self) -> Option<(Duration, u64)> {
        let slow = self.stopwatch.get()?.runs_slowly()?;
        (slow.0 >= LONG).then_some(slow)
    }

    /// Interrupts the task that runs, if it is to stop. `None`: there is none.
    pub fn interrupt(&self, py: Attached<'_>, manner: Manner) -> Option<Sent> {
        let task = self.current_task(py)?;
        self.ticket_of(&task).filter(|ticket| ticket.must_stop())?;
        // Without a GIL the loop runs on, and may be in another task by now.
        let context = match pyrt::FREE_THREADED {
            true => Some(task.call_method(c"get_context", &[]).ok()?),
            false => None,
        };
        let meant = || context.as_ref().is_none_or(pyrt::context::is_entered);
        let class = self.tools.get()?.cancelled(py)?;
        let manner = Manner {
            briefly: true,
            ..manner
        };
        self.spot.interrupt(py, &class, manner, meant)
    }

    /// Takes back what was sent. `false`: it was raised.
    pub fn take_back(&self, py: Attached<'_>) -> bool {
        let class = self.tools.get().and_then(|tools| tools.cancelled(py));
        class.is_some_and(|class| self.spot.take_back(py, &class))
    }

    fn current_task<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        let object = self.object(py)?;
        let task = self.tools.get()?.current_task(&object).ok()??;
        (!task.is_none()).then_some(task)
    }

    /// Whom a task runs for, or the one that has started it.
    fn ticket_of(&self, task: &Obj<'_>) -> Option<Arc<Ticket>> {
        if pyrt::BUILT_FOR.1 >= 12 {
            let context = task.call_method(c"get_context", &[]).ok()?;
            return self.interp.tasks.ticket_in(&context);
        }
        let py = task.py();
        let waiting = lock(&self.waiting);
        let own = |waiting: &&Waiting| waiting.task.get(py).is_some_and(|own| own.is(task));
        waiting
            .values()
            .find(own)
            .map(|waiting| waiting.job.ticket.clone())
    }

    /// Says what keeps the loop.
    pub fn report(&self, py: Attached<'_>) {
        let Some((took, _)) = self.is_slow() else {
            return;
        };
        let task = self.current_task(py);
        let ticket = task.as_ref().and_then(|task| self.ticket_of(task));
        let what = match (&task, self.spot.coroutine(py)) {
            (Some(_), Some(coroutine)) => format!("<{coroutine}>"),
            (Some(_), None) => "A task".to_owned(),
            (None, _) => "A callback".to_owned(),
        };
        let text = format!(
            "{what} has run for {:.3} seconds without awaiting anything: the other tasks of its event loop wait",
            took.as_secs_f64()
        );
        let about = ticket.as_ref().and_then(|ticket| ticket.about());
        log::slow_task(&text, about.map(|about| &**about));
    }

    /// Whether jobs of it run or wait for something.
    pub fn has_tasks(&self) -> bool {
        lock(&self.starting).is_some() || !lock(&self.waiting).is_empty()
    }

    /// Its jobs are told to stop, and their callers why.
    pub fn stop_tasks(&self, why: Why) {
        let mut tickets: Vec<Arc<Ticket>> = lock(&self.waiting)
            .values()
            .map(|waiting| waiting.job.ticket.clone())
            .collect();
        tickets.extend(lock(&self.starting).clone());
        for ticket in tickets {
            ticket.stop(why);
        }
    }
}
