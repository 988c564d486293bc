//! The wheel's `erlang._native`: the entry that Python looks for, and nothing else.

/// Called by the first `import erlang._native` of each interpreter.
#[unsafe(no_mangle)]
pub extern "C" fn PyInit__native() -> *mut std::ffi::c_void {
    pyloop::init().cast()
}
