//! The loop of a server: all that belongs to the server is used by the thread that runs it.
//!
//! A connection, a request and their server use each other's cells, so that a critical section of one of
//! them would not do where there is no GIL: other threads are refused (`Native::admit`).

use std::ffi::CStr;

use pyrt::error::Builtin;
use pyrt::{Attached, Member, Obj, Parks, PyError, PyResult};

use crate::event_loop::LoopCore;

pub struct Home {
    pub event_loop: Member,
    /// It is a loop of ours, which knows where it runs.
    ours: bool,
    /// The thread that started the server: that of any other loop.
    thread: u64,
}

impl Home {
    pub fn new(event_loop: &Obj<'_>, loops: &crate::types::Types) -> Self {
        let ours = event_loop.is_subtype(&loops.core.get(event_loop.py()));
        if !ours {
            Parks::for_good();
        }
        Home {
            event_loop: Member::new(event_loop.clone()),
            ours,
            thread: pyrt::thread::ident(),
        }
    }

    /// Whether the loop runs on the calling thread.
    pub fn is_here(&self, py: Attached<'_>) -> bool {
        if self.ours {
            LoopCore::of(&self.event_loop.get(py)).runs_here()
        } else {
            self.thread == pyrt::thread::ident()
        }
    }

    /// For `Native::admit`: a loop of ours that does not run now lets others in.
    #[cold]
    pub fn admit<'py>(&self, this: &Obj<'py>, send: Option<&CStr>) -> PyResult<'py, bool> {
        if self.ours {
            return LoopCore::of(&self.event_loop.get(this.py())).admit(this, send);
        }
        Err(elsewhere(this.py()))
    }

    /// The same for `Native::dismiss`.
    #[cold]
    pub fn dismiss(&self, py: Attached<'_>) {
        if self.ours {
            LoopCore::of(&self.event_loop.get(py)).dismiss();
        }
    }
}

#[cold]
pub fn elsewhere(py: Attached<'_>) -> PyError<'_> {
    let text = "this is for the thread that runs the loop of the server";
    PyError::new(py, Builtin::RuntimeError, text)
}
