//! Classes with methods in Rust that Python may subclass and the garbage collector sees.
//!
//! Thread: any attached one. The body is shared: it changes through cells, under the GIL or in a
//! critical section of the object.

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

use crate::attributes::{At, Attributes};
use crate::error::Builtin;
use crate::member::{Member, Visit};
use crate::module::Function;
use crate::section::locked;
use crate::{Attached, Borrowed, Obj, PyError, PyResult, contain};

/// The object whose thread alone may use the bodies that belong to it.
pub trait Governor {
    fn object(&self) -> &Member;

    /// Whether the calling thread is that one, and stays it: the loop runs here.
    fn is_here(&self, py: Attached<'_>) -> bool;

    /// Lets the calling thread in where nobody else is, with `this` and the governor locked. Else it
    /// refuses, or has that thread call the method named in `send`; then it is `false`.
    fn admit<'py>(&self, this: &Obj<'py>, send: Option<&CStr>) -> PyResult<'py, bool>;

    /// The thread that was let in has left; both are still locked.
    fn dismiss(&self, py: Attached<'_>);
}

/// The governor of classes that have none.
pub enum Nobody {}

impl Governor for Nobody {
    fn object(&self) -> &Member {
        match *self {}
    }

    fn is_here(&self, _py: Attached<'_>) -> bool {
        match *self {}
    }

    fn admit<'py>(&self, _this: &Obj<'py>, _send: Option<&CStr>) -> PyResult<'py, bool> {
        match *self {}
    }

    fn dismiss(&self, _py: Attached<'_>) {
        match *self {}
    }
}

/// A class whose instances hold `Self`.
pub trait Native: Sized + 'static {
    /// Dotted: `erlang._native.LoopCore`.
    const NAME: &'static CStr;
    const DOC: &'static CStr;

    type Governor: Governor;

    /// Ends in `END`.
    fn methods() -> &'static [Function];
    /// Ends in `END_OF_GETTERS`.
    fn getters() -> &'static [Getter];

    /// The body of a new instance that Python makes by calling the class; the arguments are for
    /// `__init__`. Where Rust alone makes instances (`instance`), it raises.
    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self>;

    /// `repr(this)`
    fn repr<'py>(&self, this: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
        let text = format!("<{} object at {:p}>", this.type_name(), this.as_ptr());
        Obj::text(this.py(), &text)
    }

    /// Whose thread alone may use the body: the loop of a transport.
    fn governor(&self, _py: Attached<'_>) -> Option<&Self::Governor> {
        None
    }

    /// Where in the body its `Attributes` are. Without them instances take no attributes of Python's.
    const ATTRIBUTES: Option<At<Self>> = None;

    /// Every object the body refers to.
    fn traverse(&self, visit: &mut Visit);
    /// Drops what may be part of a cycle.
    fn clear(&self, py: Attached<'_>);
}

/// An attribute in C's terms; made by `getter!`.
#[repr(transparent)]
pub struct Getter(pub ffi::PyGetSetDef);

// SAFETY: a definition is constant: names and code pointers.
unsafe impl Sync for Getter {}

/// The end of a table of getters.
pub const END_OF_GETTERS: Getter = Getter(ffi::PyGetSetDef {
    name: ptr::null(),
    get: None,
    set: None,
    doc: ptr::null(),
    closure: ptr::null_mut(),
});

#[repr(C)]
struct Instance<T> {
    head: ffi::PyObject,
    /// Weak references to it, kept by Python.
    weak: *mut ffi::PyObject,
    body: ManuallyDrop<T>,
}

/// What Python keeps in an instance for itself: weak references to it, and attributes where it takes some.
fn members<T: Native>() -> [ffi::PyMemberDef; 3] {
    let member = |name: &'static CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    };
    // SAFETY: all zeroes are the end of such a table.
    let end = || unsafe { std::mem::zeroed() };
    let weak = member(
        c"__weaklistoffset__",
        std::mem::offset_of!(Instance<T>, weak),
    );
    match attributes_at::<T>() {
        Some(offset) => [weak, member(c"__dictoffset__", offset), end()],
        None => [weak, end(), end()],
    }
}

/// Where in an instance its attributes are.
const fn attributes_at<T: Native>() -> Option<usize> {
    match &T::ATTRIBUTES {
        Some(at) => Some(std::mem::offset_of!(Instance<T>, body) + at.offset()),
        None => None,
    }
}

pub(crate) fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// What a class shows of its body.
pub struct Face {
    /// Dotted.
    pub name: &'static CStr,
    pub doc: &'static CStr,
    /// Ends in `END`.
    pub methods: &'static [Function],
    /// Ends in `END_OF_GETTERS`.
    pub getters: &'static [Getter],
}

/// Makes the class of `T` for this interpreter, belonging to `module`.
pub fn make<'py, T: Native>(module: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let face = Face {
        name: T::NAME,
        doc: T::DOC,
        methods: T::methods(),
        getters: T::getters(),
    };
    make_as::<T>(module, &face)
}

