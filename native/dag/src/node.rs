//! A node as it is described: its function, its inputs, and what to do when it fails.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Reason;
use crate::foreign::{Done, ForeignFn, Place, Refusal, Stop};
use crate::graph::Graph;
use crate::limit::Limit;
use crate::queued::Queue;
use crate::run::Run;
use crate::value::Value;

/// What a node gives: a value, or more nodes whose result becomes its value.
pub enum Output {
    Value(Value),
    More(Expansion),
}

impl From<Value> for Output {
    fn from(value: Value) -> Self {
        Output::Value(value)
    }
}

impl From<Expansion> for Output {
    fn from(more: Expansion) -> Self {
        Output::More(more)
    }
}

/// A graph that a node asks to be run in its place.
///
/// ```
/// use dag::{Expansion, Graph, Lanes, Node, Options, Value};
/// # if dag::MODELLED { return Ok(()); }
///
/// let asks = Node::cpu("asks", |given| {
///     let count = *given.get::<u32>(0)?;
///     let mut graph = Graph::builder();
///     for n in 0..count {
///         graph.add(Node::cpu(&format!("part {n}"), move |_| Ok(Value::new(n))));
///     }
///     let sum = Node::cpu("sum", |given| {
///         Ok(Value::new(given.values().iter().filter_map(Value::get::<u32>).sum::<u32>()))
///     });
///     graph.add(sum.inputs((0..count).map(|n| format!("part {n}"))));
///     let graph = graph.build()?;
///     let (inputs, result) = (Vec::new(), "sum".to_owned());
///     Ok(Expansion { graph, inputs, result })
/// });
/// let graph = Graph::builder().input("count").node(asks.inputs(["count"])).build()?;
/// let lanes = Lanes::start(2, 10)?;
/// let run = lanes.run(&graph, [("count", Value::new(5_u32))], Options::default())?;
/// assert_eq!(run.wait()?.get::<u32>("asks"), Some(&10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Expansion {
    pub graph: Graph,
    pub inputs: Vec<(String, Value)>,
    /// The node whose value becomes the value of the asking node.
    pub result: String,
}

pub(crate) type Doing = Pin<Box<dyn Future<Output = Result<Output, Reason>> + Send>>;
pub(crate) type CpuFn = Arc<dyn Fn(&Given) -> Result<Output, Reason> + Send + Sync>;
pub(crate) type IoFn = Arc<dyn Fn(Given) -> Doing + Send + Sync>;

pub(crate) enum Body {
    Cpu(CpuFn),
    Io(IoFn),
    Foreign(Place, ForeignFn),
    /// Its function is for the other side to read.
    Queued(&'static Queue, Value),
}

/// On which lane a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Cpu,
    Io,
    /// Elsewhere; where, in a word.
    Foreign(&'static str),
}

/// What a node's function is given: the values of its inputs, in the order they were named.
#[derive(Clone)]
pub struct Given {
    pub(crate) values: Arc<[Value]>,
    pub(crate) run: Arc<Run>,
}

impl Given {
    pub fn get<T: Any>(&self, index: usize) -> Result<&T, Reason> {
        let found = self.values.get(index).and_then(Value::get);
        found.ok_or(Reason::Input(index, std::any::type_name::<T>()))
    }

    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether nobody waits for the result any more: a long CPU node looks now and then.
    pub fn is_cancelled(&self) -> bool {
        self.run.is_over()
    }
}

pub(crate) type Condition = Arc<dyn Fn(&[Value]) -> bool + Send + Sync>;

/// What happens around the function of a node. A builder of `Node` sets each of them.
#[derive(Clone)]
pub struct Policy {
    pub timeout: Option<Duration>,
    pub retries: u32,
    pub backoff: Duration,
    pub hedge: Option<Duration>,
    pub limit: Option<Limit>,
    /// How long it takes, beside the other nodes of its graph.
    pub weight: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            timeout: None,
            retries: 0,
            backoff: Duration::from_millis(10),
            hedge: None,
            limit: None,
            weight: 1.0,
        }
    }
}

impl Policy {
    /// Nothing to watch over: the node goes to its lane directly.
    pub(crate) fn is_plain(&self) -> bool {
        self.timeout.is_none() && self.retries == 0 && self.hedge.is_none() && self.limit.is_none()
    }
}

pub(crate) struct Wish {
    pub name: String,
    /// Taken as absent where it was skipped or failed.
    pub maybe: bool,
}

