//! A call put off: callback, arguments and context in one Python object of variable size.
//!
//! The arguments lie inside the object and are called by vectorcall. The object is not seen by the
//! garbage collector: whoever runs or cancels it clears it, and no cycle through it remains.
//! Thread: attached ones only.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{ManuallyDrop, offset_of};
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::module::Function;
use crate::native::{Getter, slot};
use crate::section::locked;
use crate::{Attached, Borrowed, Obj, PyError, PyResult};

mod nesting;
pub mod slots;

use slots::{compare, dealloc, hash, repr};

/// A class of calls put off; `Self` is what an instance holds besides the call.
pub trait Deferrable: Sized + 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;

    fn methods() -> &'static [Function];
    fn getters() -> &'static [Getter];
    fn repr<'py>(call: &Call<Self>, py: Attached<'py>) -> PyResult<'py, Obj<'py>>;

    /// `<`, `==` and the like: `None` where there is no such order.
    fn compare(_this: &Call<Self>, _other: &Obj<'_>, _how: Comparison) -> Option<bool> {
        None
    }
    const COMPARES: bool = false;
    fn hash(&self) -> isize {
        ptr::from_ref(self) as isize >> 4
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

type Raw = Cell<*mut ffi::PyObject>;

#[repr(C)]
struct Record<T> {
    head: ffi::PyVarObject,
    extra: ManuallyDrop<T>,
    context: Raw,
    /// NULL once cleared. Just before the arguments: vectorcall may borrow this place.
    callback: Raw,
    args: [Raw; 0],
}

/// An owned reference to a call put off.
#[repr(transparent)]
pub struct Call<T>(NonNull<Record<T>>);

// SAFETY: moved between threads by the inbox of a loop only, whose thread attaches before it uses
// or drops it; the count of references changes on attached threads only.
unsafe impl<T> Send for Call<T> {}

/// Makes the class for this interpreter, belonging to `module`.
pub fn make<'py, T: Deferrable>(module: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, repr::<T> as *mut c_void),
        slot(ffi::Py_tp_doc, T::DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_methods, T::methods().as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_getset, T::getters().as_ptr().cast_mut().cast()),
    ];
    if T::COMPARES {
        slots.push(slot(ffi::Py_tp_richcompare, compare::<T> as *mut c_void));
        slots.push(slot(ffi::Py_tp_hash, hash::<T> as *mut c_void));
    }
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: T::NAME.as_ptr(),
        basicsize: offset_of!(Record<T>, args) as c_int,
        itemsize: size_of::<Raw>() as c_int,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: I1, attached; the specification is copied, the tables in it live for ever.
    let raw = unsafe { ffi::PyType_FromModuleAndSpec(module.as_ptr(), &mut spec, ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(module.py(), raw) }
}

/// Arguments that are called without a copy on the heap.
const FEW: usize = 6;

