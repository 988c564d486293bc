//! Methods of native classes: how they are entered, and which thread may.
//!
//! A loop's thread has its transports to itself: the loop sleeps in the reactor without the GIL. Other
//! threads are refused there, or the call is sent to the loop. Without a GIL a method also runs in a
//! critical section of its object.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::module::Args;
use crate::native::{Governor, Native, body, give};
use crate::section::{locked, locked_both};
use crate::{Attached, Borrowed, Obj, PyResult, contain};

/// The body of a method: the instance, what it holds, the arguments.
pub type Method<T> = for<'a, 'py> fn(&Obj<'py>, &T, &Args<'a, 'py>) -> PyResult<'py, Obj<'py>>;

/// Who may be in a method.
#[derive(Clone, Copy)]
pub enum Access {
    /// The thread that governs the object.
    Own,
    /// One thread at a time.
    Anywhere,
    /// The thread that governs the object; from another one it is called there, later.
    Sent(&'static CStr),
    /// Any number of threads: it runs for long.
    Open,
}

/// A thread that was let in; dismissed when dropped, also when a panic unwinds.
struct Guest<'a, 'py, G: Governor>(&'a G, Attached<'py>);

impl<G: Governor> Drop for Guest<'_, '_, G> {
    fn drop(&mut self) {
        self.0.dismiss(self.1);
    }
}

/// Runs a method for a C call. For `method!`.
///
/// # Safety
/// A `METH_FASTCALL | METH_KEYWORDS` call by an attached thread; `this` is of the class of `T`.
#[inline]
pub unsafe fn enter<T: Native>(
    access: Access,
    method: Method<T>,
    this: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("method", || {
        // SAFETY: Python lends `this` for this call.
        let this = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(this)) };
        // SAFETY: lent for this call, as the caller says.
        let args = unsafe { Args::lent(py, args, count, names) };
        // SAFETY: the method descriptor has checked the class.
        let inner = unsafe { body::<T>(&this) };
        let run = || method(&this, inner, &args);
        let send = match access {
            Access::Open => return run(),
            Access::Anywhere => None,
            Access::Own => Some(None),
            Access::Sent(name) => Some(Some(name)),
        };
        match (send, inner.governor(py)) {
            (Some(send), Some(governor)) if !governor.is_here(py) => {
                let admitted = || match governor.admit(&this, send)? {
                    true => {
                        let _guest = Guest(governor, py);
                        run()
                    }
                    false => Ok(Obj::none(py)),
                };
                // SAFETY: attached; `this` is lent, and its body keeps the governor.
                unsafe { locked_both(this.as_ptr(), governor.object().as_ptr(), admitted) }
            }
            // SAFETY: attached, and lent for this call.
            _ => unsafe { locked(this.as_ptr(), run) },
        }
    });
    give(py, result)
}

/// `method!(Type, c"name", body, c"doc")`: an entry of a class's table of methods. A word at the end
/// says who may be in it: `anywhere`, `sent` or `open` (`Access`).
#[macro_export]
macro_rules! method {
    ($type:ty, $name:expr, $body:path, $doc:expr) => {
        $crate::method!(@entry $type, $name, $body, $doc, $crate::method::Access::Own)
    };
    ($type:ty, $name:expr, $body:path, $doc:expr, anywhere) => {
        $crate::method!(@entry $type, $name, $body, $doc, $crate::method::Access::Anywhere)
    };
    ($type:ty, $name:expr, $body:path, $doc:expr, sent) => {
        $crate::method!(@entry $type, $name, $body, $doc, $crate::method::Access::Sent($name))
    };
    ($type:ty, $name:expr, $body:path, $doc:expr, open) => {
        $crate::method!(@entry $type, $name, $body, $doc, $crate::method::Access::Open)
    };
    (@entry $type:ty, $name:expr, $body:path, $doc:expr, $access:expr) => {{
        unsafe extern "C" fn call(
            this: *mut $crate::module::__ffi::PyObject,
            args: *const *mut $crate::module::__ffi::PyObject,
            count: $crate::module::__ffi::Py_ssize_t,
            names: *mut $crate::module::__ffi::PyObject,
        ) -> *mut $crate::module::__ffi::PyObject {
            // SAFETY: Python calls it as the flags below say, on an instance of the class.
            unsafe { $crate::method::enter::<$type>($access, $body, this, args, count, names) }
        }
        $crate::module::Function($crate::module::__ffi::PyMethodDef {
            ml_name: $name.as_ptr(),
            ml_meth: $crate::module::__ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: call,
            },
            ml_flags: $crate::module::__ffi::METH_FASTCALL | $crate::module::__ffi::METH_KEYWORDS,
            ml_doc: $doc.as_ptr(),
        })
    }};
}
