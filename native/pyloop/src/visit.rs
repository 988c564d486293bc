//! Visits: work of other threads, which need not be attached, on a loop's own thread.
//!
//! Thread: `Visitors` any; a visit runs on the loop's thread, attached, between callbacks.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use pyrt::{Obj, PyResult};
use reactor::turn::Post;

use crate::event_loop::{LoopCore, Work};
use crate::stopwatch::Stopwatch;
use crate::types::Types;

/// Something to do on a loop's thread.
pub trait Visit: Send {
    /// Runs inside of a turn. An error ends `run_forever`.
    fn visit<'py>(self: Box<Self>, event_loop: &Obj<'py>) -> PyResult<'py, ()>;
}

/// The way to a loop from any thread.
#[derive(Clone)]
pub struct Visitors(Post<Work>);

impl Visitors {
    /// The way to a loop object. `None`: it is no `ErlangEventLoop`, or this module is not ready.
    pub fn of(native: &Obj<'_>, event_loop: &Obj<'_>) -> Option<Self> {
        Self::to(&crate::state(native)?.loops, event_loop)
    }

    pub(crate) fn to(types: &Types, event_loop: &Obj<'_>) -> Option<Self> {
        if !event_loop.is_subtype(&types.core.get(event_loop.py())) {
            return None;
        }
        Some(Visitors(LoopCore::of(event_loop).visitors()))
    }

    /// To be run at the next turn of a loop whose thread this is.
    pub fn push(event_loop: &Obj<'_>, visit: Box<dyn Visit>) {
        LoopCore::of(event_loop).reactor(|reactor| reactor.push(Work::Visit(visit)));
    }

    /// The descriptor that is readable while the loop has something to do.
    pub fn descriptor(event_loop: &Obj<'_>) -> Option<RawFd> {
        LoopCore::of(event_loop).reactor(|reactor| Some(reactor.poller().as_fd()?.as_raw_fd()))
    }

    /// Which descriptor that is: the number alone may come again.
    pub fn generation(event_loop: &Obj<'_>) -> u32 {
        LoopCore::of(event_loop).reactor(|reactor| reactor.poller().resets())
    }

    /// How long the loop is in what it runs, for any thread.
    pub fn stopwatch(event_loop: &Obj<'_>) -> Arc<Stopwatch> {
        LoopCore::of(event_loop).stopwatch.clone()
    }

    /// Wakes the loop if it sleeps. `false`: it is closed, and the visit was dropped.
    pub fn post(&self, visit: Box<dyn Visit>) -> bool {
        self.0.post(Work::Visit(visit)).is_ok()
    }
}

/// The loops that run, by their thread; of several the innermost.
static RUNNING: Mutex<Option<HashMap<u64, Post<Work>>>> = Mutex::new(None);

fn with_running<T>(body: impl FnOnce(&mut HashMap<u64, Post<Work>>) -> T) -> T {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    body(running.get_or_insert_default())
}

/// Says that a loop runs on the calling thread, until dropped.
pub(crate) fn runs_here(post: Post<Work>) -> RunsHere {
    let thread = pyrt::thread::ident();
    let before = with_running(|running| running.insert(thread, post));
    RunsHere { thread, before }
}

pub(crate) struct RunsHere {
    thread: u64,
    before: Option<Post<Work>>,
}

impl Drop for RunsHere {
    fn drop(&mut self) {
        let before = self.before.take();
        with_running(|running| match before {
            Some(before) => running.insert(self.thread, before),
            None => running.remove(&self.thread),
        });
    }
}

/// Wakes the loop that runs on a thread, if one does: an exception was sent to that thread, which
/// sleeps without Python and would not see it.
pub fn interrupt(thread: u64) {
    let post = with_running(|running| running.get(&thread).cloned());
    if let Some(post) = post {
        // A loop that refuses posts is closed, and does not sleep.
        let _ = post.post(Work::Interrupt);
    }
}
