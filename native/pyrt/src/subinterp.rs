//! Sub-interpreters with a GIL of their own (3.12 and newer).

use crate::memory::Budget;
use crate::thread::{Interp, ThreadState};

/// A new interpreter, made and owned by the calling thread, which is left detached.
/// The caller makes them one after another: CPython's own start code is not safe side by side.
#[cfg(Py_3_12)]
pub fn create(main: Interp, budget: &'static Budget) -> Result<ThreadState, String> {
    use pyo3_ffi as ffi;

    let config = ffi::PyInterpreterConfig {
        use_main_obmalloc: 0,
        allow_fork: 0,
        allow_exec: 0,
        allow_threads: 1,
        // Libraries start daemon threads (Trio's cache does); refusing them hangs such code.
        allow_daemon_threads: 1,
        check_multi_interp_extensions: 1,
        gil: ffi::PyInterpreterConfig_OWN_GIL,
    };
    let Some(mut guest) = ThreadState::new(main) else {
        return Err("no memory for a thread state".to_owned());
    };
    let made = crate::memory::count_birth(budget, || {
        let state = guest.attach_and_leave(|| {
            let mut state = std::ptr::null_mut();
            // SAFETY: attached to the main interpreter; a place for the new state, a full
            // configuration.
            let status = unsafe { ffi::Py_NewInterpreterFromConfig(&mut state, &config) };
            crate::embed::check(status)
        })?;
        let address = state.interp_address();
        Ok((state, address))
    });
    drop(guest);
    made
}

#[cfg(not(Py_3_12))]
pub fn create(_main: Interp, _budget: &'static Budget) -> Result<ThreadState, String> {
    Err("own-GIL sub-interpreters need Python 3.12 or newer".to_owned())
}
