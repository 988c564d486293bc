//! The context that a call put off runs in.
//!
//! A call that names none runs in a copy of its caller's context. Until then only the variables of
//! that context are kept, a map that never changes and that all copies share: what waits has no
//! context of its own, and calls that run one after another need but one (`Scratch`).
//! Thread: attached ones.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3_ffi as ffi;

use crate::running::copy_context;
use crate::{Attached, FREE_THREADED, Member, Obj, PyResult};

/// How a context begins in memory, in every CPython up to 3.14.
#[repr(C)]
struct Context {
    head: ffi::PyObject,
    /// Where the thread was before it entered.
    prev: *mut ffi::PyObject,
    vars: Cell<*mut ffi::PyObject>,
}

const UNKNOWN: u8 = 0;
const AS_ABOVE: u8 = 1;
const OTHERWISE: u8 = 2;
static LAYOUT: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether contexts of this Python are as above.
#[inline]
fn has_vars(py: Attached<'_>) -> bool {
    // Without a GIL the free list of contexts makes up for it, and their cells would need a lock.
    if FREE_THREADED || cfg!(Py_3_15) {
        return false;
    }
    // Relaxed: whoever does not see it looks once more.
    match LAYOUT.load(Ordering::Relaxed) {
        UNKNOWN => look(py),
        layout => layout == AS_ABOVE,
    }
}

#[cold]
fn look(py: Attached<'_>) -> bool {
    let layout = match (copy_context(py), copy_context(py)) {
        (Ok(one), Ok(other)) if is_as_above(&one, &other) => AS_ABOVE,
        (Ok(_), Ok(_)) => OTHERWISE,
        // No memory: the next one may look.
        _ => return false,
    };
    LAYOUT.store(layout, Ordering::Relaxed);
    layout == AS_ABOVE
}

/// Two copies of a context that nobody has entered: they share a map, as the C code calls it.
fn is_as_above(one: &Obj<'_>, other: &Obj<'_>) -> bool {
    // SAFETY: every object has a type, and a type its size.
    let size = unsafe { (*ffi::Py_TYPE(one.as_ptr())).tp_basicsize };
    if size < size_of::<Context>() as ffi::Py_ssize_t {
        return false;
    }
    let (one, other) = (beginning(one.non_null()), beginning(other.non_null()));
    let vars = one.vars.get();
    if !one.prev.is_null() || vars.is_null() || vars != other.vars.get() {
        return false;
    }
    // SAFETY: two contexts share no other word that is no number: it is an object.
    let name = unsafe { (*ffi::Py_TYPE(vars)).tp_name };
    // SAFETY: the name of a type is a string of C.
    let name = unsafe { CStr::from_ptr(name) };
    name == c"hamt"
}

/// The first words of a context, which the caller holds.
fn beginning<'a>(context: NonNull<ffi::PyObject>) -> &'a Context {
    // SAFETY: a context is at least as large; it changes through cells only, on attached threads.
    unsafe { context.cast().as_ref() }
}

