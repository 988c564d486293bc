//! `list`, `tuple`, `dict`.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::error::Builtin;
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
            let done =
                unsafe { ffi::PyTuple_SetItem(raw, index as ffi::Py_ssize_t, item.into_ptr()) };
            PyError::check(py, done)?;
        }
        Ok(tuple)
    }

    #[inline]
    pub fn is_tuple(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyTuple_Check(self.as_ptr()) == 1 }
    }

    /// How many items a tuple has; 0 for anything else.
    #[inline]
    pub fn tuple_len(&self) -> usize {
        if !self.is_tuple() {
            return 0;
        }
        // SAFETY: I1, attached; it is a tuple.
        unsafe { ffi::PyTuple_GET_SIZE(self.as_ptr()) as usize }
    }

    /// An item of a tuple. A tuple never changes, so the borrow holds.
    #[inline]
    pub fn tuple_item(&self, index: usize) -> Option<Borrowed<'_, 'py>> {
        if index >= self.tuple_len() {
            return None;
        }
        // SAFETY: I1, attached; a tuple and an index within it.
        let raw = unsafe { ffi::PyTuple_GET_ITEM(self.as_ptr(), index as ffi::Py_ssize_t) };
        // SAFETY: owned by the tuple, which `self` keeps alive.
        NonNull::new(raw).map(|raw| unsafe { Borrowed::from_ptr(raw) })
    }

    pub fn dict(py: Attached<'py>) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyDict_New() };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// A dict with room for about `len` pairs, where Python has a way to say so.
    pub fn dict_for(py: Attached<'py>, len: usize) -> PyResult<'py, Self> {
        #[cfg(not(Py_3_14))]
        if len > 8 {
            // SAFETY: I1, attached.
            let raw = unsafe { _PyDict_NewPresized(len as ffi::Py_ssize_t) };
            // SAFETY: a new reference, or NULL with an exception set.
            return unsafe { Obj::from_new_ref(py, raw) };
        }
        let _ = len;
        Self::dict(py)
    }

    #[inline]
    pub fn is_dict(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyDict_Check(self.as_ptr()) == 1 }
    }

    /// `self[key]` of a dict, `None` if it is not there.
    pub fn dict_get(&self, key: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: I1, attached; a dict and a key, both alive, and a place for the answer.
        let found =
            unsafe { ffi::compat::PyDict_GetItemRef(self.as_ptr(), key.as_ptr(), &mut raw) };
        if found == 0 {
            return Ok(None);
        }
        // SAFETY: found, a new reference; or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }.map(Some)
    }

    #[inline]
    pub fn dict_set(&self, key: &Obj<'py>, value: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; all three are alive.
        let done = unsafe { ffi::PyDict_SetItem(self.as_ptr(), key.as_ptr(), value.as_ptr()) };
        PyError::check(self.py(), done)
    }

    /// `dict.pop(key, None)`
    pub fn dict_remove(&self, key: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; a dict and a key, both alive.
        let done = unsafe { ffi::PyDict_DelItem(self.as_ptr(), key.as_ptr()) };
        match PyError::check(self.py(), done) {
            Err(error) if !error.is_a(Builtin::KeyError) => Err(error),
            _ => Ok(()),
        }
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

    #[inline]
    pub fn is_list(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyList_Check(self.as_ptr()) == 1 }
    }

    /// How many items a list has now; 0 for anything else.
    #[inline]
    pub fn list_len(&self) -> usize {
        if !self.is_list() {
            return 0;
        }
        // SAFETY: I1, attached; it is a list.
        unsafe { ffi::PyList_GET_SIZE(self.as_ptr()) as usize }
    }

    /// An item of a list, owned: the list may change while it is used.
    #[inline]
    pub fn list_item(&self, index: usize) -> Option<Obj<'py>> {
        #[cfg(not(Py_GIL_DISABLED))]
        {
            if index >= self.list_len() {
                return None;
            }
            // SAFETY: I1, attached; a list and an index within it; nobody changes it under the GIL.
            let raw = unsafe { ffi::PyList_GET_ITEM(self.as_ptr(), index as ffi::Py_ssize_t) };
            // SAFETY: a live object of the list; NULL only in a list that is still being made.
            NonNull::new(raw).map(|raw| unsafe { Obj::from_borrowed(self.py(), raw) })
        }
        #[cfg(Py_GIL_DISABLED)]
        {
            if !self.is_list() {
                return None;
            }
            // SAFETY: I1, attached; a list; an index outside it sets an exception.
            let raw = unsafe { ffi::PyList_GetItemRef(self.as_ptr(), index as ffi::Py_ssize_t) };
            // SAFETY: a new reference, or NULL with an exception set.
            unsafe { Obj::from_new_ref(self.py(), raw) }.ok()
        }
    }

    /// How many pairs a dict has now; 0 for anything else.
    #[inline]
    pub fn dict_len(&self) -> usize {
        if !self.is_dict() {
            return 0;
        }
        // SAFETY: I1, attached; it is a dict.
        unsafe { ffi::PyDict_Size(self.as_ptr()) as usize }
    }

    /// The pair after `cursor`, both owned: the dict may change while they are used. Changed, it
    /// gives pairs twice or not at all, but nothing worse.
    ///
    /// Free-threaded: only for a dict that no other thread has (`dict_copy`).
    #[inline]
    pub fn dict_next(&self, cursor: &mut DictCursor) -> Option<(Obj<'py>, Obj<'py>)> {
        if !self.is_dict() {
            return None;
        }
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: I1, attached; a dict; the position is 0 or from the last call.
        let more = unsafe { ffi::PyDict_Next(self.as_ptr(), &mut cursor.0, &mut key, &mut value) };
        if more == 0 {
            return None;
        }
        let (key, value) = (NonNull::new(key)?, NonNull::new(value)?);
        // SAFETY: two live objects of the dict; nothing has run since they were read.
        unsafe {
            Some((
                Obj::from_borrowed(self.py(), key),
                Obj::from_borrowed(self.py(), value),
            ))
        }
    }

    /// `self.update(other)` of a dict.
    pub fn dict_update(&self, other: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; both are alive; anything but a dict sets an exception.
        let done = unsafe { ffi::PyDict_Update(self.as_ptr(), other.as_ptr()) };
        PyError::check(self.py(), done)
    }

    pub fn dict_copy(&self) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; anything but a dict sets an exception.
        let raw = unsafe { ffi::PyDict_Copy(self.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }
}

