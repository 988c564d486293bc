//! The life of one job: queued, running, replying, done; or cancelled on the way.
//!
//! Thread: any. Every change is one compare-and-swap, so a job is answered once or cancelled (I4).

use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::thread;

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const REPLYING: u8 = 2;
const DONE: u8 = 3;
const CANCELLED: u8 = 4;

#[derive(Debug)]
pub struct Life(AtomicU8);

/// What a cancellation met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It never runs.
    Queued,
    /// It must be told to stop.
    Running,
    /// It was over, or cancelled before.
    Over,
}

impl Default for Life {
    fn default() -> Self {
        Life(AtomicU8::new(QUEUED))
    }
}

impl Life {
    /// Queued → running. `false`: cancelled before it ran, and it never will.
    pub fn start(&self) -> bool {
        self.swap(QUEUED, RUNNING)
    }

    /// Running → replying: from here on the reply goes out. `false`: nobody wants it.
    pub fn begin_reply(&self) -> bool {
        self.swap(RUNNING, REPLYING)
    }

    /// Replying → running: a stream has sent one of its messages.
    pub fn continue_run(&self) {
        // Release, pairs with the acquire in `cancel`: who sees it also sees the message sent.
        self.0.store(RUNNING, Ordering::Release);
    }

    /// Running → queued again, for work that goes in slices. `false`: cancelled.
    pub fn pause(&self) -> bool {
        self.swap(RUNNING, QUEUED)
    }

    pub fn finish(&self) {
        // Release, pairs with the acquire in `cancel`: who sees it also sees the message sent.
        self.0.store(DONE, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        matches!(self.now(), DONE | CANCELLED)
    }

    /// Also while it sends: a stream does so again and again.
    pub fn is_running(&self) -> bool {
        matches!(self.now(), RUNNING | REPLYING)
    }

    pub fn is_cancelled(&self) -> bool {
        self.now() == CANCELLED
    }

    /// After this nothing is sent for the job: a reply that has begun is waited for.
    pub fn cancel(&self) -> Met {
        loop {
            match self.now() {
                QUEUED if self.swap(QUEUED, CANCELLED) => return Met::Queued,
                RUNNING if self.swap(RUNNING, CANCELLED) => return Met::Running,
                DONE | CANCELLED => return Met::Over,
                // Another thread was quicker, or the message is on its way: a matter of a
                // microsecond.
                _ => thread::yield_now(),
            }
        }
    }

    fn now(&self) -> u8 {
        // Acquire, pairs with the releases above.
        self.0.load(Ordering::Acquire)
    }

    fn swap(&self, from: u8, to: u8) -> bool {
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
