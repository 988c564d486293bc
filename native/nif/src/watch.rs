//! The watch: one thread that does what schedulers must not: sees to it that jobs stop, starts threads,
//! closes pools.
//!
//! Thread: `py-watch`, one. Never: waits for a GIL; `stopper` does.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use pyrt::contain;
use pyrt::thread::spawn_named;

use crate::event_loop::Loop;
use crate::pool::Pool;
use crate::ticket::{Ticket, Why};
use crate::{closing, deadline, log, stopper, worker};
use crew::sync::lock;

enum Task {
    Stop(Arc<Ticket>),
    Start(Arc<Pool>),
    Close(Arc<Pool>),
    CloseLoop(Arc<Loop>),
    /// A loop that may not hear what is to be cancelled.
    Doubt(Arc<Loop>),
    /// The jobs of a loop are interrupted.
    InterruptTasks(Arc<Loop>),
    /// A loop that is up: what it takes long for is told.
    LookAfter(Weak<Loop>),
    /// Something is due sooner than the watch looks.
    Look,
}

/// A job that does not stop is told again, politely.
const AGAIN: Duration = Duration::from_secs(1);
/// One that has not stopped by then has its thread replaced.
const GRACE: Duration = Duration::from_secs(5);

/// A loop that has not heard of a cancellation by then hangs.
const DEAF: Duration = Duration::from_millis(50);
/// How often is looked what the loops do.
const ROUND: Duration = Duration::from_millis(500);

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

pub fn close_loop(event_loop: Arc<Loop>) {
    post(Task::CloseLoop(event_loop));
}

pub fn doubt(event_loop: Arc<Loop>) {
    post(Task::Doubt(event_loop));
}

pub fn interrupt_tasks(event_loop: Arc<Loop>) {
    post(Task::InterruptTasks(event_loop));
}

pub fn look_after(event_loop: &Arc<Loop>) {
    post(Task::LookAfter(Arc::downgrade(event_loop)));
}

pub fn look() {
    post(Task::Look);
}

/// Starts the watch.
pub fn start() -> std::io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    *lock(&TASKS) = Some(sender);
    spawn_named("py-watch", move || {
        let mut watch = Watch {
            stopping: Vec::new(),
            doubted: Vec::new(),
            loops: Vec::new(),
            next_round: Instant::now(),
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
    stopping: Vec<Stopping>,
    /// Loops, and when it is looked whether they hear.
    doubted: Vec<(Arc<Loop>, Instant)>,
    /// Those that are up, and which of their callbacks was last told about.
    loops: Vec<(Weak<Loop>, u64)>,
    next_round: Instant,
}

struct Stopping {
    ticket: Arc<Ticket>,
    since: Instant,
    next: Instant,
}

impl Watch {
    fn patience(&self) -> Duration {
        let stopping = self.stopping.iter().map(|stopping| stopping.next);
        let doubted = self.doubted.iter().map(|(_, due)| *due);
        let round = (!self.loops.is_empty()).then_some(self.next_round);
        let now = Instant::now();
        let deadline = deadline::next(now);
        match stopping.chain(doubted).chain(round).chain(deadline).min() {
            Some(next) => next.saturating_duration_since(now),
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
            Task::Doubt(event_loop) => self.doubted.push((event_loop, now + DEAF)),
            Task::InterruptTasks(event_loop) => event_loop.stop_tasks(Why::Interrupted),
            Task::LookAfter(event_loop) => self.loops.push((event_loop, 0)),
            Task::Look => {}
        }
    }

    /// Queued jobs are answered; running ones told to stop.
    fn close(&mut self, pool: &Arc<Pool>) {
        for job in pool.crew.close() {
            closing::refuse(job);
        }
        for thread in pool.threads() {
            // Those below wait, and hear of it when what is on top of them returns.
            for ticket in thread.running() {
                ticket.stop(Why::Died);
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        deadline::expire(now);
        if self.stopping.iter().any(|stopping| stopping.next <= now) {
            self.stop_due(now);
        }
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.doubted)
            .into_iter()
            .partition(|(_, due)| *due <= now);
        self.doubted = later;
        for (event_loop, _) in due {
            if !event_loop.hears() {
                stopper::stop_task(&event_loop);
            }
        }
        if self.next_round <= now {
            self.next_round = now + ROUND;
            self.look_at_loops();
        }
    }

    /// What a loop is in for too long is told, once.
    fn look_at_loops(&mut self) {
        self.loops.retain_mut(|(event_loop, told)| {
            let Some(event_loop) = event_loop.upgrade() else {
                return false;
            };
            if let Some((_, which)) = event_loop.is_slow()
                && std::mem::replace(told, which) != which
            {
                stopper::report(&event_loop);
            }
            true
        });
    }

    fn stop_due(&mut self, now: Instant) {
        let mut stopping = std::mem::take(&mut self.stopping);
        stopping.retain(|entry| still_runs(&entry.ticket));
        for entry in stopping.iter_mut().filter(|entry| entry.next <= now) {
            entry.next = now + AGAIN;
            if let Some((_, interp)) = entry.ticket.place() {
                stopper::stop(&interp, &entry.ticket);
            }
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

fn still_runs(ticket: &Arc<Ticket>) -> bool {
    ticket.thread().is_some_and(|thread| thread.has_job(ticket))
}

/// The thread is stuck in C code. It ends if it ever comes back; its owner gets another.
fn replace_thread(ticket: &Arc<Ticket>) {
    if let Some(thread) = ticket.thread() {
        thread.retire();
        log::warning(&format!(
            "{} was told to stop {} s ago and still runs: it is in C code, which can't be interrupted. \
             Its thread is replaced by another and ends when the C code returns.",
            ticket.label().unwrap_or_default(),
            GRACE.as_secs()
        ));
        thread.tell_owner_stuck();
    }
}
