//! The CPU lane: threads that take nodes from their own queue, from the common one, from each
//! other.
//!
//! First in, first out everywhere, and the common queue every third time, so that of many runs none
//! waits for the end of another.
//! Thread: `push` any; `work` the pool's own. Never: waits for anything but work.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_deque::{Injector, Steal, Stealer, Worker};

use crate::contain::contain;
use crate::sleepers::Sleepers;
use crate::sync::{Mutex, lock};
use crate::ticket::Ticket;

/// What a thread of the pool takes.
pub(crate) enum Job {
    /// A node; dropped unrun, it ends its run as stopped.
    Node(Ticket),
    /// One attempt at a node that is watched over from the loop.
    Attempt(Box<dyn FnOnce() + Send>),
}

struct Shared {
    common: Injector<Job>,
    stealers: Vec<Stealer<Job>>,
    sleepers: Sleepers,
}

struct Here {
    owner: usize,
    index: u16,
    own: Worker<Job>,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// How often the common queue is looked at though the own one has work: a run that has just begun
/// goes on beside those that began before it.
const COMMON_EVERY: u32 = 3;
/// How often a thread that has work looks whether the pool has stopped.
const STOP_EVERY: u32 = 32;

pub(crate) struct CpuLane {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl CpuLane {
    pub fn start(threads: usize) -> io::Result<Self> {
        let own: Vec<_> = (0..threads.max(1)).map(|_| Worker::new_fifo()).collect();
        let shared = Arc::new(Shared {
            common: Injector::new(),
            stealers: own.iter().map(Worker::stealer).collect(),
            sleepers: Sleepers::new(),
        });
        let lane = CpuLane {
            shared: shared.clone(),
            threads: Mutex::new(Vec::new()),
        };
        for (index, own) in own.into_iter().enumerate() {
            let shared = shared.clone();
            let body = move || {
                let owner = Arc::as_ptr(&shared) as usize;
                let index = index as u16;
                HERE.with(|here| *here.borrow_mut() = Some(Here { owner, index, own }));
                let _ = contain(|| work(&shared));
            };
            let name = format!("dag-cpu-{index}");
            let thread = thread::Builder::new().name(name).spawn(body)?;
            lock(&lane.threads).push(thread);
        }
        Ok(lane)
    }

    pub fn push(&self, job: Job) {
        let mut job = Some(job);
        HERE.with(|here| {
            if let Some(here) = &*here.borrow()
                && here.owner == Arc::as_ptr(&self.shared) as usize
                && let Some(job) = job.take()
            {
                here.own.push(job);
            }
        });
        if let Some(job) = job {
            self.shared.common.push(job);
            if self.shared.sleepers.is_stopped() {
                // Nobody may come to take it: whatever is left is dropped, each with its answer.
                drain(&self.shared);
            }
        }
        self.shared.sleepers.wake_one();
    }

    /// Ends the threads after their job; what waits is dropped, and so ends as stopped.
    pub fn stop(&self) {
        self.shared.sleepers.stop();
        let threads = std::mem::take(&mut *lock(&self.threads));
        let own = thread::current().id();
        for thread in threads {
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
        drain(&self.shared);
    }
}

impl Drop for CpuLane {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The number of the pool's thread that this is.
pub(crate) fn index_here() -> Option<u16> {
    HERE.with(|here| here.borrow().as_ref().map(|here| here.index))
}

fn work(shared: &Shared) {
    let mut tick = 0_u32;
    let mut slept = false;
    loop {
        tick = tick.wrapping_add(1);
        let job = match next(shared, tick) {
            Some(job) => job,
            None if shared.sleepers.sleep(|| has_work(shared)) => {
                slept = true;
                continue;
            }
            None => break,
        };
        // One wake may stand for several pushes: whoever wakes passes it on.
        if std::mem::take(&mut slept) && has_work(shared) {
            shared.sleepers.wake_one();
        }
        // A bug of ours in one job must not end the thread (I7); a node's own panic is its result.
        let _ = contain(|| match job {
            Job::Node(ticket) => ticket.run_here(),
            Job::Attempt(attempt) => attempt(),
        });
        if tick.is_multiple_of(STOP_EVERY) && shared.sleepers.is_stopped() {
            break;
        }
    }
    // What is left here is dropped, outside of the borrow: each ends its node.
    let here = HERE.with(|here| here.borrow_mut().take());
    while let Some(job) = here.as_ref().and_then(|here| here.own.pop()) {
        let _ = contain(|| drop(job));
    }
}

fn next(shared: &Shared, tick: u32) -> Option<Job> {
    if tick.is_multiple_of(COMMON_EVERY)
        && let Steal::Success(job) = shared.common.steal()
    {
        return Some(job);
    }
    HERE.with(|here| {
        let here = here.borrow();
        let own = &here.as_ref()?.own;
        own.pop().or_else(|| {
            loop {
                let common = shared.common.steal_batch_and_pop(own);
                let found = common.or_else(|| {
                    let others = shared.stealers.iter().map(|other| other.steal());
                    others.collect()
                });
                if !found.is_retry() {
                    return found.success();
                }
            }
        })
    })
}

fn has_work(shared: &Shared) -> bool {
    !shared.common.is_empty() || shared.stealers.iter().any(|other| !other.is_empty())
}

fn drain(shared: &Shared) {
    loop {
        match shared.common.steal() {
            Steal::Success(job) => drop(job),
            Steal::Retry => {}
            Steal::Empty => return,
        }
    }
}
