//! An own-GIL sub-interpreter with the one thread that made it, as a pool of its own.
//!
//! Thread: `make` is called on a dirty scheduler and waits for the new thread to be ready; that one
//! makes the interpreter, works for it, and ends it when it is retired or its pool closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use crew::sync::lock;
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{contain, subinterp};
use rustler::{Env, ResourceArc};

use crate::here::here;
use crate::pool::{Plan, Pool};
use crate::resource::{PoolRef, WorkerRef};
use crate::slot::Namespace;
use crate::{atoms, runtime, worker};

/// CPython's start code is not safe side by side: interpreters are made one after another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static MADE: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
/// Ended in name only: a thread of theirs was still there.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// How many interpreters were made, ended, and left behind because they could not be ended.
pub fn counts() -> (u64, u64, u64) {
    // Relaxed: numbers for people.
    (
        MADE.load(Ordering::Relaxed),
        ENDED.load(Ordering::Relaxed),
        LEFT.load(Ordering::Relaxed),
    )
}

/// A new interpreter with its thread. The calling process owns both.
pub fn make(
    env: Env<'_>,
    max_queue: usize,
) -> Result<(ResourceArc<PoolRef>, ResourceArc<WorkerRef>), String> {
    let owner = env.pid();
    let (tell, told) = mpsc::channel();
    let body = move || {
        let me = here();
        me.set_owner(owner);
        let (mut state, pool) = match ready(max_queue) {
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
        pool.interp.retire();
        end(state);
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
fn ready(max_queue: usize) -> Result<(ThreadState, Arc<Pool>), String> {
    let main = runtime::started_interp().ok_or_else(|| "Python is not running".to_owned())?;
    let _one = lock(&ONE_AT_A_TIME);
    let mut state = subinterp::create(main.python())?;
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
            end(state);
            return Err(text);
        }
        Err(place) => return Err(format!("a bug in {}", place.0)),
    };
    let pool = Pool::new(Plan {
        interp,
        namespace: Some(Namespace::default()),
        size: 1,
        max_threads: 1,
        max_queue,
    });
    Ok((state, pool))
}

fn end(state: ThreadState) {
    let count = if state.end_interpreter() {
        &ENDED
    } else {
        &LEFT
    };
    count.fetch_add(1, Ordering::Relaxed);
}
