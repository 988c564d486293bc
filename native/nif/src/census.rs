//! How many sub-interpreters there are, and who forks.
//!
//! A child made by `fork` from a process with several interpreters does not survive CPython's first
//! step in it. So a fork waits until there are none, and none is made while a thread forks.
//!
//! Thread: any that runs Python or makes an interpreter, detached while it waits. Never in a forked
//! child: takes the lock (a thread that is not there may have it).

use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crew::sync::lock;
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult, frames};

use crate::fork;

struct Census {
    interpreters: usize,
    forks: usize,
}

static CENSUS: Mutex<Census> = Mutex::new(Census {
    interpreters: 0,
    forks: 0,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// The forks that this thread has begun and not ended.
    static BEGUN: Cell<usize> = const { Cell::new(0) };
}

/// A sub-interpreter, from before it is made until it has ended.
pub struct Resident(());

impl Resident {
    /// Waits while a thread forks.
    pub fn new() -> Self {
        let mut census = lock(&CENSUS);
        while census.forks > 0 {
            census = CHANGED.wait(census).unwrap_or_else(PoisonError::into_inner);
        }
        census.interpreters += 1;
        Resident(())
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        lock(&CENSUS).interpreters -= 1;
        CHANGED.notify_all();
    }
}

fn interpreters() -> usize {
    match fork::is_child() {
        true => 0,
        false => lock(&CENSUS).interpreters,
    }
}

/// `begin_fork(seconds)`: waits for so long until there is no sub-interpreter, and lets none be made
/// until `end_fork`. Whether that was achieved.
pub fn begin_fork<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let seconds = args.want(0, "seconds")?.as_f64()?;
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let begun = fork::is_child() || py.detach(|| begin(patience));
    Ok(Obj::bool(py, begun))
}

fn begin(patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let mut census = lock(&CENSUS);
    while census.interpreters > 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let waited = CHANGED.wait_timeout(census, left);
        census = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    census.forks += 1;
    BEGUN.set(BEGUN.get() + 1);
    true
}

/// `end_fork()`: in the parent; without a begun fork it does nothing.
pub fn end_fork<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    if !fork::is_child() && BEGUN.get() > 0 {
        BEGUN.set(BEGUN.get() - 1);
        lock(&CENSUS).forks -= 1;
        CHANGED.notify_all();
    }
    Ok(Obj::none(args.py()))
}

/// `interpreters()`: how many sub-interpreters there are.
pub fn count<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    Obj::int(args.py(), interpreters() as i64)
}

/// `current_frames()`: as `sys._current_frames`, for the threads of this interpreter alone.
pub fn current_frames<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    match frames::of_threads(py)? {
        Some(frames) => Ok(frames),
        None => Err(PyError::new(
            py,
            Builtin::RuntimeError,
            "this Python can't tell the frames of its threads while sub-interpreters exist",
        )),
    }
}
