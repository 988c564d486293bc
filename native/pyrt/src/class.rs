//! Heap types with a Rust body: one class object per interpreter, made with its module.

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult, contain};

/// A class whose instances hold `Self`, immutable to Python and made by Rust only.
pub trait Class: Sized + Send + Sync + 'static {
    /// Dotted: `erlang.Pid`.
    const NAME: &'static CStr;
    const DOC: &'static CStr;

    fn repr(&self) -> String;
    fn hash(&self) -> u64;
    fn equal(&self, other: &Self) -> bool;

    /// Calling an instance; most are not callable.
    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> = None;
}

#[repr(C)]
struct Instance<T> {
    head: ffi::PyObject,
    body: ManuallyDrop<T>,
}

/// Makes the class of `T` for this interpreter, belonging to `module`.
pub fn make<'py, T: Class>(module: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, repr::<T> as *mut c_void),
        slot(ffi::Py_tp_hash, hash::<T> as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare::<T> as *mut c_void),
        slot(ffi::Py_tp_doc, T::DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_methods, METHODS.as_ptr().cast_mut().cast()),
    ];
    if T::CALL.is_some() {
        slots.push(slot(ffi::Py_tp_call, call::<T> as *mut c_void));
    }
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: T::NAME.as_ptr(),
        basicsize: size_of::<Instance<T>>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: I1, attached; the specification is copied, the texts in it live for ever.
    let raw = unsafe { ffi::PyType_FromModuleAndSpec(module.as_ptr(), &mut spec, ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(module.py(), raw) }
}

fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// A new instance of `class`, which `make::<T>` made.
pub fn instance<'py, T: Class>(class: &Obj<'py>, body: T) -> PyResult<'py, Obj<'py>> {
    let class = class.as_ptr().cast::<ffi::PyTypeObject>();
    // SAFETY: I1, attached; a class made by `make`, so its instances have this layout.
    let raw = unsafe { ffi::PyType_GenericAlloc(class, 0) };
    if let Some(instance) = NonNull::new(raw.cast::<Instance<T>>()) {
        // SAFETY: fresh memory of the right layout; the head is filled already.
        unsafe { (&raw mut (*instance.as_ptr()).body).write(ManuallyDrop::new(body)) };
    }
    // SAFETY: I1; the class is alive: its module's state holds it.
    let py = unsafe { Attached::assume() };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// The body of `object` if it is exactly an instance of `class`, which `make::<T>` made.
pub fn body<'a, T: Class>(object: &'a Obj<'_>, class: &Obj<'_>) -> Option<&'a T> {
    if !object.is_exactly(class) {
        return None;
    }
    // SAFETY: exactly of the class that `make::<T>` made: this layout, filled by `instance`.
    Some(unsafe { body_of(object.as_ptr()) })
}

/// # Safety
/// An instance of the class of `T` that outlives `'a`.
unsafe fn body_of<'a, T>(object: *mut ffi::PyObject) -> &'a T {
    // SAFETY: the caller's word.
    unsafe { &(*object.cast::<Instance<T>>()).body }
}

unsafe extern "C" fn dealloc<T: Class>(object: *mut ffi::PyObject) {
    // SAFETY: the last reference is gone; the body is dropped once, here.
    let body = unsafe { &mut (*object.cast::<Instance<T>>()).body };
    let _ = contain("dealloc", || {
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(body) }
    });
    // SAFETY: every object has a type.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: memory from `PyType_GenericAlloc` of a class without the GC flag.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: an instance of a heap type holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn repr<T: Class>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    // SAFETY: Python calls it with an instance.
    let body = unsafe { body_of::<T>(object) };
    let text = contain("repr", || body.repr()).unwrap_or_default();
    give(Obj::text(py, &text))
}

unsafe extern "C" fn hash<T: Class>(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: Python calls it with an instance.
    let body = unsafe { body_of::<T>(object) };
    match contain("hash", || body.hash()) {
        // -1 is C's word for an error.
        Ok(hash) if hash as isize == -1 => -2,
        Ok(hash) => hash as isize,
        Err(_) => 0,
    }
}

unsafe extern "C" fn compare<T: Class>(
    left: *mut ffi::PyObject,
    right: *mut ffi::PyObject,
    how: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    // SAFETY: every live object has a type.
    let same_class = unsafe { ffi::Py_TYPE(left) == ffi::Py_TYPE(right) };
    if !same_class || (how != ffi::Py_EQ && how != ffi::Py_NE) {
        // SAFETY: a singleton that lives for ever.
        let not_implemented = unsafe { ffi::Py_NotImplemented() };
        // SAFETY: I1, attached.
        unsafe { ffi::Py_INCREF(not_implemented) };
        return not_implemented;
    }
    // SAFETY: one of the two is an instance, and both are of the same class.
    let (left, right) = unsafe { (body_of::<T>(left), body_of::<T>(right)) };
    let equal = contain("compare", || left.equal(right)).unwrap_or(false);
    Obj::bool(py, equal == (how == ffi::Py_EQ)).into_ptr()
}

unsafe extern "C" fn call<T: Class>(
    object: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    _keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("call", || {
        // SAFETY: lent for this call.
        let object = unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(object)) };
        // SAFETY: lent for this call.
        let args = unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(args)) };
        match T::CALL {
            Some(call) => call(&object, &args),
            None => Err(PyError::new(py, Builtin::TypeError, "not callable")),
        }
    });
    match result {
        Ok(result) => give(result),
        Err(_) => give(Err(PyError::new(
            py,
            Builtin::SystemError,
            "a bug in a native call",
        ))),
    }
}

/// `__reduce__`: these objects stand for things of a living node; they can't be pickled.
unsafe extern "C" fn reduce(
    object: *mut ffi::PyObject,
    _unused: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    // SAFETY: lent for this call.
    let object = unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(object)) };
    let text = format!("cannot pickle '{}' object", object.type_name());
    give(Err(PyError::new(py, Builtin::TypeError, &text)))
}

static METHODS: [crate::module::Function; 2] = [
    crate::module::Function(ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: ptr::null(),
    }),
    crate::module::END,
];

fn give(result: PyResult<'_, Obj<'_>>) -> *mut ffi::PyObject {
    match result {
        Ok(value) => value.into_ptr(),
        Err(error) => {
            error.restore();
            ptr::null_mut()
        }
    }
}
