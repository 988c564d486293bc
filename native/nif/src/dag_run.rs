//! One run of a graph for a process: begun and cancelled on the loop, told once to its caller.
//!
//! Thread: `RunRef` schedulers, which only post (I9); the rest on the loop, or on whatever thread of
//! ours ends the run. Never: tells after `cancel` with `silent` has returned (I4).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dag::redis::Redis;
use dag::{Bound, Error, Options, Report, RunHandle};
use rustler::{Env, LocalPid, Monitor, Resource, ResourceArc};

use crate::dag_erlang::Calls;
use crate::dag_graph::GraphRef;
use crate::dag_report;
use crate::dag_value::Needs;
use crate::erts::{MsgEnv, Raw};
use crate::event_loop::Loop;
use crate::pool::Pool;
use crate::slot::Slot;
use crew::sync::lock;

/// What the nodes of one run share.
#[derive(Clone)]
pub struct Context {
    pub slot: ResourceArc<Slot>,
    pub pool: Arc<Pool>,
    pub flags: u32,
    /// The process that runs functions of Erlang.
    pub runner: Option<LocalPid>,
    pub calls: Arc<Calls>,
    pub redis: Redis,
    /// Where coroutines run; without it the thread that has called the function runs them.
    pub event_loop: Option<Arc<Loop>>,
    /// The nodes whose values are given to the caller or, of a graph that a node asked for, to that
    /// one; in order.
    pub wanted: Vec<usize>,
    pub wanted_as: Needs,
}

impl Context {
    /// As what the value of a node is taken, which the nodes of its own graph take as `own`.
    pub fn needs(&self, index: usize, own: Needs) -> Needs {
        match self.wanted.binary_search(&index) {
            Ok(_) => own.and(self.wanted_as),
            Err(_) => own,
        }
    }
}

/// What a run was asked for with.
pub struct Wish {
    pub deadline: Option<Duration>,
    pub partial: bool,
    /// Only what the wanted nodes need is run.
    pub restrict: bool,
    /// Bits: dot, svg, Chrome trace.
    pub pictures: u32,
    pub bound: Bound,
}

struct State {
    /// The caller's key, until it was told.
    waiting: Option<(MsgEnv, Raw)>,
    handle: Option<RunHandle>,
    cancelled: bool,
}

pub struct RunState {
    to: LocalPid,
    pub context: Arc<Context>,
    state: Mutex<State>,
}

/// A run as its processes hold it; it ends with any of them.
pub struct RunRef(pub Arc<RunState>);

#[rustler::resource_impl]
impl Resource for RunRef {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        self.0.cancel(false);
    }
}

impl Drop for RunRef {
    fn drop(&mut self) {
        self.0.cancel(true);
    }
}

impl RunState {
    pub fn new(to: LocalPid, env: MsgEnv, key: Raw, context: Context) -> Arc<Self> {
        Arc::new(RunState {
            to,
            context: Arc::new(context),
            state: Mutex::new(State {
                waiting: Some((env, key)),
                handle: None,
                cancelled: false,
            }),
        })
    }

    /// On the loop: admits the run, or tells why not.
    pub fn begin(self: &Arc<Self>, graph: &ResourceArc<GraphRef>, wish: Wish) {
        let mut options = Options::default();
        if let Some(time) = wish.deadline {
            options = options.deadline(time);
        }
        if wish.partial {
            options = options.partial();
        }
        if wish.restrict {
            let wanted = self.context.wanted.iter();
            options = options.want(wanted.filter_map(|index| graph.names.get(*index).cloned()));
        }
        let (run, names) = (Arc::downgrade(self), graph.clone());
        let pictures = wish.pictures;
        let then = move |result: Result<Report, Error>| {
            if let Some(run) = run.upgrade() {
                run.tell(&dag_report::write(
                    &names.names,
                    &run.context,
                    &result,
                    pictures,
                ));
            }
        };
        let begun = match pyloop::graph::lanes() {
            Ok(lanes) => lanes.run_bound(wish.bound, options, then),
            Err(error) => Err(error),
        };
        match begun {
            Ok(handle) => self.keep(handle),
            Err(error) => {
                let result = Err(error);
                self.tell(&dag_report::write(&graph.names, &self.context, &result, 0));
            }
        }
    }

    /// Kept until the end; a run that is over, or not wanted any more, ends here.
    fn keep(&self, handle: RunHandle) {
        let mut late = Some(handle);
        {
            let mut state = lock(&self.state);
            if state.waiting.is_some() && !state.cancelled {
                state.handle = late.take();
            }
        }
        drop(late);
    }

    fn tell(&self, answer: &[u8]) {
        let handle = {
            let mut state = lock(&self.state);
            if let Some((mut env, key)) = state.waiting.take() {
                let message = env.tuple(&[key, env.binary(answer)]);
                env.send(&self.to, message);
            }
            state.handle.take()
        };
        // Its values are released with it, outside of the lock.
        drop(handle);
    }

    /// Ends the run soon. `silent`: once this has returned, nobody is told of it.
    pub fn cancel(self: &Arc<Self>, silent: bool) {
        let (handle, waiting) = {
            let mut state = lock(&self.state);
            state.cancelled = true;
            let waiting = if silent { state.waiting.take() } else { None };
            (state.handle.take(), waiting)
        };
        drop(waiting);
        let Some(handle) = handle else { return };
        // Dropped on the loop, whether that takes it or has stopped.
        if let Ok(lanes) = pyloop::graph::lanes()
            && let Ok(task) = lanes.io().spawn_admitted(async move { drop(handle) })
        {
            task.detach();
        }
    }
}
