//! Python exceptions as values.

use std::ffi::CStr;

use pyo3_ffi as ffi;

use crate::{Attached, Obj};

pub type PyResult<'py, T> = Result<T, PyError<'py>>;

/// A raised exception, taken out of the thread state.
#[derive(Debug, Clone)]
pub struct PyError<'py> {
    value: Obj<'py>,
}

/// The built-in classes that Rust code raises by itself, or looks for.
#[derive(Clone, Copy, Debug)]
pub enum Builtin {
    BaseExceptionGroup,
    Exception,
    ImportError,
    KeyError,
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    OverflowError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
    AttributeError,
    OSError,
    NotImplementedError,
}

impl Builtin {
    fn class(self) -> *mut ffi::PyObject {
        // SAFETY: the exception classes are statics of an initialised interpreter.
        unsafe {
            match self {
                Builtin::BaseExceptionGroup => ffi::PyExc_BaseExceptionGroup,
                Builtin::Exception => ffi::PyExc_Exception,
                Builtin::ImportError => ffi::PyExc_ImportError,
                Builtin::KeyError => ffi::PyExc_KeyError,
                Builtin::KeyboardInterrupt => ffi::PyExc_KeyboardInterrupt,
                Builtin::SystemExit => ffi::PyExc_SystemExit,
                Builtin::MemoryError => ffi::PyExc_MemoryError,
                Builtin::OverflowError => ffi::PyExc_OverflowError,
                Builtin::RecursionError => ffi::PyExc_RecursionError,
                Builtin::RuntimeError => ffi::PyExc_RuntimeError,
                Builtin::SyntaxError => ffi::PyExc_SyntaxError,
                Builtin::SystemError => ffi::PyExc_SystemError,
                Builtin::TypeError => ffi::PyExc_TypeError,
                Builtin::ValueError => ffi::PyExc_ValueError,
                Builtin::AttributeError => ffi::PyExc_AttributeError,
                Builtin::OSError => ffi::PyExc_OSError,
                Builtin::NotImplementedError => ffi::PyExc_NotImplementedError,
            }
        }
    }
}

impl<'py> PyError<'py> {
    /// Takes the exception that is set. Without one (a bug of some C code): `SystemError`.
    pub fn fetch(py: Attached<'py>) -> Self {
        match Self::take(py) {
            Some(error) => error,
            None => Self::new(py, Builtin::SystemError, "an error without an exception"),
        }
    }

    /// Takes the exception that is set, if there is one.
    pub fn take(py: Attached<'py>) -> Option<Self> {
        let raw = raised(py);
        if raw.is_null() {
            return None;
        }
        // SAFETY: `raised` gave a new reference.
        unsafe { Obj::from_new_ref(py, raw) }
            .ok()
            .map(|value| PyError { value })
    }

    pub fn occurred(_py: Attached<'py>) -> bool {
        // SAFETY: I1, attached.
        !unsafe { ffi::PyErr_Occurred() }.is_null()
    }

    /// For C functions that answer 0, or -1 with an exception set.
    pub fn check(py: Attached<'py>, status: std::ffi::c_int) -> PyResult<'py, ()> {
        if status < 0 {
            Err(Self::fetch(py))
        } else {
            Ok(())
        }
    }

    /// An exception of a built-in class.
    pub fn new(py: Attached<'py>, class: Builtin, message: &str) -> Self {
        // SAFETY: I1, attached; pointer and length are those of a `str`.
        let text = unsafe {
            ffi::PyUnicode_FromStringAndSize(
                message.as_ptr().cast(),
                message.len() as ffi::Py_ssize_t,
            )
        };
        if !text.is_null() {
            // SAFETY: I1, attached; both are alive, `PyErr_SetObject` takes its own references.
            unsafe { ffi::PyErr_SetObject(class.class(), text) };
            // SAFETY: the reference made above is ours.
            unsafe { ffi::Py_DECREF(text) };
        }
        Self::fetch(py)
    }

    /// An exception of the given class with the given arguments.
    pub fn of_class(class: &Obj<'py>, args: &[&Obj<'py>]) -> Self {
        match class.call(args) {
            Ok(value) => PyError { value },
            Err(error) => error,
        }
    }

    pub fn from_value(value: Obj<'py>) -> Self {
        PyError { value }
    }

    pub fn value(&self) -> &Obj<'py> {
        &self.value
    }

    pub fn py(&self) -> Attached<'py> {
        self.value.py()
    }

    /// Whether it is an instance of a built-in class.
    pub fn is_a(&self, class: Builtin) -> bool {
        // SAFETY: I1, attached; both are alive.
        unsafe { ffi::PyErr_GivenExceptionMatches(self.value.as_ptr(), class.class()) == 1 }
    }

    /// Sets it again, for a C function that returns NULL or -1.
    pub fn restore(self) {
        // SAFETY: every live object has a type.
        let class = unsafe { ffi::Py_TYPE(self.value.as_ptr()) };
        // SAFETY: I1, attached; an exception instance and its class.
        unsafe { ffi::PyErr_SetObject(class.cast(), self.value.as_ptr()) };
    }

    /// Reports it through `sys.unraisablehook`, saying where it came up.
    pub fn unraisable(self, place: &CStr) {
        let py = self.py();
        // SAFETY: I1, attached; the text ends in NUL.
        let context = unsafe { ffi::PyUnicode_FromString(place.as_ptr()) };
        self.restore();
        // SAFETY: I1, attached; an exception is set; a NULL context is allowed.
        unsafe { ffi::PyErr_WriteUnraisable(context) };
        // SAFETY: the reference is ours, or NULL.
        unsafe { ffi::Py_XDECREF(context) };
        // SAFETY: I1; `PyUnicode_FromString` may have failed and set an error of its own.
        unsafe { ffi::PyErr_Clear() };
        let _ = py;
    }
}

#[cfg(Py_3_12)]
fn raised(_py: Attached<'_>) -> *mut ffi::PyObject {
    // SAFETY: I1, attached.
    unsafe { ffi::PyErr_GetRaisedException() }
}

#[cfg(not(Py_3_12))]
fn raised(_py: Attached<'_>) -> *mut ffi::PyObject {
    let (mut class, mut value, mut trace) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    // SAFETY: I1, attached; three places for three owned references.
    unsafe { ffi::PyErr_Fetch(&mut class, &mut value, &mut trace) };
    if class.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: I1, attached; the three come from `PyErr_Fetch`.
    unsafe { ffi::PyErr_NormalizeException(&mut class, &mut value, &mut trace) };
    if !trace.is_null() {
        // SAFETY: I1, attached; `value` is an exception instance after normalisation.
        unsafe { ffi::PyException_SetTraceback(value, trace) };
    }
    // SAFETY: ours since `PyErr_Fetch`.
    unsafe { ffi::Py_XDECREF(trace) };
    // SAFETY: ours since `PyErr_Fetch`.
    unsafe { ffi::Py_XDECREF(class) };
    value
}