/// Makes another class whose instances hold a `T`, and which shows other parts of it.
pub fn make_as<'py, T: Native>(module: &Obj<'py>, face: &Face) -> PyResult<'py, Obj<'py>> {
    make_with::<T>(module, face, &[])
}

/// The same, with slots that few classes have.
pub(crate) fn make_with<'py, T: Native>(
    module: &Obj<'py>,
    face: &Face,
    more: &[ffi::PyType_Slot],
) -> PyResult<'py, Obj<'py>> {
    let mut members = members::<T>();
    let mut slots = vec![
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_repr, repr::<T> as *mut c_void),
        slot(ffi::Py_tp_new, new::<T> as *mut c_void),
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse::<T> as *mut c_void),
        slot(ffi::Py_tp_clear, clear::<T> as *mut c_void),
        slot(ffi::Py_tp_doc, face.doc.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_methods, face.methods.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_getset, face.getters.as_ptr().cast_mut().cast()),
    ];
    slots.extend_from_slice(more);
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: face.name.as_ptr(),
        basicsize: size_of::<Instance<T>>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC)
            as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: I1, attached; the specification is copied, the tables in it live for ever.
    let raw = unsafe { ffi::PyType_FromModuleAndSpec(module.as_ptr(), &mut spec, ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(module.py(), raw) }
}

/// The body of an instance of the class of `T`, or of a subclass.
///
/// # Safety
/// `object` is such an instance.
pub unsafe fn body<'a, T: Native>(object: &'a Obj<'_>) -> &'a T {
    // SAFETY: the caller's word; `new` filled it before anyone could see it.
    unsafe { &(*object.as_ptr().cast::<Instance<T>>()).body }
}

/// Whether `class` is `base` or derived from it.
pub fn derives(class: &Obj<'_>, base: &Obj<'_>) -> bool {
    // SAFETY: I1, attached; any object may be asked.
    let is_class = unsafe { ffi::PyType_Check(class.as_ptr()) } != 0;
    // SAFETY: both are classes: `base` is one that `make` or `make_as` made.
    is_class && unsafe { ffi::PyType_IsSubtype(class.as_ptr().cast(), base.as_ptr().cast()) } != 0
}

/// A new instance of `class`: the class of `T`, or a subclass of it.
///
/// # Safety
/// `class` is such a class.
pub unsafe fn instance<'py, T: Native>(class: &Obj<'py>, body: T) -> PyResult<'py, Obj<'py>> {
    let py = class.py();
    // SAFETY: I1, attached; the class has this layout. The collector may look at it only after
    // the body is in place: nothing allocates in between.
    let raw = unsafe { ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0) };
    if let Some(instance) = NonNull::new(raw.cast::<Instance<T>>()) {
        // SAFETY: fresh memory of the right layout; the head is filled already.
        unsafe { (&raw mut (*instance.as_ptr()).body).write(ManuallyDrop::new(body)) };
    }
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

unsafe extern "C" fn new<T: Native>(
    class: *mut ffi::PyTypeObject,
    _args: *mut ffi::PyObject,
    _keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let made = contain("new", || {
        // SAFETY: Python lends the class for this call.
        let class = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(class.cast())) };
        let body = T::new(&class)?;
        // SAFETY: Python calls it for the class of `T` or a subclass.
        unsafe { instance(&class, body) }
    });
    give(py, made)
}

unsafe extern "C" fn repr<T: Native>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("repr", || {
        // SAFETY: Python lends an instance for this call.
        let this = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(object)) };
        // SAFETY: attached; Python lends the object. An instance of the class of `T`.
        unsafe { locked(object, || body::<T>(&this).repr(&this)) }
    });
    give(py, result)
}

unsafe extern "C" fn dealloc<T: Native>(object: *mut ffi::PyObject) {
    // SAFETY: an object of a class with the GC flag.
    unsafe { ffi::PyObject_GC_UnTrack(object.cast()) };
    // SAFETY: an instance of the class of `T`.
    if !unsafe { (*object.cast::<Instance<T>>()).weak }.is_null() {
        // SAFETY: I1, attached; an object that is going and has weak references.
        unsafe { ffi::PyObject_ClearWeakRefs(object) };
    }
    // SAFETY: an instance of the class of `T`, whose body is dropped below.
    unsafe { Attributes::clear(object, attributes_at::<T>()) };
    // SAFETY: the last reference is gone; the body is dropped once, here.
    let body = unsafe { &mut (*object.cast::<Instance<T>>()).body };
    let _ = contain("dealloc", || {
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(body) }
    });
    // SAFETY: every object has a type.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: memory from `PyType_GenericAlloc` of a class with the GC flag.
    unsafe { ffi::PyObject_GC_Del(object.cast()) };
    // SAFETY: an instance of a heap type holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn traverse<T: Native>(
    object: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    let mut visit = Visit::new(visit, arg);
    // SAFETY: every object has a type, and a heap type is counted by its instances.
    visit.raw(unsafe { ffi::Py_TYPE(object) }.cast());
    // SAFETY: an instance of the class of `T`.
    unsafe { Attributes::visit(object, attributes_at::<T>(), &mut visit) };
    // SAFETY: the collector lends an instance for this call.
    let object = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(object)) };
    // SAFETY: an instance of the class of `T`.
    unsafe { body::<T>(&object) }.traverse(&mut visit);
    visit.answer()
}

