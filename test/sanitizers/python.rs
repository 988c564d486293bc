//! A Python with the runtime of AddressSanitizer in it: `./dev test --sanitize address` runs the wheel's tests by it.
//! The runtime must be there before any library is loaded, and `LD_PRELOAD` would give it to every other program too.

#![no_main]

use std::ffi::{c_char, c_int};

unsafe extern "C" {
    fn Py_BytesMain(count: c_int, words: *mut *mut c_char) -> c_int;
}

#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, words: *mut *mut c_char) -> c_int {
    // SAFETY: the command line as the system gives it, on the main thread, once.
    unsafe { Py_BytesMain(count, words) }
}