/// The description of a node, to be put into a graph.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
/// use dag::{Graph, Lanes, Node, Options, Outcome, Reason, Value};
/// # if dag::MODELLED { return Ok(()); }
///
/// let tries = AtomicU32::new(0);
/// let unsteady = Node::io("unsteady", move |_| {
///     let attempt = tries.fetch_add(1, Ordering::Relaxed);
///     async move {
///         match attempt {
///             0 => Err(Reason::new("not yet")),
///             attempt => Ok(Value::new(attempt)),
///         }
///     }
/// });
/// let unsteady = unsteady.timeout(Duration::from_secs(5)).retries(2, Duration::from_millis(1));
/// let broken = Node::cpu("broken", |_| Err::<Value, _>(Reason::new("for ever")));
/// let large = Node::cpu("large", |_| Ok(Value::new("large")));
/// let graph = Graph::builder()
///     .node(unsteady)
///     .node(broken.default(Value::new(7_u32)))
///     .node(large.inputs(["unsteady"]).when(|given| given[0].get() > Some(&100_u32)))
///     .build()?;
/// let lanes = Lanes::start(1, 10)?;
/// let report = lanes.run(&graph, [("", Value::absent()); 0], Options::default())?.wait()?;
/// assert_eq!(report.get::<u32>("unsteady"), Some(&1));
/// assert_eq!(report.get::<u32>("broken"), Some(&7));
/// let large = report.node("large").map(|node| node.outcome.clone());
/// assert_eq!(large, Some(Some(Outcome::Skipped)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) body: Body,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) policy: Policy,
    pub(crate) default: Option<Value>,
    pub(crate) condition: Option<Condition>,
}

impl Node {
    /// A function that computes, on the pool.
    pub fn cpu<O: Into<Output>>(
        name: &str,
        run: impl Fn(&Given) -> Result<O, Reason> + Send + Sync + 'static,
    ) -> Self {
        let body = move |given: &Given| run(given).map(Into::into);
        Node::new(name, Body::Cpu(Arc::new(body)))
    }

    /// A function that waits, on the loop.
    pub fn io<O: Into<Output>, F>(
        name: &str,
        run: impl Fn(Given) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<O, Reason>> + Send + 'static,
    {
        let body = move |given| -> Doing {
            let doing = run(given);
            Box::pin(async move { doing.await.map(Into::into) })
        };
        Node::new(name, Body::Io(Arc::new(body)))
    }

    /// What runs elsewhere, at `place`: `start` hands it over and gives the way to stop it; the
    /// other side calls `Done::complete`.
    pub fn foreign(
        name: &str,
        place: Place,
        start: impl Fn(Given, Done) -> Result<Stop, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Node::new(name, Body::Foreign(place, Arc::new(start)))
    }

    /// What threads of another side run, which have a queue of their own: `Turn::take` gives them the most
    /// urgent node that is ready, with its `function`.
    pub fn queued<T: Any + Send + Sync>(name: &str, queue: &'static Queue, function: T) -> Self {
        Node::new(name, Body::Queued(queue, Value::new(function)))
    }

    fn new(name: &str, body: Body) -> Self {
        Node {
            name: name.into(),
            body,
            wishes: Vec::new(),
            policy: Policy::default(),
            default: None,
            condition: None,
        }
    }

    /// What it needs: names of inputs and of other nodes. Skipped if one of them is not done.
    pub fn inputs<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.wish(names, false)
    }

    /// What it takes if it is there; absent where the other node was skipped or failed.
    pub fn maybe<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.wish(names, true)
    }

    fn wish<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>, maybe: bool) -> Self {
        let wishes = names.into_iter().map(|name| Wish {
            name: name.into(),
            maybe,
        });
        self.wishes.extend(wishes);
        self
    }

    /// Runs only if this holds for its inputs; else it is skipped, and so is who needs it.
    pub fn when(mut self, holds: impl Fn(&[Value]) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Arc::new(holds));
        self
    }

    /// Each attempt fails after this long.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.policy.timeout = Some(time);
        self
    }

    /// Tried again so often after a failure, after `backoff`, twice that, and so on.
    pub fn retries(mut self, times: u32, backoff: Duration) -> Self {
        self.policy.retries = times;
        self.policy.backoff = backoff;
        self
    }

    /// Started a second time if it has not ended after this long; the first to succeed counts.
    /// For reads: both may be carried out.
    pub fn hedge(mut self, after: Duration) -> Self {
        self.policy.hedge = Some(after);
        self
    }

    /// Shares a bound on how many run at once, with other nodes and with other runs.
    pub fn limit(mut self, limit: &Limit) -> Self {
        self.policy.limit = Some(limit.clone());
        self
    }

    /// How long it takes, beside the other nodes of its graph, where that is known. Of the nodes that are ready
    /// at one moment, those come first with which the longest paths begin; in a `Queue` also before those that
    /// were ready earlier.
    pub fn weight(mut self, weight: f64) -> Self {
        self.policy.weight = weight;
        self
    }

    /// All of that at once, in place of what was set before.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Its value where it fails.
    pub fn default(mut self, value: Value) -> Self {
        self.default = Some(value);
        self
    }

    /// Absent where it fails.
    pub fn optional(self) -> Self {
        self.default(Value::absent())
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.body {
            Body::Cpu(_) => Kind::Cpu,
            Body::Io(_) => Kind::Io,
            Body::Foreign(place, _) => Kind::Foreign(place.name),
            Body::Queued(queue, _) => Kind::Foreign(queue.name),
        }
    }
}
