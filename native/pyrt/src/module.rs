//! Native modules: multi-phase init, state per module, own-GIL and free-threading declared.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

pub use crate::args::Args;
use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult, contain};

/// A module with a state of its own in every interpreter. Nothing Python-owned lives in a static.
pub trait Module: Sized + 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;

    /// Fills a fresh module and makes its state.
    fn init<'py>(module: &Obj<'py>) -> PyResult<'py, Self>;

    /// The module is being freed: releases what the state keeps, while it still can be.
    fn free(self, _py: Attached<'_>) {}
}

/// A function of a module, in C's terms; made by `function!`.
#[repr(transparent)]
pub struct Function(pub ffi::PyMethodDef);

// SAFETY: a definition is constant: names and code pointers.
unsafe impl Sync for Function {}

/// The definition of a module, made once per process and never changed.
pub struct Definition<M> {
    def: ffi::PyModuleDef,
    module: PhantomData<fn() -> M>,
}

// SAFETY: the interpreter only reads it (`m_base` is filled once by `PyModuleDef_Init`).
unsafe impl<M> Sync for Definition<M> {}
// SAFETY: as above; it is leaked and never moved after `new`.
unsafe impl<M> Send for Definition<M> {}

impl<M: Module> Definition<M> {
    /// Leaked on purpose: Python keeps pointers into it until the process ends.
    pub fn new(functions: &'static [Function]) -> &'static Self {
        let mut slots = vec![ffi::PyModuleDef_Slot {
            slot: ffi::Py_mod_exec,
            value: exec::<M> as *mut c_void,
        }];
        #[cfg(Py_3_12)]
        slots.push(ffi::PyModuleDef_Slot {
            slot: ffi::Py_mod_multiple_interpreters,
            value: ffi::Py_MOD_PER_INTERPRETER_GIL_SUPPORTED,
        });
        #[cfg(Py_3_13)]
        slots.push(ffi::PyModuleDef_Slot {
            slot: ffi::Py_mod_gil,
            value: ffi::Py_MOD_GIL_NOT_USED,
        });
        slots.push(ffi::PyModuleDef_Slot {
            slot: 0,
            value: ptr::null_mut(),
        });
        Box::leak(Box::new(Definition {
            def: ffi::PyModuleDef {
                m_base: ffi::PyModuleDef_HEAD_INIT,
                m_name: M::NAME.as_ptr(),
                m_doc: M::DOC.as_ptr(),
                m_size: size_of::<State<M>>() as ffi::Py_ssize_t,
                // `Function` is `repr(transparent)`; C only reads the table.
                m_methods: functions.as_ptr().cast_mut().cast(),
                m_slots: slots.leak().as_mut_ptr(),
                m_traverse: None,
                m_clear: None,
                m_free: Some(free::<M>),
            },
            module: PhantomData,
        }))
    }

    /// What a `PyInit_…` function returns.
    pub fn init(&'static self) -> *mut ffi::PyObject {
        let def = ptr::from_ref(&self.def).cast_mut();
        // SAFETY: a definition that lives for ever.
        unsafe { ffi::PyModuleDef_Init(def) }
    }

    /// The state of this module in this interpreter, from the module object itself.
    pub fn state<'a>(&self, module: &'a Obj<'_>) -> Option<&'a M> {
        // SAFETY: I1, attached; a live module object.
        let def = unsafe { ffi::PyModule_GetDef(module.as_ptr()) };
        if !ptr::eq(def, &self.def) {
            // What is no module at all has set an exception.
            drop(PyError::take(module.py()));
            return None;
        }
        // SAFETY: a module of this very definition, so its state has this layout.
        unsafe { state_of::<M>(module.as_ptr()) }
    }

    /// The state, from a class that belongs to this module, or comes from one that does.
    pub fn state_of_class<'a>(&self, class: &'a Obj<'_>) -> Option<&'a M> {
        let def = ptr::from_ref(&self.def).cast_mut();
        // SAFETY: I1, attached; a class and a definition. Works for subclasses too, which
        // `PyType_GetModuleState` does not.
        let module = unsafe { ffi::PyType_GetModuleByDef(class.as_ptr().cast(), def) };
        let Some(module) = NonNull::new(module) else {
            drop(PyError::take(class.py()));
            return None;
        };
        // SAFETY: found by this very definition; the class keeps the module alive.
        unsafe { state_of::<M>(module.as_ptr()) }
    }
}

/// C gives zeroed memory; `None` until `init` has filled it.
type State<M> = Option<Box<M>>;

/// # Safety
/// `module` was made from a `Definition<M>` and outlives `'a`.
unsafe fn state_of<'a, M>(module: *mut ffi::PyObject) -> Option<&'a M> {
    // SAFETY: the caller's word.
    let state = unsafe { ffi::PyModule_GetState(module) }.cast::<State<M>>();
    // SAFETY: NULL, or zeroed memory (= `None`) that `exec` filled.
    unsafe { state.as_ref() }?.as_deref()
}

unsafe extern "C" fn exec<M: Module>(module: *mut ffi::PyObject) -> c_int {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let made = contain("module init", || {
        // SAFETY: Python lends the module for this call.
        let module = unsafe { Obj::from_borrowed(py, NonNull::new_unchecked(module)) };
        M::init(&module)
    });
    match made {
        Ok(Ok(made)) => {
            // SAFETY: a module of our definition.
            let state = unsafe { ffi::PyModule_GetState(module) }.cast::<State<M>>();
            // SAFETY: zeroed memory of the right size, ours to fill.
            unsafe { state.write(Some(Box::new(made))) };
            0
        }
        Ok(Err(error)) => {
            error.restore();
            -1
        }
        Err(_) => {
            PyError::new(py, Builtin::SystemError, "a bug in native module init").restore();
            -1
        }
    }
}

unsafe extern "C" fn free<M: Module>(module: *mut c_void) {
    // SAFETY: Python frees a module of our definition, attached.
    let state = unsafe { ffi::PyModule_GetState(module.cast()) }.cast::<State<M>>();
    // SAFETY: NULL, or the memory `exec` filled.
    if let Some(state) = unsafe { state.as_mut() } {
        // SAFETY: Python calls it attached.
        let py = unsafe { Attached::assume() };
        let _ = contain("module free", || {
            if let Some(state) = state.take() {
                state.free(py);
            }
        });
    }
}

/// Imports a module that is part of the host library and lies in a package, before that package:
/// early releases of Python 3.11 (Debian 12 has one) find no built-in module inside a package, but
/// are content with one that is in `sys.modules` already.
pub fn load_inbuilt<'py>(py: Attached<'py>, name: &str) -> PyResult<'py, Obj<'py>> {
    let name = Obj::text(py, name)?;
    if let Some(module) = crate::call::imported(&name)? {
        return Ok(module);
    }
    let importlib = crate::call::import_c(py, c"_frozen_importlib")?;
    let importer = importlib.getattr_c(c"BuiltinImporter")?;
    let spec = importer.call_method(c"find_spec", &[&name])?;
    let module = importlib.call_method(c"module_from_spec", &[&spec])?;
    // As importlib does it: whoever imports it while it is being filled finds it.
    let modules = crate::call::import_c(py, c"sys")?.getattr_c(c"modules")?;
    modules.dict_set(&name, &module)?;
    importer.call_method(c"exec_module", &[&module])?;
    Ok(module)
}

