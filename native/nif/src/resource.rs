//! Resources that processes own: a pool, a worker thread.
//!
//! Thread: schedulers. `down` and `Drop` only post.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustler::{Env, LocalPid, Monitor, NifMap, Resource, ResourceArc};

use crate::atoms;
use crate::event_loop::LoopRef;
use crate::here::{Thread, here};
use crate::interp::Interp;
use crate::pool::{Plan, Pool};
use crate::slot::Namespace;
use crate::{watch, worker};

/// A pool; closed when the process that made it is gone.
pub struct PoolRef {
    pub pool: Arc<Pool>,
    /// That of a context.
    pub event_loop: OnceLock<ResourceArc<LoopRef>>,
}

#[rustler::resource_impl]
impl Resource for PoolRef {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        watch::close(self.pool.clone());
    }
}

impl PoolRef {
    pub fn new(env: Env<'_>, interp: Arc<Interp>, opts: PoolOpts) -> Option<ResourceArc<PoolRef>> {
        let pool = Pool::new(Plan {
            interp,
            namespace: opts.own_namespace.then(Namespace::default),
            size: opts.size,
            max_threads: opts.max_threads,
            max_queue: opts.max_queue,
        });
        PoolRef::owned(env, pool)
    }
}

impl PoolRef {
    /// A pool that is there already, owned by the calling process from now on.
    pub fn owned(env: Env<'_>, pool: Arc<Pool>) -> Option<ResourceArc<PoolRef>> {
        let resource = ResourceArc::new(PoolRef {
            pool,
            event_loop: OnceLock::new(),
        });
        resource.monitor(Some(env), &env.pid())?;
        Some(resource)
    }
}

/// What a pool shall be: `py_nif:pool_opts()`.
#[derive(NifMap)]
pub struct PoolOpts {
    pub size: usize,
    pub max_threads: usize,
    pub max_queue: usize,
    pub own_namespace: bool,
}

/// A thread of a pool; it ends after its job when the process that stands for it is gone.
pub struct WorkerRef {
    thread: Arc<OnceLock<Arc<Thread>>>,
    /// Ended, or retired, perhaps before the thread has said who it is.
    gone: Arc<AtomicBool>,
}

#[rustler::resource_impl]
impl Resource for WorkerRef {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        self.retire();
    }
}

impl WorkerRef {
    /// Starts the thread. `None`: the system has none left.
    pub fn start(env: Env<'_>, pool: &ResourceArc<PoolRef>) -> Option<ResourceArc<WorkerRef>> {
        let thread = Arc::new(OnceLock::new());
        let gone = Arc::new(AtomicBool::new(false));
        let worker = ResourceArc::new(WorkerRef {
            thread: thread.clone(),
            gone: gone.clone(),
        });
        let owner = env.pid();
        worker.monitor(Some(env), &owner)?;
        let pool = pool.pool.clone();
        let body = move || {
            let me = here();
            me.set_owner(owner);
            let _ = thread.set(me.clone());
            // SeqCst, pairs with `retire`: one of the two sees what the other has written.
            if gone.load(Ordering::SeqCst) {
                me.retire();
            }
            let ended = pyrt::contain("worker", || worker::work(&pool, false));
            let retired = me.is_retired() || !pool.crew.is_open();
            // Before its owner is told, who asks.
            gone.store(true, Ordering::SeqCst);
            if ended.is_err() {
                pool.leave(&me);
                me.tell_owner(atoms::panicked());
            } else if !retired {
                me.tell_owner(atoms::stopped());
            }
        };
        pyrt::thread::spawn_named("py-worker", body).ok()?;
        Some(worker)
    }

    /// Stands for a thread that runs already. `None`: the calling process is gone, so the thread
    /// is told to end.
    pub fn of(env: Env<'_>, thread: Arc<Thread>) -> Option<ResourceArc<WorkerRef>> {
        let worker = ResourceArc::new(WorkerRef {
            thread: Arc::new(OnceLock::from(thread)),
            gone: Arc::new(AtomicBool::new(false)),
        });
        if worker.monitor(Some(env), &env.pid()).is_none() {
            worker.retire();
            return None;
        }
        Some(worker)
    }

    /// Whether it does no more work, for whatever reason.
    pub fn is_down(&self) -> bool {
        let retired = self.thread.get().is_some_and(|thread| thread.is_retired());
        // SeqCst, as all of it.
        retired || self.gone.load(Ordering::SeqCst)
    }

    pub fn retire(&self) {
        self.gone.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.retire();
        }
    }
}
