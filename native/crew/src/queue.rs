//! The bounded queue of fresh jobs, and the slices of admitted ones that go on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

#[cfg(not(loom))]
type Fresh<J> = crossbeam_queue::ArrayQueue<J>;

/// In the model: the same queue, made of what loom knows.
#[cfg(loom)]
struct Fresh<J> {
    jobs: Mutex<VecDeque<J>>,
    room: usize,
}

#[cfg(loom)]
impl<J> Fresh<J> {
    fn new(room: usize) -> Self {
        let jobs = Mutex::new(VecDeque::new());
        Fresh { jobs, room }
    }

    fn push(&self, job: J) -> Result<(), J> {
        let mut jobs = lock(&self.jobs);
        if jobs.len() >= self.room {
            return Err(job);
        }
        jobs.push_back(job);
        Ok(())
    }

    fn pop(&self) -> Option<J> {
        lock(&self.jobs).pop_front()
    }

    fn len(&self) -> usize {
        lock(&self.jobs).len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Slices come after fresh jobs, which are short; but if none had a turn for this long, one goes first. So
/// streams get a small part of a thread that never runs out of fresh jobs.
const SLICE_AFTER: Duration = Duration::from_millis(10);

pub(crate) struct Queue<J> {
    fresh: Fresh<J>,
    /// Admitted once and never refused, so their number is bounded by that of `fresh`'s users.
    resumed: Mutex<Slices<J>>,
    /// How many those are, so that nobody takes the lock to find none.
    slices: AtomicUsize,
}

/// First in, first out: each stream has its turn.
struct Slices<J> {
    jobs: VecDeque<J>,
    /// When the first of them began to wait, or one was taken last.
    since: Instant,
}

impl<J> Queue<J> {
    pub fn new(room: usize) -> Self {
        Queue {
            fresh: Fresh::new(room.max(1)),
            resumed: Mutex::new(Slices {
                jobs: VecDeque::new(),
                since: Instant::now(),
            }),
            slices: AtomicUsize::new(0),
        }
    }

    /// Gives the job back when there is no room.
    pub fn push(&self, job: J) -> Result<(), J> {
        self.fresh.push(job)
    }

    pub fn resume(&self, job: J) {
        let mut resumed = lock(&self.resumed);
        if resumed.jobs.is_empty() {
            resumed.since = Instant::now();
        }
        resumed.jobs.push_back(job);
        self.slices.store(resumed.jobs.len(), Ordering::SeqCst);
    }

    pub fn pop(&self) -> Option<J> {
        self.pop_slice(SLICE_AFTER)
            .or_else(|| self.fresh.pop())
            .or_else(|| self.pop_slice(Duration::ZERO))
    }

    /// A slice, if none had a turn for `patience`.
    fn pop_slice(&self, patience: Duration) -> Option<J> {
        if self.slices.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut resumed = lock(&self.resumed);
        if resumed.since.elapsed() < patience {
            return None;
        }
        let job = resumed.jobs.pop_front();
        resumed.since = Instant::now();
        self.slices.store(resumed.jobs.len(), Ordering::SeqCst);
        job
    }

    pub fn len(&self) -> usize {
        self.fresh.len()
    }

    /// A quick look, for a thread that spins.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.slices.load(Ordering::SeqCst) == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn endless_slices_of_one_thread_have_as_many_turns_each() {
        let queue = Queue::new(8);
        (0..3).for_each(|stream| queue.resume(stream));
        let mut turns = [0; 3];
        for _ in 0..3_000 {
            let stream: usize = queue.pop().unwrap_or_default();
            turns[stream] += 1;
            queue.resume(stream);
            // None is ever two turns ahead.
            assert!(turns.iter().max() <= turns.iter().min().map(|least| least + 1).as_ref());
        }
        assert_eq!(turns, [1_000; 3]);
    }

    #[test]
    fn a_slice_has_a_turn_though_there_is_always_a_fresh_job() {
        let queue = Queue::new(8);
        let begun = Instant::now();
        queue.resume(1);
        while begun.elapsed() < Duration::from_secs(20) {
            assert!(queue.push(0).is_ok());
            if queue.pop() == Some(1) {
                assert!(begun.elapsed() >= SLICE_AFTER);
                return;
            }
        }
        panic!("the slice never had a turn");
    }
}
