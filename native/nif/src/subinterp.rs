//! An own-GIL sub-interpreter with the one thread that made it, as a pool of its own.
//!
//! Thread: `make` is called on a dirty scheduler and waits for the new thread to be ready; that one
//! makes the interpreter, works for it, and ends it when it is retired or its pool closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crew::sync::lock;
use pyrt::memory::Budget;
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{contain, subinterp};
use rustler::{Env, ResourceArc};

use crate::census::Resident;
use crate::here::here;
use crate::interp::Interp;
use crate::pool::{Plan, Pool};
use crate::resource::{PoolRef, WorkerRef};
use crate::slot::Namespace;
use crate::{atoms, runtime, worker};

/// CPython's start code is not safe side by side: interpreters are made one after another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static MADE: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
/// Bytes of arenas that those had, and Python has not given back.
static KEPT: AtomicU64 = AtomicU64::new(0);
/// When the end of those that have not ended yet began.
static LEAVING: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// How long the threads of an interpreter have to end with it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked whether they are gone: at first, and at last.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(5);

/// How many interpreters were made, ended, and are left behind: a thread of theirs is still there. And
/// the bytes that stay of those that have ended.
pub fn counts() -> (u64, u64, u64, u64) {
    let left = lock(&LEAVING)
        .iter()
        .filter(|since| since.elapsed() > PATIENCE)
        .count();
    // Relaxed: numbers for people.
    (
        MADE.load(Ordering::Relaxed),
        ENDED.load(Ordering::Relaxed),
        left as u64,
        KEPT.load(Ordering::Relaxed),
    )
}

/// A new interpreter with its thread. The calling process owns both.
pub fn make(
    env: Env<'_>,
    max_queue: usize,
    max_memory: Option<usize>,
) -> Result<(ResourceArc<PoolRef>, ResourceArc<WorkerRef>), String> {
    let owner = env.pid();
    let (tell, told) = mpsc::channel();
    let body = move || {
        let me = here();
        me.set_owner(owner);
        let resident = Resident::new();
        let (mut state, pool) = match ready(max_queue, max_memory) {
            Ok(ready) => ready,
            Err(text) => return drop(tell.send(Err(text))),
        };
        let _ = tell.send(Ok((pool.clone(), me.clone())));
        let worked = contain("sub-interpreter", || {
            worker::serve(&pool, &me, &mut state, false);
        });
        if worked.is_err() {
            pool.leave(&me);
            me.tell_owner(atoms::panicked());
        }
        leave(state, &pool.interp);
        drop(resident);
    };
    spawn_named("py-sub", body).map_err(|error| format!("no thread: {error}"))?;
    let (pool, thread) = told
        .recv()
        .map_err(|_| "the thread of the interpreter ended early".to_owned())??;
    let refused = || "the calling process is gone".to_owned();
    let worker = WorkerRef::of(env, thread).ok_or_else(refused)?;
    let pool = PoolRef::owned(env, pool).ok_or_else(refused)?;
    Ok((pool, worker))
}

/// Makes the interpreter on the calling thread and readies it as the main one was.
fn ready(max_queue: usize, max_memory: Option<usize>) -> Result<(ThreadState, Arc<Pool>), String> {
    let main = runtime::started_interp().ok_or_else(|| "Python is not running".to_owned())?;
    let _one = lock(&ONE_AT_A_TIME);
    let budget = Budget::new();
    if max_memory.is_some() {
        budget.count_blocks()?;
    }
    let mut state = subinterp::create(main.python(), budget)?;
    let number = MADE.fetch_add(1, Ordering::Relaxed) + 1;
    let prepared = state.attached(|py| {
        contain("sub-interpreter start", || {
            runtime::prepare(py, runtime::settings(), number)
                .map_err(|error| error.value().display())
        })
    });
    let interp = match prepared {
        Ok(Ok(interp)) => interp,
        Ok(Err(text)) => {
            end(state, budget);
            return Err(text);
        }
        Err(place) => return Err(format!("a bug in {}", place.0)),
    };
    if let Some(limit) = max_memory {
        budget.enforce(limit);
    }
    let _ = interp.memory.set((budget, max_memory.is_some()));
    let pool = Pool::new(Plan {
        interp,
        namespace: Some(Namespace::default()),
        size: 1,
        max_threads: 1,
        max_queue,
    });
    Ok((state, pool))
}

/// The end of an interpreter: its loop is closed, its threads are joined and its `atexit` functions run.
/// A thread that never ends keeps it for ever.
fn leave(mut state: ThreadState, interp: &Arc<Interp>) {
    let since = Instant::now();
    lock(&LEAVING).push(since);
    let _ = contain("sub-interpreter end", || {
        state.attached(|py| {
            if let Err(error) = runtime::end(py, c"leave") {
                error.unraisable(c"the end of an interpreter");
            }
        });
    });
    interp.retire();
    while !interp.guests.wait(PATIENCE) {
        state.attached(|py| interp.stop_guests(py));
    }
    if let Some((budget, _)) = interp.memory.get() {
        end(state, budget);
    }
    let mut leaving = lock(&LEAVING);
    if let Some(index) = leaving.iter().position(|other| *other == since) {
        leaving.swap_remove(index);
    }
}

/// Ends the interpreter as soon as the threads that Python code has left in it are gone.
fn end(mut state: ThreadState, budget: &'static Budget) {
    let mut pause = SHORTEST;
    while let Err(again) = state.end_interpreter() {
        state = again;
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST);
    }
    ENDED.fetch_add(1, Ordering::Relaxed);
    KEPT.fetch_add(budget.arenas() as u64, Ordering::Relaxed);
}
