//! Attachment as a type: whoever has an `Attached` may touch Python objects on this thread (I1).

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3_ffi as ffi;

/// Proof that the calling thread is attached to an interpreter. Zero-sized, not `Send`.
#[derive(Clone, Copy)]
pub struct Attached<'py>(PhantomData<(&'py (), *const ())>);

/// Threads of ours that wait to attach; a long drain looks at it (`waiting`).
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How many of our threads wait to attach right now, to any interpreter.
pub fn waiting() -> usize {
    // Relaxed: a hint to be polite, nothing is published through it.
    WAITING.load(Ordering::Relaxed)
}

impl<'py> Attached<'py> {
    /// # Safety
    /// The calling thread is attached to an interpreter for all of `'py`.
    pub unsafe fn assume() -> Self {
        Attached(PhantomData)
    }

    /// Runs `body` detached (the GIL released), and attaches again. `Send` keeps objects out of it:
    /// `Obj` is not `Send`, so none can be touched while detached.
    pub fn detach<T: Send>(self, body: impl FnOnce() -> T + Send) -> T {
        /// Attaches again when dropped, also when `body` unwinds.
        struct Detached(*mut ffi::PyThreadState);
        impl Drop for Detached {
            fn drop(&mut self) {
                restore(self.0);
            }
        }
        // SAFETY: I1, `self` proves attachment; the state is restored by the guard below.
        let state = Detached(unsafe { ffi::PyEval_SaveThread() });
        let value = body();
        drop(state);
        value
    }
}

/// Attaches with `state`, counted in `waiting` while it lasts.
pub(crate) fn restore(state: *mut ffi::PyThreadState) {
    // Relaxed: see `waiting`.
    WAITING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `state` belongs to this thread and is not attached: its owner saved it just before.
    unsafe { ffi::PyEval_RestoreThread(state) };
    WAITING.fetch_sub(1, Ordering::Relaxed);
}
