//! The end of a run before its time: cancelled, failed, too late, or its lanes gone.
//!
//! Thread: any. Never: ends a node that has ended; the first reason is the one that counts.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::report::Outcome;
use crate::run::{Run, Running};
use crate::sync::lock;

impl Run {
    pub fn cancel(self: &Arc<Self>, why: Error) {
        let mut inner = self.cancel_one(why);
        // One after another: they may be many levels deep, and the stack a small one.
        while let Some(run) = inner.pop() {
            inner.append(&mut run.cancel_one(Error::Cancelled));
        }
    }

    /// Cancels the run without those of its nodes that have asked for more, which it gives.
    fn cancel_one(self: &Arc<Self>, why: Error) -> Vec<Arc<Run>> {
        {
            // Locked first: who finds the run over waits here for the reason.
            let mut error = lock(&self.error);
            if !self.over.set() {
                return Vec::new();
            }
            error.get_or_insert(why);
        }
        let inner = self.nodes.iter().filter_map(|node| {
            let mut slot = lock(&node.slot);
            match slot.running.take() {
                Some(Running::Run(run)) => Some(run),
                other => {
                    slot.running = other;
                    None
                }
            }
        });
        let inner = inner.collect();
        for index in 0..self.nodes.len() {
            self.end_all(index, Outcome::Cancelled);
        }
        inner
    }

    /// A node failed: the end of the run, or of this part of it.
    pub fn fail(self: &Arc<Self>, why: Error) {
        if !self.partial {
            return self.cancel(why);
        }
        lock(&self.error).get_or_insert(why);
    }

    pub fn end_after(self: &Arc<Self>, time: Duration) {
        let sleep = self.core.io.sleep(time);
        let run = Arc::downgrade(self);
        let task = self.core.io.spawn_admitted(async move {
            if sleep.await.is_ok()
                && let Some(run) = run.upgrade()
            {
                run.cancel(Error::Deadline);
            }
        });
        // A loop that has stopped refuses the nodes as well.
        *lock(&self.end.deadline) = task.ok();
    }
}
