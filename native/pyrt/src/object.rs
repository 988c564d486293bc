//! Owned and borrowed references to Python objects, and what every object can do.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::{Attached, PyError, PyResult};

/// An owned reference. Lives only while its thread is attached: `'py`.
#[repr(transparent)]
pub struct Obj<'py> {
    ptr: NonNull<ffi::PyObject>,
    py: PhantomData<Attached<'py>>,
}

/// A reference somebody else owns for at least `'a`.
#[repr(transparent)]
pub struct Borrowed<'a, 'py> {
    obj: ManuallyDrop<Obj<'py>>,
    owner: PhantomData<&'a ()>,
}

impl<'py> Deref for Borrowed<'_, 'py> {
    type Target = Obj<'py>;

    fn deref(&self) -> &Obj<'py> {
        &self.obj
    }
}

impl<'py> Borrowed<'_, 'py> {
    /// # Safety
    /// `ptr` is an object that somebody owns for all of the borrow.
    pub(crate) unsafe fn from_ptr(ptr: NonNull<ffi::PyObject>) -> Self {
        Borrowed {
            obj: ManuallyDrop::new(Obj {
                ptr,
                py: PhantomData,
            }),
            owner: PhantomData,
        }
    }
}

impl<'py> Obj<'py> {
    /// Takes over a new reference; NULL becomes the exception that is set.
    ///
    /// # Safety
    /// `ptr` is a reference the caller owns and gives up, or NULL with an exception set.
    pub unsafe fn from_new_ref(py: Attached<'py>, ptr: *mut ffi::PyObject) -> PyResult<'py, Self> {
        match NonNull::new(ptr) {
            Some(ptr) => Ok(Obj {
                ptr,
                py: PhantomData,
            }),
            None => Err(PyError::fetch(py)),
        }
    }

    /// Takes over a reference that is there already.
    ///
    /// # Safety
    /// `ptr` is alive, and the reference belongs to the caller, who gives it up.
    #[inline]
    pub(crate) unsafe fn from_owned(_py: Attached<'py>, ptr: NonNull<ffi::PyObject>) -> Self {
        Obj {
            ptr,
            py: PhantomData,
        }
    }

    /// # Safety
    /// `ptr` is a live object.
    pub unsafe fn from_borrowed(_py: Attached<'py>, ptr: NonNull<ffi::PyObject>) -> Self {
        // SAFETY: I1, attached; the caller says the object is alive.
        unsafe { ffi::Py_INCREF(ptr.as_ptr()) };
        Obj {
            ptr,
            py: PhantomData,
        }
    }

    /// The proof this object carries with it.
    pub fn py(&self) -> Attached<'py> {
        // SAFETY: an `Obj<'py>` exists only while its thread is attached.
        unsafe { Attached::assume() }
    }

    pub fn as_ptr(&self) -> *mut ffi::PyObject {
        self.ptr.as_ptr()
    }

    pub(crate) fn non_null(&self) -> NonNull<ffi::PyObject> {
        self.ptr
    }

    /// Gives the reference away; the caller owns it now.
    pub fn into_ptr(self) -> *mut ffi::PyObject {
        ManuallyDrop::new(self).as_ptr()
    }

    /// The same object?
    pub fn is(&self, other: &Obj<'_>) -> bool {
        self.ptr == other.ptr
    }

