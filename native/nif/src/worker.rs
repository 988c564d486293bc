//! Hop 3 of a call: a thread of a pool, attached, takes jobs one after another and runs them.
//!
//! Thread: `py-worker` or `py-more`, one permanent thread state each (extension modules want it so).
//! Never: waits while attached (I3).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crew::{Patience, Turn};
use pyrt::thread::ThreadState;
use pyrt::{Attached, attach, kept};

use crate::fork;
use crate::here::{Thread, here};
use crate::pool::Pool;
use crate::run;

/// How long a drain keeps the GIL before it lets any other Python thread have it.
const BUDGET: Duration = Duration::from_millis(2);
/// How long before it lets another thread of ours have it.
const POLITE: Duration = Duration::from_micros(50);

/// The body of a pool's thread: until it is retired or the pool closed.
pub fn work(pool: &Arc<Pool>, surplus: bool) {
    let me = here();
    let Some(mut state) = ThreadState::new(pool.interp.python()) else {
        if surplus {
            pool.crew.lost();
        }
        return;
    };
    serve(pool, &me, &mut state, surplus);
}

/// Works with a thread state that is there already, until retired or closed.
pub fn serve(pool: &Arc<Pool>, me: &Arc<Thread>, state: &mut ThreadState, surplus: bool) {
    pool.join(me, surplus);
    while let Turn::Lead = pool.crew.follow(me.member()) {
        lead(pool, me, state);
    }
    pool.leave(me);
}

fn lead(pool: &Arc<Pool>, me: &Arc<Thread>, state: &mut ThreadState) {
    let patience = Patience::serving();
    while pool.crew.may_take(me.member()) || pool.crew.linger(me.member(), patience.time()) {
        if pool.crew.is_empty() {
            patience.learn(pool.crew.idle(me.member(), patience.time()));
            continue;
        }
        state.attached(|py| drain(py, pool, me));
        fork::end_if_child();
    }
}

/// Runs jobs under one attachment until there are none, the time is up, or another leads.
fn drain(py: Attached<'_>, pool: &Arc<Pool>, me: &Arc<Thread>) {
    let start = Instant::now();
    kept::release_dropped(py);
    pool.interp.release_exported(py);
    pool.interp.with(py, |world| {
        while pool.crew.may_take(me.member()) {
            let Some(job) = pool.crew.pop() else { return };
            pool.crew.starts(me.member());
            run::run(world, me, job);
            pool.crew.ends(me.member());
            let held = start.elapsed();
            if held > BUDGET || (held > POLITE && attach::waiting() > 0) {
                return;
            }
        }
    });
    if !pool.interp.is_main() {
        // No other thread can: what was dropped meanwhile would wait for its next job.
        kept::release_dropped(py);
    }
    // The jobs may have imported a module that needs a GIL.
    pool.interp.note_gil(py);
}
