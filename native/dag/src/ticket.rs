//! The right and the duty to end one node: used up by `complete`, or, when a lane drops it,
//! ending its run as stopped. So an admitted node can't be forgotten.
//!
//! Thread: any; `run_here` a thread of the pool.

use std::sync::Arc;

use reactor::clock;

use crate::contain::contain;
use crate::cpu_lane::index_here;
use crate::error::{Error, Reason};
use crate::node::{Body, Given, Output};
use crate::run::{Lane, NodeRun, Run};
use crate::sync::lock;

pub(crate) struct Ticket {
    run: Arc<Run>,
    index: usize,
    used: bool,
}

impl Ticket {
    pub fn new(run: &Arc<Run>, index: usize) -> Self {
        Ticket {
            run: run.clone(),
            index,
            used: false,
        }
    }

    pub fn run(&self) -> &Arc<Run> {
        &self.run
    }

    pub fn index(&self) -> usize {
        self.index
    }

    fn node(&self) -> &NodeRun {
        &self.run.nodes[self.index]
    }

    /// Says that the node runs from now on; `false` if it has ended before, or its run is over.
    pub fn start(&self, lane: Lane) -> bool {
        let node = self.node();
        let started = node.state.start(&self.run.over);
        if started {
            let times = &mut lock(&node.slot).times;
            times.started = clock::now();
            times.lane = lane;
        }
        started
    }

    /// The CPU lane's way: runs the function here and now.
    pub fn run_here(self) {
        let Body::Cpu(body) = &self.run.vertex(self.index).node.body else {
            return;
        };
        if !self.start(index_here().map_or(Lane::None, Lane::Cpu)) {
            return;
        }
        let given = self.run.given(self.index);
        let result = contain(|| body(&given));
        drop(given);
        let result = result.unwrap_or_else(Err);
        self.complete(result);
    }

    /// Ends the node, or lets the nodes it asks for end it.
    pub fn complete(mut self, result: Result<Output, Reason>) {
        match result {
            // Not started because the run is over: whoever ended the run ends the node.
            Err(Reason::Stopped) if self.run.is_over() => {}
            Ok(Output::Value(value)) => {
                self.used = true;
                self.run.complete(self.index, Ok(value));
            }
            Err(reason) => {
                self.used = true;
                self.run.complete(self.index, Err(reason));
            }
            Ok(Output::More(more)) => self.expand(more),
        }
    }

    pub fn fail(self, reason: Reason) {
        self.complete(Err(reason));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.used && !self.run.is_ended(self.index) {
            self.run.cancel(Error::Stopped);
        }
    }
}

impl Run {
    /// The values that a node is given. Its inputs have ended, so their values are final.
    pub fn given(self: &Arc<Self>, index: usize) -> Given {
        Given {
            values: self.values(index).into(),
            run: self.clone(),
        }
    }
}
