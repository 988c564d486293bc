//! `list`, `tuple`, `dict`.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::{Attached, Borrowed, Obj, PyError, PyResult};

impl<'py> Obj<'py> {
    /// A tuple of the given objects.
    pub fn tuple(
        py: Attached<'py>,
        items: impl ExactSizeIterator<Item = Obj<'py>>,
    ) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyTuple_New(items.len() as ffi::Py_ssize_t) };
        // SAFETY: a new reference, or NULL with an exception set.
        let tuple = unsafe { Obj::from_new_ref(py, raw) }?;
        for (index, item) in items.enumerate() {
            // SAFETY: a new tuple nobody has seen, `index` within it, the reference given away.
            let done = unsafe {
                ffi::PyTuple_SetItem(raw, index as ffi::Py_ssize_t, item.into_ptr())
            };
            PyError::check(py, done)?;
        }
        Ok(tuple)
    }

    pub fn is_tuple(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyTuple_Check(self.as_ptr()) == 1 }
    }

    /// How many items a tuple has; 0 for anything else.
    pub fn tuple_len(&self) -> usize {
        if !self.is_tuple() {
            return 0;
        }
        // SAFETY: I1, attached; it is a tuple.
        unsafe { ffi::PyTuple_Size(self.as_ptr()) as usize }
    }

    /// An item of a tuple. A tuple never changes, so the borrow holds.
    pub fn tuple_item(&self, index: usize) -> Option<Borrowed<'_, 'py>> {
        if index >= self.tuple_len() {
            return None;
        }
        // SAFETY: I1, attached; a tuple and an index within it.
        let raw = unsafe { ffi::PyTuple_GetItem(self.as_ptr(), index as ffi::Py_ssize_t) };
        // SAFETY: owned by the tuple, which `self` keeps alive.
        NonNull::new(raw).map(|raw| unsafe { Borrowed::from_ptr(raw) })
    }

    pub fn dict(py: Attached<'py>) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyDict_New() };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    pub fn is_dict(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyDict_Check(self.as_ptr()) == 1 }
    }

    /// `self[key]` of a dict, `None` if it is not there.
    pub fn dict_get(&self, key: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        // SAFETY: I1, attached; a dict and a key, both alive.
        let raw = unsafe { ffi::PyDict_GetItemWithError(self.as_ptr(), key.as_ptr()) };
        match NonNull::new(raw) {
            // SAFETY: a borrowed reference; on free-threaded builds the dict may be changed by
            // others, so such dicts are read with `dict_get` only where they are ours alone.
            Some(raw) => Ok(Some(unsafe { Obj::from_borrowed(self.py(), raw) })),
            None if PyError::occurred(self.py()) => Err(PyError::fetch(self.py())),
            None => Ok(None),
        }
    }

    pub fn dict_set(&self, key: &Obj<'py>, value: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; all three are alive.
        let done = unsafe { ffi::PyDict_SetItem(self.as_ptr(), key.as_ptr(), value.as_ptr()) };
        PyError::check(self.py(), done)
    }

    pub fn dict_set_c(&self, key: &CStr, value: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; the key ends in NUL; both objects are alive.
        let done =
            unsafe { ffi::PyDict_SetItemString(self.as_ptr(), key.as_ptr(), value.as_ptr()) };
        PyError::check(self.py(), done)
    }

    pub fn list_new(py: Attached<'py>) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyList_New(0) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    pub fn list_append(&self, item: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; both are alive.
        let done = unsafe { ffi::PyList_Append(self.as_ptr(), item.as_ptr()) };
        PyError::check(self.py(), done)
    }
}
