//! Stops running jobs of one interpreter: only a thread attached to it can raise there.
//!
//! Thread: `py-stop`, one per interpreter while it has something to do. C code that keeps a GIL holds
//! up the stops of its own interpreter, and nobody else's.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crew::sync::lock;
use pyrt::interrupt::{self, Aim, Manner, Order, Sent};
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{Obj, contain};

use crate::event_loop::Loop;
use crate::interp::Interp;
use crate::ticket::{Ticket, Why};

/// How long the thread stays when there is nothing to do.
const STAYS: Duration = Duration::from_secs(1);
/// A task that goes on is told again.
const AGAIN: Duration = Duration::from_secs(1);
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

/// Running jobs and loops only, each once: it has their bound (I8).
#[derive(Default)]
struct Work {
    orders: Vec<Order<What>>,
    has_thread: bool,
}

/// What there is to do.
enum What {
    /// A job is to be stopped.
    Job(Arc<Ticket>),
    /// A loop does not hear that something is to be cancelled; when an exception was sent for good.
    Unheard(Arc<Loop>, Option<Instant>),
    /// A loop is in something slow.
    Slow(Arc<Loop>),
}

impl What {
    fn is(&self, other: &What) -> bool {
        match (self, other) {
            (What::Job(one), What::Job(other)) => Arc::ptr_eq(one, other),
            (What::Unheard(one, _), What::Unheard(other, _)) => Arc::ptr_eq(one, other),
            (What::Slow(one), What::Slow(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Work {
    /// The older one stays.
    fn add(&mut self, order: Order<What>) {
        let same = |other: &&mut Order<What>| other.aim.is(&order.aim);
        match self.orders.iter_mut().find(same) {
            Some(other) => other.absorb(&order),
            None => self.orders.push(order),
        }
    }
}

impl Stopper {
    /// The next jobs; `None`: there were none for some time, and the thread is to end.
    fn next(&self) -> Option<Vec<Order<What>>> {
        let (mut work, _) = self
            .more
            .wait_timeout_while(lock(&self.work), STAYS, |work| work.orders.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        work.has_thread = !work.orders.is_empty();
        work.has_thread.then(|| std::mem::take(&mut work.orders))
    }

    /// The rest is to be done a little later.
    fn put_back(&self, rest: Vec<Order<What>>) {
        if let Some(pause) = interrupt::pause(&rest) {
            std::thread::sleep(pause);
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
    order(interp, What::Job(ticket.clone()));
}

/// Sees to a loop that does not hear what is to be cancelled, until it does. Never waits.
pub fn stop_task(event_loop: &Arc<Loop>) {
    order(event_loop.interp(), What::Unheard(event_loop.clone(), None));
}

/// Says what a loop is in. Never waits.
pub fn report(event_loop: &Arc<Loop>) {
    order(event_loop.interp(), What::Slow(event_loop.clone()));
}

fn order(interp: &Arc<Interp>, what: What) {
    let stopper = &interp.stopper;
    let mut work = lock(&stopper.work);
    work.add(Order::new(what));
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
fn stop_all(interp: &Arc<Interp>, orders: &mut Vec<Order<What>>) {
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
        let Some(class) = interp.cancelled(py) else {
            return orders.clear();
        };
        let with = With {
            interp,
            class: &class,
        };
        interrupt::carry_out(orders, &with, |time| {
            py.detach(|| std::thread::sleep(time));
        });
    });
}

/// What an interrupt takes.
struct With<'a, 'py> {
    interp: &'a Interp,
    /// `erlang.Cancelled`
    class: &'a Obj<'py>,
}

impl Aim<With<'_, '_>> for What {
    fn interrupt(&mut self, with: &With<'_, '_>, manner: Manner) -> Option<Sent> {
        match self {
            What::Job(ticket) => stop_job(with, ticket, manner),
            What::Unheard(event_loop, told) => stop_loop(with, event_loop, told, manner),
            What::Slow(event_loop) => {
                event_loop.report(with.class.py());
                None
            }
        }
    }

    fn take_back(&mut self, with: &With<'_, '_>) -> bool {
        let py = with.class.py();
        match self {
            What::Job(ticket) => ticket
                .thread()
                .is_some_and(|thread| thread.take_back(py, ticket, with.class)),
            What::Unheard(event_loop, told) => {
                if !event_loop.take_back(py) {
                    *told = Some(Instant::now());
                }
                true
            }
            What::Slow(_) => false,
        }
    }
}

/// Raises in the job's thread if the job is the innermost one there; one with another on top is told when that returns
/// (`callback`). A thread that waits for Erlang is woken.
fn stop_job(with: &With<'_, '_>, ticket: &Arc<Ticket>, manner: Manner) -> Option<Sent> {
    // Else it has ended, and what the thread does is another's.
    let thread = ticket.thread().filter(|thread| thread.has_job(ticket))?;
    let py = with.class.py();
    // Nobody takes a lock any more where the interpreter ends with its pool.
    let ends = !with.interp.is_main() && matches!(ticket.why(), Some(Why::Died));
    let sent = thread.interrupt(py, ticket, |target, rest| {
        if ends {
            target.interrupt_anywhere(py, with.class);
            return Sent::Yes;
        }
        target.interrupt(py, with.class, manner, rest)
    });
    thread.wake();
    // It may sleep in an event loop of its own.
    pyloop::interrupt(thread.ident());
    sent
}

/// Raises in the task that the loop runs, if that one is to stop; again each second, until the loop hears of it by
/// itself.
fn stop_loop(
    with: &With<'_, '_>,
    event_loop: &Arc<Loop>,
    told: &mut Option<Instant>,
    manner: Manner,
) -> Option<Sent> {
    if event_loop.hears() {
        return None;
    }
    if told.is_some_and(|told| told.elapsed() <= AGAIN) {
        return Some(Sent::No);
    }
    let sent = event_loop.interrupt(with.class.py(), manner);
    *told = (sent == Some(Sent::Yes)).then(Instant::now);
    // Done when the loop hears of it.
    let briefly = sent.filter(|sent| *sent == Sent::Briefly);
    Some(briefly.unwrap_or(Sent::No))
}