impl<T: Deferrable> Call<T> {
    /// A new instance of `class`, which `make::<T>` made.
    pub fn new<'py>(
        class: &Obj<'py>,
        extra: T,
        callback: &Obj<'py>,
        args: &[Borrowed<'_, 'py>],
        context: Obj<'py>,
    ) -> PyResult<'py, Self> {
        let size = offset_of!(Record<T>, args) + size_of_val(args);
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyObject_Malloc(size) };
        let Some(record) = NonNull::new(raw.cast::<Record<T>>()) else {
            return Err(PyError::new(class.py(), Builtin::MemoryError, "no memory"));
        };
        // SAFETY: memory for an instance of this class with as many items; fills the head.
        unsafe {
            ffi::PyObject_InitVar(
                raw.cast(),
                class.as_ptr().cast(),
                args.len() as ffi::Py_ssize_t,
            )
        };
        let place = record.as_ptr();
        // SAFETY: fresh memory of this layout.
        unsafe { (&raw mut (*place).extra).write(ManuallyDrop::new(extra)) };
        // SAFETY: as above; the reference is the record's from here on.
        unsafe { (&raw mut (*place).context).write(Cell::new(context.into_ptr())) };
        // SAFETY: as above; a reference of its own.
        unsafe { (&raw mut (*place).callback).write(Cell::new(callback.clone().into_ptr())) };
        // SAFETY: as many places as arguments follow the record.
        let items = unsafe { (&raw mut (*place).args).cast::<Raw>() };
        for (index, arg) in args.iter().enumerate() {
            // SAFETY: within the items; a reference of its own.
            unsafe {
                items
                    .add(index)
                    .write(Cell::new((**arg).clone().into_ptr()))
            };
        }
        Ok(Call(record))
    }

    fn record(&self) -> &Record<T> {
        // SAFETY: `self` owns a reference; records change through cells only.
        unsafe { self.0.as_ref() }
    }

    pub fn extra(&self) -> &T {
        &self.record().extra
    }

    /// The instance as an object.
    #[inline]
    pub fn obj<'py>(&self, py: Attached<'py>) -> Obj<'py> {
        // SAFETY: `self` owns a reference.
        unsafe { Obj::from_borrowed(py, self.0.cast()) }
    }

    /// The call behind an object of `class`, which `make::<T>` made.
    pub fn of(object: &Obj<'_>, class: &Obj<'_>) -> Option<Self> {
        object
            .is_exactly(class)
            .then(|| Call(ManuallyDrop::new(object.clone()).non_null().cast()))
    }

    fn args(&self) -> &[Raw] {
        let record = self.record();
        // SAFETY: `ob_size` places follow the record; `PyObject_InitVar` set it, nobody changes it.
        unsafe { std::slice::from_raw_parts(record.args.as_ptr(), record.head.ob_size as usize) }
    }

    /// The callback, unless it was cleared.
    pub fn callback<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        let raw = NonNull::new(self.record().callback.get())?;
        // SAFETY: the record owns a reference.
        Some(unsafe { Obj::from_borrowed(py, raw) })
    }

    /// The arguments as a tuple, unless they were cleared.
    pub fn arguments<'py>(&self, py: Attached<'py>) -> Option<PyResult<'py, Obj<'py>>> {
        let callback = self.callback(py)?;
        let mut tuple = match crate::container::Filling::tuple(py, self.args().len()) {
            Ok(tuple) => tuple,
            Err(error) => return Some(Err(error)),
        };
        for raw in self.args().iter().filter_map(|arg| NonNull::new(arg.get())) {
            // SAFETY: the record owns a reference.
            tuple.push(unsafe { Obj::from_borrowed(py, raw) });
        }
        drop(callback);
        Some(tuple.finish())
    }

    /// The context that it runs in, unless it has none any more.
    pub fn context<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        let raw = NonNull::new(self.record().context.get())?;
        // SAFETY: the record owns a reference.
        Some(unsafe { Obj::from_borrowed(py, raw) })
    }

    /// Whether nobody else has a reference.
    fn is_sole(&self) -> bool {
        // SAFETY: I1, attached; a living object.
        unsafe { ffi::Py_REFCNT(self.0.as_ptr().cast()) == 1 }
    }

    /// Runs the callback in its context. A cleared call does nothing. The reference of `self` is the
    /// caller's own: a call that others reach has more than that one.
    #[inline]
    pub fn run<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if !self.is_sole() {
            return self.run_seen(py);
        }
        let Some(callback) = NonNull::new(self.record().callback.get()) else {
            return Ok(());
        };
        // Nobody can clear it meanwhile: the arguments are lent from where they lie, and the
        // place before them is the callback's own.
        let args = self.args();
        let count = args.len() | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        let run = |context| enter(py, callback, args.as_ptr().cast(), count, context);
        NonNull::new(self.record().context.get()).map_or(Ok(()), run)
    }

    /// The same for a call that somebody else has, too. One that Python lends for a method may have no
    /// more than one reference, that of a variable: a local one is lent without another since 3.14.
    pub fn run_seen<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if crate::FREE_THREADED {
            return self.run_shared(py);
        }
        let Some(callback) = NonNull::new(self.record().callback.get()) else {
            return Ok(());
        };
        let Some(context) = NonNull::new(self.record().context.get()) else {
            return Ok(());
        };
        let args = self.args();
        // It may be cancelled by its own callback: the references are held here.
        let held = [callback, context].map(|raw| {
            // SAFETY: the record owns a reference at this time.
            unsafe { Obj::from_borrowed(py, raw) }
        });
        let mut few: [Option<Obj<'py>>; FEW] = [const { None }; FEW];
        let mut many = Vec::new();
        let mut raws = [ptr::null_mut(); FEW + 1];
        let count = args.len();
        let pointers = if count <= FEW {
            for (index, raw) in args.iter().enumerate() {
                raws[index + 1] = raw.get();
                // SAFETY: the record owns a reference at this time.
                few[index] = NonNull::new(raw.get()).map(|r| unsafe { Obj::from_borrowed(py, r) });
            }
            &raws[1..]
        } else {
            many.extend(args.iter().filter_map(|raw| {
                // SAFETY: the record owns a reference at this time.
                NonNull::new(raw.get()).map(|r| unsafe { Obj::from_borrowed(py, r) })
            }));
            let raw = many.as_ptr().cast::<*mut ffi::PyObject>();
            // SAFETY: `Obj` is a transparent pointer; as many as there are, borrowed as long.
            unsafe { std::slice::from_raw_parts(raw, many.len()) }
        };
        let flag = if count <= FEW {
            ffi::PY_VECTORCALL_ARGUMENTS_OFFSET
        } else {
            0
        };
        let done = enter(py, callback, pointers.as_ptr(), count | flag, context);
        drop((held, few, many));
        done
    }

    /// Without a GIL another thread may cancel it at any moment: all is taken at once.
    fn run_shared<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let take = || {
            let (callback, context) = (self.callback(py)?, self.context(py)?);
            let args = self.args().iter().filter_map(|raw| NonNull::new(raw.get()));
            // SAFETY: the record owns a reference at this time.
            let args = args.map(|raw| unsafe { Obj::from_borrowed(py, raw) });
            Some((callback, context, args.collect::<Vec<_>>()))
        };
        // SAFETY: attached; `self` owns a reference.
        let taken = unsafe { locked(self.0.as_ptr().cast(), take) };
        let Some((callback, context, args)) = taken else {
            return Ok(());
        };
        let (count, raw) = (args.len(), args.as_ptr().cast());
        enter(py, callback.non_null(), raw, count, context.non_null())
    }

    /// Lets go of callback and arguments; the context stays.
    pub fn clear(&self, py: Attached<'_>) {
        // SAFETY: attached; `self` owns a reference, or the record is just being freed.
        unsafe { locked(self.0.as_ptr().cast(), || self.clear_alone(py)) }
    }

    fn clear_alone(&self, py: Attached<'_>) {
        let callback = self.record().callback.replace(ptr::null_mut());
        if callback.is_null() {
            return;
        }
        for raw in self.args() {
            let arg = raw.replace(ptr::null_mut());
            // SAFETY: I1, attached; the reference was the record's, or NULL.
            unsafe { ffi::Py_XDECREF(arg) };
        }
        // SAFETY: I1, attached; the reference was the record's.
        unsafe { ffi::Py_DECREF(callback) };
        let _ = py;
    }
}

