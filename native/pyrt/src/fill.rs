//! Memory of Python's that Rust fills, and memory of Rust's that a call of Python's fills or reads.
//!
//! Thread: any attached one.

use std::ffi::c_int;
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

/// A `bytes` that nobody has seen yet, filled piece by piece.
pub struct Fresh<'py> {
    object: Obj<'py>,
    room: usize,
    filled: usize,
}

impl<'py> Fresh<'py> {
    /// With room for `room` bytes.
    pub fn new(py: Attached<'py>, room: usize) -> PyResult<'py, Self> {
        let len = room as ffi::Py_ssize_t;
        // SAFETY: I1, attached; without a source the content is left as it is.
        let raw = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), len) };
        // SAFETY: a new reference, or NULL with an exception set.
        let object = unsafe { Obj::from_new_ref(py, raw) }?;
        Ok(Fresh {
            object,
            room,
            filled: 0,
        })
    }

    /// How much more fits.
    pub fn left(&self) -> usize {
        self.room - self.filled
    }

    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Lends the rest to what `body` calls, which says how much of it was filled.
    pub fn fill(
        &mut self,
        body: impl FnOnce(&Obj<'py>) -> PyResult<'py, usize>,
    ) -> PyResult<'py, usize> {
        // SAFETY: I1, attached; a `bytes`.
        let data = unsafe { ffi::PyBytes_AsString(self.object.as_ptr()) };
        // SAFETY: within the `room` bytes of the object, or just behind them.
        let rest = unsafe { data.add(self.filled) };
        let (py, left) = (self.object.py(), self.left());
        // SAFETY: `left` bytes of an object that only `self` has; never read before they are
        // filled.
        let count = unsafe { lend_raw(py, rest.cast(), left, ffi::PyBUF_WRITE, body) }?;
        let count = count.min(left);
        self.filled += count;
        Ok(count)
    }

    /// The `bytes`, of what was filled.
    pub fn finish(self) -> PyResult<'py, Obj<'py>> {
        if self.filled == self.room {
            return Ok(self.object);
        }
        let py = self.object.py();
        let mut raw = self.object.into_ptr();
        // SAFETY: I1, attached; the only reference to a `bytes`, given up: NULL on failure.
        let done = unsafe { _PyBytes_Resize(&mut raw, self.filled as ffi::Py_ssize_t) };
        PyError::check(py, done)?;
        // SAFETY: the reference that `_PyBytes_Resize` left.
        unsafe { Obj::from_new_ref(py, raw) }
    }
}

unsafe extern "C" {
    /// Documented, but not in pyo3-ffi's list.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, len: ffi::Py_ssize_t) -> c_int;
}

/// Lends memory to what `body` calls, as a `memoryview` to read.
#[inline]
pub fn lend<'py, T>(
    py: Attached<'py>,
    memory: &[u8],
    body: impl FnOnce(&Obj<'py>) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    let data = memory.as_ptr().cast_mut();
    // SAFETY: the memory is borrowed for all of this call, and read only.
    unsafe { lend_raw(py, data, memory.len(), ffi::PyBUF_READ, body) }
}

/// Lends memory to what `body` calls, as a `memoryview` to fill.
#[inline]
pub fn lend_mut<'py, T>(
    py: Attached<'py>,
    memory: &mut [u8],
    body: impl FnOnce(&Obj<'py>) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    let (data, len) = (memory.as_mut_ptr(), memory.len());
    // SAFETY: the memory is borrowed for all of this call, by nobody else.
    unsafe { lend_raw(py, data, len, ffi::PyBUF_WRITE, body) }
}

/// # Safety
/// `len` bytes at `data` live until this returns, and may be used as `flags` say.
unsafe fn lend_raw<'py, T>(
    py: Attached<'py>,
    data: *mut u8,
    len: usize,
    flags: c_int,
    body: impl FnOnce(&Obj<'py>) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    // SAFETY: I1, attached; memory that outlives the view, see below.
    let raw = unsafe { ffi::PyMemoryView_FromMemory(data.cast(), len as ffi::Py_ssize_t, flags) };
    // SAFETY: a new reference, or NULL with an exception set.
    let view = unsafe { Obj::from_new_ref(py, raw) }?;
    let done = body(&view);
    // SAFETY: I1, attached; the object is alive.
    if unsafe { ffi::Py_REFCNT(view.as_ptr()) } > 1 {
        // Somebody keeps the view: from now on it shows nothing.
        view.call_method(c"release", &[])?;
    }
    done
}