/// Adds `value` to the module under `name`.
pub fn add<'py>(module: &Obj<'py>, name: &CStr, value: &Obj<'py>) -> PyResult<'py, ()> {
    // SAFETY: I1, attached; the name ends in NUL; takes its own reference.
    let done =
        unsafe { ffi::PyModule_AddObjectRef(module.as_ptr(), name.as_ptr(), value.as_ptr()) };
    PyError::check(module.py(), done)
}

/// The body of a module function.
pub type Body = for<'a, 'py> fn(&Obj<'py>, &Args<'a, 'py>) -> PyResult<'py, Obj<'py>>;

/// Runs `body` for a C call: contained, NULL with an exception set on failure. For `function!`.
///
/// # Safety
/// The arguments are those of a `METH_FASTCALL | METH_KEYWORDS` call by an attached thread.
pub unsafe fn enter(
    body: Body,
    module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls it attached.
    let py = unsafe { Attached::assume() };
    let result = contain("native function", || {
        // SAFETY: Python lends `self` for this call.
        let module = unsafe { crate::Borrowed::from_ptr(NonNull::new_unchecked(module)) };
        // SAFETY: lent for this call, as the caller says.
        let args = unsafe { Args::lent(py, args, count, names) };
        body(&module, &args)
    });
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

#[doc(hidden)]
pub use pyo3_ffi as __ffi;

/// `function!(c"name", body, c"doc")`: an entry of a module's table of functions.
#[macro_export]
macro_rules! function {
    ($name:expr, $body:path, $doc:expr) => {{
        unsafe extern "C" fn call(
            module: *mut $crate::module::__ffi::PyObject,
            args: *const *mut $crate::module::__ffi::PyObject,
            count: $crate::module::__ffi::Py_ssize_t,
            names: *mut $crate::module::__ffi::PyObject,
        ) -> *mut $crate::module::__ffi::PyObject {
            // SAFETY: Python calls it as the flags below say.
            unsafe { $crate::module::enter($body, module, args, count, names) }
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

/// The end of a table of functions.
pub const END: Function = Function(ffi::PyMethodDef::zeroed());
