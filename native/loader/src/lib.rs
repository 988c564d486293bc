//! Hop 0 of everything: opens libpython for all that is loaded later, and says which one it is.
//!
//! Thread: a dirty scheduler, once, at application start.
//! Never: touches Python beyond `Py_GetVersion`.

use std::ffi::{CStr, CString, c_char, c_void};

/// `Py_GetVersion()` of the library at `path`, opened so that extension modules find its symbols.
#[rustler::nif(schedule = "DirtyIo")]
fn open(path: String) -> Result<String, String> {
    let path = CString::new(path).map_err(|_| "a NUL in the path of libpython".to_owned())?;
    // RTLD_GLOBAL: without it even `import math` finds no symbols under the BEAM.
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    // SAFETY: a path that ends in NUL; initialisers of libpython are the ones Python has anywhere.
    let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
    if library.is_null() {
        return Err(last_error());
    }
    version(library)
}

fn version(library: *mut c_void) -> Result<String, String> {
    // SAFETY: an open library and a name that ends in NUL.
    let symbol = unsafe { libc::dlsym(library, c"Py_GetVersion".as_ptr()) };
    if symbol.is_null() {
        return Err("this library has no Py_GetVersion: is it libpython?".to_owned());
    }
    // SAFETY: `const char *Py_GetVersion(void)` in every CPython.
    let get_version: extern "C" fn() -> *const c_char = unsafe { std::mem::transmute(symbol) };
    // SAFETY: a static text that ends in NUL.
    let text = unsafe { CStr::from_ptr(get_version()) };
    Ok(text.to_string_lossy().into_owned())
}

fn last_error() -> String {
    // SAFETY: no precondition; a text valid until the next dl call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "dlopen failed without a word".to_owned();
    }
    // SAFETY: not NULL, ends in NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

rustler::init!("py_loader");
