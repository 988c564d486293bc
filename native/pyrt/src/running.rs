//! What a loop needs of the runtime between its callbacks: contexts, signals, sleep.
//!
//! Thread: the attached one that runs the loop.

use std::ptr;

use pyo3_ffi as ffi;

use crate::attach::restore;
use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult};

/// `contextvars.copy_context()`
#[inline]
pub fn copy_context(py: Attached<'_>) -> PyResult<'_, Obj<'_>> {
    // SAFETY: I1, attached.
    let raw = unsafe { ffi::PyContext_CopyCurrent() };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// Runs `body` inside a context.
#[inline]
pub fn in_context<'py, T>(
    context: &Obj<'py>,
    body: impl FnOnce() -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    let py = context.py();
    // SAFETY: I1, attached; a context that is alive.
    PyError::check(py, unsafe { ffi::PyContext_Enter(context.as_ptr()) })?;
    let result = body();
    // SAFETY: I1, attached; entered above.
    PyError::check(py, unsafe { ffi::PyContext_Exit(context.as_ptr()) })?;
    result
}

/// Runs the Python handlers of signals that have come; only the main thread does anything here.
#[inline]
pub fn check_signals(py: Attached<'_>) -> PyResult<'_, ()> {
    // SAFETY: I1, attached.
    PyError::check(py, unsafe { ffi::PyErr_CheckSignals() })
}

/// The time between `detach` and `attach`, where the closure of `Attached::detach` does not fit.
pub struct Pause(*mut ffi::PyThreadState);

impl Pause {
    /// # Safety
    /// The thread is attached and touches nothing of Python until this is dropped.
    pub unsafe fn detach() -> Self {
        // SAFETY: attached, as the caller says; restored when dropped.
        Pause(unsafe { ffi::PyEval_SaveThread() })
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        restore(self.0);
    }
}

impl<'py> PyError<'py> {
    /// `OSError` (or the subclass for its number) of a failed system call.
    #[cold]
    pub fn from_io(py: Attached<'py>, error: &std::io::Error) -> Self {
        let Some(number) = error.raw_os_error() else {
            return PyError::new(py, Builtin::OSError, &error.to_string());
        };
        match os_error(py, number) {
            Ok(value) => PyError::from_value(value),
            Err(error) => error,
        }
    }
}

/// `OSError(number, os.strerror(number))`
fn os_error(py: Attached<'_>, number: i32) -> PyResult<'_, Obj<'_>> {
    let text = crate::call::import_c(py, c"os")?;
    let number = Obj::int(py, i64::from(number))?;
    let text = text.call_method(c"strerror", &[&number])?;
    let class = crate::call::builtins(py).dict_get(&Obj::text(py, "OSError")?)?;
    match class {
        Some(class) => class.call(&[&number, &text]),
        None => Err(PyError::new(
            py,
            Builtin::SystemError,
            "there is no OSError",
        )),
    }
}

impl<'py> Obj<'py> {
    /// `self.name(*args)`, without making a bound method. The name is a `str`.
    #[inline]
    pub fn call_named<const N: usize>(
        &self,
        name: &Obj<'py>,
        args: [&Obj<'py>; N],
    ) -> PyResult<'py, Obj<'py>> {
        // Beyond the places below is no argument of ours.
        const { assert!(N <= 4, "call_named takes at most four arguments") };
        let mut raw = [ptr::null_mut(); 6];
        raw[1] = self.as_ptr();
        for (place, arg) in raw[2..].iter_mut().zip(args) {
            *place = arg.as_ptr();
        }
        let count = (N + 1) | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        let args = raw[1..].as_ptr();
        // SAFETY: I1, attached; `N + 1` living objects with a place of ours before them.
        let result =
            unsafe { ffi::PyObject_VectorcallMethod(name.as_ptr(), args, count, ptr::null_mut()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), result) }
    }

    /// Calls with a few arguments, of which the last are given by the names in the tuple, without memory of its own.
    #[inline]
    pub fn call_few<const N: usize>(
        &self,
        args: [&Obj<'py>; N],
        names: Option<&Obj<'py>>,
    ) -> PyResult<'py, Obj<'py>> {
        let raw = args.map(Obj::as_ptr);
        let count = N - names.map_or(0, Obj::tuple_len);
        let names = names.map_or(ptr::null_mut(), Obj::as_ptr);
        // SAFETY: I1, attached; callee, arguments and names are alive.
        let result = unsafe { ffi::PyObject_Vectorcall(self.as_ptr(), raw.as_ptr(), count, names) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), result) }
    }
}
