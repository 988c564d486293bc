//! The loop of a server: all that belongs to the server is used by the thread that runs it.
//!
//! A connection, a request and their server use each other's cells, so that a critical section of one of
//! them would not do where there is no GIL: other threads are refused (`Governor::admit`).

use std::ffi::CStr;

use pyrt::error::Builtin;
use pyrt::native::Governor;
use pyrt::{Attached, Member, Obj, Parks, PyError, PyResult};

use crate::own_loop::OwnLoop;

pub enum Home {
    /// It knows where it runs, and lets others in while it rests.
    Own(OwnLoop),
    Other {
        event_loop: Member,
        /// The one that started the server.
        thread: u64,
    },
}

impl Home {
    pub fn new(event_loop: &Obj<'_>, loops: &crate::types::Types) -> Self {
        if event_loop.is_subtype(&loops.core.get(event_loop.py())) {
            return Home::Own(OwnLoop::new(event_loop));
        }
        Parks::for_good();
        Home::Other {
            event_loop: Member::new(event_loop.clone()),
            thread: pyrt::thread::ident(),
        }
    }
}

impl Governor for Home {
    fn object(&self) -> &Member {
        match self {
            Home::Own(event_loop) => event_loop,
            Home::Other { event_loop, .. } => event_loop,
        }
    }

    #[inline]
    fn is_here(&self, py: Attached<'_>) -> bool {
        match self {
            Home::Own(event_loop) => event_loop.is_here(py),
            Home::Other { thread, .. } => *thread == pyrt::thread::ident(),
        }
    }

    #[cold]
    fn admit<'py>(&self, this: &Obj<'py>, send: Option<&CStr>) -> PyResult<'py, bool> {
        match self {
            Home::Own(event_loop) => event_loop.admit(this, send),
            Home::Other { .. } => Err(elsewhere(this.py())),
        }
    }

    #[cold]
    fn dismiss(&self, py: Attached<'_>) {
        if let Home::Own(event_loop) = self {
            event_loop.dismiss(py);
        }
    }
}

#[cold]
pub fn elsewhere(py: Attached<'_>) -> PyError<'_> {
    let text = "this is for the thread that runs the loop of the server";
    PyError::new(py, Builtin::RuntimeError, text)
}
