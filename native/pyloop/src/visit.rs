//! Visits: work of other threads, which need not be attached, on a loop's own thread.
//!
//! Thread: `Visitors` any; a visit runs on the loop's thread, attached, between callbacks.

use std::os::fd::{AsRawFd, RawFd};

use pyrt::{Obj, PyResult};
use reactor::turn::Post;

use crate::event_loop::{LoopCore, Work};

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
        let class = &crate::state(native)?.loops.core;
        if !event_loop.is_subtype(&class.get(native.py())) {
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

    /// Wakes the loop if it sleeps. `false`: it is closed, and the visit was dropped.
    pub fn post(&self, visit: Box<dyn Visit>) -> bool {
        self.0.post(Work::Visit(visit)).is_ok()
    }
}
