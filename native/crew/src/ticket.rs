//! A job as it is seen by who may cancel it.
//!
//! Thread: any. The steps are `Life`'s: a job is answered once or cancelled (I4).

use crate::life::{Life, Met};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::window::Parked;

/// Why a job that runs, and whose caller still waits, was told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Somebody interrupts what runs.
    Interrupted = 1,
    /// What it runs in is closed.
    Died = 2,
}

#[derive(Debug)]
pub struct Ticket<J> {
    id: u64,
    life: Life,
    /// 0, or a `Why`.
    why: AtomicU8,
    /// A job that waits for its reader.
    parked: Parked<J>,
}

/// Not one of loom's, which can't be static; nothing but the numbers depends on it.
static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

impl<J> Default for Ticket<J> {
    fn default() -> Self {
        Ticket {
            // Relaxed: only uniqueness counts.
            id: NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            life: Life::default(),
            why: AtomicU8::new(0),
            parked: Parked::default(),
        }
    }
}

impl<J> Ticket<J> {
    /// Never given twice.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Told to stop, for whatever reason?
    pub fn must_stop(&self) -> bool {
        self.life.is_cancelled() || self.why().is_some()
    }

    pub fn why(&self) -> Option<Why> {
        // Acquire, pairs with `stop`.
        match self.why.load(Ordering::Acquire) {
            1 => Some(Why::Interrupted),
            2 => Some(Why::Died),
            _ => None,
        }
    }

    /// Running: says that it must stop, and why. `false`: not running.
    pub fn stop(&self, why: Why) -> bool {
        if !self.life.is_running() {
            return false;
        }
        // Release, pairs with `why`.
        self.why.store(why as u8, Ordering::Release);
        true
    }

    /// After this nothing is sent for the job, and one that waits for its reader is let go.
    pub fn cancel(&self) -> Met {
        let met = self.life.cancel();
        if met == Met::Queued {
            drop(self.parked.take());
        }
        met
    }

    /// Keeps a paused job until its reader wants more. It comes back if `is_wanted` by now, or cancelled.
    pub fn park(&self, job: J, is_wanted: impl FnOnce() -> bool) -> Option<J> {
        self.parked
            .park(job, || is_wanted() || self.life.is_cancelled())
    }

    pub fn unpark(&self) -> Option<J> {
        self.parked.take()
    }
}
