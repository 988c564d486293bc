//! Releases objects that were dropped by a thread that could not, where no job comes by to do it.
//!
//! Thread: `py-release`, one, with a thread state of the main interpreter. Destructors are user
//! code and may block: nothing else waits for this thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crew::sync::lock;
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{Attached, Kept, Obj, kept};

use crate::fork;
use crate::interp::Interp;

/// Many drops come together: they are released together.
const GATHER: Duration = Duration::from_millis(20);

/// Generators of streams that are over.
static ENDED: Mutex<Vec<Arc<Kept>>> = Mutex::new(Vec::new());

static ASKED: AtomicBool = AtomicBool::new(false);
static BELL: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Something was dropped by a thread that could not release it. Cheap, for schedulers.
pub fn soon() {
    // AcqRel, pairs with the swap in `serve`: one request stands for all until then.
    if !ASKED.swap(true, Ordering::AcqRel) {
        *lock(&BELL.0) = true;
        BELL.1.notify_one();
    }
}

/// Lets go of the generator of a stream, so that its `finally` runs.
pub fn end(iterator: Arc<Kept>) {
    // Without a GIL an object ends on the thread that made it, when that one next runs Python: a
    // pool may be idle for long.
    if pyrt::FREE_THREADED {
        lock(&ENDED).push(iterator);
    }
}

fn close_ended(py: Attached<'_>, interp: &Interp) {
    let ended = std::mem::take(&mut *lock(&ENDED));
    for kept in ended {
        let sole = Arc::strong_count(&kept) == 1;
        if let Some(items) = kept.get(py).filter(|_| sole) {
            close(interp, &items);
        }
    }
}

/// Closes a generator that nobody else has.
fn close<'py>(interp: &Interp, items: &Obj<'py>) {
    // Its place in the stream, and `items`.
    if items.references() != 2 || items.type_name() != "generator" {
        return;
    }
    if let Err(error) = items.call_method(c"close", &[]) {
        error.unraisable(c"closing the generator of a stream");
    }
    interp.flush_line(items.py());
}

pub fn start(interp: Arc<Interp>) -> std::io::Result<()> {
    spawn_named("py-release", move || {
        let Some(mut state) = ThreadState::new(interp.python()) else {
            return;
        };
        loop {
            wait();
            // Two looks: what jobs may still name waits for them to decode (I10).
            while serve(&mut state, &interp) {
                std::thread::sleep(GATHER);
            }
        }
    })
    .map(drop)
}

fn wait() {
    let mut rung = lock(&BELL.0);
    while !*rung {
        rung = match BELL.1.wait(rung) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
    }
    *rung = false;
    drop(rung);
    std::thread::sleep(GATHER);
}

/// Releases what is due. `true`: something is left for later.
fn serve(state: &mut ThreadState, interp: &Interp) -> bool {
    ASKED.swap(false, Ordering::AcqRel);
    let _ = pyrt::contain("release", || {
        state.attached(|py| {
            close_ended(py, interp);
            kept::release_dropped(py);
            interp.release_exported(py);
        });
        fork::end_if_child();
    });
    interp.exported.pending()
}
