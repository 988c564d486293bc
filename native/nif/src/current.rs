//! For whom the calling thread runs Python at this moment.
//!
//! Thread: each has its own.

use std::cell::RefCell;
use std::sync::Arc;

use rustler::ResourceArc;

use crate::job::Job;
use crate::pool::Pool;
use crate::slot::Slot;
use crate::ticket::Ticket;

#[derive(Clone)]
pub struct Current {
    pub slot: ResourceArc<Slot>,
    pub pool: Arc<Pool>,
    pub ticket: Arc<Ticket>,
}

thread_local! {
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Ends with the job.
pub struct Entered;

pub fn enter(job: &Job) -> Entered {
    CURRENT.with_borrow_mut(|stack| {
        stack.push(Current {
            slot: job.slot.clone(),
            pool: job.pool.clone(),
            ticket: job.ticket.clone(),
        });
    });
    Entered
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Taken out first: the slot's end may run code of ours.
        let left = CURRENT.with_borrow_mut(Vec::pop);
        drop(left);
    }
}

/// `None` on a thread that Python code has started by itself.
pub fn current() -> Option<Current> {
    CURRENT.with_borrow(|stack| stack.last().cloned())
}
