//! The bounded queue of fresh jobs, and the slices of admitted ones that go on.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

#[cfg(not(loom))]
type Fresh<J> = crossbeam_queue::ArrayQueue<J>;

/// In the model: the same queue, made of what loom knows.
#[cfg(loom)]
struct Fresh<J> {
    jobs: Mutex<std::collections::VecDeque<J>>,
    room: usize,
}

#[cfg(loom)]
impl<J> Fresh<J> {
    fn new(room: usize) -> Self {
        let jobs = Mutex::new(std::collections::VecDeque::new());
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

pub(crate) struct Queue<J> {
    fresh: Fresh<J>,
    /// Admitted once and never refused, so their number is bounded by that of `fresh`'s users.
    resumed: Mutex<Vec<J>>,
    /// How many those are, so that nobody takes the lock to find none.
    slices: AtomicUsize,
}

impl<J> Queue<J> {
    pub fn new(room: usize) -> Self {
        Queue {
            fresh: Fresh::new(room.max(1)),
            resumed: Mutex::new(Vec::new()),
            slices: AtomicUsize::new(0),
        }
    }

    /// Gives the job back when there is no room.
    pub fn push(&self, job: J) -> Result<(), J> {
        self.fresh.push(job)
    }

    pub fn resume(&self, job: J) {
        let mut resumed = lock(&self.resumed);
        resumed.push(job);
        self.slices.store(resumed.len(), Ordering::SeqCst);
    }

    /// Resumed slices come after fresh jobs: they have had a turn.
    pub fn pop(&self) -> Option<J> {
        self.fresh.pop().or_else(|| self.pop_slice())
    }

    fn pop_slice(&self) -> Option<J> {
        if self.slices.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut resumed = lock(&self.resumed);
        let job = resumed.pop();
        self.slices.store(resumed.len(), Ordering::SeqCst);
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
