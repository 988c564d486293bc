//! `int` and `float`.

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult};

impl<'py> Obj<'py> {
    #[inline]
    pub fn int(py: Attached<'py>, value: i64) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyLong_FromLongLong(value) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    #[inline]
    pub fn float(py: Attached<'py>, value: f64) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyFloat_FromDouble(value) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// An instance of `int` or of a subclass (`bool` is one)?
    #[inline]
    pub fn is_int(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyLong_Check(self.as_ptr()) == 1 }
    }

    pub fn is_float(&self) -> bool {
        // SAFETY: I1, attached; compares types.
        unsafe { ffi::PyFloat_Check(self.as_ptr()) == 1 }
    }

    /// The value of an `int` if it fits; `None` if it is larger.
    #[inline]
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

    #[inline]
    pub fn as_f64(&self) -> PyResult<'py, f64> {
        // SAFETY: I1, attached; compares types.
        if unsafe { ffi::PyFloat_CheckExact(self.as_ptr()) } != 0 {
            // SAFETY: a `float`.
            return Ok(unsafe { ffi::PyFloat_AS_DOUBLE(self.as_ptr()) });
        }
        // SAFETY: I1, attached; anything that is no number sets `TypeError`.
        let value = unsafe { ffi::PyFloat_AsDouble(self.as_ptr()) };
        if value == -1.0 && PyError::occurred(self.py()) {
            return Err(PyError::fetch(self.py()));
        }
        Ok(value)
    }

    /// An `int` of any size from its magnitude, lowest byte first.
    pub fn int_from_le(py: Attached<'py>, magnitude: &[u8], negative: bool) -> PyResult<'py, Self> {
        let raw = from_le(magnitude);
        // SAFETY: a new reference, or NULL with an exception set.
        let value = unsafe { Obj::from_new_ref(py, raw) }?;
        if !negative {
            return Ok(value);
        }
        // SAFETY: I1, attached; an `int`.
        let raw = unsafe { ffi::PyNumber_Negative(value.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// Sign and magnitude of an `int`, lowest byte first, without zeroes at the end.
    pub fn int_to_le(&self) -> PyResult<'py, (bool, Vec<u8>)> {
        if !self.is_int() {
            return Err(PyError::new(self.py(), Builtin::TypeError, "not an int"));
        }
        let mut bytes = signed_le(self)?;
        let negative = bytes.last().is_some_and(|&top| top >= 0x80);
        if negative {
            let mut carry = true;
            for byte in &mut bytes {
                (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
            }
        }
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok((negative, bytes))
    }
}

#[cfg(Py_3_13)]
fn from_le(magnitude: &[u8]) -> *mut ffi::PyObject {
    let flags = ffi::Py_ASNATIVEBYTES_LITTLE_ENDIAN | ffi::Py_ASNATIVEBYTES_UNSIGNED_BUFFER;
    // SAFETY: I1, `int_from_le` is attached; pointer and length are those of a slice.
    unsafe {
        ffi::PyLong_FromUnsignedNativeBytes(magnitude.as_ptr().cast(), magnitude.len(), flags)
    }
}

#[cfg(not(Py_3_13))]
fn from_le(magnitude: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: I1, `int_from_le` is attached; pointer and length are those of a slice.
    unsafe { ffi::_PyLong_FromByteArray(magnitude.as_ptr(), magnitude.len(), 1, 0) }
}

/// Two's complement, lowest byte first, with room for the sign.
#[cfg(Py_3_13)]
fn signed_le<'py>(int: &Obj<'py>) -> PyResult<'py, Vec<u8>> {
    let flags = ffi::Py_ASNATIVEBYTES_LITTLE_ENDIAN;
    // SAFETY: I1, attached; an `int`; no room is given, so only the length is asked for.
    let len = unsafe { ffi::PyLong_AsNativeBytes(int.as_ptr(), std::ptr::null_mut(), 0, flags) };
    if len < 0 {
        return Err(PyError::fetch(int.py()));
    }
    let mut bytes = vec![0; len as usize];
    // SAFETY: I1, attached; an `int`, and room of `len` bytes.
    let done =
        unsafe { ffi::PyLong_AsNativeBytes(int.as_ptr(), bytes.as_mut_ptr().cast(), len, flags) };
    if done < 0 {
        return Err(PyError::fetch(int.py()));
    }
    Ok(bytes)
}

#[cfg(not(Py_3_13))]
unsafe extern "C" {
    /// Exported by 3.11 and 3.12, but not declared by pyo3-ffi.
    fn _PyLong_NumBits(int: *mut ffi::PyObject) -> usize;
}

/// Two's complement, lowest byte first, with room for the sign.
#[cfg(not(Py_3_13))]
fn signed_le<'py>(int: &Obj<'py>) -> PyResult<'py, Vec<u8>> {
    // SAFETY: I1, attached; an `int`.
    let bits = unsafe { _PyLong_NumBits(int.as_ptr()) };
    if bits == usize::MAX {
        return Err(PyError::fetch(int.py()));
    }
    let mut bytes = vec![0; bits / 8 + 1];
    // SAFETY: I1, attached; an `int`, and room for its bits and a sign.
    let done = unsafe {
        ffi::_PyLong_AsByteArray(int.as_ptr().cast(), bytes.as_mut_ptr(), bytes.len(), 1, 1)
    };
    PyError::check(int.py(), done)?;
    Ok(bytes)
}
