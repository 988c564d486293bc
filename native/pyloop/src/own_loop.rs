//! The loop of ours that an object belongs to: its thread alone may use the object.

use std::ffi::CStr;
use std::ops::Deref;

use pyrt::native::Governor;
use pyrt::{Attached, Member, Obj, PyResult};

use crate::event_loop::LoopCore;

pub struct OwnLoop(Member);

impl OwnLoop {
    /// Of a `LoopCore`.
    pub(crate) fn new(event_loop: &Obj<'_>) -> Self {
        OwnLoop(Member::new(event_loop.clone()))
    }

    #[inline]
    pub(crate) fn core<'a>(&'a self, py: Attached<'_>) -> &'a LoopCore {
        let event_loop = self.0.get(py);
        let core: *const LoopCore = LoopCore::of(&event_loop);
        // SAFETY: `event_loop` keeps the loop object, and so its core, as long as `self`.
        unsafe { &*core }
    }
}

impl Deref for OwnLoop {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.0
    }
}

impl Governor for OwnLoop {
    fn object(&self) -> &Member {
        &self.0
    }

    #[inline]
    fn is_here(&self, py: Attached<'_>) -> bool {
        self.core(py).runs_here()
    }

    #[cold]
    fn admit<'py>(&self, this: &Obj<'py>, send: Option<&CStr>) -> PyResult<'py, bool> {
        self.core(this.py()).admit(this, send)
    }

    #[cold]
    fn dismiss(&self, py: Attached<'_>) {
        self.core(py).dismiss();
    }
}
