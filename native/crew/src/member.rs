//! A thread of a crew: what others may do to it, and how it waits.

use std::time::Duration;
#[cfg(not(loom))]
use std::time::Instant;

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::thread::{self, Thread};

#[derive(Debug)]
pub struct Member {
    id: usize,
    handle: Thread,
    /// Counts what was posted to it; a change means: look again.
    signal: AtomicU32,
    /// Set when it should end after its job.
    retired: AtomicBool,
    /// It came when the others waited, and goes when it is not needed.
    surplus: AtomicBool,
}

/// Not loom's: numbers of threads are no part of the model.
static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);

impl Member {
    /// The calling thread.
    pub fn current() -> Self {
        Member {
            // Relaxed: only uniqueness counts.
            id: NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            handle: thread::current(),
            signal: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            surplus: AtomicBool::new(false),
        }
    }

    /// Never 0.
    pub fn id(&self) -> usize {
        self.id
    }

    pub fn retire(&self) {
        // Release, pairs with `is_retired`.
        self.retired.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn set_surplus(&self) {
        // Relaxed: set before it is listed, under the lock of the members.
        self.surplus.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_surplus(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    /// Something was posted for it.
    pub fn wake(&self) {
        // Release, pairs with the acquire in `signal`: who sees the count sees what was posted.
        self.signal.fetch_add(1, Ordering::Release);
        self.handle.unpark();
    }

    pub fn signal(&self) -> u32 {
        self.signal.load(Ordering::Acquire)
    }

    /// Waits (the calling thread is this one) until the count is no longer `seen`, or `limit` has
    /// passed.
    #[cfg(not(loom))]
    pub fn wait(&self, seen: u32, limit: Option<Duration>) {
        let start = Instant::now();
        while self.signal() == seen {
            match limit {
                None => thread::park(),
                Some(limit) => match limit.checked_sub(start.elapsed()) {
                    Some(left) if !left.is_zero() => thread::park_timeout(left),
                    _ => return,
                },
            }
        }
    }

    /// In the model a timed wait may end at any moment.
    #[cfg(loom)]
    pub fn wait(&self, seen: u32, limit: Option<Duration>) {
        if limit.is_some() {
            return thread::yield_now();
        }
        while self.signal() == seen {
            thread::park();
        }
    }
}

/// Looks at `ready` for at most `limit` without going to sleep.
#[cfg(not(loom))]
pub fn spin(limit: Duration, ready: impl Fn() -> bool) -> bool {
    if ready() {
        return true;
    }
    if limit.is_zero() {
        return false;
    }
    // Never by `sched_yield`: a thread that yields stays on its core, and where whoever shall
    // answer has the same one, both stay there for good. One that sleeps is woken on an idle
    // core.
    let start = Instant::now();
    loop {
        // One pause takes up to 50 ns: whoever looks only every tenth time is late by as much as the
        // whole answer takes.
        for _ in 0..16 {
            std::hint::spin_loop();
            if ready() {
                return true;
            }
        }
        if start.elapsed() >= limit {
            return false;
        }
    }
}

#[cfg(loom)]
pub fn spin(_limit: Duration, ready: impl Fn() -> bool) -> bool {
    ready()
}
