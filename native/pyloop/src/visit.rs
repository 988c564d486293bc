//! Visits: work of other threads, which need not be attached, on a loop's own thread.
//!
//! Thread: `Visitors` any; a visit runs on the loop's thread, attached, between callbacks.

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

    /// Wakes the loop if it sleeps. `false`: it is closed, and the visit was dropped.
    pub fn post(&self, visit: Box<dyn Visit>) -> bool {
        self.0.post(Work::Visit(visit)).is_ok()
    }
}