unsafe extern "C" fn clear<T: Native>(object: *mut ffi::PyObject) -> c_int {
    // SAFETY: the collector calls it attached.
    let py = unsafe { Attached::assume() };
    // SAFETY: the collector lends an instance for this call.
    let object = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(object)) };
    let _ = contain("clear", || {
        // SAFETY: an instance of the class of `T`.
        unsafe { body::<T>(&object) }.clear(py);
    });
    // SAFETY: attached; an instance of the class of `T`.
    unsafe { Attributes::clear(object.as_ptr(), attributes_at::<T>()) };
    0
}

pub(crate) fn give<'py>(
    py: Attached<'py>,
    result: Result<PyResult<'py, Obj<'py>>, crate::Panicked>,
) -> *mut ffi::PyObject {
    match result {
        Ok(Ok(value)) => value.into_ptr(),
        Ok(Err(error)) => {
            error.restore();
            ptr::null_mut()
        }
        Err(place) => {
            let text = format!("a bug in {}", place.0);
            PyError::new(py, Builtin::SystemError, &text).restore();
            ptr::null_mut()
        }
    }
}

/// Reads an attribute. For `getter!`.
///
/// # Safety
/// Called by an attached thread; `this` is of the class of `T`.
pub unsafe fn read<T: Native>(
    get: for<'py> fn(&Obj<'py>, &T) -> PyResult<'py, Obj<'py>>,
    this: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("getter", || {
        // SAFETY: Python lends `this` for this call.
        let this = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(this)) };
        // SAFETY: the descriptor has checked the class.
        let inner = unsafe { body::<T>(&this) };
        // SAFETY: attached, and lent for this call.
        unsafe { locked(this.as_ptr(), || get(&this, inner)) }
    });
    give(py, result)
}

/// Writes an attribute. For `getter!`.
///
/// # Safety
/// Called by an attached thread; `this` is of the class of `T`, `value` lent or NULL.
pub unsafe fn write<T: Native>(
    set: for<'py> fn(&Obj<'py>, &T, &Obj<'py>) -> PyResult<'py, ()>,
    this: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("setter", || {
        let Some(value) = NonNull::new(value) else {
            let text = "this attribute cannot be deleted";
            return Err(PyError::new(py, Builtin::AttributeError, text));
        };
        // SAFETY: Python lends `this` for this call.
        let this = unsafe { Borrowed::from_ptr(NonNull::new_unchecked(this)) };
        // SAFETY: Python lends the value for this call.
        let value = unsafe { Borrowed::from_ptr(value) };
        // SAFETY: the descriptor has checked the class.
        let inner = unsafe { body::<T>(&this) };
        // SAFETY: attached, and lent for this call.
        unsafe { locked(this.as_ptr(), || set(&this, inner, &value)) }?;
        Ok(Obj::none(py))
    });
    let done = give(py, result);
    if done.is_null() {
        return -1;
    }
    // SAFETY: the reference that `give` made.
    unsafe { ffi::Py_DECREF(done) };
    0
}

/// `getter!(Type, c"name", read)` or `getter!(Type, c"name", read, write)`.
#[macro_export]
macro_rules! getter {
    ($type:ty, $name:expr, $get:path $(, $set:path)?) => {{
        unsafe extern "C" fn get(
            this: *mut $crate::module::__ffi::PyObject,
            _closure: *mut std::ffi::c_void,
        ) -> *mut $crate::module::__ffi::PyObject {
            // SAFETY: Python calls it attached, on an instance of the class.
            unsafe { $crate::native::read::<$type>($get, this) }
        }
        #[allow(unused_mut, unused_assignments)]
        let mut set: Option<$crate::module::__ffi::setter> = None;
        $(
            unsafe extern "C" fn set_it(
                this: *mut $crate::module::__ffi::PyObject,
                value: *mut $crate::module::__ffi::PyObject,
                _closure: *mut std::ffi::c_void,
            ) -> std::ffi::c_int {
                // SAFETY: Python calls it attached, on an instance of the class.
                unsafe { $crate::native::write::<$type>($set, this, value) }
            }
            set = Some(set_it);
        )?
        $crate::native::Getter($crate::module::__ffi::PyGetSetDef {
            name: $name.as_ptr(),
            get: Some(get),
            set,
            doc: std::ptr::null(),
            closure: std::ptr::null_mut(),
        })
    }};
}
