//! Functions that a loop has found to be no coroutine functions: a later call of one goes to its pool at once, not by
//! way of the loop.
//!
//! Thread: schedulers ask, loops and workers tell. A guess, which may cost time and nothing else: a worker gives to the
//! loop what is to be awaited.

use crate::job::Job;

pub fn is_known(job: &Job) -> bool {
    callee(job).is_some_and(|name| job.pool.interp.plain.has(kind(job), name))
}

pub fn learn(job: &Job) {
    if let Some(name) = callee(job) {
        job.pool.interp.plain.insert(kind(job), name);
    }
}

/// What it gave is a coroutine: it may have become a coroutine function.
pub fn forget(job: &Job) {
    if let Some(name) = callee(job) {
        job.pool.interp.plain.remove(kind(job), name);
    }
}

fn callee(job: &Job) -> Option<&[u8]> {
    etf::callee(job.first_segment())
}

/// What is awaited of a function differs: its value, or its items.
fn kind(job: &Job) -> u8 {
    job.op as u8
}
