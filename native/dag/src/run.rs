//! One run of a graph: the state of each node, who waits for the end, and the handle to it.
//!
//! Thread: any. Each node ends exactly once (`complete`); the run ends with its last node.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reactor::signal::Signal;
use reactor::{Spawned, block_on};

use crate::error::Error;
use crate::foreign::{Place, Stop};
use crate::graph::{Graph, Vertex};
use crate::lanes::Core;
use crate::limit::Limit;
use crate::ready::Line;
use crate::report::{Outcome, Report};
use crate::state::{Over, State};
use crate::sync::{Mutex, lock};
use crate::value::Value;

/// How a run is to be run.
#[derive(Default, Clone)]
pub struct Options {
    pub(crate) deadline: Option<Duration>,
    pub(crate) partial: bool,
    pub(crate) wanted: Vec<String>,
}

impl Options {
    /// Cancels what has not ended after this long.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Gives what there is where the run fails, and lets nodes go on that a failed one does not
    /// concern.
    pub fn partial(mut self) -> Self {
        self.partial = true;
        self
    }

    /// Runs only what these nodes need.
    pub fn want<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.wanted.extend(names.into_iter().map(Into::into));
        self
    }
}

/// Where a node ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lane {
    #[default]
    None,
    Cpu(u16),
    Io,
    /// Elsewhere; where, in a word.
    Foreign(&'static str),
}

impl Lane {
    /// In a word, if it has come to one.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Lane::None => None,
            Lane::Cpu(_) => Some("cpu"),
            Lane::Io => Some("io"),
            Lane::Foreign(place) => Some(place),
        }
    }
}

#[derive(Default, Clone)]
pub(crate) struct Times {
    pub queued: u64,
    pub started: u64,
    pub ended: u64,
    pub lane: Lane,
}

/// What is running for a node, to be dropped when it is cancelled.
pub(crate) enum Running {
    Task(Spawned<()>),
    Run(Arc<Run>),
    Foreign(Stop),
}

impl Running {
    /// A task hands its node over, and what it is handed over to may ask for a run.
    pub fn stage(&self) -> u8 {
        match self {
            Running::Task(_) => 0,
            Running::Foreign(_) => 1,
            Running::Run(_) => 2,
        }
    }

