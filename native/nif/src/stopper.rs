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
use crate::ticket::{Ticket, Why};

/// How long the thread stays when there is nothing to do.
const STAYS: Duration = Duration::from_secs(1);
/// When a job whose thread imports is looked at again.
const SOON: Duration = Duration::from_millis(10);
/// An import that takes longer is interrupted like everything else.
const IMPORTS: Duration = Duration::from_secs(60);
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

/// Running jobs only, each once: it has their bound (I8).
#[derive(Default)]
struct Work {
    orders: Vec<Order>,
    has_thread: bool,
}

/// A job to be stopped.
struct Order {
    ticket: Arc<Ticket>,
    since: Instant,
}

impl Work {
    /// The older one stays.
    fn add(&mut self, order: Order) {
        let same = |other: &&mut Order| Arc::ptr_eq(&other.ticket, &order.ticket);
        match self.orders.iter_mut().find(same) {
            Some(other) => other.since = other.since.min(order.since),
            None => self.orders.push(order),
        }
    }
}

impl Stopper {
    /// The next jobs; `None`: there were none for some time, and the thread is to end.
    fn next(&self) -> Option<Vec<Order>> {
        let (mut work, _) = self
            .more
            .wait_timeout_while(lock(&self.work), STAYS, |work| work.orders.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        work.has_thread = !work.orders.is_empty();
        work.has_thread.then(|| std::mem::take(&mut work.orders))
    }

    /// The rest is to be done a little later.
    fn put_back(&self, rest: Vec<Order>) {
        if !rest.is_empty() {
            std::thread::sleep(SOON);
            let mut work = lock(&self.work);
            rest.into_iter().for_each(|order| work.add(order));
        }
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
    work.add(Order {
        ticket: ticket.clone(),
        since: Instant::now(),
    });
    stopper.more.notify_one();
    if work.has_thread {
        return;
    }
    let own = interp.clone();
    work.has_thread = spawn_named("py-stop", move || run(&own)).is_ok();
    if !work.has_thread {
        // No thread to be had: it is told again.
        work.orders.clear();
    }
}

fn run(interp: &Arc<Interp>) {
    while let Some(mut orders) = interp.stopper.next() {
        if contain("stopping jobs", || stop_all(interp, &mut orders)).is_err() {
            orders.clear();
        }
        interp.stopper.put_back(orders);
    }
}

/// Leaves those that are to be told later.
fn stop_all(interp: &Arc<Interp>, orders: &mut Vec<Order>) {
    let Some(_alive) = interp.hold() else {
        return orders.clear();
    };
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
        orders.retain(|order| !carry_out(py, interp, order));
    });
}

/// Raises in the job's thread if the job is the innermost one there; one with another on top is
/// told when that returns (`callback`). A thread that waits for Erlang is woken. `false`: the thread
/// imports, and is told when it is done, or should be.
fn carry_out(py: Attached<'_>, interp: &Interp, order: &Order) -> bool {
    let ticket = &order.ticket;
    let (Some(thread), Some(class)) = (ticket.thread(), interp.cancelled(py)) else {
        return true;
    };
    let thread: &here::Thread = &thread;
    if !thread.has_job(ticket) {
        // It has ended, and what the thread imports is another's.
        return true;
    }
    let raise = || {
        thread.while_innermost(ticket, || {
            ticket.set_raised();
            raise_in(py, thread.ident(), Some(&class));
        });
    };
    // Nobody imports anything any more where the interpreter ends with its pool.
    let ends = !interp.is_main() && matches!(ticket.why(), Some(Why::Died));
    let told = if ends || order.since.elapsed() > IMPORTS {
        raise();
        true
    } else {
        thread.unless_importing(raise)
    };
    thread.wake();
    // It may sleep in an event loop of its own.
    pyloop::interrupt(thread.ident());
    told
}