    pub fn none(py: Attached<'py>) -> Self {
        // SAFETY: the singleton lives as long as the interpreter.
        unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(ffi::Py_None())) }
    }

    pub fn not_implemented(py: Attached<'py>) -> Self {
        // SAFETY: the singleton lives as long as the interpreter.
        unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(ffi::Py_NotImplemented())) }
    }

    pub fn bool(py: Attached<'py>, value: bool) -> Self {
        // SAFETY: both singletons live as long as the interpreter.
        let raw = unsafe {
            if value {
                ffi::Py_True()
            } else {
                ffi::Py_False()
            }
        };
        // SAFETY: never NULL, alive as long as the interpreter.
        unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(raw)) }
    }

    pub fn is_none(&self) -> bool {
        // SAFETY: reads the address of a singleton.
        self.as_ptr() == unsafe { ffi::Py_None() }
    }

    /// `Some` for the two singletons `True` and `False`.
    pub fn as_bool(&self) -> Option<bool> {
        // SAFETY: reads the address of a singleton.
        if self.as_ptr() == unsafe { ffi::Py_True() } {
            return Some(true);
        }
        // SAFETY: reads the address of a singleton.
        (self.as_ptr() == unsafe { ffi::Py_False() }).then_some(false)
    }

    pub fn is_truthy(&self) -> PyResult<'py, bool> {
        // SAFETY: I1, attached; the object is alive.
        match unsafe { ffi::PyObject_IsTrue(self.as_ptr()) } {
            -1 => Err(PyError::fetch(self.py())),
            other => Ok(other == 1),
        }
    }

    /// The type of this object, owned: user code may give the object another one
    /// (`obj.__class__ = …`), and the object was all that kept the first.
    pub fn type_of(&self) -> Obj<'py> {
        // SAFETY: every live object has a type.
        let raw = unsafe { ffi::Py_TYPE(self.as_ptr()) };
        // SAFETY: a type is an object, never NULL, and alive: nothing has run since it was read.
        unsafe { Obj::from_borrowed(self.py(), NonNull::new_unchecked(raw.cast())) }
    }

    /// Whether this is exactly an instance of `class`, not of a subclass.
    pub fn is_exactly(&self, class: &Obj<'_>) -> bool {
        // SAFETY: every live object has a type.
        unsafe { ffi::Py_TYPE(self.as_ptr()) }.cast() == class.as_ptr()
    }

    pub fn is_instance(&self, class: &Obj<'py>) -> PyResult<'py, bool> {
        // SAFETY: I1, attached; both are alive.
        match unsafe { ffi::PyObject_IsInstance(self.as_ptr(), class.as_ptr()) } {
            -1 => Err(PyError::fetch(self.py())),
            other => Ok(other == 1),
        }
    }

    /// `getattr(self, name)`, the name a `str`.
    pub fn getattr(&self, name: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; both are alive.
        let raw = unsafe { ffi::PyObject_GetAttr(self.as_ptr(), name.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    pub fn getattr_c(&self, name: &CStr) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; the name ends in NUL.
        let raw = unsafe { ffi::PyObject_GetAttrString(self.as_ptr(), name.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    pub fn setattr_c(&self, name: &CStr, value: &Obj<'py>) -> PyResult<'py, ()> {
        // SAFETY: I1, attached; the name ends in NUL; both are alive.
        let done =
            unsafe { ffi::PyObject_SetAttrString(self.as_ptr(), name.as_ptr(), value.as_ptr()) };
        PyError::check(self.py(), done)
    }

    /// `str(self)`
    pub fn str(&self) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; the object is alive.
        let raw = unsafe { ffi::PyObject_Str(self.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    /// `repr(self)`
    pub fn repr(&self) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; the object is alive.
        let raw = unsafe { ffi::PyObject_Repr(self.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    pub fn hash(&self) -> PyResult<'py, isize> {
        // SAFETY: I1, attached; the object is alive.
        match unsafe { ffi::PyObject_Hash(self.as_ptr()) } {
            -1 => Err(PyError::fetch(self.py())),
            hash => Ok(hash),
        }
    }

    /// `iter(self)`
    pub fn iter(&self) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; the object is alive.
        let raw = unsafe { ffi::PyObject_GetIter(self.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    /// `next(self)`, `None` at the end.
    pub fn next(&self) -> PyResult<'py, Option<Obj<'py>>> {
        // SAFETY: I1, attached; the object is alive and, being from `iter`, an iterator.
        let raw = unsafe { ffi::PyIter_Next(self.as_ptr()) };
        if raw.is_null() && !PyError::occurred(self.py()) {
            return Ok(None);
        }
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }.map(Some)
    }
}

impl Clone for Obj<'_> {
    fn clone(&self) -> Self {
        // SAFETY: I1, attached; the object is alive.
        unsafe { Obj::from_borrowed(self.py(), self.ptr) }
    }
}

impl Drop for Obj<'_> {
    fn drop(&mut self) {
        // SAFETY: I1, attached; this reference is ours.
        unsafe { ffi::Py_DECREF(self.ptr.as_ptr()) };
    }
}

impl fmt::Debug for Obj<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Obj({:p})", self.ptr)
    }
}
