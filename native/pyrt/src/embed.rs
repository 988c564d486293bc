//! Python inside a host process: initialised once, by a thread of ours, never ended.

use std::ffi::{CStr, CString, c_int};

use pyo3_ffi as ffi;

use crate::thread::ThreadState;

/// A module that is part of the host library.
pub struct Inbuilt {
    pub name: &'static CStr,
    pub init: extern "C" fn() -> *mut ffi::PyObject,
}

/// `Py_GetVersion()`, e.g. `3.13.0 (main, …)`. May be called before Python is initialised.
pub fn version() -> String {
    // SAFETY: no precondition; a static text.
    let text = unsafe { CStr::from_ptr(ffi::Py_GetVersion()) };
    text.to_string_lossy().into_owned()
}

/// Whether some thread has initialised Python in this process.
pub fn is_initialized() -> bool {
    // SAFETY: no precondition.
    unsafe { ffi::Py_IsInitialized() == 1 }
}

/// Initialises Python on the calling thread, which owns the main thread state from then on and
/// is left detached. `program` is the path of the Python executable: prefix, site-packages and
/// a virtual environment follow from it.
pub fn initialize(program: &str, inbuilt: &[Inbuilt]) -> Result<ThreadState, String> {
    for module in inbuilt {
        let init = module.init;
        // SAFETY: before initialisation; name and function live for ever.
        let done = unsafe { ffi::PyImport_AppendInittab(module.name.as_ptr(), Some(init)) };
        if done != 0 {
            return Err("no memory for the table of modules".to_owned());
        }
    }
    crate::memory::note_environment();
    preinitialize()?;
    let program = CString::new(program).map_err(|_| "a NUL in the path of Python".to_owned())?;

    let mut config = std::mem::MaybeUninit::<ffi::PyConfig>::zeroed();
    let config = config.as_mut_ptr();
    // SAFETY: memory for one `PyConfig`, filled by this call.
    unsafe { ffi::PyConfig_InitPythonConfig(config) };
    // SAFETY: initialised just above, ours alone.
    let fields = unsafe { &mut *config };
    fields.install_signal_handlers = 0;
    fields.parse_argv = 0;
    fields.safe_path = 1;
    let name = &raw mut fields.program_name;
    // SAFETY: a field of this configuration and a text that ends in NUL.
    let named = unsafe { ffi::PyConfig_SetBytesString(config, name, program.as_ptr()) };
    let started = check(named).and_then(|()| {
        // SAFETY: pre-initialised, configured, not yet initialised (the caller is the only one).
        check(unsafe { ffi::Py_InitializeFromConfig(config) })
    });
    // SAFETY: initialised above; cleared once.
    unsafe { ffi::PyConfig_Clear(config) };
    started?;
    ThreadState::adopt().ok_or_else(|| "Python has no thread state after its start".to_owned())
}

/// UTF-8 everywhere, whatever the locale of the host process; the locale itself is left alone.
fn preinitialize() -> Result<(), String> {
    let mut config = std::mem::MaybeUninit::<ffi::PyPreConfig>::zeroed();
    let config = config.as_mut_ptr();
    // SAFETY: memory for one `PyPreConfig`, filled by this call.
    unsafe { ffi::PyPreConfig_InitPythonConfig(config) };
    // SAFETY: initialised just above, ours alone.
    let fields = unsafe { &mut *config };
    fields.utf8_mode = 1;
    fields.coerce_c_locale = 0;
    fields.configure_locale = 0;
    // SAFETY: a filled configuration.
    check(unsafe { ffi::Py_PreInitialize(config) })
}

pub(crate) fn check(status: ffi::PyStatus) -> Result<(), String> {
    // SAFETY: a status as Python gave it.
    if unsafe { ffi::PyStatus_Exception(status) } == 0 {
        return Ok(());
    }
    if status.err_msg.is_null() {
        return Err(format!(
            "Python ended its start with {}",
            status.exitcode as c_int
        ));
    }
    // SAFETY: a static text.
    let text = unsafe { CStr::from_ptr(status.err_msg) };
    Err(text.to_string_lossy().into_owned())
}
