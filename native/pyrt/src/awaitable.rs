//! Native classes that `await` drives: coroutines with a body in Rust.
//!
//! Thread: any attached one.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

use crate::module::Args;
use crate::native::{Face, Native, body, give, make_with, slot};
use crate::section::locked;
use crate::{Attached, Borrowed, Obj, PyError, PyResult, contain};

/// How far one step came.
pub enum Step<'py> {
    /// Suspended on what the task is to wait for.
    Wait(Obj<'py>),
    /// The value of the `await`; `None` for Python's `None`.
    Done(Option<Obj<'py>>),
}

/// A class whose instances can be awaited.
pub trait Awaitable: Native {
    /// Goes on as far as it can.
    fn step<'py>(&self, this: &Obj<'py>) -> PyResult<'py, Step<'py>>;

    /// Whoever awaits it gives up.
    fn abandon(&self, py: Attached<'_>);
}

/// Makes the class of `T` for this interpreter; its table of methods has `send`, `throw`, `close`.
pub fn make<'py, T: Awaitable>(module: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let face = Face {
        name: T::NAME,
        doc: T::DOC,
        methods: T::methods(),
        getters: T::getters(),
    };
    let slots = [
        slot(ffi::Py_am_await, itself as *mut c_void),
        slot(ffi::Py_tp_iter, itself as *mut c_void),
        slot(ffi::Py_tp_iternext, next::<T> as *mut c_void),
    ];
    make_with::<T>(module, &face, &slots)
}

unsafe extern "C" fn itself(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: I1, Python calls it attached, with a living object.
    unsafe { ffi::Py_INCREF(object) };
    object
}

unsafe extern "C" fn next<T: Awaitable>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let step = contain("awaitable", || {
        // SAFETY: Python lends an instance for this call.
        let this = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(object)) };
        // SAFETY: an instance of the class of `T`.
        let inner = unsafe { body::<T>(&this) };
        // SAFETY: attached, and lent for this call.
        unsafe { locked(object, || inner.step(&this)) }
    });
    match step {
        Ok(Ok(Step::Wait(future))) => future.into_ptr(),
        // The end without an exception is `None`, and cheap.
        Ok(Ok(Step::Done(None))) => ptr::null_mut(),
        Ok(Ok(Step::Done(Some(value)))) => {
            stop(&value);
            ptr::null_mut()
        }
        Ok(Err(error)) => give(py, Ok(Err(error))),
        Err(panicked) => give(py, Err(panicked)),
    }
}

/// Sets `StopIteration(value)`.
fn stop(value: &Obj<'_>) {
    // SAFETY: a class that lives as long as the interpreter.
    let class = unsafe { ffi::PyExc_StopIteration };
    // SAFETY: I1, attached; both are alive.
    unsafe { ffi::PyErr_SetObject(class, value.as_ptr()) };
}

/// `send(None)`
pub fn send<'py, T: Awaitable>(
    this: &Obj<'py>,
    body: &T,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    match body.step(this)? {
        Step::Wait(future) => Ok(future),
        Step::Done(value) => {
            stop(&value.unwrap_or_else(|| Obj::none(args.py())));
            Err(PyError::fetch(args.py()))
        }
    }
}

/// `throw(exception)`, or in the older form `throw(class, value, traceback)`.
pub fn throw<'py, T: Awaitable>(
    _this: &Obj<'py>,
    body: &T,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    body.abandon(args.py());
    let raised = args.want(0, "exception")?;
    if !raised.is_class() {
        return Err(PyError::from_value(raised.clone()));
    }
    let value = match args.given(1) {
        Some(value) if value.is_instance(&raised)? => value,
        Some(value) => raised.call(&[&value])?,
        None => raised.call(&[])?,
    };
    Err(PyError::from_value(value))
}

/// `close()`
pub fn close<'py, T: Awaitable>(
    _this: &Obj<'py>,
    body: &T,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    body.abandon(args.py());
    Ok(Obj::none(args.py()))
}
