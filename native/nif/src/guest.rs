//! Threads of ours that are in an interpreter beside its own: nobody ends it under them.
//!
//! Thread: a guest comes and goes by itself; the interpreter's own thread waits for it, detached.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crew::sync::lock;
use pyrt::{Attached, thread};

use crate::interp::Interp;

/// Those that are in, by Python's numbers of them.
#[derive(Default)]
pub struct Guests {
    inside: Mutex<Vec<u64>>,
    left: Condvar,
}

/// The calling thread is in; dropped after its thread state, it is out.
pub struct Guest {
    interp: Arc<Interp>,
    ident: u64,
}

impl Interp {
    /// Lets the calling thread in. `None`: the interpreter ends.
    pub fn visit(self: &Arc<Self>) -> Option<Guest> {
        let _alive = self.hold()?;
        let ident = thread::ident();
        lock(&self.guests.inside).push(ident);
        Some(Guest {
            interp: self.clone(),
            ident,
        })
    }

    /// Guests that run Python code are told to stop.
    pub fn stop_guests(&self, py: Attached<'_>) {
        let Some(class) = self.cancelled(py) else {
            return;
        };
        let inside = lock(&self.guests.inside).clone();
        for ident in inside {
            thread::raise_in(py, ident, Some(&class));
            pyloop::interrupt(ident);
        }
    }
}

impl Guests {
    /// Waits until all are out, for at most `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut inside = lock(&self.inside);
        while !inside.is_empty() {
            let time = until.saturating_duration_since(Instant::now());
            if time.is_zero() {
                return false;
            }
            let waited = self.left.wait_timeout(inside, time);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let guests = &self.interp.guests;
        let mut inside = lock(&guests.inside);
        if let Some(index) = inside.iter().position(|ident| *ident == self.ident) {
            inside.swap_remove(index);
        }
        drop(inside);
        guests.left.notify_all();
    }
}
