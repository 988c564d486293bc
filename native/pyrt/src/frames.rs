//! What the threads of one interpreter run: `sys._current_frames()` looks at those of all
//! interpreters, and no lock keeps the others from running on meanwhile.

use pyo3_ffi as ffi;

use crate::{Attached, Obj, PyResult};

/// The words at the begin of a thread state among which its number is looked for: that of 3.11, the
/// shortest, has more.
const WORDS: usize = 40;

/// The innermost frame of each thread of the interpreter, by the number of the thread. `None`: a
/// thread state of this Python does not tell its number, or threads run without a GIL.
pub fn of_threads(py: Attached<'_>) -> PyResult<'_, Option<Obj<'_>>> {
    // SAFETY: I1, attached.
    let own = unsafe { ffi::PyThreadState_Get() };
    let place = match crate::FREE_THREADED {
        true => None,
        // SAFETY: the calling thread's own state.
        false => unsafe { place_of_ident(own) },
    };
    let Some(place) = place else {
        return Ok(None);
    };
    let mut found = Vec::new();
    // SAFETY: I1, attached.
    let interp = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the interpreter is alive while a thread is attached to it.
    let mut state = unsafe { ffi::PyInterpreterState_ThreadHead(interp) };
    // Nothing in here lets another thread run: no state of this interpreter begins or ends.
    while !state.is_null() {
        // SAFETY: I1, attached; a state that is alive.
        let frame = unsafe { ffi::PyThreadState_GetFrame(state) };
        if !frame.is_null() {
            // SAFETY: a new reference.
            let frame = unsafe { Obj::from_new_ref(py, frame.cast()) }?;
            // SAFETY: a state that is alive, with its number where the own one has it.
            let ident = unsafe { *state.cast::<u64>().add(place) };
            found.push((ident, frame));
        }
        // SAFETY: a state that is alive.
        state = unsafe { ffi::PyThreadState_Next(state) };
    }
    let frames = Obj::dict(py)?;
    for (ident, frame) in found {
        frames.dict_set(&Obj::int(py, ident.cast_signed())?, &frame)?;
    }
    Ok(Some(frames))
}

/// Where a thread state has the number of its thread, in words: the system's number follows it. Both
/// are known for the calling thread.
///
/// # Safety
/// `own` is the state of the calling thread.
unsafe fn place_of_ident(own: *mut ffi::PyThreadState) -> Option<usize> {
    // SAFETY: no precondition.
    let system = unsafe { libc::syscall(libc::SYS_gettid) }.cast_unsigned();
    let ident = crate::thread::ident();
    (0..WORDS).find(|&place| {
        // SAFETY: within the state, which has more words.
        let word = unsafe { *own.cast::<u64>().add(place) };
        // SAFETY: as above.
        word == ident && unsafe { *own.cast::<u64>().add(place + 1) } == system
    })
}
