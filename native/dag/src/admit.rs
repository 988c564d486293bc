//! A node whose inputs are there goes to its lane, or is skipped.
//!
//! Thread: whoever ended the last input. Never: runs a node's function, or has a lock while a
//! condition runs (I3).

use std::future::Future;
use std::sync::Arc;

use reactor::clock;

use crate::attempt;
use crate::contain::contain;
use crate::cpu_lane::Job;
use crate::error::{Error, Reason};
use crate::foreign::{Done, Pause, Refusal};
use crate::graph::From;
use crate::lanes::needed;
use crate::limit::Permit;
use crate::node::{Body, Expansion, Output};
use crate::report::Outcome;
use crate::run::{DEEPEST, Options, Run, Running};
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use crate::ticket::Ticket;
use crate::value::Value;

/// What becomes of a node whose inputs have all ended.
pub(crate) enum Verdict {
    Admitted,
    Ends(Outcome),
}

impl Run {
    /// Admits what waits for nothing.
    pub fn begin(self: &Arc<Self>, options: &Options) {
        let plan = &self.graph.0;
        if plan.vertices.is_empty() {
            return self.finish();
        }
        if !options.wanted.is_empty() {
            self.skip_unneeded(&needed(plan, &options.wanted));
        }
        for &index in &plan.starts {
            let index = index as usize;
            if let Verdict::Ends(outcome) = self.admit(index) {
                self.end_all(index, outcome);
            }
        }
    }

    fn skip_unneeded(self: &Arc<Self>, needed: &[bool]) {
        let unneeded = || (0..needed.len()).filter(|index| !needed[*index]);
        // Each waits for its own end, too: one that can do without its inputs would start when they end.
        for index in unneeded() {
            self.nodes[index].waits.fetch_add(1, Ordering::Relaxed);
        }
        unneeded().for_each(|index| self.end_all(index, Outcome::Skipped));
    }

    /// All inputs have ended. Who ends the node by the answer does it without recursion.
    pub fn admit(self: &Arc<Self>, index: usize) -> Verdict {
        if self.is_over() {
            return Verdict::Ends(Outcome::Cancelled);
        }
        if !self.has_inputs(index) {
            return Verdict::Ends(Outcome::Skipped);
        }
        let node = &self.vertex(index).node;
        if let Some(holds) = &node.condition {
            let values = self.values(index);
            match contain(|| holds(&values)) {
                Ok(true) => {}
                Ok(false) => return Verdict::Ends(Outcome::Skipped),
                Err(reason) => return Verdict::Ends(Outcome::Failed(reason)),
            }
        }
        if self.nodes[index].state.queue() {
            lock(&self.nodes[index].slot).times.queued = clock::now();
            self.send(index);
        }
        Verdict::Admitted
    }

    fn send(self: &Arc<Self>, index: usize) {
        let node = &self.vertex(index).node;
        if let Body::Queued(queue, _) = &node.body
            && node.policy.is_plain()
        {
            return self.enqueue(index, queue);
        }
        let ticket = Ticket::new(self, index);
        match &node.body {
            Body::Cpu(_) if node.policy.is_plain() => {
                self.core.cpu.push(Job::Node(ticket));
                return;
            }
            Body::Foreign(place, _) if node.policy.is_plain() => {
                let turns = self.turns_at(*place);
                match turns.take() {
                    Some(turn) => self.hand_over(ticket, turn),
                    None => self.spawn(index, async move {
                        let turn = turns.acquire().await;
                        insist(ticket, turn).await;
                    }),
                }
                return;
            }
            _ => {}
        }
        self.spawn(index, attempt::watch_over(ticket));
    }

    /// Runs a future for a node. Refused by a loop that has stopped, its ticket goes with it and ends
    /// the run.
    fn spawn(&self, index: usize, future: impl Future<Output = ()> + Send + 'static) {
        if let Ok(task) = self.core.io.spawn_admitted(future) {
            self.keep(index, Running::Task(task));
        }
    }

