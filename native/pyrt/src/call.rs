//! Calling, importing, compiling.

use std::ffi::{CStr, CString};
use std::ptr;

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyError, PyResult};

impl<'py> Obj<'py> {
    /// Calls with positional arguments, by vectorcall.
    pub fn call(&self, args: &[&Obj<'py>]) -> PyResult<'py, Obj<'py>> {
        // SAFETY: `&Obj` has the layout of a pointer to a pointer-sized struct; copied out below.
        let mut raw: [*mut ffi::PyObject; 9] = [ptr::null_mut(); 9];
        if args.len() < raw.len() {
            for (place, arg) in raw[1..].iter_mut().zip(args) {
                *place = arg.as_ptr();
            }
            return self.vectorcall(&raw[1..=args.len()], true, None);
        }
        let mut many = Vec::with_capacity(args.len() + 1);
        many.push(ptr::null_mut());
        many.extend(args.iter().map(|arg| arg.as_ptr()));
        self.vectorcall(&many[1..], true, None)
    }

    /// Calls with owned arguments, and keyword arguments in a tuple of names if there are any: the
    /// last `names` of `args` are their values.
    pub fn call_owned(
        &self,
        args: &[Obj<'py>],
        names: Option<&Obj<'py>>,
    ) -> PyResult<'py, Obj<'py>> {
        // `Obj` is `repr(transparent)` over the pointer.
        let raw = ptr::from_ref(args).cast::<*mut ffi::PyObject>();
        // SAFETY: as many pointers as there are `Obj`s, of the same layout, borrowed as long.
        let raw = unsafe { std::slice::from_raw_parts(raw, args.len()) };
        self.vectorcall(raw, false, names)
    }

    fn vectorcall(
        &self,
        args: &[*mut ffi::PyObject],
        room_before: bool,
        names: Option<&Obj<'py>>,
    ) -> PyResult<'py, Obj<'py>> {
        let keywords = names.map_or(0, |names| names.tuple_len());
        let mut count = args.len() - keywords;
        if room_before {
            count |= ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        }
        let names = names.map_or(ptr::null_mut(), Obj::as_ptr);
        // SAFETY: I1, attached; callee, arguments and names are alive; where the offset flag is
        // set, the slot before `args` is ours to lend (`call`).
        let result =
            unsafe { ffi::PyObject_Vectorcall(self.as_ptr(), args.as_ptr(), count, names) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), result) }
    }

    /// Calls with a tuple of arguments and a dict of keyword arguments, as they are: a class
    /// without vectorcall makes neither anew.
    pub fn call_with(&self, args: &Obj<'py>, keywords: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
        // SAFETY: I1, attached; callee, tuple and dict are alive.
        let raw = unsafe { ffi::PyObject_Call(self.as_ptr(), args.as_ptr(), keywords.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py(), raw) }
    }

    pub fn call_method(&self, name: &CStr, args: &[&Obj<'py>]) -> PyResult<'py, Obj<'py>> {
        self.getattr_c(name)?.call(args)
    }

    pub fn is_callable(&self) -> bool {
        // SAFETY: I1, attached; the object is alive.
        unsafe { ffi::PyCallable_Check(self.as_ptr()) == 1 }
    }
}

/// `importlib.import_module(name)`
pub fn import<'py>(name: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; the name is alive.
    let raw = unsafe { ffi::PyImport_Import(name.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set. `PyImport_Import` gives the named
    // module itself, dotted or not.
    unsafe { Obj::from_new_ref(name.py(), raw) }
}

pub fn import_c<'py>(py: Attached<'py>, name: &CStr) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; the name ends in NUL.
    let raw = unsafe { ffi::PyImport_ImportModule(name.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// `sys.modules`, or the module of that name if it is imported and done.
pub fn imported<'py>(name: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
    // SAFETY: I1, attached; the name is alive.
    let raw = unsafe { ffi::PyImport_GetModule(name.as_ptr()) };
    if raw.is_null() && !PyError::occurred(name.py()) {
        return Ok(None);
    }
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(name.py(), raw) }.map(Some)
}

/// Whether `sys.modules` has that very module under the name.
pub fn is_module(name: &Obj<'_>, module: &Obj<'_>) -> bool {
    // SAFETY: I1, attached; a borrowed reference that lives as long as the interpreter.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: I1, attached; both are alive. What it gives is borrowed and only compared.
    let found = unsafe { ffi::PyDict_GetItemWithError(modules, name.as_ptr()) };
    if found.is_null() && PyError::occurred(name.py()) {
        drop(PyError::fetch(name.py()));
    }
    found == module.as_ptr()
}

/// What a piece of source is: one expression, or statements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    Expression,
    Statements,
}