/// Calls in a context.
#[inline]
fn enter<'py>(
    py: Attached<'py>,
    callback: NonNull<ffi::PyObject>,
    args: *const *mut ffi::PyObject,
    count: usize,
    context: NonNull<ffi::PyObject>,
) -> PyResult<'py, ()> {
    // SAFETY: I1, attached; a context, held by the caller.
    PyError::check(py, unsafe { ffi::PyContext_Enter(context.as_ptr()) })?;
    // SAFETY: I1, attached; everything is held by the caller, which lends the place before the
    // arguments where `count` says so.
    let raw = unsafe { ffi::PyObject_Vectorcall(callback.as_ptr(), args, count, ptr::null_mut()) };
    // SAFETY: a new reference, or NULL with an exception set.
    let result = unsafe { Obj::from_new_ref(py, raw) };
    // SAFETY: I1, attached; entered above.
    let left = PyError::check(py, unsafe { ffi::PyContext_Exit(context.as_ptr()) });
    result.and(left)
}

impl<T> Clone for Call<T> {
    fn clone(&self) -> Self {
        // SAFETY: attached threads only clone calls.
        unsafe { ffi::Py_INCREF(self.0.as_ptr().cast()) };
        Call(self.0)
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        // SAFETY: attached threads only drop calls.
        unsafe { ffi::Py_DECREF(self.0.as_ptr().cast()) };
    }
}

/// A borrowed call, from the object Python lends for a method or a slot.
///
/// # Safety
/// `object` is an instance of the class of `T`.
unsafe fn lent<T>(object: *mut ffi::PyObject) -> ManuallyDrop<Call<T>> {
    // SAFETY: never NULL; the caller says it is of this class.
    ManuallyDrop::new(Call(unsafe { NonNull::new_unchecked(object.cast()) }))
}
