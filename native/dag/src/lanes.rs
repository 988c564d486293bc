//! The two lanes that all runs share, and how a run is admitted to them.
//!
//! Thread: any. A run is refused as a whole or admitted as a whole: its nodes find room always.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use reactor::{Handle, TaskLoop, clock};

use crate::cpu_lane::CpuLane;
use crate::error::Error;
use crate::graph::{Bound, From, Graph, Plan};
use crate::report::Report;
use crate::run::{End, NodeRun, Options, Run, RunHandle};
use crate::state::Over;
use crate::sync::{Mutex, lock};
use crate::value::Value;

pub(crate) struct Core {
    pub cpu: CpuLane,
    pub io: Handle,
    runs: AtomicUsize,
    bound: usize,
    stopped: AtomicBool,
}

impl Core {
    /// A place among the runs, kept until `leave`.
    fn enter(&self) -> Result<(), Error> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(Error::Stopped);
        }
        if self.runs.fetch_add(1, Ordering::Relaxed) >= self.bound {
            self.leave();
            return Err(Error::Full);
        }
        Ok(())
    }

    /// For the nodes that an admitted run asks for: never refused as too much.
    pub fn enter_admitted(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    pub fn leave(&self) {
        self.runs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A pool for CPU nodes and a loop for I/O nodes. Dropped, it stops: runs end as stopped.
pub struct Lanes {
    core: Arc<Core>,
    tasks: TaskLoop,
}

impl Lanes {
    /// `threads` for CPU nodes; at most `bound` runs at once.
    pub fn start(threads: usize, bound: usize) -> Result<Self, Error> {
        let system = |error: std::io::Error| Error::System(error.to_string());
        let tasks = TaskLoop::start("dag-io", bound.max(1024)).map_err(system)?;
        let core = Arc::new(Core {
            cpu: CpuLane::start(threads).map_err(system)?,
            io: tasks.handle().clone(),
            runs: AtomicUsize::new(0),
            bound,
            stopped: AtomicBool::new(false),
        });
        Ok(Lanes { core, tasks })
    }

    /// The loop of the I/O nodes, for clients that live on it.
    pub fn io(&self) -> &Handle {
        self.tasks.handle()
    }

    pub fn run<S: AsRef<str>>(
        &self,
        graph: &Graph,
        inputs: impl IntoIterator<Item = (S, Value)>,
        options: Options,
    ) -> Result<RunHandle, Error> {
        self.run_then(graph, inputs, options, |_| {})
    }

    /// As `run`; `then` is called once with what the run gave, by the thread that ended it.
    pub fn run_then<S: AsRef<str>>(
        &self,
        graph: &Graph,
        inputs: impl IntoIterator<Item = (S, Value)>,
        options: Options,
        then: impl FnOnce(Result<Report, Error>) + Send + 'static,
    ) -> Result<RunHandle, Error> {
        self.run_bound(graph.bind(inputs)?, options, then)
    }

    /// As `run_then`, with inputs that were looked at before.
    pub fn run_bound(
        &self,
        bound: Bound,
        options: Options,
        then: impl FnOnce(Result<Report, Error>) + Send + 'static,
    ) -> Result<RunHandle, Error> {
        let run = self.core.prepare(bound, &options, 0)?;
        self.core.enter()?;
        *lock(&run.end.then) = Some(Box::new(move |run| then(run.result())));
        if let Some(time) = options.deadline {
            run.end_after(time);
        }
        run.begin(&options);
        Ok(RunHandle(run))
    }

    /// Refuses runs, ends the threads; what has not ended ends as stopped.
    pub fn stop(&self) {
        self.core.stopped.store(true, Ordering::SeqCst);
        self.tasks.stop();
        self.core.cpu.stop();
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Core {
    /// A run that has not begun; `enter` or `enter_admitted` comes before it does.
    pub fn prepare(
        self: &Arc<Self>,
        bound: Bound,
        options: &Options,
        depth: usize,
    ) -> Result<Arc<Run>, Error> {
        let Bound { graph, inputs } = bound;
        let plan = &graph.0;
        for name in &options.wanted {
            if plan.find(name).is_none() {
                return Err(Error::UnknownNode(name.clone()));
            }
        }
        let nodes = plan.vertices.iter().map(|vertex| {
            let node = NodeRun::default();
            node.waits.store(vertex.waits, Ordering::Relaxed);
            node
        });
        let nodes: Box<[NodeRun]> = nodes.collect();
        Ok(Arc::new(Run {
            graph,
            depth,
            core: self.clone(),
            inputs,
            left: AtomicUsize::new(nodes.len()),
            nodes,
            over: Over::default(),
            error: Mutex::new(None),
            partial: options.partial,
            began: clock::now(),
            end: End::default(),
            turns: Mutex::default(),
            lines: Mutex::default(),
        }))
    }
}

/// Which nodes the wanted ones need, themselves included; all if none is named.
pub(crate) fn needed(plan: &Plan, wanted: &[String]) -> Vec<bool> {
    let mut needed = vec![wanted.is_empty(); plan.vertices.len()];
    let mut open: Vec<usize> = wanted.iter().filter_map(|name| plan.find(name)).collect();
    while let Some(index) = open.pop() {
        if std::mem::replace(&mut needed[index], true) {
            continue;
        }
        open.extend(
            plan.vertices[index]
                .edges
                .iter()
                .filter_map(|edge| match edge.from {
                    From::Node(parent) => Some(parent),
                    From::Input(_) => None,
                }),
        );
    }
    needed
}
