//! The buffer protocol: memory that a Python object lends, and memory lent to Python.
//!
//! Thread: any attached one; `Held` may be read by any thread.

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::{Attached, Kept, Obj, PyError, PyResult, contain};

/// The owner of memory that Python may read for as long as it holds the owner.
///
/// # Safety
/// Where `owns` is true, the memory of `part` stays where it is and as it is while the value lives.
pub unsafe trait Memory: Send + Sync + 'static {
    fn owns(&self, part: &[u8]) -> bool;
}

// SAFETY: a boxed slice behind a shared reference stays where it is and as it is.
unsafe impl Memory for Box<[u8]> {
    fn owns(&self, part: &[u8]) -> bool {
        let (all, part) = (self.as_ptr_range(), part.as_ptr_range());
        all.start <= part.start && part.end <= all.end
    }
}

/// The part of a `Memory` that one view shows.
struct Lent {
    data: NonNull<u8>,
    len: usize,
    /// Keeps the memory; only ever dropped.
    _owner: Arc<dyn Memory>,
}

#[repr(C)]
struct Lender {
    head: ffi::PyObject,
    lent: ManuallyDrop<Lent>,
}

/// Makes the class whose instances lend `Memory`, for this interpreter.
pub fn make_lender<'py>(module: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_bf_getbuffer, get_buffer as *mut c_void),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"erlang._native.Memory".as_ptr(),
        basicsize: size_of::<Lender>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: I1, attached; the specification is copied, its name lives for ever.
    let raw = unsafe { ffi::PyType_FromModuleAndSpec(module.as_ptr(), &mut spec, ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(module.py(), raw) }
}

fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// A read-only `memoryview` of `part`, which keeps `owner`; `None` if `part` is not of its memory.
/// `class` is one that `make_lender` made.
pub fn view<'py>(
    class: &Obj<'py>,
    owner: Arc<dyn Memory>,
    part: &[u8],
) -> PyResult<'py, Option<Obj<'py>>> {
    if !owner.owns(part) {
        return Ok(None);
    }
    if !is_lender(class) {
        let text = "not a class that lends memory";
        return Err(PyError::new(class.py(), Builtin::SystemError, text));
    }
    let lent = Lent {
        data: NonNull::from(part).cast(),
        len: part.len(),
        _owner: owner,
    };
    // SAFETY: I1, attached; a class made by `make_lender`, so its instances have this layout.
    let raw = unsafe { ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0) };
    if let Some(lender) = NonNull::new(raw.cast::<Lender>()) {
        // SAFETY: fresh memory of the right layout; the head is filled already.
        unsafe { (&raw mut (*lender.as_ptr()).lent).write(ManuallyDrop::new(lent)) };
    }
    // SAFETY: a new reference, or NULL with an exception set.
    let lender = unsafe { Obj::from_new_ref(class.py(), raw) }?;
    lender.memory_view().map(Some)
}

/// Whether `make_lender` made this class: nobody else has our `getbuffer`.
fn is_lender(class: &Obj<'_>) -> bool {
    if !class.is_class() {
        return false;
    }
    // SAFETY: I1, attached; a type, and a slot number that types have.
    let found = unsafe { ffi::PyType_GetSlot(class.as_ptr().cast(), ffi::Py_bf_getbuffer) };
    ptr::eq(found, get_buffer as *mut c_void)
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the last reference is gone; the body is dropped once, here.
    let lent = unsafe { &mut (*object.cast::<Lender>()).lent };
    let _ = contain("dealloc", || {
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(lent) }
    });
    // SAFETY: every object has a type.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: memory from `PyType_GenericAlloc` of a class without the GC flag.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: an instance of a heap type holds a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python calls it with an instance.
    let lent = unsafe { &(*object.cast::<Lender>()).lent };
    let (data, len) = (lent.data.as_ptr().cast(), lent.len as ffi::Py_ssize_t);
    // SAFETY: memory that `object` keeps alive, given read-only; the view takes its own reference.
    unsafe { ffi::PyBuffer_FillInfo(view, object, data, len, 1, flags) }
}

/// The memory of an object, lent for reading while this lives.
pub struct Buffer<'py> {
    /// Boxed: some exporters point into it.
    view: Box<ffi::Py_buffer>,
    py: Attached<'py>,
}

