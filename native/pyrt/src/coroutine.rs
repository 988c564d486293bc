//! What starting a task needs of the runtime: which functions make coroutines, context variables.
//!
//! Thread: attached ones.

use std::ffi::{CStr, c_int};
use std::ptr;

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyError, PyResult};

/// What calling a function gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makes {
    Coroutine,
    AsyncGenerator,
    /// Anything else, or nobody knows before it is called.
    Other,
}

const CO_COROUTINE: i64 = 0x80;
const CO_ITERABLE_COROUTINE: i64 = 0x100;
const CO_ASYNC_GENERATOR: i64 = 0x200;

impl<'py> Obj<'py> {
    /// What calling this object gives, as its code says. `co_flags` is that very `str`.
    pub fn makes(&self, co_flags: &Obj<'py>) -> PyResult<'py, Makes> {
        // SAFETY: I1, attached; a living object.
        if unsafe { ffi::PyFunction_Check(self.as_ptr()) } == 0 {
            return Ok(Makes::Other);
        }
        // SAFETY: I1, attached; a function.
        let code = unsafe { ffi::PyFunction_GetCode(self.as_ptr()) };
        let Some(code) = ptr::NonNull::new(code) else {
            return Err(PyError::fetch(self.py()));
        };
        // SAFETY: borrowed from the function, which is alive.
        let code = unsafe { Obj::from_borrowed(self.py(), code) };
        let flags = code.getattr(co_flags)?.as_i64()?.unwrap_or(0);
        Ok(if flags & CO_COROUTINE != 0 {
            Makes::Coroutine
        } else if flags & CO_ASYNC_GENERATOR != 0 {
            Makes::AsyncGenerator
        } else {
            Makes::Other
        })
    }

    /// Whether it is a coroutine of `async def`.
    pub fn is_coroutine(&self) -> bool {
        // SAFETY: I1, attached; a living object.
        unsafe { ffi::PyCoro_CheckExact(self.as_ptr()) != 0 }
    }

    /// Whether `await` takes it.
    pub fn is_awaitable(&self) -> bool {
        self.is_coroutine() || self.type_of().has(c"__await__") || self.is_generator_coroutine()
    }

    /// Whether it is a generator that `types.coroutine` made one for `await`.
    fn is_generator_coroutine(&self) -> bool {
        // SAFETY: I1, attached; a living object.
        if unsafe { ffi::PyGen_CheckExact(self.as_ptr()) } == 0 {
            return false;
        }
        let flags = self.getattr_c(c"gi_code");
        let flags = flags.and_then(|code| code.getattr_c(c"co_flags")?.as_i64());
        flags.is_ok_and(|flags| flags.is_some_and(|flags| flags & CO_ITERABLE_COROUTINE != 0))
    }

    /// Whether `async for` takes it.
    pub fn is_async_iterable(&self) -> bool {
        self.type_of().has(c"__aiter__")
    }

    /// Whether `for` takes it.
    pub fn is_iterable(&self) -> bool {
        self.type_of().has(c"__iter__")
    }

    /// `hasattr(self, name)`
    pub fn has(&self, name: &CStr) -> bool {
        // SAFETY: I1, attached; a living object. Errors on the way are taken back by it.
        unsafe { ffi::PyObject_HasAttrString(self.as_ptr(), name.as_ptr()) != 0 }
    }
}

/// A new context variable without a default.
pub fn context_var<'py>(py: Attached<'py>, name: &CStr) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; NULL stands for no default.
    let raw = unsafe { ffi::PyContextVar_New(name.as_ptr(), ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// The value of a context variable in the current context.
pub fn get_context_var<'py>(var: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
    let mut value = ptr::null_mut();
    // SAFETY: I1, attached; a context variable; writes a new reference or NULL.
    let status: c_int = unsafe { ffi::PyContextVar_Get(var.as_ptr(), ptr::null_mut(), &mut value) };
    PyError::check(var.py(), status)?;
    if value.is_null() {
        return Ok(None);
    }
    // SAFETY: a new reference.
    unsafe { Obj::from_new_ref(var.py(), value) }.map(Some)
}

/// Sets a context variable in the current context; gives the token that undoes it.
pub fn set_context_var<'py>(var: &Obj<'py>, value: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; a context variable and a living object.
    let token = unsafe { ffi::PyContextVar_Set(var.as_ptr(), value.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(var.py(), token) }
}

/// Undoes what gave the token, in the context that it was done in.
pub fn reset_context_var<'py>(var: &Obj<'py>, token: &Obj<'py>) -> PyResult<'py, ()> {
    // SAFETY: I1, attached; a context variable and a token, else an exception is set.
    let done = unsafe { ffi::PyContextVar_Reset(var.as_ptr(), token.as_ptr()) };
    PyError::check(var.py(), done)
}