/// Compiles source text. A NUL in it is a `ValueError`, as Python has it.
pub fn compile<'py>(
    py: Attached<'py>,
    source: &[u8],
    file: &CStr,
    kind: Source,
) -> PyResult<'py, Obj<'py>> {
    let Ok(source) = CString::new(source) else {
        let class = crate::error::Builtin::ValueError;
        return Err(PyError::new(py, class, "source code contains null bytes"));
    };
    let start = match kind {
        Source::Expression => ffi::Py_eval_input,
        Source::Statements => ffi::Py_file_input,
    };
    // SAFETY: I1, attached; both texts end in NUL; no flags.
    let raw = unsafe {
        ffi::Py_CompileStringExFlags(source.as_ptr(), file.as_ptr(), start, ptr::null_mut(), -1)
    };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(py, raw) }
}

/// Runs a code object.
pub fn run_code<'py>(
    code: &Obj<'py>,
    globals: &Obj<'py>,
    locals: &Obj<'py>,
) -> PyResult<'py, Obj<'py>> {
    // SAFETY: I1, attached; a code object and two mappings, all alive.
    let raw = unsafe { ffi::PyEval_EvalCode(code.as_ptr(), globals.as_ptr(), locals.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Obj::from_new_ref(code.py(), raw) }
}

/// The `builtins` of this interpreter.
pub fn builtins<'py>(py: Attached<'py>) -> Obj<'py> {
    // SAFETY: I1, attached; a borrowed reference that lives as long as the interpreter.
    let raw = unsafe { ffi::PyEval_GetBuiltins() };
    // SAFETY: never NULL on an attached thread.
    unsafe { Obj::from_borrowed(py, ptr::NonNull::new_unchecked(raw)) }
}

/// `sys.getrecursionlimit()` of a fresh interpreter.
pub const DEFAULT_RECURSION_LIMIT: usize = 1000;

/// `sys.setrecursionlimit(limit)`, unless it is that high already.
pub fn raise_recursion_limit(_py: Attached<'_>, limit: usize) {
    let limit = limit as std::ffi::c_int;
    // SAFETY: I1, attached.
    if unsafe { ffi::Py_GetRecursionLimit() } < limit {
        // SAFETY: I1, attached.
        unsafe { ffi::Py_SetRecursionLimit(limit) };
    }
}

/// What a nested run must neither see nor change: the handled exception and the context variables.
pub struct Apart<'py> {
    handled: *mut ffi::PyObject,
    context: Obj<'py>,
}

impl<'py> Apart<'py> {
    /// Saves the handled exception and enters a fresh context, until dropped.
    pub fn enter(py: Attached<'py>) -> PyResult<'py, Self> {
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyContext_New() };
        // SAFETY: a new reference, or NULL with an exception set.
        let context = unsafe { Obj::from_new_ref(py, raw) }?;
        // SAFETY: I1, attached; a fresh context, entered by nobody.
        PyError::check(py, unsafe { ffi::PyContext_Enter(context.as_ptr()) })?;
        // SAFETY: I1, attached; a new reference or NULL.
        let handled = unsafe { ffi::PyErr_GetHandledException() };
        // SAFETY: I1, attached; NULL clears it.
        unsafe { ffi::PyErr_SetHandledException(std::ptr::null_mut()) };
        Ok(Apart { handled, context })
    }
}

impl Drop for Apart<'_> {
    fn drop(&mut self) {
        // SAFETY: I1, attached; what `enter` saved, or NULL.
        unsafe { ffi::PyErr_SetHandledException(self.handled) };
        // SAFETY: ours since `enter`.
        unsafe { ffi::Py_XDECREF(self.handled) };
        // SAFETY: I1, attached; entered by `enter` on this thread.
        if unsafe { ffi::PyContext_Exit(self.context.as_ptr()) } < 0 {
            PyError::fetch(self.context.py()).unraisable(c"leaving the context of a nested job");
        }
    }
}