#[cfg(not(Py_3_14))]
unsafe extern "C" {
    /// Exported by 3.11 to 3.13, but not declared by pyo3-ffi.
    fn _PyDict_NewPresized(len: ffi::Py_ssize_t) -> *mut ffi::PyObject;
}

/// A place in a dict.
#[derive(Debug, Default)]
pub struct DictCursor(ffi::Py_ssize_t);

/// A list or a tuple that is being made. Until `finish` the collector does not know it, so no
/// Python code finds it with items missing.
pub struct Filling<'py> {
    object: Obj<'py>,
    items: NonNull<*mut ffi::PyObject>,
    filled: usize,
    len: usize,
}

impl<'py> Filling<'py> {
    pub fn list(py: Attached<'py>, len: usize) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyList_New(len as ffi::Py_ssize_t) };
        // SAFETY: a new reference, or NULL with an exception set.
        let object = unsafe { Obj::from_new_ref(py, raw) }?;
        // SAFETY: a list; its items start there (NULL for an empty one).
        let items = unsafe { (*raw.cast::<ffi::PyListObject>()).ob_item };
        Ok(Self::start(object, items, len))
    }

    pub fn tuple(py: Attached<'py>, len: usize) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyTuple_New(len as ffi::Py_ssize_t) };
        // SAFETY: a new reference, or NULL with an exception set.
        let object = unsafe { Obj::from_new_ref(py, raw) }?;
        // SAFETY: a tuple; its items are its last field.
        let items = unsafe { &raw mut (*raw.cast::<ffi::PyTupleObject>()).ob_item };
        Ok(Self::start(object, items.cast(), len))
    }

    fn start(object: Obj<'py>, items: *mut *mut ffi::PyObject, len: usize) -> Self {
        if len > 0 {
            // SAFETY: I1, attached; a container that the collector knows. The empty tuple is
            // shared and is left alone.
            unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
        }
        Filling {
            object,
            items: NonNull::new(items).unwrap_or(NonNull::dangling()),
            filled: 0,
            len,
        }
    }

    /// The next item. One too many is dropped.
    #[inline]
    pub fn push(&mut self, item: Obj<'py>) {
        if self.filled < self.len {
            // SAFETY: within the items of a container that only we know; the place is NULL.
            unsafe { self.items.as_ptr().add(self.filled).write(item.into_ptr()) };
            self.filled += 1;
        }
    }

    /// The list or tuple. `SystemError` if items are missing.
    pub fn finish(self) -> PyResult<'py, Obj<'py>> {
        if self.filled < self.len {
            let py = self.object.py();
            return Err(PyError::new(py, Builtin::SystemError, "items are missing"));
        }
        if self.len > 0 {
            // SAFETY: I1, attached; untracked by `start`, complete now.
            unsafe { ffi::PyObject_GC_Track(self.object.as_ptr().cast()) };
        }
        Ok(self.object)
    }

    /// What is there so far, for a message: a list of the items given.
    pub fn so_far(&self) -> PyResult<'py, Obj<'py>> {
        let list = Obj::list_new(self.object.py())?;
        for index in 0..self.filled {
            // SAFETY: one of the items that `push` wrote.
            let item = unsafe { *self.items.as_ptr().add(index) };
            if let Some(item) = NonNull::new(item) {
                // SAFETY: the container owns it, and lives longer than this reference.
                list.list_append(&unsafe { Obj::from_borrowed(list.py(), item) })?;
            }
        }
        Ok(list)
    }
}
