//! Frees calls that hold one another without recursion to the end of their chain.
//!
//! Python's own way, the trashcan, is for classes that its garbage collector sees.
//! Thread: the attached one that frees.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use pyo3_ffi as ffi;

/// A call is freed inside of another one's end to this depth.
const DEEPEST: usize = 50;

type Free = unsafe fn(*mut ffi::PyObject);

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Calls whose last reference went at that depth; the one above them frees them.
    static LEFT: RefCell<Vec<(NonNull<ffi::PyObject>, Free)>> = const { RefCell::new(Vec::new()) };
}

/// Frees a call now, or leaves it to the ones that are being freed.
///
/// # Safety
/// The thread is attached, nobody has a reference to `object`, and `free` is of its class.
pub(super) unsafe fn free(object: NonNull<ffi::PyObject>, free: Free) {
    let depth = DEPTH.get();
    // A thread that ends has no list any more.
    if depth == DEEPEST
        && LEFT
            .try_with(|left| left.borrow_mut().push((object, free)))
            .is_ok()
    {
        return;
    }
    DEPTH.set(depth + 1);
    // SAFETY: as the caller says.
    unsafe { free(object.as_ptr()) };
    if depth + 1 == DEEPEST {
        while let Ok(Some((object, free))) = LEFT.try_with(|left| left.borrow_mut().pop()) {
            // SAFETY: left by a caller, who has said so.
            unsafe { free(object.as_ptr()) };
        }
    }
    DEPTH.set(depth);
}
