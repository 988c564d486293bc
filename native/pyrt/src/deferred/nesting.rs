//! Frees calls that hold one another without recursion to the end of their chain.
//!
//! Python's own way, the trashcan, is for classes that its garbage collector sees.
//! Thread: the attached one that frees.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

/// A call is freed inside of another one's end to this depth.
const DEEPEST: usize = 50;

type Free = unsafe fn(*mut ffi::PyObject);

#[derive(Clone, Copy)]
struct Nest {
    /// A finalizer may run code of another interpreter on its thread, whose objects only it may free.
    interp: *mut ffi::PyInterpreterState,
    depth: usize,
}

thread_local! {
    static NEST: Cell<Nest> = const { Cell::new(Nest { interp: ptr::null_mut(), depth: 0 }) };
    /// Calls whose last reference went at that depth; the one above them frees them.
    static LEFT: RefCell<Vec<(NonNull<ffi::PyObject>, Free)>> = const { RefCell::new(Vec::new()) };
}

/// Frees a call now, or leaves it to the ones that are being freed.
///
/// # Safety
/// The thread is attached, nobody has a reference to `object`, and `free` is of its class.
pub(super) unsafe fn free(object: NonNull<ffi::PyObject>, free: Free) {
    // SAFETY: I1, attached.
    let interp = unsafe { ffi::PyInterpreterState_Get() };
    let outer = NEST.get();
    let depth = match outer.interp == interp {
        true => outer.depth,
        false => 0,
    };
    // A thread that ends has no list any more.
    if depth == DEEPEST
        && LEFT
            .try_with(|left| left.borrow_mut().push((object, free)))
            .is_ok()
    {
        return;
    }
    let depth = depth + 1;
    NEST.set(Nest { interp, depth });
    // What is on the list already was left to others, perhaps of another interpreter.
    let others = LEFT.try_with(|left| left.borrow().len()).unwrap_or(0);
    // SAFETY: as the caller says.
    unsafe { free(object.as_ptr()) };
    if depth == DEEPEST {
        while let Some((object, free)) = last_after(others) {
            // SAFETY: left by a caller, who has said so, in this interpreter.
            unsafe { free(object.as_ptr()) };
        }
    }
    NEST.set(outer);
}

/// The last one of the list, without those that were on it before.
fn last_after(others: usize) -> Option<(NonNull<ffi::PyObject>, Free)> {
    let pop = |left: &RefCell<Vec<_>>| {
        let mut left = left.borrow_mut();
        (left.len() > others).then(|| left.pop()).flatten()
    };
    LEFT.try_with(pop).ok().flatten()
}
