//! References inside native objects: what a Rust body keeps of Python.
//!
//! Thread: attached ones only. A `Member` is not `Send` and lives in bodies that only an attached
//! thread reaches, so dropping it may release at once (I1).

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::held::Held;
use crate::{Attached, Borrowed, Obj};

/// An owned reference in a native object.
#[repr(transparent)]
pub struct Member(NonNull<ffi::PyObject>);

impl Member {
    pub fn new(object: Obj<'_>) -> Self {
        Member(ManuallyDrop::new(object).non_null())
    }

    /// The object, for as long as this member is not replaced.
    #[inline]
    pub fn get<'py>(&self, _py: Attached<'py>) -> Borrowed<'_, 'py> {
        // SAFETY: `self` owns a reference for the borrow.
        unsafe { Borrowed::from_ptr(self.0) }
    }

    /// A reference of its own.
    #[inline]
    pub fn obj<'py>(&self, py: Attached<'py>) -> Obj<'py> {
        // SAFETY: `self` owns a reference, so the object is alive.
        unsafe { Obj::from_borrowed(py, self.0) }
    }

    /// The reference itself.
    #[inline]
    pub fn into_obj(self, py: Attached<'_>) -> Obj<'_> {
        // SAFETY: the reference was the member's, which is gone.
        unsafe { Obj::from_owned(py, ManuallyDrop::new(self).0) }
    }

    #[inline]
    pub fn is(&self, object: &Obj<'_>) -> bool {
        self.0 == object.non_null()
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::PyObject {
        self.0.as_ptr()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // SAFETY: I1, bodies with members are reached by attached threads only.
        unsafe { ffi::Py_DECREF(self.0.as_ptr()) };
    }
}

/// A place for a member that may be filled, read and emptied through a shared body.
pub struct Place(Held<Member>);

impl Default for Place {
    fn default() -> Self {
        Place(Held::new(None))
    }
}

impl Place {
    pub fn new(object: Option<Obj<'_>>) -> Self {
        Place(Held::new(object.map(Member::new)))
    }

    /// A reference of its own: the place may change while the caller uses it.
    #[inline]
    pub fn get<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.0.look(|member| member.map(|member| member.obj(py)))
    }

    #[inline]
    pub fn is_some(&self) -> bool {
        self.0.look(|member| member.is_some())
    }

    /// The old object is released after the new one is in its place.
    pub fn set(&self, object: Option<Obj<'_>>) {
        drop(self.0.replace(object.map(Member::new)));
    }

    pub fn take<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.0.replace(None).map(|member| member.into_obj(py))
    }
}

/// The garbage collector's question: which objects does this body refer to?
pub struct Visit {
    visit: ffi::visitproc,
    arg: *mut c_void,
    answer: c_int,
}

impl Visit {
    pub(crate) fn new(visit: ffi::visitproc, arg: *mut c_void) -> Self {
        Visit {
            visit,
            arg,
            answer: 0,
        }
    }

    pub(crate) fn answer(self) -> c_int {
        self.answer
    }

    pub(crate) fn raw(&mut self, object: *mut ffi::PyObject) {
        if self.answer == 0 && !object.is_null() {
            // SAFETY: the collector's own function with its own argument, for a living object.
            self.answer = unsafe { (self.visit)(object, self.arg) };
        }
    }

    pub fn member(&mut self, member: &Member) {
        self.raw(member.as_ptr());
    }

    pub fn place(&mut self, place: &Place) {
        place.0.look(|member| {
            if let Some(member) = member {
                self.member(member);
            }
        });
    }
}
