//! For whom the calling thread runs Python at this moment.
//!
//! Thread: each has its own.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use pyrt::Attached;
use rustler::ResourceArc;

use crate::interp::Interp;
use crate::job::Job;
use crate::pool::Pool;
use crate::slot::Slot;
use crate::ticket::Ticket;

#[derive(Clone)]
pub struct Current {
    pub slot: ResourceArc<Slot>,
    /// Whose thread this is; a task has none.
    pub pool: Option<Arc<Pool>>,
    pub ticket: Arc<Ticket>,
}

impl Current {
    /// Whether this thread's job was told to stop. A task is told by `CancelledError`, and what it
    /// does after that may take as long as it wants.
    pub fn must_stop(&self) -> bool {
        self.pool.is_some() && self.ticket.must_stop()
    }
}

thread_local! {
    /// Python code has begun a line of output and not ended it.
    static BEGUN: Cell<bool> = const { Cell::new(false) };
    /// Python code of this thread has called `sys.settrace` or `sys.setprofile`.
    static TRACED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Ends with the job.
pub struct Entered;

pub fn enter(job: &Job) -> Entered {
    CURRENT.with_borrow_mut(|stack| {
        stack.push(Current {
            slot: job.slot.clone(),
            pool: Some(job.pool.clone()),
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

/// The job of this thread, else the task this code belongs to, wherever it runs (`contextvars`).
/// `None` on a thread that Python code has started by itself.
pub fn current(py: Attached<'_>, interp: &Interp) -> Option<Current> {
    let job = CURRENT.with_borrow(|stack| stack.last().cloned());
    job.or_else(|| interp.tasks.current(py))
}

pub fn line_begun() {
    BEGUN.set(true);
}

/// Whether a line was begun since the last time this was asked.
pub fn take_line_begun() -> bool {
    BEGUN.replace(false)
}

pub fn traced() {
    TRACED.set(true);
}

/// Whether it was traced or profiled since the last time this was asked.
pub fn take_traced() -> bool {
    TRACED.replace(false)
}
