//! Threads that run Python: one permanent thread state each, made and used by that thread alone.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::thread::JoinHandle;

use pyo3_ffi as ffi;

use crate::attach::restore;
use crate::{Attached, contain};

/// Stack of a thread that runs Python: nested callbacks cost stack, not threads.
pub const STACK_SIZE: usize = 16 << 20;

/// Starts a named thread whose body is contained (I7).
pub fn spawn_named(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || {
            let _ = contain("thread", body);
        })
}

/// The interpreter a thread state is made for.
#[derive(Clone, Copy)]
pub struct Interp(NonNull<ffi::PyInterpreterState>);

// SAFETY: only handed to `PyThreadState_New`, which any thread may call for a living interpreter.
unsafe impl Send for Interp {}
// SAFETY: as above.
unsafe impl Sync for Interp {}

impl Interp {
    pub fn main() -> Option<Self> {
        // SAFETY: no precondition; NULL before the runtime is initialised.
        NonNull::new(unsafe { ffi::PyInterpreterState_Main() }).map(Interp)
    }

    pub fn current(_py: Attached<'_>) -> Option<Self> {
        // SAFETY: I1, attached.
        NonNull::new(unsafe { ffi::PyInterpreterState_Get() }).map(Interp)
    }
}

/// The thread state of this thread. It lives as long as the thread wants to run Python.
pub struct ThreadState {
    state: NonNull<ffi::PyThreadState>,
    /// Not `Send`: it belongs to the thread that made it.
    here: PhantomData<*const ()>,
}

impl ThreadState {
    /// A state for the calling thread, detached. `None` when memory is out.
    pub fn new(interp: Interp) -> Option<Self> {
        // SAFETY: the interpreter is alive; needs no attachment.
        let state = unsafe { ffi::PyThreadState_New(interp.0.as_ptr()) };
        NonNull::new(state).map(|state| ThreadState {
            state,
            here: PhantomData,
        })
    }

    /// Takes over the state this thread is attached with, and detaches.
    pub(crate) fn adopt() -> Option<Self> {
        // SAFETY: called by the thread that has just initialised Python, so it is attached.
        let state = unsafe { ffi::PyEval_SaveThread() };
        NonNull::new(state).map(|state| ThreadState {
            state,
            here: PhantomData,
        })
    }

    /// Attaches, runs `body`, which makes another interpreter's state the current one, and takes
    /// that over, detached. When `body` fails the thread is detached from this state again.
    #[cfg(Py_3_12)]
    pub(crate) fn attach_and_leave(
        &mut self,
        body: impl FnOnce() -> Result<(), String>,
    ) -> Result<ThreadState, String> {
        restore(self.state.as_ptr());
        let made = body();
        // SAFETY: attached: to the new interpreter, or still to this one.
        let current = unsafe { ffi::PyEval_SaveThread() };
        made?;
        NonNull::new(current)
            .map(|state| ThreadState {
                state,
                here: PhantomData,
            })
            .ok_or_else(|| "the new interpreter has no thread state".to_owned())
    }

    /// Where its interpreter is, as long as that lives.
    pub(crate) fn interp_address(&self) -> usize {
        // SAFETY: a living state.
        unsafe { ffi::PyThreadState_GetInterpreter(self.state.as_ptr()) as usize }
    }

    /// Ends the interpreter of this state. Other threads of it exist still: it is left as it is
    /// (ending it would abort the process), and the state comes back.
    pub fn end_interpreter(self) -> Result<(), ThreadState> {
        restore(self.state.as_ptr());
        // SAFETY: attached above, until the interpreter ends. Before the look: this may run code.
        crate::kept::release_dropped(unsafe { Attached::assume() });
        // SAFETY: attached with this state.
        let interp = unsafe { ffi::PyThreadState_GetInterpreter(self.state.as_ptr()) };
        // SAFETY: attached to this interpreter, so its list of states is there.
        let head = unsafe { ffi::PyInterpreterState_ThreadHead(interp) };
        // SAFETY: a state of that list.
        let alone =
            head == self.state.as_ptr() && unsafe { ffi::PyThreadState_Next(head) }.is_null();
        if !alone {
            // SAFETY: attached above.
            unsafe { ffi::PyEval_SaveThread() };
            return Err(self);
        }
        let state = std::mem::ManuallyDrop::new(self);
        let address = state.interp_address();
        // SAFETY: attached above, until the interpreter ends.
        crate::kept::forget_from_now_on(unsafe { Attached::assume() });
        // SAFETY: attached with the only state of the interpreter; it is gone afterwards, and the
        // thread detached.
        unsafe { ffi::Py_EndInterpreter(state.state.as_ptr()) };
        crate::memory::forget(address);
        Ok(())
    }

    /// Runs `body` attached.
    pub fn attached<T>(&mut self, body: impl for<'py> FnOnce(Attached<'py>) -> T) -> T {
        struct Guard;
        impl Drop for Guard {
            fn drop(&mut self) {
                // SAFETY: attached by `attached` below, and `body` gave back what it took.
                unsafe { ffi::PyEval_SaveThread() };
            }
        }
        restore(self.state.as_ptr());
        let _guard = Guard;
        // SAFETY: attached until the guard is dropped; `for<'py>` keeps objects inside `body`.
        body(unsafe { Attached::assume() })
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        restore(self.state.as_ptr());
        // SAFETY: attached with this very state.
        unsafe { ffi::PyThreadState_Clear(self.state.as_ptr()) };
        // SAFETY: attached with this very state, cleared; also detaches.
        unsafe { ffi::PyThreadState_DeleteCurrent() };
    }
}

/// The number by which Python knows this thread (`threading.get_ident()`): the system's handle of it.
#[inline]
pub fn ident() -> u64 {
    // SAFETY: no precondition.
    unsafe { libc::pthread_self() as u64 }
}

/// Asks Python to raise `class` in the thread `ident`, at its next bytecode boundary.
/// Returns whether there is such a thread. `None` as class takes back a pending request.
pub fn raise_in(_py: Attached<'_>, ident: u64, class: Option<&crate::Obj<'_>>) -> bool {
    let class = class.map_or(std::ptr::null_mut(), crate::Obj::as_ptr);
    // SAFETY: I1, attached; a class or NULL.
    unsafe { ffi::PyThreadState_SetAsyncExc(ident as std::ffi::c_long, class) > 0 }
}

thread_local! {
    /// The addresses of the calling thread's stack, once they were asked for.
    static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// How many bytes of stack the calling thread has left; `usize::MAX` if the system does not tell, or
/// if the thread runs on a stack that is not its own.
pub fn stack_left() -> usize {
    let here = 0u8;
    let here = &raw const here as usize;
    let (lowest, highest) = STACK.get().unwrap_or_else(|| {
        let stack = stack();
        STACK.set(Some(stack));
        stack
    });
    if (lowest..highest).contains(&here) {
        here - lowest
    } else {
        usize::MAX
    }
}

/// Where the stack of the calling thread begins and ends; nowhere if the system does not tell.
fn stack() -> (usize, usize) {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the calling thread itself, and memory for its attributes.
    let known = unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) };
    if known != 0 {
        return (0, 0);
    }
    let (mut lowest, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: filled by `pthread_getattr_np`.
    let told = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut size) };
    // SAFETY: as above.
    let guarded = unsafe { libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard) };
    // SAFETY: filled above, destroyed once.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if told != 0 {
        return (0, 0);
    }
    // glibc before 2.27 counts the guard to the stack; elsewhere this gives up one page or so.
    let guard = if guarded == 0 { guard } else { 0 };
    (lowest as usize + guard, lowest as usize + size)
}
