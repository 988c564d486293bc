//! Flow control, as asyncio's: `pause_writing` above the high mark, `resume_writing` at the low one.
//!
//! Thread: the loop's own.

use pyrt::{Obj, PyResult};

use super::Channel;

/// The marks for `pause_writing` and `resume_writing`.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) high: usize,
    pub(crate) low: usize,
}

pub(super) const HIGH: usize = 64 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            high: HIGH,
            low: HIGH / 4,
        }
    }
}

impl Channel {
    /// More waits to be sent.
    pub(crate) fn maybe_pause<'py>(&self, this: &Obj<'py>, size: usize) -> PyResult<'py, ()> {
        if self.protocol_paused.get() || size <= self.limits.get().high {
            return Ok(());
        }
        self.protocol_paused.set(true);
        self.tell(this, true)
    }

    /// Less waits to be sent.
    pub(crate) fn maybe_resume<'py>(&self, this: &Obj<'py>, size: usize) -> PyResult<'py, ()> {
        if !self.protocol_paused.get() || size > self.limits.get().low {
            return Ok(());
        }
        self.protocol_paused.set(false);
        self.tell(this, false)
    }

    fn tell<'py>(&self, this: &Obj<'py>, pause: bool) -> PyResult<'py, ()> {
        let py = this.py();
        let Some(protocol) = self.protocol.get(py) else {
            return Ok(());
        };
        let names = &self.core(py).types.names;
        let (name, what) = if pause {
            (&names.pause_writing, "protocol.pause_writing() failed")
        } else {
            (&names.resume_writing, "protocol.resume_writing() failed")
        };
        match protocol.call_named(&name.get(py), []) {
            Ok(_) => Ok(()),
            Err(error) => self.report(this, error, what),
        }
    }
}
