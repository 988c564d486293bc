//! What a run has given: values, how each node ended and when, and what it all waited for.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Reason};
use crate::graph::From;
use crate::node::Kind;
use crate::run::{Lane, Run};
use crate::sync::lock;
use crate::value::Value;

/// How a node ended; each does so exactly once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    Failed(Reason),
    /// Its condition did not hold, or an input of it was not there.
    Skipped,
    Cancelled,
}

/// One line of the timeline; times in nanoseconds since the run began, absent where the node did
/// not come so far.
#[derive(Clone, Debug)]
pub struct NodeReport {
    pub name: Arc<str>,
    pub kind: Kind,
    pub outcome: Option<Outcome>,
    /// Why it has its default value.
    pub fell_back: Option<Reason>,
    pub queued: Option<u64>,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    pub lane: Lane,
    /// The nodes it took its inputs from, as indices into the report.
    pub parents: Vec<usize>,
    pub value: Option<Value>,
}

impl NodeReport {
    /// How it ended, in a word, and why: of a node that is done, why it has its default.
    pub fn told(&self) -> (&'static str, Option<&Reason>) {
        match &self.outcome {
            Some(Outcome::Done) => ("done", self.fell_back.as_ref()),
            Some(Outcome::Failed(reason)) => ("failed", Some(reason)),
            Some(Outcome::Skipped) => ("skipped", None),
            Some(Outcome::Cancelled) | None => ("cancelled", None),
        }
    }
}

/// The results and the timeline of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub nodes: Vec<NodeReport>,
    /// Why a partial run is partial.
    pub error: Option<Error>,
}

impl Report {
    pub(crate) fn of(run: &Run, error: Option<Error>) -> Self {
        let mut report = Report {
            nodes: Vec::with_capacity(run.nodes.len()),
            error,
        };
        // Nodes, and after them those that they asked for, however many levels deep.
        let mut left = report.add(run, "", run.began);
        while let Some((name, inner)) = left.pop() {
            left.append(&mut report.add(&inner, &name, run.began));
        }
        report
    }

    /// Adds the nodes of a run as `asking/asked`, and gives the runs of those that have asked, the last first.
    fn add(&mut self, run: &Run, prefix: &str, began: u64) -> Vec<(Arc<str>, Arc<Run>)> {
        let base = self.nodes.len();
        let mut inner = Vec::new();
        for (index, node) in run.nodes.iter().enumerate() {
            let vertex = run.vertex(index);
            let slot = lock(&node.slot);
            let name = match prefix {
                "" => vertex.node.name.clone(),
                _ => format!("{prefix}/{}", vertex.node.name).into(),
            };
            let since = |time: u64| (time > 0).then(|| time.saturating_sub(began));
            let parents = vertex.edges.iter().filter_map(|edge| match edge.from {
                From::Node(parent) => Some(base + parent),
                From::Input(_) => None,
            });
            inner.extend(slot.inner.clone().map(|run| (name.clone(), run)));
            self.nodes.push(NodeReport {
                name,
                kind: vertex.node.kind(),
                outcome: slot.outcome.clone(),
                fell_back: slot.fell_back.clone(),
                queued: since(slot.times.queued),
                started: since(slot.times.started),
                ended: since(slot.times.ended),
                lane: slot.times.lane,
                parents: parents.collect(),
                value: slot.value.clone(),
            });
        }
        inner.reverse();
        inner
    }

    pub fn node(&self, name: &str) -> Option<&NodeReport> {
        self.nodes.iter().find(|node| &*node.name == name)
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.node(name)?.value.as_ref()
    }

    pub fn get<T: Any>(&self, name: &str) -> Option<&T> {
        self.value(name)?.get()
    }

    /// The chain of nodes that the run waited for, first to last: from the node that ended last
    /// back through the input that came last.
    pub fn critical_path(&self) -> Vec<&NodeReport> {
        let ran = |index: &usize| self.nodes[*index].started.is_some();
        let ended = |index: &usize| self.nodes[*index].ended;
        let mut at = (0..self.nodes.len()).filter(ran).max_by_key(ended);
        let mut path = Vec::new();
        while let Some(index) = at {
            path.push(&self.nodes[index]);
            let parents = self.nodes[index].parents.iter().copied();
            at = parents.filter(ran).max_by_key(ended);
        }
        path.reverse();
        path
    }
}
