//! Python's life in this node: started once by a thread of its own, never ended.
//!
//! Thread: `py-init` owns the main thread state and runs no user code, save at the very end the
//! functions that Python programs have left for it (`atexit`, joining their threads).

use std::ffi::CStr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use pyrt::embed::{self, Inbuilt};
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{Attached, Obj, PyResult, call, contain};
use rustler::{LocalPid, ResourceArc};

use crate::interp::Interp;
use crate::leader::Leader;
use crate::pool::Pool;
use crate::{fork, log, py_module, release, watch};
use crew::sync::lock;

/// What the configuration says.
#[derive(Clone, Debug)]
pub struct Settings {
    pub program: String,
    pub package: String,
    pub max_depth: usize,
    pub switch_interval: Duration,
}

struct Runtime {
    settings: Settings,
    interp: Arc<Interp>,
    orders: Mutex<Sender<Order>>,
}

enum Order {
    /// Run what Python programs left for the end; answer when done.
    End(Sender<()>),
}

/// A process of the application that lives as long as it does.
struct Home {
    pid: LocalPid,
    leader: ResourceArc<Leader>,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static HOME: Mutex<Option<Home>> = Mutex::new(None);
static MAIN_POOL: RwLock<Option<Arc<Pool>>> = RwLock::new(None);

/// Starts Python, or says why it can't. A second start is a success if it wants the same Python.
pub fn start(settings: Settings) -> Result<(), String> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = lock(&STARTING);
    if let Some(runtime) = RUNTIME.get() {
        if runtime.settings.program == settings.program {
            return Ok(());
        }
        return Err(format!(
            "this node runs {} already: restart it to use {}",
            runtime.settings.program, settings.program
        ));
    }
    fork::watch()?;
    let (tell, told) = mpsc::channel();
    let (order, orders) = mpsc::channel();
    let wanted = settings.clone();
    spawn_named("py-init", move || init_thread(&wanted, &tell, &orders))
        .map_err(|error| format!("no thread for Python: {error}"))?;
    let interp = told
        .recv()
        .map_err(|_| "Python's first thread ended early".to_owned())??;
    watch::start().map_err(|error| format!("no thread for the watch: {error}"))?;
    release::start(interp.clone()).map_err(|error| format!("no thread to release: {error}"))?;
    let _ = RUNTIME.set(Runtime {
        settings,
        interp,
        orders: Mutex::new(order),
    });
    Ok(())
}

fn init_thread(
    settings: &Settings,
    tell: &Sender<Result<Arc<Interp>, String>>,
    orders: &Receiver<Order>,
) {
    let inbuilt = [
        Inbuilt {
            name: c"erlang._native",
            init: pyloop::init,
        },
        Inbuilt {
            name: c"erlang._node",
            init: py_module::init,
        },
    ];
    let mut state = match embed::initialize(&settings.program, &inbuilt) {
        Ok(state) => state,
        Err(text) => return drop(tell.send(Err(text))),
    };
    let ready = state.attached(|py| {
        contain("Python start", || {
            prepare(py, settings, 0).map_err(|error| error.value().display())
        })
    });
    let ready = ready.unwrap_or_else(|place| Err(format!("a bug in {}", place.0)));
    let failed = ready.is_err();
    let _ = tell.send(ready);
    if !failed {
        serve(&mut state, orders);
    }
    // The main thread state lives as long as the process.
    std::mem::forget(state);
}

fn serve(state: &mut ThreadState, orders: &Receiver<Order>) {
    while let Ok(Order::End(done)) = orders.recv() {
        let _ = contain("Python end", || {
            state.attached(|py| {
                if let Err(error) = end(py, c"stop") {
                    error.unraisable(c"the end of Python");
                }
            });
            fork::end_if_child();
        });
        let _ = done.send(());
    }
}

