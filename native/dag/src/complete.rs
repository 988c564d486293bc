//! A node has ended: its value is kept, its children are counted down.
//!
//! Thread: whoever ran the node, or cancelled it. Never: ends a node twice; recurses (a chain of
//! 10^5 skipped nodes is a loop here); drops a value or a task under a lock (I3).

use crate::sync::atomic::Ordering;
use std::sync::Arc;

use reactor::clock;

use crate::admit::Verdict;
use crate::error::{Error, Reason};
use crate::report::Outcome;
use crate::run::Run;
use crate::sync::lock;
use crate::value::Value;

impl Run {
    pub fn is_ended(&self, index: usize) -> bool {
        self.nodes[index].state.has_ended()
    }

    pub fn value_of(&self, name: &str) -> Option<Value> {
        let index = self.graph.0.find(name)?;
        lock(&self.nodes[index].slot).value.clone()
    }

    pub fn complete(self: &Arc<Self>, index: usize, result: Result<Value, Reason>) {
        match result {
            Ok(value) => self.settle(index, Outcome::Done, Some(value), None),
            Err(reason) => self.end_all(index, Outcome::Failed(reason)),
        }
    }

    /// Ends a node that has no value of its own.
    pub fn end_all(self: &Arc<Self>, index: usize, outcome: Outcome) {
        let default = &self.vertex(index).node.default;
        match (outcome, default) {
            (Outcome::Failed(reason), Some(value)) => {
                self.settle(index, Outcome::Done, Some(value.clone()), Some(reason));
            }
            (outcome, _) => self.settle(index, outcome, None, None),
        }
    }

    /// Ends a node, and then those whose end follows from it.
    fn settle(
        self: &Arc<Self>,
        index: usize,
        outcome: Outcome,
        value: Option<Value>,
        fell_back: Option<Reason>,
    ) {
        let mut follow = Vec::new();
        self.end_one(index, outcome, value, fell_back, &mut follow);
        while let Some((index, outcome)) = follow.pop() {
            let default = self.vertex(index).node.default.clone();
            match (outcome, default) {
                (Outcome::Failed(reason), Some(value)) => {
                    let reason = Some(reason);
                    self.end_one(index, Outcome::Done, Some(value), reason, &mut follow);
                }
                (outcome, _) => self.end_one(index, outcome, None, None, &mut follow),
            }
        }
    }

    fn end_one(
        self: &Arc<Self>,
        index: usize,
        outcome: Outcome,
        value: Option<Value>,
        fell_back: Option<Reason>,
        follow: &mut Vec<(usize, Outcome)>,
    ) {
        let node = &self.nodes[index];
        let failed = match &outcome {
            Outcome::Failed(reason) => Some(reason.clone()),
            _ => None,
        };
        let running = {
            let mut slot = lock(&node.slot);
            // Under the lock, so that `keep` sees it.
            if !node.state.end() {
                return;
            }
            slot.value = value;
            slot.outcome = Some(outcome);
            slot.fell_back = fell_back;
            slot.times.ended = clock::now();
            slot.running.take()
        };
        if let Some(running) = running {
            running.end();
        }
        if let Some(reason) = failed {
            let node = self.vertex(index).node.name.to_string();
            self.fail(Error::Node { node, reason });
        }
        self.count_down(index, follow);
        // AcqRel: who takes it to zero sees every slot.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish();
        }
    }

    fn count_down(self: &Arc<Self>, index: usize, follow: &mut Vec<(usize, Outcome)>) {
        for child in &self.vertex(index).children {
            let child = *child as usize;
            // AcqRel: who takes it to zero sees the values of all inputs.
            if self.nodes[child].waits.fetch_sub(1, Ordering::AcqRel) == 1
                && let Verdict::Ends(outcome) = self.admit(child)
            {
                follow.push((child, outcome));
            }
        }
    }
}
