//! The bounded queue of fresh jobs, the urgent ones that go before them, and the slices of admitted ones that go on.

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

/// How soon a job is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    #[default]
    Normal,
    /// Before all that wait, save that one normal job follows `MOST_IN_A_ROW` of these.
    High,
}

/// So many urgent jobs go before a fresh one that waits: those get their part of a thread that never runs out of
/// urgent jobs.
const MOST_IN_A_ROW: usize = 8;

pub(crate) struct Queue<J> {
    fresh: Fresh<J>,
    /// As many as of the fresh ones may wait here, whatever waits there.
    room: usize,
    urgent: Mutex<Urgent<J>>,
    /// How many those are, so that nobody takes the lock to find none.
    hurry: AtomicUsize,
    /// Admitted once and never refused, so their number is bounded by that of `fresh`'s users.
    resumed: Mutex<Slices<J>>,
    /// How many those are, so that nobody takes the lock to find none.
    slices: AtomicUsize,
}

struct Urgent<J> {
    jobs: VecDeque<J>,
    /// Taken one after another while fresh ones waited.
    row: usize,
}

/// First in, first out: each stream has its turn.
struct Slices<J> {
    jobs: VecDeque<J>,
    /// When the first of them began to wait, or one was taken last.
    since: Instant,
}

impl<J> Queue<J> {
    pub fn new(room: usize) -> Self {
        let room = room.max(1);
        Queue {
            fresh: Fresh::new(room),
            room,
            urgent: Mutex::new(Urgent {
                jobs: VecDeque::new(),
                row: 0,
            }),
            hurry: AtomicUsize::new(0),
            resumed: Mutex::new(Slices {
                jobs: VecDeque::new(),
                since: Instant::now(),
            }),
            slices: AtomicUsize::new(0),
        }
    }

    /// Gives the job back when there is no room.
    pub fn push(&self, job: J, priority: Priority) -> Result<(), J> {
        match priority {
            Priority::Normal => self.fresh.push(job),
            Priority::High => self.push_urgent(job),
        }
    }

    fn push_urgent(&self, job: J) -> Result<(), J> {
        let mut urgent = lock(&self.urgent);
        if urgent.jobs.len() >= self.room {
            return Err(job);
        }
        urgent.jobs.push_back(job);
        self.hurry.store(urgent.jobs.len(), Ordering::SeqCst);
        Ok(())
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
            .or_else(|| self.pop_urgent(MOST_IN_A_ROW))
            .or_else(|| self.fresh.pop())
            // Left for a fresh one that another thread has taken.
            .or_else(|| self.pop_urgent(usize::MAX))
            .or_else(|| self.pop_slice(Duration::ZERO))
    }

    /// An urgent job, if fewer than `most` of them went before a fresh one that waits.
    fn pop_urgent(&self, most: usize) -> Option<J> {
        if self.hurry.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut urgent = lock(&self.urgent);
        if self.fresh.is_empty() {
            urgent.row = 0;
        } else if urgent.row >= most {
            urgent.row = 0;
            return None;
        } else {
            urgent.row += 1;
        }
        let job = urgent.jobs.pop_front();
        self.hurry.store(urgent.jobs.len(), Ordering::SeqCst);
        job
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

    /// How many wait for their first turn.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.hurry.load(Ordering::SeqCst)
    }

    /// A quick look, for a thread that spins.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || self.hurry.load(Ordering::SeqCst) != 0
    }

    pub fn is_empty(&self) -> bool {
        !self.has_fresh() && self.slices.load(Ordering::SeqCst) == 0
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
            assert!(queue.push(0, Priority::Normal).is_ok());
            if queue.pop() == Some(1) {
                assert!(begun.elapsed() >= SLICE_AFTER);
                return;
            }
        }
        panic!("the slice never had a turn");
    }

    #[test]
    fn urgent_jobs_go_first_and_one_that_waited_goes_after_eight_of_them() {
        let queue = Queue::new(64);
        (1..=2).for_each(|job| assert!(queue.push(job, Priority::Normal).is_ok()));
        (101..=120).for_each(|job| assert!(queue.push(job, Priority::High).is_ok()));
        assert_eq!(queue.len(), 22);
        let taken: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        let row = |from| from..from + MOST_IN_A_ROW as u32;
        let expected: Vec<u32> = row(101)
            .chain([1])
            .chain(row(109))
            .chain([2])
            .chain(117..=120)
            .collect();
        assert_eq!(taken, expected);
        assert!(queue.is_empty());
    }

    #[test]
    fn only_those_are_a_row_that_went_before_a_fresh_job() {
        let queue = Queue::new(64);
        for job in 0..100 {
            assert!(queue.push(job, Priority::High).is_ok());
            assert_eq!(queue.pop(), Some(job));
        }
        assert!(queue.push(200, Priority::Normal).is_ok());
        assert!(queue.push(100, Priority::High).is_ok());
        assert_eq!((queue.pop(), queue.pop()), (Some(100), Some(200)));
    }

    #[test]
    fn normal_jobs_take_no_room_of_urgent_ones() {
        let queue = Queue::new(1);
        assert_eq!(queue.push(1, Priority::Normal), Ok(()));
        assert_eq!(queue.push(2, Priority::Normal), Err(2));
        assert_eq!(queue.push(3, Priority::High), Ok(()));
        assert_eq!(queue.push(4, Priority::High), Err(4));
        assert!(queue.has_fresh());
        assert_eq!((queue.pop(), queue.pop()), (Some(3), Some(1)));
    }
}