    /// Gives a node to the other side. Its refusal ends the node on the pool, not here: a chain of
    /// refusals must not recurse.
    fn hand_over(self: &Arc<Self>, ticket: Ticket, turn: Permit) {
        let index = ticket.index();
        match try_hand_over(ticket, turn) {
            Ok(()) => {}
            Err(Refusal::Fails(done, reason)) => {
                let end = move || done.complete(Err(reason));
                self.core.cpu.push(Job::Attempt(Box::new(end)));
            }
            Err(Refusal::Busy(done)) => {
                if let Some((ticket, turn)) = done.into_node() {
                    self.spawn(index, insist(ticket, turn));
                }
            }
        }
    }

    /// Keeps what runs for a node, to be dropped with it; at once if it has ended meanwhile.
    pub fn keep(&self, index: usize, running: Running) {
        let node = &self.nodes[index];
        let mut late = Some(running);
        let before = {
            let mut slot = lock(&node.slot);
            let has_ended = node.state.has_ended();
            // Who goes on may be faster than who has brought it on its way.
            let stage = |running: &Option<Running>| running.as_ref().map(Running::stage);
            let is_past = slot.running.is_some() && stage(&slot.running) >= stage(&late);
            match has_ended || is_past {
                true => None,
                false => std::mem::replace(&mut slot.running, late.take()),
            }
        };
        // What has brought it here, dropped outside of the lock.
        drop(before);
        if let Some(late) = late {
            late.end();
        }
    }

    /// Whether every input that it can't do without is there.
    fn has_inputs(&self, index: usize) -> bool {
        self.vertex(index).edges.iter().all(|edge| match edge.from {
            From::Node(parent) if !edge.maybe => lock(&self.nodes[parent].slot).value.is_some(),
            _ => true,
        })
    }

    pub fn values(&self, index: usize) -> Vec<Value> {
        let edges = self.vertex(index).edges.iter();
        let values = edges.map(|edge| match edge.from {
            From::Input(input) => self.inputs[input].clone(),
            From::Node(parent) => {
                let slot = lock(&self.nodes[parent].slot);
                slot.value.clone().unwrap_or_default()
            }
        });
        values.collect()
    }
}

fn try_hand_over(ticket: Ticket, turn: Permit) -> Result<(), Refusal> {
    let (run, index) = (ticket.run().clone(), ticket.index());
    let Body::Foreign(place, start) = &run.vertex(index).node.body else {
        return Ok(());
    };
    let given = run.given(index);
    match contain(|| start(given, Done::node(ticket, *place, turn))) {
        Ok(started) => run.keep(index, Running::Foreign(started?)),
        // Mostly it has ended with its `Done`, which the panic has dropped.
        Err(reason) => Ticket::new(&run, index).fail(reason),
    }
    Ok(())
}

/// Hands a node over again and again, until there is room.
async fn insist(mut ticket: Ticket, mut turn: Permit) {
    let io = ticket.run().core.io.clone();
    let mut pause = Pause::default();
    loop {
        match try_hand_over(ticket, turn) {
            Ok(()) => return,
            Err(Refusal::Fails(done, reason)) => return done.complete(Err(reason)),
            Err(Refusal::Busy(done)) => match done.into_node() {
                Some(both) => (ticket, turn) = both,
                None => return,
            },
        }
        if !pause.wait(&io).await {
            return;
        }
    }
}

/// What the end of the asked nodes means for the one that asked.
fn outcome(inner: &Run, result: &str) -> Result<Output, Reason> {
    let error = lock(&inner.error).clone();
    match (error, inner.value_of(result)) {
        (None, Some(value)) => Ok(value.into()),
        // Only the side it came from can read it, so it stays what it is. Of a thousand that are
        // too deep one is enough.
        (Some(Error::Node { reason, .. }), _)
            if matches!(reason, Reason::Foreign(_) | Reason::TooDeep) =>
        {
            Err(reason)
        }
        (Some(error), _) => Err(Reason::new(error)),
        (None, None) => Err(Reason::new("the result of its nodes was skipped")),
    }
}

