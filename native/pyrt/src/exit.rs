//! A thread that runs Python while the interpreter exits.
//!
//! Below 3.14 Python ends such a thread with `pthread_exit` when it next takes the GIL: in any call that
//! runs Python code. That unwinds the stack through the frames of Rust, which abort the process or drop
//! objects without the GIL. Since 3.14 Python parks the thread instead, and so do we: a cleanup handler
//! runs before the first frame is unwound, and does not return.
//!
//! Thread: the one that runs Python.

use std::marker::PhantomData;

/// While it lives, `pthread_exit` parks the calling thread.
pub struct Parks(
    /// Not `Send`: the handler belongs to the thread.
    PhantomData<*const ()>,
);

impl Parks {
    #[inline]
    pub fn here() -> Self {
        handler::hold();
        Parks(PhantomData)
    }

    /// From now on, for a thread whose code we enter again and again.
    pub fn for_good() {
        std::mem::forget(Parks::here());
    }
}

impl Drop for Parks {
    #[inline]
    fn drop(&mut self) {
        handler::release();
    }
}

#[cfg(Py_3_14)]
mod handler {
    pub fn hold() {}
    pub fn release() {}
}

#[cfg(not(Py_3_14))]
mod handler {
    use std::cell::{Cell, UnsafeCell};
    use std::ffi::{c_int, c_void};

    /// Room for the handler of any C library: glibc's has four words, musl's three.
    type Record = UnsafeCell<[usize; 4]>;

    unsafe extern "C" {
        fn _pthread_cleanup_push(
            record: *mut c_void,
            routine: unsafe extern "C" fn(*mut c_void),
            argument: *mut c_void,
        );
        fn _pthread_cleanup_pop(record: *mut c_void, execute: c_int);
    }

    thread_local! {
        /// How many hold it. The first one pushes the handler, the last one pops it, so that their
        /// order does not matter.
        static HOLDERS: Cell<usize> = const { Cell::new(0) };
        /// On the heap: glibc runs a handler when the unwinding has passed its address on the stack, and
        /// one that is not on the stack before all frames.
        static RECORD: Cell<*mut Record> = const { Cell::new(std::ptr::null_mut()) };
    }

    pub fn hold() {
        let holders = HOLDERS.get();
        HOLDERS.set(holders + 1);
        if holders == 0 {
            let record = Box::into_raw(Box::new(Record::default()));
            RECORD.set(record);
            // SAFETY: memory for a handler, which stays until it is popped.
            unsafe { _pthread_cleanup_push(record.cast(), park, std::ptr::null_mut()) };
        }
    }

    pub fn release() {
        let holders = HOLDERS.get() - 1;
        HOLDERS.set(holders);
        if holders == 0 {
            let record = RECORD.replace(std::ptr::null_mut());
            // SAFETY: pushed by this thread in `hold`; handlers of others since then are popped, as
            // they are pushed and popped within one call of C.
            unsafe { _pthread_cleanup_pop(record.cast(), 0) };
            // SAFETY: made by `Box::into_raw` in `hold`, and not in use any more.
            drop(unsafe { Box::from_raw(record) });
        }
    }

    unsafe extern "C" fn park(_: *mut c_void) {
        loop {
            // SAFETY: no precondition.
            unsafe { libc::pause() };
        }
    }
}