impl<'py> Buffer<'py> {
    /// Any layout, contiguous or not.
    pub fn of(object: &Obj<'py>) -> PyResult<'py, Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: I1, attached; room for one view. It is released by `drop`.
        let done =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_FULL_RO) };
        PyError::check(object.py(), done)?;
        let py = object.py();
        Ok(Buffer { view, py })
    }

    /// In bytes.
    pub fn len(&self) -> usize {
        self.view.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.view.len == 0
    }

    /// Whether the bytes lie one after the other in C order.
    pub fn is_contiguous(&self) -> bool {
        // SAFETY: a filled view.
        unsafe { ffi::PyBuffer_IsContiguous(&*self.view, b'C' as c_char) == 1 }
    }

    /// Appends the bytes in C order.
    pub fn append_to(&self, out: &mut Vec<u8>) -> PyResult<'py, ()> {
        let len = self.len();
        // A view may say that it is larger than any memory (`numpy.broadcast_to`).
        if out.try_reserve(len).is_err() {
            return Err(PyError::new(self.py, Builtin::MemoryError, "out of memory"));
        }
        let room = out.spare_capacity_mut().as_mut_ptr();
        // SAFETY: I1, attached; room for `len` bytes; a filled view of that length.
        let done = unsafe {
            ffi::PyBuffer_ToContiguous(room.cast(), &*self.view, self.view.len, b'C' as c_char)
        };
        PyError::check(self.py, done)?;
        // SAFETY: just written.
        unsafe { out.set_len(out.len() + len) };
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: I1, `py` proves attachment; filled by `of`, released once.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}

/// Bytes that an object lends to a reader outside Python, on any thread.
pub struct Held {
    data: NonNull<u8>,
    len: usize,
    owner: Kept,
}

// SAFETY: the memory is not written while it is held, and the owner itself may be moved.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    /// The content of `bytes`, without a copy; `None` for anything else.
    pub fn bytes(object: &Obj<'_>) -> Option<Self> {
        let bytes = object.as_bytes()?;
        Some(Self::lent(object, bytes))
    }

    /// The UTF-8 of a `str`, without a copy where Python has it already.
    pub fn text<'py>(object: &Obj<'py>) -> PyResult<'py, Self> {
        let text = object.as_utf8()?;
        Ok(Self::lent(object, text.as_bytes()))
    }

    /// `bytes` belong to `object` and don't change while it lives.
    fn lent(object: &Obj<'_>, bytes: &[u8]) -> Self {
        Held {
            data: NonNull::from(bytes).cast(),
            len: bytes.len(),
            owner: Kept::new(object.clone()),
        }
    }

    /// The memory of an object that nobody else can reach: `object` is its only reference and is
    /// given up, so nobody can write to it any more. Gives it back if that is not so, or if its
    /// memory is not contiguous.
    pub fn sole<'py>(object: Obj<'py>) -> Result<Self, Obj<'py>> {
        if !object.is_unreachable_otherwise() {
            return Err(object);
        }
        // The view stays taken until its owner is released, so the memory can't be resized.
        let (Ok(buffer), Ok(view)) = (Buffer::of(&object), object.memory_view()) else {
            return Err(object);
        };
        match NonNull::new(buffer.view.buf.cast()) {
            Some(data) if buffer.is_contiguous() => Ok(Held {
                data,
                len: buffer.len(),
                owner: Kept::new(view),
            }),
            _ => Err(object),
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes that the owner keeps and that nobody writes.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }

    /// Where the bytes are, how many, and what keeps them.
    pub fn into_parts(self) -> (*const u8, usize, Kept) {
        (self.data.as_ptr(), self.len, self.owner)
    }
}

impl<'py> Obj<'py> {
    /// `memoryview(self)`
    pub fn memory_view(&self) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; anything without a buffer sets `TypeError`.
        let raw = unsafe { ffi::PyMemoryView_FromObject(self.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    /// Whether nothing but this reference leads to the object: no other reference, no weak one, and
    /// the collector, which shows what it tracks to everybody (`gc.get_objects`), does not know it.
    fn is_unreachable_otherwise(&self) -> bool {
        // SAFETY: I1, attached; reads the flags of the type.
        let collected = unsafe { ffi::PyObject_IS_GC(self.as_ptr()) } != 0;
        self.is_sole() && !collected && !self.has_weak_references()
    }

    fn has_weak_references(&self) -> bool {
        // SAFETY: every live object has a type.
        let class = unsafe { ffi::Py_TYPE(self.as_ptr()) };
        // SAFETY: the type is alive; a number that never changes once the type is made.
        let offset = unsafe { (*class).tp_weaklistoffset };
        let Ok(offset @ 1..) = usize::try_from(offset) else {
            // 0: its instances can have none. Below 0 it says no more than that they may.
            return offset < 0;
        };
        // SAFETY: the type says that a pointer is there, within the object.
        let list = unsafe { self.as_ptr().byte_add(offset) };
        // SAFETY: as above. `is_sole` was true, so no other thread can add one meanwhile.
        !unsafe { *list.cast::<*mut ffi::PyObject>() }.is_null()
    }

    /// Whether this reference is the only one.
    pub fn is_sole(&self) -> bool {
        self.references() == 1
    }

    /// How many references there are.
    pub fn references(&self) -> isize {
        // SAFETY: I1, attached; reads the count.
        unsafe { ffi::Py_REFCNT(self.as_ptr()) }
    }
}