/// Where a call shall run.
pub enum Surrounding<'py> {
    Given(Obj<'py>),
    /// In a context with these variables.
    Vars(Obj<'py>),
}

impl<'py> Surrounding<'py> {
    /// A copy of the current context, as it is now.
    #[inline]
    pub fn current(py: Attached<'py>) -> PyResult<'py, Self> {
        let copy = copy_context(py)?;
        if !has_vars(py) {
            return Ok(Surrounding::Given(copy));
        }
        match NonNull::new(beginning(copy.non_null()).vars.get()) {
            // SAFETY: the copy owns a reference.
            Some(vars) => Ok(Surrounding::Vars(unsafe { Obj::from_borrowed(py, vars) })),
            None => Ok(Surrounding::Given(copy)),
        }
    }
}

/// A context that was run in and that nobody else has, for the next call.
#[derive(Default)]
pub struct Scratch {
    context: Cell<Option<Member>>,
    /// What a context has while it is kept: the garbage collector shows it to whoever asks.
    no_vars: Cell<Option<Member>>,
}

impl Scratch {
    /// A context with these variables, whose reference it takes over.
    #[inline]
    fn fill<'py>(&self, py: Attached<'py>, vars: Obj<'py>) -> PyResult<'py, Obj<'py>> {
        let kept = self.context.take().map(|context| context.into_obj(py));
        // The collector shows it to whoever asks: one that somebody has found is theirs.
        let context = match kept.filter(is_sole) {
            Some(context) => context,
            None => empty_context(py)?,
        };
        let before = swap_vars(&context, vars);
        self.no_vars.set(before.map(Member::new));
        Ok(context)
    }

    /// Keeps it, without its variables, unless somebody else has it too: a token, say.
    #[inline]
    fn keep(&self, context: Obj<'_>) {
        let Some(no_vars) = self.no_vars.take() else {
            return;
        };
        if is_sole(&context) {
            drop(swap_vars(&context, no_vars.into_obj(context.py())));
            self.context.set(Some(Member::new(context)));
        }
    }
}

/// Whether nobody else has it.
#[inline]
fn is_sole(context: &Obj<'_>) -> bool {
    // SAFETY: I1, attached; a living object.
    unsafe { ffi::Py_REFCNT(context.as_ptr()) == 1 }
}

fn empty_context(py: Attached<'_>) -> PyResult<'_, Obj<'_>> {
    // SAFETY: I1, attached.
    let raw = unsafe { ffi::PyContext_New() };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// Puts other variables into a context that nobody is in.
#[inline]
fn swap_vars<'py>(context: &Obj<'py>, vars: Obj<'py>) -> Option<Obj<'py>> {
    let old = beginning(context.non_null()).vars.replace(vars.into_ptr());
    let old = NonNull::new(old)?;
    // SAFETY: the reference was the context's.
    Some(unsafe { Obj::from_owned(context.py(), old) })
}

/// An object is aligned: the lowest bit of its address is free.
const IS_VARS: usize = 1;

/// The place of a context in a call: NULL, a context, or variables with a mark.
pub(super) struct Stay(Cell<*mut ffi::PyObject>);

impl Stay {
    pub fn new(surrounding: Surrounding<'_>) -> Self {
        Stay(Cell::new(match surrounding {
            Surrounding::Given(context) => context.into_ptr(),
            Surrounding::Vars(vars) => vars.into_ptr().map_addr(|address| address | IS_VARS),
        }))
    }

    /// Moves the variables out, if there are some.
    #[inline]
    fn take_vars<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        let raw = self.0.get();
        if raw.addr() & IS_VARS == 0 {
            return None;
        }
        self.0.set(ptr::null_mut());
        let vars = NonNull::new(raw.map_addr(|address| address & !IS_VARS))?;
        // SAFETY: the reference was this place's.
        Some(unsafe { Obj::from_owned(py, vars) })
    }

    /// The context, which is made if there is none yet.
    #[inline]
    pub fn context<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<NonNull<ffi::PyObject>>> {
        if let Some(vars) = self.take_vars(py) {
            let context = Scratch::default().fill(py, vars)?;
            self.0.set(context.into_ptr());
        }
        Ok(NonNull::new(self.0.get()))
    }

    /// Runs in a context that nobody will ask for. `None`: it is not of that kind. After a failure
    /// somebody may, so then it stays.
    #[inline]
    pub fn run_in_scratch<'py>(
        &self,
        py: Attached<'py>,
        scratch: &Scratch,
        run: impl FnOnce(NonNull<ffi::PyObject>) -> PyResult<'py, ()>,
    ) -> Option<PyResult<'py, ()>> {
        let vars = self.take_vars(py)?;
        let context = match scratch.fill(py, vars) {
            Ok(context) => context,
            Err(error) => return Some(Err(error)),
        };
        let done = run(context.non_null());
        match done {
            Ok(()) => scratch.keep(context),
            Err(_) => self.0.set(context.into_ptr()),
        }
        Some(done)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let raw = self.0.get().map_addr(|address| address & !IS_VARS);
        // SAFETY: I1, calls are dropped by attached threads; the reference was this place's.
        unsafe { ffi::Py_XDECREF(raw) };
    }
}
