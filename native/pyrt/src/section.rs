//! What the GIL does for native objects, where there is none: one thread at a time is in the methods
//! of an object.
//!
//! A critical section is let go while its thread is detached, as the GIL would be, so it holds what a
//! body of cells needs and can't deadlock. With a GIL all of this is nothing.

use pyo3_ffi as ffi;

use crate::Obj;

/// Runs `body` while no other thread is in a section of `object`.
///
/// # Safety
/// The thread is attached, and `object` lives until `body` has returned.
#[cfg(Py_GIL_DISABLED)]
#[inline]
pub(crate) unsafe fn locked<T>(object: *mut ffi::PyObject, body: impl FnOnce() -> T) -> T {
    /// Ended when dropped, also when a panic unwinds.
    struct Section(*mut ffi::PyCriticalSection);
    impl Drop for Section {
        fn drop(&mut self) {
            // SAFETY: begun below by this thread; dropped once, in the order of the stack.
            unsafe { ffi::PyCriticalSection_End(self.0) };
        }
    }
    let mut place = std::mem::MaybeUninit::<ffi::PyCriticalSection>::uninit();
    // SAFETY: attached and a living object, says the caller; the place stays until the end.
    unsafe { ffi::PyCriticalSection_Begin(place.as_mut_ptr(), object) };
    let _section = Section(place.as_mut_ptr());
    body()
}

/// Runs `body`: the GIL keeps the others out.
///
/// # Safety
/// As above.
#[cfg(not(Py_GIL_DISABLED))]
#[inline]
pub(crate) unsafe fn locked<T>(_object: *mut ffi::PyObject, body: impl FnOnce() -> T) -> T {
    body()
}

/// Runs `body` while no other thread is in a section of either object.
///
/// # Safety
/// The thread is attached, and both objects live until `body` has returned.
#[cfg(Py_GIL_DISABLED)]
pub(crate) unsafe fn locked_both<T>(
    one: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    body: impl FnOnce() -> T,
) -> T {
    /// Ended when dropped, also when a panic unwinds.
    struct Section(*mut ffi::PyCriticalSection2);
    impl Drop for Section {
        fn drop(&mut self) {
            // SAFETY: begun below by this thread; dropped once, in the order of the stack.
            unsafe { ffi::PyCriticalSection2_End(self.0) };
        }
    }
    let mut place = std::mem::MaybeUninit::<ffi::PyCriticalSection2>::uninit();
    // SAFETY: attached and living objects, says the caller; the place stays until the end.
    unsafe { ffi::PyCriticalSection2_Begin(place.as_mut_ptr(), one, other) };
    let _section = Section(place.as_mut_ptr());
    body()
}

/// Runs `body`: the GIL keeps the others out.
///
/// # Safety
/// As above.
#[cfg(not(Py_GIL_DISABLED))]
#[inline]
pub(crate) unsafe fn locked_both<T>(
    _one: *mut ffi::PyObject,
    _other: *mut ffi::PyObject,
    body: impl FnOnce() -> T,
) -> T {
    body()
}

/// The same for whoever has the object: between `alone` and its return nobody else is in a method of
/// it.
#[inline]
pub fn alone<T>(object: &Obj<'_>, body: impl FnOnce() -> T) -> T {
    // SAFETY: I1, `object` is used by an attached thread and outlives the call.
    unsafe { locked(object.as_ptr(), body) }
}
