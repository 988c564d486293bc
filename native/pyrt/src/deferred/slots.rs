//! What Python calls on a call put off: its slots, methods and attributes.
//!
//! Thread: the attached one that calls. Never: lets a panic through (I7).

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use super::{Call, Comparison, Deferrable, Record, lent, nesting};
use crate::native::give;
use crate::section::locked;
use crate::{Attached, Borrowed, Obj, PyResult, contain};

pub(super) unsafe extern "C" fn dealloc<T: Deferrable>(object: *mut ffi::PyObject) {
    // SAFETY: the last reference is gone, nobody else sees the record.
    let call = unsafe { lent::<T>(object) };
    if call.record().callback.get().is_null() {
        // SAFETY: Python calls it attached, for an instance of the class.
        unsafe { free::<T>(object) };
    } else {
        // What it holds may be another call, which holds another one.
        // SAFETY: as above; a record is never NULL.
        unsafe { nesting::free(call.0.cast(), free::<T>) };
    }
}

/// # Safety
/// The thread is attached, and nobody has a reference to `object`, an instance of the class of `T`.
unsafe fn free<T: Deferrable>(object: *mut ffi::PyObject) {
    // SAFETY: as the caller says.
    let py = unsafe { Attached::assume() };
    // SAFETY: as the caller says.
    let call = unsafe { lent::<T>(object) };
    call.clear(py);
    // SAFETY: I1, attached; the reference was the record's, or NULL.
    unsafe { ffi::Py_XDECREF(call.record().context.replace(std::ptr::null_mut())) };
    // SAFETY: as above.
    let extra = unsafe { &mut (*object.cast::<Record<T>>()).extra };
    let _ = contain("dealloc", || {
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(extra) }
    });
    // SAFETY: every object has a type.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: memory from `PyObject_Malloc`.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: an instance of a heap type holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

pub(super) unsafe extern "C" fn repr<T: Deferrable>(
    object: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    // SAFETY: Python calls it with an instance.
    let call = unsafe { lent::<T>(object) };
    // SAFETY: attached; Python lends the object.
    let result = contain("repr", || unsafe { locked(object, || T::repr(&call, py)) });
    give(py, result)
}

pub(super) unsafe extern "C" fn hash<T: Deferrable>(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: Python calls it with an instance.
    let call = unsafe { lent::<T>(object) };
    match contain("hash", || call.extra().hash()) {
        // -1 is C's word for an error.
        Ok(-1) | Err(_) => -2,
        Ok(hash) => hash,
    }
}

pub(super) unsafe extern "C" fn compare<T: Deferrable>(
    object: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    how: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let how = match how {
        ffi::Py_LT => Comparison::Less,
        ffi::Py_LE => Comparison::LessEqual,
        ffi::Py_EQ => Comparison::Equal,
        ffi::Py_NE => Comparison::NotEqual,
        ffi::Py_GT => Comparison::Greater,
        _ => Comparison::GreaterEqual,
    };
    let result = contain("compare", || {
        // SAFETY: Python calls it with an instance first.
        let call = unsafe { lent::<T>(object) };
        // SAFETY: Python lends it for this call.
        let other = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(other)) };
        Ok(match T::compare(&call, &other, how) {
            Some(answer) => Obj::bool(py, answer),
            None => Obj::not_implemented(py),
        })
    });
    give(py, result)
}

/// Reads an attribute or runs a method. For `call_getter!` and `call_method!`.
///
/// # Safety
/// Called by an attached thread; `this` is of the class of `T`.
#[inline]
pub unsafe fn read<T: Deferrable>(
    get: for<'py> fn(&Call<T>, Attached<'py>) -> PyResult<'py, Obj<'py>>,
    this: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("getter", || {
        // SAFETY: the descriptor has checked the class.
        let call = unsafe { lent::<T>(this) };
        // SAFETY: attached, and lent for this call.
        unsafe { locked(this, || get(&call, py)) }
    });
    give(py, result)
}

/// `call_method!(Type, c"name", body, c"doc")`: an entry of a table of methods without arguments.
#[macro_export]
macro_rules! call_method {
    ($type:ty, $name:expr, $body:path, $doc:expr) => {{
        unsafe extern "C" fn call(
            this: *mut $crate::module::__ffi::PyObject,
            _none: *mut $crate::module::__ffi::PyObject,
        ) -> *mut $crate::module::__ffi::PyObject {
            // SAFETY: Python calls it attached, on an instance of the class.
            unsafe { $crate::deferred::slots::read::<$type>($body, this) }
        }
        $crate::module::Function($crate::module::__ffi::PyMethodDef {
            ml_name: $name.as_ptr(),
            ml_meth: $crate::module::__ffi::PyMethodDefPointer { PyCFunction: call },
            ml_flags: $crate::module::__ffi::METH_NOARGS,
            ml_doc: $doc.as_ptr(),
        })
    }};
}

/// `call_getter!(Type, c"name", read)`: an entry of a table of attributes.
#[macro_export]
macro_rules! call_getter {
    ($type:ty, $name:expr, $get:path) => {{
        unsafe extern "C" fn get(
            this: *mut $crate::module::__ffi::PyObject,
            _closure: *mut std::ffi::c_void,
        ) -> *mut $crate::module::__ffi::PyObject {
            // SAFETY: Python calls it attached, on an instance of the class.
            unsafe { $crate::deferred::slots::read::<$type>($get, this) }
        }
        $crate::native::Getter($crate::module::__ffi::PyGetSetDef {
            name: $name.as_ptr(),
            get: Some(get),
            set: None,
            doc: std::ptr::null(),
            closure: std::ptr::null_mut(),
        })
    }};
}
