//! Which processor a thread runs jobs on, where the system's own choice is a bad one.
//!
//! Thread: `Seat` belongs to one thread, others read where it is.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cpu;

/// So often in a row on one processor with who asks or answers: it moves.
const TOGETHER: u32 = 16;
/// After so many jobs it looks whether it shares its processor with another thread that runs jobs.
const LOOK_EVERY: u32 = 16;
/// Shorter jobs don't count: who asks for them has no time for another.
const LONG: Duration = Duration::from_micros(20);
/// A thread that ended its last job longer ago than this takes nobody's processor.
const RECENT_US: u64 = 5_000;

/// Where threads run that run jobs, one entry for each; more threads than that are not looked after.
static SEATS: [Entry; 256] = [const { Entry::new() }; 256];
/// How many of them were ever in use.
static USED: AtomicUsize = AtomicUsize::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// On a line of its own: it is written at the end of each job.
#[repr(align(64))]
struct Entry {
    /// Microseconds since `START` when its last job ended, and the processor: `at << 16 | cpu`. 0: never.
    last: AtomicU64,
    taken: AtomicU32,
}

impl Entry {
    const fn new() -> Self {
        Entry {
            last: AtomicU64::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Whether its thread ran a job on this processor a moment ago.
    fn is_on(&self, cpu: u64, now: u64) -> bool {
        // Relaxed: all of this is a hint.
        let last = self.last.load(Ordering::Relaxed);
        last != 0 && last & 0xffff == cpu && now.saturating_sub(last >> 16) < RECENT_US
    }
}

/// The calling thread's seat.
pub struct Seat {
    entry: Option<&'static Entry>,
    /// How often in a row its other side was on its own processor.
    together: AtomicU32,
    jobs: AtomicU32,
}

impl Seat {
    pub fn take() -> Self {
        let free = SEATS
            .iter()
            .position(|entry| entry.taken.swap(1, Ordering::Relaxed) == 0);
        if let Some(index) = free {
            USED.fetch_max(index + 1, Ordering::Relaxed);
        }
        Seat {
            entry: free.map(|index| &SEATS[index]),
            together: AtomicU32::new(0),
            jobs: AtomicU32::new(0),
        }
    }

    /// A scheduler and this thread on one processor wait for each other's spinning; the system leaves
    /// them there, since neither of them is ever in need of more. So this one goes elsewhere, unless
    /// Python runs there. `other`: the processor the other side was on.
    pub fn keep_apart(&self, other: i32) {
        let here = cpu::current();
        // Relaxed: only this thread counts.
        let together = self.together.load(Ordering::Relaxed) + 1;
        let next = if here < 0 || other != here {
            0
        } else if together < TOGETHER {
            together
        } else {
            self.leave(here, us(Instant::now()));
            0
        };
        self.together.store(next, Ordering::Relaxed);
    }

    /// Jobs that began at `start` ended. Two threads that run jobs on one processor while another has
    /// none part: both sleep now and then, so the system leaves them there.
    pub fn worked(&self, start: Instant, held: Duration) {
        let Some(entry) = self.entry else { return };
        if held < LONG {
            return;
        }
        let now = us(start + held);
        let here = cpu::current();
        // Relaxed: only this thread counts.
        let jobs = self.jobs.load(Ordering::Relaxed).wrapping_add(1);
        self.jobs.store(jobs, Ordering::Relaxed);
        self.note(entry, here, now);
        if jobs.is_multiple_of(LOOK_EVERY) && self.is_busy(here as usize, now) {
            self.leave(here, now);
        }
    }

    fn note(&self, entry: &Entry, cpu: i32, now: u64) {
        entry
            .last
            .store(now << 16 | (cpu as u64 & 0xffff), Ordering::Relaxed);
    }

    /// Whether another thread runs jobs on this processor.
    fn is_busy(&self, cpu: usize, now: u64) -> bool {
        let used = USED.load(Ordering::Relaxed);
        SEATS[..used].iter().any(|entry| {
            entry.is_on(cpu as u64, now) && !self.entry.is_some_and(|own| std::ptr::eq(own, entry))
        })
    }

    fn leave(&self, here: i32, now: u64) {
        let moved = cpu::leave(here, |cpu| !self.is_busy(cpu, now));
        if let (true, Some(entry)) = (moved, self.entry) {
            self.note(entry, cpu::current(), now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            entry.last.store(0, Ordering::Relaxed);
            entry.taken.store(0, Ordering::Relaxed);
        }
    }
}

/// Never 0.
fn us(at: Instant) -> u64 {
    at.saturating_duration_since(*START).as_micros() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works until it has looked around once. Says whether it is on another processor then.
    fn moves(seat: &Seat) -> bool {
        let before = cpu::current();
        for _ in 0..LOOK_EVERY {
            seat.worked(Instant::now(), LONG);
        }
        before != cpu::current()
    }

    fn sits(seat: &Seat, cpu: usize) {
        let entry = seat.entry.unwrap_or(&SEATS[0]);
        seat.note(entry, cpu as i32, us(Instant::now()));
    }

    /// One test: seats are the process's.
    #[test]
    fn threads_that_run_jobs_part_where_a_processor_is_free() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (own, other) = (Seat::take(), Seat::take());

        // More than once: the system may move it as well.
        let parted = (0..10).any(|_| {
            sits(&other, cpu::current() as usize);
            moves(&own)
        });
        assert_eq!(parted, processors > 1);

        let others: Vec<Seat> = (0..processors).map(|_| Seat::take()).collect();
        let stayed = (0..10).any(|_| {
            others
                .iter()
                .enumerate()
                .for_each(|(cpu, seat)| sits(seat, cpu));
            !moves(&own)
        });
        assert!(stayed, "nothing is free");
    }
}
