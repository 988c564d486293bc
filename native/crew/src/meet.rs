//! A place where the one who asks waits a few microseconds for the one who answers.
//!
//! Waking a thread that sleeps costs more than most answers take. Who asks may not wait long, so
//! the place is left after a moment, and what comes later goes the long way.

use std::time::Duration;

use crate::member::spin;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const DONE: u8 = 2;

/// One waits here, one comes by; each use begins with `open`.
#[derive(Debug)]
pub struct Meet<T> {
    state: AtomicU8,
    /// The giver's until `DONE`, then the waiter's: nobody ever waits for this lock.
    value: Mutex<Option<T>>,
}

impl<T> Default for Meet<T> {
    fn default() -> Self {
        Meet {
            state: AtomicU8::new(CLOSED),
            value: Mutex::new(None),
        }
    }
}

impl<T> Meet<T> {
    /// Somebody will wait here. Before the giver can know of it.
    pub fn open(&self) {
        // Release: whatever made this place known comes after.
        self.state.store(OPEN, Ordering::Release);
    }

    /// Gives the value to who waits here, or back if nobody does. One giver a time.
    pub fn give(&self, value: T) -> Result<(), T> {
        if self.state.load(Ordering::Acquire) != OPEN {
            return Err(value);
        }
        *lock(&self.value) = Some(value);
        // Release, pairs with the acquire in `wait`: who sees it done sees the value.
        let met = self
            .state
            .compare_exchange(OPEN, DONE, Ordering::AcqRel, Ordering::Acquire);
        if met.is_ok() {
            return Ok(());
        }
        // Left meanwhile; the value is still the giver's.
        lock(&self.value).take().map_or(Ok(()), Err)
    }

    /// Waits for at most `limit`. `None`: this place is closed, and whoever gives knows it.
    pub fn wait(&self, limit: Duration) -> Option<T> {
        let done = spin(limit, || self.state.load(Ordering::Acquire) == DONE);
        if !done
            && self
                .state
                .compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        {
            return None;
        }
        self.state.store(CLOSED, Ordering::Relaxed);
        lock(&self.value).take()
    }
}

/// With more callers than this an answer takes longer than going to sleep, and those who wait for it keep
/// the others from calling.
const FEW: u64 = 4;

/// How many jobs come from all callers between two of this one.
#[derive(Debug)]
pub struct Company {
    last: AtomicU64,
    between: AtomicU64,
}

impl Default for Company {
    fn default() -> Self {
        Company {
            last: AtomicU64::new(0),
            between: AtomicU64::new(0),
        }
    }
}

impl Company {
    /// This one's next job is the one of that number.
    pub fn came(&self, number: u64) {
        // Relaxed, here and below: a guess.
        let last = self.last.swap(number, Ordering::Relaxed);
        let between = number.wrapping_sub(last);
        self.between.store(between, Ordering::Relaxed);
    }

    /// Whether so few others call that the answer may come at once.
    pub fn is_small(&self) -> bool {
        self.between.load(Ordering::Relaxed) <= FEW
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each of so many callers has a job, in turn, some times.
    fn take_turns(number: &mut u64, callers: &[Company]) {
        for caller in callers.iter().cycle().take(3 * callers.len()) {
            *number += 1;
            caller.came(*number);
        }
    }

    #[test]
    fn a_few_callers_are_small_company_and_many_are_not() {
        let many: Vec<_> = (0..50).map(|_| Company::default()).collect();
        let mut number = 0;
        take_turns(&mut number, &many[..1]);
        assert!(many[0].is_small());
        take_turns(&mut number, &many);
        assert!(many.iter().all(|caller| !caller.is_small()));
        // The others have gone.
        take_turns(&mut number, &many[..2]);
        assert!(many[..2].iter().all(Company::is_small));
    }
}
