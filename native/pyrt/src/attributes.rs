//! Attributes that Python sets on native instances.
//!
//! Thread: attached ones. Python itself makes the dictionary when the first attribute is set; until then it costs a
//! pointer. An attribute of the name of a method is found in its place, as with instances of Python's classes.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use pyo3_ffi as ffi;

use crate::member::Visit;

/// The `__dict__` of an instance, NULL until it is first used. A part of its body (`Native::ATTRIBUTES`).
#[repr(transparent)]
pub struct Attributes(Cell<*mut ffi::PyObject>);

/// Where the body of a `T` has its attributes; made by `attributes_at!`.
pub struct At<T>(usize, PhantomData<T>);

impl<T> At<T> {
    /// # Safety
    /// A `T` has its `Attributes` there.
    pub const unsafe fn new(offset: usize) -> Self {
        At(offset, PhantomData)
    }

    pub(crate) const fn offset(&self) -> usize {
        self.0
    }
}

/// `attributes_at!(Class, field)`, for `Native::ATTRIBUTES`.
#[macro_export]
macro_rules! attributes_at {
    ($class:ty, $($field:ident).+) => {{
        const _: fn(&$class) -> &$crate::Attributes = |body| &body.$($field).+;
        // SAFETY: the line above does not compile for another type of field.
        Some(unsafe { $crate::attributes::At::new(::std::mem::offset_of!($class, $($field).+)) })
    }};
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes(Cell::new(ptr::null_mut()))
    }
}

impl Attributes {
    /// # Safety
    /// `object` has attributes at `offset`.
    unsafe fn of<'a>(object: *mut ffi::PyObject, offset: usize) -> &'a Self {
        // SAFETY: the caller's word.
        unsafe { &*object.byte_add(offset).cast::<Attributes>() }
    }

    /// The garbage collector's question.
    ///
    /// # Safety
    /// `object` has attributes at `offset`, if there is one.
    pub(crate) unsafe fn visit(
        object: *mut ffi::PyObject,
        offset: Option<usize>,
        visit: &mut Visit,
    ) {
        if let Some(offset) = offset {
            // SAFETY: the caller's word.
            visit.raw(unsafe { Self::of(object, offset) }.0.get());
        }
    }

    /// # Safety
    /// Attached; `object` has attributes at `offset`, if there is one.
    pub(crate) unsafe fn clear(object: *mut ffi::PyObject, offset: Option<usize>) {
        let Some(offset) = offset else { return };
        // SAFETY: the caller's word.
        let attributes = unsafe { Self::of(object, offset) };
        // Out of its place first: what goes away may look at it.
        let dict = attributes.0.replace(ptr::null_mut());
        // SAFETY: I1, attached; a reference that was the instance's, or NULL.
        unsafe { ffi::Py_XDECREF(dict) };
    }
}
