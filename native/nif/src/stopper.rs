//! Stops running jobs of one interpreter: only a thread attached to it can raise there.
//!
//! Thread: `py-stop`, one per interpreter while it has something to do. C code that keeps a GIL holds
//! up the stops of its own interpreter, and nobody else's.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crew::sync::lock;
use pyrt::thread::{ThreadState, raise_in, spawn_named};
use pyrt::{Attached, contain};

use crate::here;
use crate::interp::Interp;
use crate::ticket::Ticket;

/// How long the thread stays when there is nothing to do.
const STAYS: Duration = Duration::from_secs(1);
/// Who has waited that long for a GIL is shut out.
const SHUT_OUT: Duration = Duration::from_secs(5);

/// Those that wait for a GIL now.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

struct Waiting {
    /// The number of its interpreter.
    interp: u64,
    since: Instant,
    told: bool,
}

#[derive(Default)]
pub struct Stopper {
    work: Mutex<Work>,
    more: Condvar,
}

/// Running jobs only, each once or again after a second: it has their bound (I8).
#[derive(Default)]
struct Work {
    tickets: Vec<Arc<Ticket>>,
    has_thread: bool,
}

impl Stopper {
    /// The next jobs; `None`: there were none for some time, and the thread is to end.
    fn next(&self) -> Option<Vec<Arc<Ticket>>> {
        let (mut work, _) = self
            .more
            .wait_timeout_while(lock(&self.work), STAYS, |work| work.tickets.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        work.has_thread = !work.tickets.is_empty();
        work.has_thread.then(|| std::mem::take(&mut work.tickets))
    }
}

/// Whether somebody keeps a GIL for so long that no job there can even be stopped. Says so once.
pub fn is_shut_out() -> bool {
    lock(&WAITING)
        .iter_mut()
        .find(|waiting| !waiting.told && waiting.since.elapsed() > SHUT_OUT)
        .is_some_and(|waiting| !std::mem::replace(&mut waiting.told, true))
}

/// Tells a job to stop, again if it was told before. Never waits.
pub fn stop(interp: &Arc<Interp>, ticket: &Arc<Ticket>) {
    let stopper = &interp.stopper;
    let mut work = lock(&stopper.work);
    if work.tickets.iter().any(|other| Arc::ptr_eq(other, ticket)) {
        return;
    }
    work.tickets.push(ticket.clone());
    stopper.more.notify_one();
    if work.has_thread {
        return;
    }
    let own = interp.clone();
    work.has_thread = spawn_named("py-stop", move || run(&own)).is_ok();
    if !work.has_thread {
        // No thread to be had: it is told again.
        work.tickets.clear();
    }
}

fn run(interp: &Arc<Interp>) {
    while let Some(tickets) = interp.stopper.next() {
        let _ = contain("stopping jobs", || stop_all(interp, &tickets));
    }
}

fn stop_all(interp: &Arc<Interp>, tickets: &[Arc<Ticket>]) {
    let Some(_alive) = interp.hold() else { return };
    let Some(mut state) = ThreadState::new(interp.python()) else {
        return;
    };
    lock(&WAITING).push(Waiting {
        interp: interp.number(),
        since: Instant::now(),
        told: false,
    });
    state.attached(|py| {
        lock(&WAITING).retain(|waiting| waiting.interp != interp.number());
        tickets.iter().for_each(|ticket| raise(py, interp, ticket));
    });
}

/// Raises in the job's thread if the job is the innermost one there; one with another on top is
/// told when that returns (`callback`). A thread that waits for Erlang is woken.
fn raise(py: Attached<'_>, interp: &Interp, ticket: &Arc<Ticket>) {
    let (Some(thread), Some(class)) = (ticket.thread(), interp.cancelled(py)) else {
        return;
    };
    let thread: &here::Thread = &thread;
    thread.while_innermost(ticket, || {
        ticket.set_raised();
        raise_in(py, thread.ident(), Some(&class));
    });
    thread.wake();
    // It may sleep in an event loop of its own.
    pyloop::interrupt(thread.ident());
}
