//! Memory of Python's that Rust fills: what `recv_into` needs.
//!
//! Thread: any attached one.

use std::mem::MaybeUninit;

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyError, PyResult};

/// Writable memory that an object lends until this is dropped.
pub struct Writable<'py> {
    view: ffi::Py_buffer,
    py: Attached<'py>,
}

impl<'py> Writable<'py> {
    /// Contiguous and writable, or Python's error.
    pub fn of(object: &Obj<'py>) -> PyResult<'py, Self> {
        let mut view = MaybeUninit::<ffi::Py_buffer>::zeroed();
        let flags = ffi::PyBUF_WRITABLE;
        // SAFETY: I1, attached; a living object and memory for one view.
        let done = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) };
        PyError::check(object.py(), done)?;
        Ok(Writable {
            // SAFETY: filled by the call above.
            view: unsafe { view.assume_init() },
            py: object.py(),
        })
    }

    /// The memory. Attached, so nobody else writes to it meanwhile.
    pub fn memory(&mut self) -> &mut [u8] {
        if self.view.buf.is_null() || self.view.len <= 0 {
            return &mut [];
        }
        // SAFETY: `len` bytes, lent for writing until `PyBuffer_Release`.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast(), self.view.len as usize) }
    }
}

impl Drop for Writable<'_> {
    fn drop(&mut self) {
        let _ = self.py;
        // SAFETY: I1, attached; a view from `PyObject_GetBuffer`, released once.
        unsafe { ffi::PyBuffer_Release(&mut self.view) };
    }
}
