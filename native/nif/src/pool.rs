//! Hop 2 of a call: a crew of interpreter threads with its bounded queue.
//!
//! Thread: `push` is called by schedulers. Who takes a job and when is `crew`'s business.

use std::sync::{Arc, Mutex, Weak};

use crew::sync::lock;
use crew::{Admitted, Crew, Refused};

use crate::here::Thread;
use crate::interp::Interp;
use crate::job::Job;
use crate::slot::Namespace;
use crate::watch;

pub struct Pool {
    pub interp: Arc<Interp>,
    /// Names of a context; a pool without one uses those of the calling process.
    pub namespace: Option<Namespace>,
    pub crew: Crew<Box<Job>>,
    threads: Mutex<Vec<Arc<Thread>>>,
}

/// What a pool is made of.
pub struct Plan {
    pub interp: Arc<Interp>,
    pub namespace: Option<Namespace>,
    pub size: usize,
    pub max_threads: usize,
    pub max_queue: usize,
}

impl Pool {
    pub fn new(plan: Plan) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Pool>| {
            let this = this.clone();
            Pool {
                interp: plan.interp,
                namespace: plan.namespace,
                crew: Crew::new(crew::Plan {
                    size: plan.size,
                    max_threads: plan.max_threads,
                    max_queue: plan.max_queue,
                    parallel: pyrt::FREE_THREADED,
                    start: Box::new(move || {
                        if let Some(pool) = this.upgrade() {
                            watch::start_thread(pool);
                        }
                    }),
                }),
                threads: Mutex::new(Vec::new()),
            }
        })
    }

    /// A thread of this pool begins to work.
    pub fn join(self: &Arc<Self>, thread: &Arc<Thread>, surplus: bool) {
        thread.set_home(self);
        lock(&self.threads).push(thread.clone());
        self.crew.join(thread.member(), surplus);
    }

    /// It ends.
    pub fn leave(&self, thread: &Arc<Thread>) {
        self.crew.leave(thread.member());
        lock(&self.threads).retain(|other| !Arc::ptr_eq(other, thread));
    }

    pub fn threads(&self) -> Vec<Arc<Thread>> {
        lock(&self.threads).clone()
    }

    pub fn has(&self, thread: &Arc<Thread>) -> bool {
        lock(&self.threads)
            .iter()
            .any(|other| Arc::ptr_eq(other, thread))
    }

    /// Admits a job, or says why not and gives it back. Never waits.
    pub fn push(self: &Arc<Self>, job: Box<Job>) -> Result<(), (Box<Job>, Refused)> {
        let priority = job.flags.priority();
        let admitted = self.crew.push(job, priority)?;
        self.check(admitted);
        Ok(())
    }

    /// Puts back work that goes on in slices.
    pub fn resume(self: &Arc<Self>, job: Box<Job>) {
        let admitted = self.crew.resume(job);
        self.check(admitted);
    }

    fn check(self: &Arc<Self>, admitted: Admitted) {
        if admitted == Admitted::Late {
            watch::close(self.clone());
        }
    }
}
