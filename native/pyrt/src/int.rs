//! `int` and `float`.

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyError, PyResult};

impl<'py> Obj<'py> {
    pub fn int(py: Attached<'py>, value: i64) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyLong_FromLongLong(value) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    pub fn float(py: Attached<'py>, value: f64) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyFloat_FromDouble(value) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// An instance of `int` or of a subclass (`bool` is one)?
    pub fn is_int(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyLong_Check(self.as_ptr()) == 1 }
    }

    pub fn is_float(&self) -> bool {
        // SAFETY: I1, attached; compares types.
        unsafe { ffi::PyFloat_Check(self.as_ptr()) == 1 }
    }

    /// The value of an `int` if it fits; `None` if it is larger.
    pub fn as_i64(&self) -> PyResult<'py, Option<i64>> {
        let mut overflow = 0;
        // SAFETY: I1, attached; anything that is no number sets `TypeError`.
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(self.as_ptr(), &mut overflow) };
        if overflow != 0 {
            return Ok(None);
        }
        if value == -1 && PyError::occurred(self.py()) {
            return Err(PyError::fetch(self.py()));
        }
        Ok(Some(value))
    }

    pub fn as_f64(&self) -> PyResult<'py, f64> {
        // SAFETY: I1, attached; anything that is no number sets `TypeError`.
        let value = unsafe { ffi::PyFloat_AsDouble(self.as_ptr()) };
        if value == -1.0 && PyError::occurred(self.py()) {
            return Err(PyError::fetch(self.py()));
        }
        Ok(value)
    }
}
