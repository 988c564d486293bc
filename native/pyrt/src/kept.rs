//! A reference that may be stored and moved between threads. It is used and released only by a
//! thread attached to its interpreter (I1, I10): dropped elsewhere, it waits in the release list.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Mutex;

use pyo3_ffi as ffi;

use crate::{Attached, Obj};

/// A stored reference.
pub struct Kept {
    ptr: NonNull<ffi::PyObject>,
    interp: InterpId,
}

/// The interpreter an object belongs to, by the number that Python never gives twice (an address
/// would come again after an interpreter's end).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct InterpId(i64);

impl InterpId {
    pub fn current(_py: Attached<'_>) -> Self {
        // SAFETY: I1, attached, so there is a current interpreter.
        let interp = unsafe { ffi::PyInterpreterState_Get() };
        // SAFETY: the current interpreter is alive.
        InterpId(unsafe { ffi::PyInterpreterState_GetID(interp) })
    }
}

/// Interpreters that have ended: what they had is gone with them.
static ENDED: Mutex<BTreeSet<InterpId>> = Mutex::new(BTreeSet::new());

/// This interpreter ends next: what of it is dropped from here on is forgotten.
pub fn forget_from_now_on(py: Attached<'_>) {
    if let Ok(mut ended) = ENDED.lock() {
        ended.insert(InterpId::current(py));
    }
}

fn has_ended(interp: InterpId) -> bool {
    ENDED.lock().is_ok_and(|ended| ended.contains(&interp))
}

/// References whose `Kept` was dropped by a thread that could not release them.
static RELEASED: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

// SAFETY: the pointer is only followed by a thread attached to its interpreter.
unsafe impl Send for Kept {}
// SAFETY: as above; `get` takes a new reference, it never hands out a mutable one.
unsafe impl Sync for Kept {}

impl Kept {
    pub fn new(obj: Obj<'_>) -> Self {
        let interp = InterpId::current(obj.py());
        let ptr = obj.non_null();
        std::mem::forget(obj);
        Kept { ptr, interp }
    }

    /// The object, for a thread attached to its interpreter; `None` for any other.
    pub fn get<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        // SAFETY: attached to the object's own interpreter; `self` owns a reference.
        (self.interp == InterpId::current(py)).then(|| unsafe { Obj::from_borrowed(py, self.ptr) })
    }

    /// Whether this is that very object; needs no attachment, compares addresses.
    #[inline]
    pub fn is(&self, object: &Obj<'_>) -> bool {
        self.ptr == object.non_null()
    }

    pub fn interp(&self) -> InterpId {
        self.interp
    }

    /// The reference itself, for a thread attached to its interpreter.
    pub fn into_obj(self, py: Attached<'_>) -> Option<Obj<'_>> {
        if self.interp != InterpId::current(py) {
            return None;
        }
        let ptr = self.ptr;
        std::mem::forget(self);
        // SAFETY: I1, attached to its interpreter; the reference was ours and is given up.
        Some(unsafe { Obj::from_owned(py, ptr) })
    }

    /// Releases now.
    pub fn release(self, py: Attached<'_>) {
        if self.interp == InterpId::current(py) {
            let ptr = self.ptr;
            std::mem::forget(self);
            // SAFETY: I1, attached to its interpreter; the reference was ours.
            unsafe { ffi::Py_DECREF(ptr.as_ptr()) };
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if has_ended(self.interp) {
            return;
        }
        let waiting = Kept {
            ptr: self.ptr,
            interp: self.interp,
        };
        match RELEASED.lock() {
            Ok(mut released) => released.push(waiting),
            // A poisoned list means a panic inside `push`: the reference is leaked, not misused.
            Err(_) => std::mem::forget(waiting),
        }
    }
}

/// Releases what was dropped elsewhere and belongs to this interpreter. Returns how many.
pub fn release_dropped(py: Attached<'_>) -> usize {
    let mine = {
        let Ok(mut released) = RELEASED.lock() else {
            return 0;
        };
        if released.is_empty() {
            return 0;
        }
        let interp = InterpId::current(py);
        let all = std::mem::take(&mut *released);
        let (mine, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|k| k.interp == interp);
        *released = others;
        mine
    };
    // I3: the lock is gone before foreign code (a destructor) runs.
    let count = mine.len();
    mine.into_iter().for_each(|kept| kept.release(py));
    count
}