/// So many levels of nodes that have asked end on one stack, which may be a small one; then it goes
/// on from a new one.
const LEVELS_AT_ONCE: usize = 32;

impl Ticket {
    /// Runs the nodes that this one asked for; the value of their result becomes its own.
    pub fn expand(self, more: Expansion) {
        let run = self.run().clone();
        let index = self.index();
        let options = Options::default().want([more.result.clone()]);
        let depth = run.depth + 1;
        if depth > DEEPEST {
            return self.fail(Reason::TooDeep);
        }
        let bound = more.graph.bind(more.inputs);
        let prepared = bound.and_then(|bound| run.core.prepare(bound, &options, depth));
        let inner = match prepared {
            Ok(inner) => inner,
            Err(error) => return self.fail(Reason::new(error)),
        };
        lock(&run.nodes[index].slot).inner = Some(inner.clone());
        let ticket = self;
        let result = more.result;
        *lock(&inner.end.then) = Some(Box::new(move |inner: &Arc<Run>| {
            let outcome = outcome(inner, &result);
            if !inner.depth.is_multiple_of(LEVELS_AT_ONCE) {
                return ticket.complete(outcome);
            }
            // Should the lane have stopped, the ticket is dropped, which says so.
            let ends = async move { ticket.complete(outcome) };
            if let Ok(task) = inner.core.io.spawn_admitted(ends) {
                task.detach();
            }
        }));
        run.core.enter_admitted();
        run.keep(index, Running::Run(inner.clone()));
        inner.begin(&options);
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::{Graph, Lanes, Node, Place};

    const ELSEWHERE: Place = Place {
        name: "elsewhere",
        at_once: 1,
    };

    const WAIT: Duration = Duration::from_secs(20);

    /// Says that it was dropped.
    struct Dropped(mpsc::Sender<&'static str>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send("dropped").unwrap_or(());
        }
    }

    #[test]
    fn a_node_that_is_not_wanted_does_not_start_when_its_optional_input_is_skipped() {
        let (started, starts) = mpsc::channel();
        let asks = Node::foreign("asks", ELSEWHERE, move |_, done| {
            started.send(done.start()).unwrap_or(());
            Ok(Box::new(|| {}))
        });
        let nothing = |name| Node::cpu(name, |_| Ok(Value::absent()));
        let graph = Graph::builder()
            .node(nothing("first"))
            .node(asks.maybe(["first"]))
            .node(nothing("wanted"));
        let lanes = Lanes::start(1, 10).unwrap();
        let inputs: [(&str, Value); 0] = [];
        let options = Options::default().want(["wanted"]);
        let run = lanes.run(&graph.build().unwrap(), inputs, options).unwrap();
        assert!(run.wait().is_ok());
        assert!(starts.try_recv().is_err());
    }

    #[test]
    fn a_task_that_is_kept_too_late_does_not_take_the_place_of_the_way_to_stop() {
        let (heard, hears) = mpsc::channel();
        let (hold, held) = mpsc::channel();
        let late = Dropped(heard.clone());
        let node = Node::foreign("n", ELSEWHERE, move |_, done| {
            hold.send(done).unwrap_or(());
            let heard = heard.clone();
            Ok(Box::new(move || heard.send("stopped").unwrap_or(())))
        });
        let graph = Graph::builder().node(node).build().unwrap();
        let lanes = Lanes::start(1, 10).unwrap();
        let inputs: [(&str, Value); 0] = [];
        let run = lanes.run(&graph, inputs, Options::default()).unwrap();
        let task = lanes.io().spawn_admitted(async move {
            let _late = late;
            pending::<()>().await;
        });
        run.0.keep(0, Running::Task(task.ok().unwrap()));
        assert_eq!(hears.recv_timeout(WAIT), Ok("dropped"));
        run.cancel();
        assert_eq!(hears.recv_timeout(WAIT), Ok("stopped"));
        drop(held);
    }
}