/// The package first on `sys.path`, then the interpreter as the node uses it.
pub fn prepare<'py>(
    py: Attached<'py>,
    settings: &Settings,
    number: u64,
) -> PyResult<'py, Arc<Interp>> {
    let sys = call::import_c(py, c"sys")?;
    let path = sys.getattr_c(c"path")?;
    let package = Obj::text(py, &settings.package)?;
    path.call_method(c"insert", &[&Obj::int(py, 0)?, &package])?;
    let interval = Obj::float(py, settings.switch_interval.as_secs_f64())?;
    sys.call_method(c"setswitchinterval", &[&interval])?;
    pyloop::load(py)?;
    pyrt::module::load_inbuilt(py, "erlang._node")?;
    // Now: whoever interrupts a job imports nothing.
    pyrt::interrupt::prepare(py)?;
    let interp = Interp::current(py, number)?;
    py_module::belong(py, &interp)?;
    call::import_c(py, c"erlang._boot")?.call_method(c"start", &[])?;
    interp.note_gil(py);
    Ok(interp)
}

/// What programs have left for the end of an interpreter; `way` is a function of `erlang._boot`.
pub fn end<'py>(py: Attached<'py>, way: &CStr) -> PyResult<'py, ()> {
    call::import_c(py, c"erlang._boot")?.call_method(way, &[])?;
    Ok(())
}

/// Lets Python programs end: their threads are joined, their `atexit` functions run. Returns
/// whether that was done in time.
pub fn finish(limit: Duration) -> bool {
    let Some(runtime) = RUNTIME.get() else {
        return true;
    };
    let (done, is_done) = mpsc::channel();
    if lock(&runtime.orders).send(Order::End(done)).is_err() {
        return true;
    }
    is_done.recv_timeout(limit).is_ok()
}

/// The main interpreter, once there is one.
pub fn started_interp() -> Option<Arc<Interp>> {
    RUNTIME.get().map(|runtime| runtime.interp.clone())
}

pub fn settings() -> &'static Settings {
    match RUNTIME.get() {
        Some(runtime) => &runtime.settings,
        None => unreachable!("jobs exist only after the start"),
    }
}

/// Python may have something to log before its start is over.
pub fn max_depth() -> usize {
    RUNTIME
        .get()
        .map_or(etf::DEFAULT_MAX_DEPTH, |runtime| runtime.settings.max_depth)
}

pub fn set_home(pid: LocalPid, leader: ResourceArc<Leader>) {
    *lock(&HOME) = Some(Home { pid, leader });
}

/// A process of the application: who `erlang.self()` is on threads that run for nobody.
pub fn a_pid() -> LocalPid {
    match &*lock(&HOME) {
        Some(home) => home.pid,
        None => unreachable!("set before Python starts"),
    }
}

pub fn leader() -> ResourceArc<Leader> {
    match &*lock(&HOME) {
        Some(home) => home.leader.clone(),
        None => unreachable!("set before Python starts"),
    }
}

pub fn set_main_pool(pool: Option<Arc<Pool>>) {
    match MAIN_POOL.write() {
        Ok(mut place) => *place = pool,
        Err(poisoned) => *poisoned.into_inner() = pool,
    }
}

pub fn main_pool() -> Option<Arc<Pool>> {
    match MAIN_POOL.read() {
        Ok(place) => place.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    }
}

/// Name and creation of this node, of this moment: those a local pid is encoded with.
pub fn node(pid: &LocalPid) -> etf::NodeId {
    let bytes = log::with_env(|env| env.encode_pid(pid)).unwrap_or_default();
    etf::node_of_pid(&bytes).unwrap_or(etf::NodeId {
        name: b"nonode@nohost".to_vec(),
        creation: 0,
    })
}

/// Whether this node can read the term, which has no map in it, of these bytes (without the 131).
pub fn knows(term: &[u8]) -> bool {
    let bytes = [&[etf::tag::VERSION], term].concat();
    log::with_env(|env| env.decode(&bytes).is_some())
}
