//! A frame of another thread that rests, and whose code it runs.

use std::ptr::NonNull;

use pyo3_ffi as ffi;

use super::opcode;
use super::place::Place;
use crate::{Attached, Obj, PyResult};

unsafe extern "C" {
    // Public since 3.11; `pyo3-ffi` does not have it.
    fn PyCode_GetCode(code: *mut ffi::PyCodeObject) -> *mut ffi::PyObject;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Module {
    /// Those that import modules.
    Imports,
    /// Those of the standard library that have locks.
    Locks,
    Other,
}

pub struct Frame<'py> {
    object: Obj<'py>,
    code: Obj<'py>,
    /// The instructions, as bytes.
    instructions: Obj<'py>,
    /// The name of its module, if it has one.
    module: Option<Obj<'py>>,
}

impl<'py> Frame<'py> {
    /// # Safety
    /// `raw` is a new reference to a frame.
    pub unsafe fn of(py: Attached<'py>, raw: NonNull<ffi::PyFrameObject>) -> PyResult<'py, Self> {
        // SAFETY: the caller gives up its reference.
        let object = unsafe { Obj::from_owned(py, raw.cast()) };
        // SAFETY: I1, attached; a frame that is alive.
        let code = unsafe { ffi::PyFrame_GetCode(raw.as_ptr()) };
        // SAFETY: a new reference, never NULL.
        let code = unsafe { Obj::from_new_ref(py, code.cast()) }?;
        // SAFETY: I1, attached; a code object that is alive.
        let instructions = unsafe { PyCode_GetCode(code.as_ptr().cast()) };
        // SAFETY: a new reference, or NULL with an exception set.
        let instructions = unsafe { Obj::from_new_ref(py, instructions) }?;
        // SAFETY: I1, attached; a frame that is alive.
        let globals = unsafe { ffi::PyFrame_GetGlobals(raw.as_ptr()) };
        // SAFETY: a new reference, never NULL.
        let globals = unsafe { Obj::from_new_ref(py, globals) }?;
        // Only of a real dict: another kind of mapping would run code.
        let module = match globals.is_dict() {
            true => globals.dict_get(&Obj::interned(py, "__name__")?)?,
            false => None,
        };
        Ok(Frame {
            object,
            code,
            instructions,
            module,
        })
    }

    /// A new reference to its caller, or NULL.
    pub fn back(&self) -> *mut ffi::PyFrameObject {
        // SAFETY: I1, attached; a frame that is alive.
        unsafe { ffi::PyFrame_GetBack(self.object.as_ptr().cast()) }
    }

    /// The number of the instruction that it runs; `None` before the first.
    fn at(&self) -> Option<usize> {
        // SAFETY: I1, attached; a frame that is alive.
        let offset = unsafe { ffi::PyFrame_GetLasti(self.object.as_ptr().cast()) };
        usize::try_from(offset).ok().map(|offset| offset / 2)
    }

    /// What the instructions there mean. `None`: unknown.
    pub fn place<T>(&self, body: impl FnOnce(Place<'_>) -> T) -> Option<T> {
        let kinds = opcode::kinds()?;
        let (names, handlers) = (
            self.code.getattr_c(c"co_names").ok()?,
            self.code.getattr_c(c"co_exceptiontable").ok()?,
        );
        let name = |index| {
            let name = names.tuple_item(index)?;
            Some(name.as_utf8().ok()?.to_owned())
        };
        Some(body(Place {
            code: self.instructions.as_bytes()?,
            handlers: handlers.as_bytes()?,
            kinds,
            at: self.at()?,
            name: &name,
        }))
    }

    /// Where it is, if it is that of a coroutine.
    pub fn coroutine(&self) -> Option<String> {
        const COROUTINE: i64 = 0x80 | 0x100;
        let flags = self.code.getattr_c(c"co_flags").ok()?.as_i64().ok()??;
        if flags & COROUTINE == 0 {
            return None;
        }
        let name = self.code.getattr_c(c"co_qualname").ok()?;
        let file = self.code.getattr_c(c"co_filename").ok()?;
        // SAFETY: I1, attached; a frame that is alive.
        let line = unsafe { ffi::PyFrame_GetLineNumber(self.object.as_ptr().cast()) };
        let (name, file) = (name.as_utf8().ok()?, file.as_utf8().ok()?);
        Some(format!("{name}() running at {file}:{line}"))
    }

    fn module_name(&self) -> &str {
        let name = self.module.as_ref().map(|name| name.as_utf8());
        name.and_then(Result::ok).unwrap_or_default()
    }

    pub fn module(&self) -> Module {
        match self.module_name() {
            "importlib._bootstrap"
            | "importlib._bootstrap_external"
            | "_frozen_importlib"
            | "_frozen_importlib_external"
            | "zipimport" => Module::Imports,
            "threading" | "contextlib" | "queue" | "logging" | "weakref" | "_weakrefset" => {
                Module::Locks
            }
            name if name.starts_with("logging.") || name.starts_with("concurrent.futures") => {
                Module::Locks
            }
            _ => Module::Other,
        }
    }

    /// Of this package.
    pub fn is_ours(&self) -> bool {
        self.module_name().starts_with("erlang.")
    }

    pub fn is_threading(&self) -> bool {
        self.module_name() == "threading"
    }

    /// Whether it is a function of `threading` that waits, and puts everything right if that is interrupted.
    pub fn waits(&self) -> bool {
        const WAITING: [&str; 3] = [
            "Condition.wait",
            "Thread._wait_for_tstate_lock",
            "Thread.join",
        ];
        self.is_threading()
            && self
                .code
                .getattr_c(c"co_qualname")
                .is_ok_and(|name| name.as_utf8().is_ok_and(|name| WAITING.contains(&name)))
            && self
                .place(|place| place.is_protected_wait())
                .unwrap_or(false)
    }
}
