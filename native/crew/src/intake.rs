//! What others have posted for a thread that does one thing after another, and it has not begun: a bounded queue (I8),
//! and the numbers of jobs to cancel.
//!
//! Thread: any posts; one takes.

use std::collections::VecDeque;

use crate::crew::Refused;
use crate::sync::{Mutex, MutexGuard, lock};

pub struct Intake<J> {
    max_queue: usize,
    inbox: Mutex<Inbox<J>>,
    /// What the thread has taken out of it in one go and not begun: whoever posts has another lock.
    taken: Mutex<VecDeque<J>>,
}

/// What the thread has not seen yet.
struct Inbox<J> {
    jobs: VecDeque<J>,
    /// Jobs to be cancelled; each was admitted once, so this has their bound (I8).
    cancels: Vec<u64>,
    /// How many the thread had in hand when they were last counted.
    taken: usize,
    /// Jobs that were posted by their callers so far.
    posted: u64,
    open: bool,
    /// Somebody has told the thread to look here.
    told: bool,
}

impl<J> Inbox<J> {
    /// How many more there may be.
    fn room(&self, most: usize) -> usize {
        most.saturating_sub(self.jobs.len() + self.taken)
    }

    /// Whether the thread must be told to look; it is told only once.
    fn must_tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }
}

impl<J> Intake<J> {
    pub fn new(max_queue: usize) -> Self {
        Intake {
            max_queue,
            inbox: Mutex::new(Inbox {
                jobs: VecDeque::new(),
                cancels: Vec::new(),
                taken: 0,
                posted: 0,
                open: true,
                // The thread looks by itself when it is up.
                told: true,
            }),
            taken: Mutex::new(VecDeque::new()),
        }
    }

    pub fn max_queue(&self) -> usize {
        self.max_queue
    }

    /// Admits a job, or says why not and gives it back. Whether the thread must be told. `came` learns the number of
    /// the job, under the lock: it must be short.
    pub fn push(&self, job: J, came: impl FnOnce(&J, u64)) -> Result<bool, (J, Refused)> {
        let mut inbox = self.counted(1);
        if !inbox.open {
            return Err((job, Refused::Closed));
        }
        if inbox.room(self.max_queue) == 0 {
            return Err((job, Refused::Overload));
        }
        inbox.posted += 1;
        came(&job, inbox.posted);
        inbox.jobs.push_back(job);
        Ok(inbox.must_tell())
    }

    /// The same for many, of which the last are left where there is no room for them.
    pub fn push_all(&self, jobs: &mut VecDeque<J>) -> (bool, Refused) {
        let mut inbox = self.counted(jobs.len());
        if !inbox.open {
            return (false, Refused::Closed);
        }
        let room = inbox.room(self.max_queue).min(jobs.len());
        inbox.jobs.extend(jobs.drain(..room));
        (room > 0 && inbox.must_tell(), Refused::Overload)
    }

    /// The inbox; the number of those in hand is as it is now if there may be no room for so many more.
    fn counted(&self, wanted: usize) -> MutexGuard<'_, Inbox<J>> {
        let inbox = lock(&self.inbox);
        if inbox.room(self.max_queue) >= wanted {
            return inbox;
        }
        drop(inbox);
        // In the order of `next_job`.
        let taken = lock(&self.taken);
        let mut inbox = lock(&self.inbox);
        inbox.taken = taken.len();
        inbox
    }

    /// Puts back a job that was admitted before; it comes back if nothing is admitted any more.
    pub fn resume(&self, job: J) -> Result<bool, J> {
        let mut inbox = lock(&self.inbox);
        if !inbox.open {
            return Err(job);
        }
        inbox.jobs.push_back(job);
        Ok(inbox.must_tell())
    }

    /// A job is to be cancelled. Whether the thread must be told.
    pub fn cancel(&self, id: u64) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.cancels.push(id);
        inbox.must_tell()
    }

    /// Whether the thread has not seen all that is to be cancelled.
    pub fn has_cancels(&self) -> bool {
        !lock(&self.inbox).cancels.is_empty()
    }

    /// From now on nothing is admitted.
    pub fn close(&self) {
        let mut inbox = lock(&self.inbox);
        inbox.open = false;
        inbox.told = true;
    }

    /// Whether somebody has posted since the last look.
    pub fn is_told(&self) -> bool {
        lock(&self.inbox).told
    }

    pub fn is_open(&self) -> bool {
        lock(&self.inbox).open
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        let taken = lock(&self.taken);
        taken.len() + lock(&self.inbox).jobs.len()
    }

    /// All that was not begun.
    pub fn take_all(&self) -> impl Iterator<Item = J> + use<J> {
        // In the order of `next_job`, and both at once: nothing goes from one to the other meanwhile.
        let mut taken = lock(&self.taken);
        let queued = std::mem::take(&mut lock(&self.inbox).jobs);
        std::mem::take(&mut *taken).into_iter().chain(queued)
    }

    /// The next job; they stay here until then, for whoever closes this.
    pub fn next_job(&self) -> Option<J> {
        let mut taken = lock(&self.taken);
        if let Some(job) = taken.pop_front() {
            return Some(job);
        }
        let mut inbox = lock(&self.inbox);
        std::mem::swap(&mut *taken, &mut inbox.jobs);
        let next = taken.pop_front();
        inbox.taken = taken.len();
        next
    }

    /// The thread has begun to look: from here on it must be told again. What is to be cancelled.
    pub fn seen(&self) -> Vec<u64> {
        let mut inbox = lock(&self.inbox);
        inbox.told = false;
        std::mem::take(&mut inbox.cancels)
    }

    /// Whether there is something left for the next turn; then the thread comes by itself.
    pub fn comes_again(&self) -> bool {
        let taken = lock(&self.taken);
        let mut inbox = lock(&self.inbox);
        let left = !(taken.is_empty() && inbox.jobs.is_empty());
        left && inbox.open && inbox.must_tell()
    }
}