    pub fn end(self) {
        match self {
            // Dropped, the task is cancelled, and with it whatever it awaits.
            Running::Task(task) => drop(task),
            Running::Run(run) => run.cancel(Error::Cancelled),
            Running::Foreign(stop) => stop(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Slot {
    pub value: Option<Value>,
    pub outcome: Option<Outcome>,
    pub fell_back: Option<crate::error::Reason>,
    pub times: Times,
    pub running: Option<Running>,
    /// The run of the nodes it asked for, for the report.
    pub inner: Option<Arc<Run>>,
}

#[derive(Default)]
pub(crate) struct NodeRun {
    pub state: State,
    pub waits: AtomicUsize,
    pub slot: Mutex<Slot>,
}

type AtEnd = Box<dyn FnOnce(&Arc<Run>) + Send>;

/// How many levels of nodes may ask for more: the name of a node has those of all that have asked
/// before it, so that a report of n levels takes the square of that.
pub(crate) const DEEPEST: usize = 1000;

pub(crate) struct Run {
    pub graph: Graph,
    /// How many nodes stand above it that have asked for it.
    pub depth: usize,
    pub core: Arc<Core>,
    pub inputs: Vec<Value>,
    pub nodes: Box<[NodeRun]>,
    /// Nodes that have not ended.
    pub left: AtomicUsize,
    pub over: Over,
    pub error: Mutex<Option<Error>>,
    pub partial: bool,
    pub began: u64,
    pub end: End,
    /// Whose turn it is at each of the places where its nodes run.
    pub turns: Mutex<Vec<(&'static str, Limit)>>,
    /// What is ready for each of the queues where its nodes run.
    pub lines: Mutex<Vec<(&'static str, Arc<Line>)>>,
}

/// Who is to hear of the end.
#[derive(Default)]
pub(crate) struct End {
    pub ended: AtomicBool,
    pub signal: Signal,
    pub then: Mutex<Option<AtEnd>>,
    pub deadline: Mutex<Option<Spawned<()>>>,
}

/// One after another: dropped inside of each other, many levels need more than a small stack.
impl Drop for Run {
    fn drop(&mut self) {
        let mut inner = self.take_inner();
        while let Some(run) = inner.pop() {
            if let Some(run) = Arc::into_inner(run) {
                inner.append(&mut run.take_inner());
            }
        }
    }
}

impl Run {
    /// The runs of the nodes that its own have asked for.
    fn take_inner(&self) -> Vec<Arc<Run>> {
        let inner = |node: &NodeRun| lock(&node.slot).inner.take();
        self.nodes.iter().filter_map(inner).collect()
    }

    pub fn vertex(&self, index: usize) -> &Vertex {
        &self.graph.0.vertices[index]
    }

    /// Whether its results are no longer wanted, or all there.
    pub fn is_over(&self) -> bool {
        self.over.is_set()
    }

    /// How many of its nodes may be at a place.
    pub fn turns_at(&self, place: Place) -> Limit {
        let mut turns = lock(&self.turns);
        if let Some((_, limit)) = turns.iter().find(|(name, _)| *name == place.name) {
            return limit.clone();
        }
        let limit = Limit::new(place.at_once);
        turns.push((place.name, limit.clone()));
        limit
    }

    pub fn has_ended(&self) -> bool {
        // Acquire, pairs with the store in `finish`: every slot is final.
        self.end.ended.load(Ordering::Acquire)
    }

    /// The last node has ended.
    pub fn finish(self: &Arc<Self>) {
        self.over.set();
        let deadline = lock(&self.end.deadline).take();
        drop(deadline);
        let then = lock(&self.end.then).take();
        // Release, pairs with the load in `has_ended`.
        self.end.ended.store(true, Ordering::Release);
        self.core.leave();
        self.end.signal.fire();
        if let Some(then) = then {
            then(self);
        }
    }

    pub fn result(&self) -> Result<Report, Error> {
        let error = lock(&self.error).clone();
        match error {
            Some(error) if !self.partial => Err(error),
            error => Ok(Report::of(self, error)),
        }
    }
}

/// A run that goes on. Dropped, it cancels the run; awaited (anywhere) or waited for, it gives the
/// report.
///
/// ```
/// use std::future::pending;
/// use dag::{Error, Graph, Lanes, Node, Options, Reason, Value, picture};
/// # if dag::MODELLED { return Ok(()); }
///
/// let graph = Graph::builder()
///     .node(Node::cpu("quick", |_| Ok(Value::new(1_u32))))
///     .node(Node::io("never", |_| pending::<Result<Value, Reason>>()).inputs(["quick"]))
///     .build()?;
/// let lanes = Lanes::start(1, 10)?;
/// let run = lanes.run(&graph, [("", Value::absent()); 0], Options::default().partial())?;
/// while run.report().value("quick").is_none() {
///     std::thread::yield_now();
/// }
/// run.cancel();
/// let report = run.wait()?;
/// assert_eq!(report.error, Some(Error::Cancelled));
/// assert_eq!(report.get::<u32>("quick"), Some(&1));
/// assert!(picture::svg(&report).starts_with("<svg"));
/// # Ok::<(), Error>(())
/// ```
pub struct RunHandle(pub(crate) Arc<Run>);

impl RunHandle {
    /// Ends every node that has not ended: queued ones never run, pending reads are dropped.
    pub fn cancel(&self) {
        self.0.cancel(Error::Cancelled);
    }

    /// Blocks the thread until the run has ended. Not for a loop's own thread.
    pub fn wait(self) -> Result<Report, Error> {
        block_on(self)
    }

    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Waits for the end and leaves the handle, so that several may look at the report.
    pub async fn ended(&self) {
        poll_fn(|context| self.poll_ended(context)).await;
    }

    fn poll_ended(&self, context: &mut Context<'_>) -> Poll<()> {
        let fired = self.0.end.signal.poll(context).is_ready();
        if fired || self.0.has_ended() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// What has been reached so far, or all of it after the end.
    pub fn report(&self) -> Report {
        Report::of(&self.0, lock(&self.0.error).clone())
    }
}

impl Future for RunHandle {
    type Output = Result<Report, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_ended(context).map(|()| self.0.result())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.0.cancel(Error::Cancelled);
    }
}
