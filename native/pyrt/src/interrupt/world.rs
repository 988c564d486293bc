//! That nothing moves while a thread is looked at.

use std::marker::PhantomData;

use pyo3_ffi as ffi;

use crate::{Attached, Obj};

/// Runs `body` while no other thread runs Python: where there is a GIL, the caller has it.
#[cfg(not(Py_GIL_DISABLED))]
pub fn while_stopped<T>(_py: Attached<'_>, body: impl FnOnce() -> T) -> T {
    body()
}

/// Runs `body` while no other thread runs Python, if this Python can do that (`can_stop`). Nothing of it may
/// wait for another thread, so locks that threads take while attached are taken inside of it.
#[cfg(Py_GIL_DISABLED)]
pub fn while_stopped<T>(_py: Attached<'_>, body: impl FnOnce() -> T) -> T {
    struct Start(free_threaded::World, *mut ffi::PyInterpreterState);
    impl Drop for Start {
        fn drop(&mut self) {
            // SAFETY: stopped below, by this thread.
            unsafe { (self.0.start)(self.1) };
        }
    }
    let Some(world) = free_threaded::world() else {
        return body();
    };
    // SAFETY: I1, attached.
    let interp = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: I1, attached to that interpreter, which this thread has not stopped.
    unsafe { (world.stop)(interp) };
    let _start = Start(world, interp);
    body()
}

/// Whether other threads can be looked at.
pub fn can_stop() -> bool {
    #[cfg(Py_GIL_DISABLED)]
    let can = free_threaded::world().is_some();
    #[cfg(not(Py_GIL_DISABLED))]
    let can = true;
    can
}

#[cfg(Py_GIL_DISABLED)]
mod free_threaded {
    use std::ffi::CStr;
    use std::mem::transmute;
    use std::ptr::NonNull;
    use std::sync::OnceLock;

    use pyo3_ffi as ffi;

    type Function = unsafe extern "C" fn(*mut ffi::PyInterpreterState);

    #[derive(Clone, Copy)]
    pub struct World {
        pub stop: Function,
        pub start: Function,
    }

    /// Not public, but exported where extension modules of the standard library use them.
    pub fn world() -> Option<World> {
        static WORLD: OnceLock<Option<World>> = OnceLock::new();
        *WORLD.get_or_init(|| {
            Some(World {
                stop: function(c"_PyEval_StopTheWorld")?,
                start: function(c"_PyEval_StartTheWorld")?,
            })
        })
    }

    fn function(name: &CStr) -> Option<Function> {
        // SAFETY: a name that ends in NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: that is what CPython declares under these names.
        NonNull::new(found).map(|found| unsafe { transmute::<NonNull<_>, Function>(found) })
    }
}

/// How many references there are to an object that none but attached threads use.
pub fn references(object: &Obj<'_>) -> isize {
    // SAFETY: I1, attached; an object that is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Keeps the collector from running, which before 3.12 it does where memory is asked for: it calls
/// finalizers, and these let other threads go on.
pub struct NoCollection<'py> {
    #[cfg(not(Py_3_12))]
    was_on: bool,
    attached: PhantomData<Attached<'py>>,
}

impl<'py> NoCollection<'py> {
    pub fn begin(_py: Attached<'py>) -> Self {
        NoCollection {
            // SAFETY: I1, attached.
            #[cfg(not(Py_3_12))]
            was_on: unsafe { ffi::PyGC_Disable() } == 1,
            attached: PhantomData,
        }
    }
}

#[cfg(not(Py_3_12))]
impl Drop for NoCollection<'_> {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: I1, attached since `begin`.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
