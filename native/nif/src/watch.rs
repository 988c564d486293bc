//! The watch: one thread that does what schedulers must not: stops running jobs, starts threads,
//! closes pools.
//!
//! Thread: `py-watch`, one, with a thread state of the main interpreter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use pyrt::thread::{ThreadState, raise_in, spawn_named};
use pyrt::{Attached, contain};

use crate::event_loop::Loop;
use crate::interp::Interp;
use crate::pool::Pool;
use crate::ticket::{Ticket, Why};
use crate::worker;
use crate::{closing, here};
use crew::sync::lock;

enum Task {
    Stop(Arc<Ticket>),
    Start(Arc<Pool>),
    Close(Arc<Pool>),
    CloseLoop(Arc<Loop>),
}

/// A job that does not stop is told again, politely.
const AGAIN: Duration = Duration::from_secs(1);
/// One that has not stopped by then has its thread replaced.
const GRACE: Duration = Duration::from_secs(5);

/// When the watch began to wait for the GIL, in milliseconds since `START`; 0: it does not.
static WAITS_SINCE: AtomicU64 = AtomicU64::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Fed by admitted jobs only (each is stopped once), so it has their bound (I8).
static TASKS: Mutex<Option<Sender<Task>>> = Mutex::new(None);

fn post(task: Task) {
    if let Some(tasks) = &*lock(&TASKS) {
        // The watch lives as long as the process; should it be gone, there is nobody to tell.
        let _ = tasks.send(task);
    }
}

pub fn stop_job(ticket: Arc<Ticket>) {
    post(Task::Stop(ticket));
}

pub fn start_thread(pool: Arc<Pool>) {
    post(Task::Start(pool));
}

pub fn close(pool: Arc<Pool>) {
    post(Task::Close(pool));
}

/// Whether somebody keeps the GIL for so long that no job can even be stopped. Says so once.
pub fn is_shut_out() -> bool {
    // Relaxed: an old answer is as good, somebody will ask again.
    let since = WAITS_SINCE.load(Ordering::Relaxed);
    since != 0
        && now_ms().saturating_sub(since) > GRACE.as_millis() as u64
        && WAITS_SINCE
            .compare_exchange(since, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// Never 0.
fn now_ms() -> u64 {
    START.elapsed().as_millis() as u64 + 1
}

pub fn close_loop(event_loop: Arc<Loop>) {
    post(Task::CloseLoop(event_loop));
}

/// Starts the watch for the main interpreter.
pub fn start(interp: Arc<Interp>) -> std::io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    *lock(&TASKS) = Some(sender);
    spawn_named("py-watch", move || {
        let Some(state) = ThreadState::new(interp.python()) else {
            return;
        };
        let mut watch = Watch {
            state,
            stopping: Vec::new(),
        };
        loop {
            match receiver.recv_timeout(watch.patience()) {
                Ok(task) => {
                    let _ = contain("watch", || watch.take(task));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let _ = contain("watch", || watch.look());
        }
    })
    .map(drop)
}

struct Watch {
    state: ThreadState,
    stopping: Vec<Stopping>,
}

struct Stopping {
    ticket: Arc<Ticket>,
    since: Instant,
    next: Instant,
}

impl Watch {
    fn patience(&self) -> Duration {
        match self.stopping.iter().map(|stopping| stopping.next).min() {
            Some(next) => next.saturating_duration_since(Instant::now()),
            None => Duration::from_secs(3600),
        }
    }

    fn take(&mut self, task: Task) {
        let now = Instant::now();
        match task {
            Task::Stop(ticket) => self.stopping.push(Stopping {
                ticket,
                since: now,
                next: now,
            }),
            Task::Start(pool) => {
                let body_pool = pool.clone();
                let name = "py-more";
                if spawn_named(name, move || worker::work(&body_pool, true)).is_err() {
                    pool.crew.lost();
                }
            }
            Task::Close(pool) => self.close(&pool),
            Task::CloseLoop(event_loop) => event_loop.refuse_all(),
        }
    }

    /// Queued jobs are answered; running ones told to stop.
    fn close(&mut self, pool: &Arc<Pool>) {
        for job in pool.crew.close() {
            closing::refuse(job);
        }
        for thread in pool.threads() {
            if let Some(ticket) = thread.innermost() {
                ticket.stop(Why::Died);
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.stopping.iter().any(|stopping| stopping.next <= now) {
            self.stop_due(now);
        }
    }

    fn stop_due(&mut self, now: Instant) {
        let mut stopping = std::mem::take(&mut self.stopping);
        stopping.retain(|entry| still_runs(&entry.ticket));
        for entry in stopping.iter_mut().filter(|entry| entry.next <= now) {
            entry.next = now + AGAIN;
            self.raise(&entry.ticket);
        }
        for entry in &stopping {
            if now.duration_since(entry.since) > GRACE {
                replace_thread(&entry.ticket);
            }
        }
        stopping.retain(|entry| now.duration_since(entry.since) <= GRACE);
        self.stopping.append(&mut stopping);
    }
}

impl Watch {
    /// Only a thread attached to the job's own interpreter can reach it.
    fn raise(&mut self, ticket: &Arc<Ticket>) {
        let Some((_, interp)) = ticket.place() else {
            return;
        };
        WAITS_SINCE.store(now_ms(), Ordering::Relaxed);
        let told = |py: Attached<'_>| {
            WAITS_SINCE.store(0, Ordering::Relaxed);
            raise(py, &interp, ticket);
        };
        if interp.is_main() {
            return self.state.attached(told);
        }
        let Some(_alive) = interp.hold() else { return };
        if let Some(mut guest) = ThreadState::new(interp.python()) {
            guest.attached(told);
        }
    }
}

fn still_runs(ticket: &Arc<Ticket>) -> bool {
    ticket.thread().is_some_and(|thread| thread.has_job(ticket))
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

/// The thread is stuck in C code. It ends if it ever comes back; its owner gets another.
fn replace_thread(ticket: &Arc<Ticket>) {
    if let Some(thread) = ticket.thread() {
        thread.retire();
        thread.tell_owner_stuck();
    }
}
