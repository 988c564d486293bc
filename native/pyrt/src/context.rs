//! `contextvars.Context`: made, copied, entered and left.
//!
//! Thread: attached ones. A context is entered by one thread at a time.

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyError, PyResult};

/// A context without variables.
pub fn new(py: Attached<'_>) -> PyResult<'_, Obj<'_>> {
    // SAFETY: I1, attached.
    let raw = unsafe { ffi::PyContext_New() };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// `context.copy()`; the context may be entered.
pub fn copy<'py>(context: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; anything but a context sets an exception.
    let raw = unsafe { ffi::PyContext_Copy(context.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(context.py(), raw) }
}

/// `len(context) == 0`
pub fn is_empty(context: &Obj<'_>) -> bool {
    // SAFETY: I1, attached; the object is alive. A context counts its variables.
    unsafe { ffi::PyObject_Size(context.as_ptr()) == 0 }
}

/// Whether a thread is in it.
pub fn is_entered(context: &Obj<'_>) -> bool {
    // It can be entered once only.
    match Entered::enter(context.clone()) {
        Ok(entered) => entered.leave().is_none(),
        Err(_) => true,
    }
}

/// The calling thread is in a context, until this is dropped or left.
pub struct Entered<'py>(Option<Obj<'py>>);

impl<'py> Entered<'py> {
    pub fn enter(context: Obj<'py>) -> PyResult<'py, Self> {
        // SAFETY: I1, attached; one that is entered already sets an exception.
        let done = unsafe { ffi::PyContext_Enter(context.as_ptr()) };
        PyError::check(context.py(), done)?;
        Ok(Entered(Some(context)))
    }

    /// Leaves the context and gives it back; `None` if that was not the one the thread was in.
    pub fn leave(mut self) -> Option<Obj<'py>> {
        self.exit()
    }

    fn exit(&mut self) -> Option<Obj<'py>> {
        let context = self.0.take()?;
        // SAFETY: I1, attached; entered by this thread.
        if unsafe { ffi::PyContext_Exit(context.as_ptr()) } < 0 {
            PyError::fetch(context.py()).unraisable(c"leaving the context of a job");
            return None;
        }
        Some(context)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.exit();
    }
}
