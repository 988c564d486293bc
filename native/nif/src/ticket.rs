//! The life of one job, seen by whoever may cancel it: queued, running, replying, done.
//!
//! Thread: any. Every change is one compare-and-swap, so a job is answered once or cancelled (I4).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::here::Thread;
use crate::job::Job;
use crate::watch;

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const REPLYING: u8 = 2;
const DONE: u8 = 3;
const CANCELLED: u8 = 4;

/// Why a running job whose caller still waits was told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// `py:interrupt/1`.
    Interrupted = 1,
    /// Its context was stopped.
    Died = 2,
}

pub struct Ticket {
    id: u64,
    state: AtomicU8,
    /// 0, or a `Why`.
    why: AtomicU8,
    /// Something of this job went through the courier: all that follows must, too.
    couriered: AtomicBool,
    /// An exception was sent into the running thread; it must not outlive the job.
    raised: AtomicBool,
    /// The thread it runs on, while it does.
    thread: Mutex<Option<Arc<Thread>>>,
    /// A stream that waits for its reader.
    parked: Mutex<Option<Box<Job>>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Ticket {
    pub fn new() -> Arc<Self> {
        Arc::new(Ticket {
            // Relaxed: only uniqueness counts.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state: AtomicU8::new(QUEUED),
            why: AtomicU8::new(0),
            couriered: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            thread: Mutex::new(None),
            parked: Mutex::new(None),
        })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Queued → running. `false`: cancelled before it ran, and it never will.
    pub fn start(&self, thread: &Arc<Thread>) -> bool {
        *lock(&self.thread) = Some(thread.clone());
        self.swap(QUEUED, RUNNING)
    }

    /// Running → replying: from here on the reply goes out. `false`: nobody wants it.
    pub fn begin_reply(&self) -> bool {
        self.swap(RUNNING, REPLYING)
    }

    /// Running → queued again, for work that goes in slices. `false`: cancelled.
    pub fn pause(&self) -> bool {
        self.swap(RUNNING, QUEUED)
    }

    /// Replying → running: a stream has sent one of its messages.
    pub fn continue_run(&self) {
        // Release, pairs with the acquire in `cancel`.
        self.state.store(RUNNING, Ordering::Release);
    }

    pub fn finish(&self) {
        // Release, pairs with the acquire in `cancel`: who sees it also sees the message sent.
        self.state.store(DONE, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        // Acquire, pairs with `finish`.
        matches!(self.state.load(Ordering::Acquire), DONE | CANCELLED)
    }

    pub fn is_running(&self) -> bool {
        self.state.load(Ordering::Acquire) == RUNNING
    }

    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    /// Told to stop, for whatever reason?
    pub fn must_stop(&self) -> bool {
        self.is_cancelled() || self.why().is_some()
    }

    pub fn why(&self) -> Option<Why> {
        // Acquire, pairs with `stop`.
        match self.why.load(Ordering::Acquire) {
            1 => Some(Why::Interrupted),
            2 => Some(Why::Died),
            _ => None,
        }
    }

    pub fn set_couriered(&self) {
        // Relaxed: read by the same thread.
        self.couriered.store(true, Ordering::Relaxed);
    }

    pub fn is_couriered(&self) -> bool {
        self.couriered.load(Ordering::Relaxed)
    }

    /// Keeps a paused job until its reader wants more.
    pub fn park(&self, job: Box<Job>) {
        *lock(&self.parked) = Some(job);
    }

    pub fn unpark(&self) -> Option<Box<Job>> {
        lock(&self.parked).take()
    }

    pub fn set_raised(&self) {
        // Relaxed: read by the job's own thread under the same lock (`Thread::jobs`).
        self.raised.store(true, Ordering::Relaxed);
    }

    pub fn take_raised(&self) -> bool {
        self.raised.swap(false, Ordering::Relaxed)
    }

    pub fn thread(&self) -> Option<Arc<Thread>> {
        lock(&self.thread).clone()
    }

    /// After this nothing is sent for the job. Queued: it never runs. Running: it is told to stop.
    pub fn cancel(self: &Arc<Self>) {
        loop {
            match self.state.load(Ordering::Acquire) {
                QUEUED => {
                    if self.swap(QUEUED, CANCELLED) {
                        drop(self.unpark());
                        return;
                    }
                }
                RUNNING => {
                    if self.swap(RUNNING, CANCELLED) {
                        return watch::stop_job(self.clone());
                    }
                }
                // The message is on its way: a matter of a microsecond.
                REPLYING => std::thread::yield_now(),
                _ => return,
            }
        }
    }

    /// Running: tells it to stop, and its caller why. `false`: not running.
    pub fn stop(self: &Arc<Self>, why: Why) -> bool {
        if !self.is_running() {
            return false;
        }
        // Release, pairs with `why`.
        self.why.store(why as u8, Ordering::Release);
        watch::stop_job(self.clone());
        true
    }

    fn swap(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// A lock whose poison is ignored: what it guards is valid at every step, and a panic under it was
/// contained at the edge of its thread (I7).
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
