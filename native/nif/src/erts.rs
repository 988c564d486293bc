//! Terms on threads of ours: process-independent environments, and sending from them.
//!
//! Thread: any. An environment is used by one thread at a time: whoever owns the `MsgEnv`.
//! Never: builds a map (a map of more than 128 keys made off a scheduler ends OTP 23 to 27.2).

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use rustler::sys::{
    self, ErlNifBinary, ErlNifEnv, ErlNifPid, ErlNifTerm, enif_alloc_env, enif_clear_env,
    enif_free_env,
};
use rustler::types::atom::Atom;
use rustler::{Env, LocalPid, Resource, ResourceArc, Term};

use crate::fork;

/// An environment of our own, made when it is first needed and reused: clearing costs less than half
/// of making a new one.
pub struct MsgEnv(Cell<*mut ErlNifEnv>);

/// A term in some `MsgEnv`, or an immediate that is valid in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw(ErlNifTerm);

// SAFETY: a process-independent environment may move between threads; it has one owner.
unsafe impl Send for MsgEnv {}

impl MsgEnv {
    pub fn new() -> Self {
        MsgEnv(Cell::new(ptr::null_mut()))
    }

    fn raw(&self) -> *mut ErlNifEnv {
        if self.0.get().is_null() {
            fork::end_if_child();
            // SAFETY: no precondition; the emulator aborts when memory is out, it never gives NULL.
            self.0.set(unsafe { enif_alloc_env() });
        }
        self.0.get()
    }

    /// Whether it has been needed.
    pub fn is_made(&self) -> bool {
        !self.0.get().is_null()
    }

    /// Drops all its terms; ready for the next use.
    pub fn clear(&mut self) {
        if self.is_made() {
            // SAFETY: ours, and no `Raw` of it is used after this (they are never stored past a job).
            unsafe { enif_clear_env(self.raw()) };
        }
    }

    pub fn copy(&self, term: Term<'_>) -> Raw {
        // SAFETY: ours; the source term is valid while `term` is.
        Raw(unsafe { sys::enif_make_copy(self.raw(), term.as_c_arg()) })
    }

    /// A term of another environment of ours, which is not cleared meanwhile.
    pub fn copy_from(&self, _other: &MsgEnv, term: Raw) -> Raw {
        // SAFETY: ours; the source term is valid while its environment is.
        Raw(unsafe { sys::enif_make_copy(self.raw(), term.0) })
    }

    /// A term of this environment, for the caller of a NIF.
    pub fn copy_to<'a>(&self, env: Env<'a>, term: Raw) -> Term<'a> {
        // SAFETY: a live environment; the term is of this one, which is not cleared meanwhile.
        let copy = unsafe { sys::enif_make_copy(env.as_c_arg(), term.0) };
        // SAFETY: made in `env` just above.
        unsafe { Term::new(env, copy) }
    }

    pub fn int(&self, value: i64) -> Raw {
        // SAFETY: ours.
        Raw(unsafe { sys::enif_make_int64(self.raw(), value) })
    }

    /// A float, which must be finite: Erlang has no other.
    pub fn float(&self, value: f64) -> Raw {
        // SAFETY: ours.
        Raw(unsafe { sys::enif_make_double(self.raw(), value) })
    }

    pub fn binary(&self, bytes: &[u8]) -> Raw {
        let mut term = MaybeUninit::uninit();
        // SAFETY: ours; gives memory for `len` bytes and writes the term.
        let data = unsafe { sys::enif_make_new_binary(self.raw(), bytes.len(), term.as_mut_ptr()) };
        // SAFETY: `len` fresh bytes that nobody else sees yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        // SAFETY: written by `enif_make_new_binary`.
        Raw(unsafe { term.assume_init() })
    }

    /// A binary over memory that `owner` keeps alive and unchanged.
    ///
    /// # Safety
    /// `len` bytes at `data` stay as they are until `owner` is dropped.
    pub unsafe fn lent<T: Resource>(
        &self,
        owner: &ResourceArc<T>,
        data: *const u8,
        len: usize,
    ) -> Raw {
        // SAFETY: ours; the caller's word for the memory.
        Raw(unsafe {
            sys::enif_make_resource_binary(self.raw(), owner.as_c_arg(), data.cast(), len)
        })
    }

    pub fn resource<T: Resource>(&self, resource: &ResourceArc<T>) -> Raw {
        // SAFETY: ours, and a live resource.
        Raw(unsafe { sys::enif_make_resource(self.raw(), resource.as_c_arg()) })
    }

    /// The resource behind a term of this environment.
    pub fn resource_of<T: Resource>(&self, term: Raw) -> Option<ResourceArc<T>> {
        // SAFETY: ours, and it outlives `env`, which does not leave this function.
        let env = unsafe { Env::new(&self.0, self.raw()) };
        // SAFETY: a term of this environment.
        unsafe { Term::new(env, term.0) }.decode().ok()
    }

    pub fn tuple(&self, items: &[Raw]) -> Raw {
        let first = items.as_ptr().cast::<ErlNifTerm>();
        // SAFETY: ours; `Raw` is a term by layout; all are of this environment or immediates.
        Raw(unsafe { sys::enif_make_tuple_from_array(self.raw(), first, items.len() as u32) })
    }

    pub fn list(&self, items: &[Raw]) -> Raw {
        let first = items.as_ptr().cast::<ErlNifTerm>();
        // SAFETY: as in `tuple`.
        Raw(unsafe { sys::enif_make_list_from_array(self.raw(), first, items.len() as u32) })
    }

    /// The term of these bytes, decoded as `binary_to_term(_, [safe])` does. The caller has made
    /// sure that there is no large map in it (ARCHITECTURE.md, "The boundary is bytes").
    pub fn decode(&self, bytes: &[u8]) -> Option<Raw> {
        const SAFE: u32 = 0x2000_0000;
        let mut term = MaybeUninit::uninit();
        // SAFETY: ours; reads `len` bytes and writes the term when it answers non-zero.
        let read = unsafe {
            sys::enif_binary_to_term(
                self.raw(),
                bytes.as_ptr(),
                bytes.len(),
                term.as_mut_ptr(),
                SAFE,
            )
        };
        // SAFETY: written, since something was read.
        (read != 0).then(|| Raw(unsafe { term.assume_init() }))
    }

    /// The bytes of a binary in this environment, valid until it is cleared.
    pub fn bytes_of(&self, term: Raw) -> Option<(*const u8, usize)> {
        inspect(self.raw(), term.0)
    }

    /// Sends and leaves the environment to be cleared. `false`: the process is gone.
    pub fn send(&mut self, to: &LocalPid, message: Raw) -> bool {
        // A child has the emulator's memory, and nobody of it to send to.
        fork::end_if_child();
        // SAFETY: a thread that is no scheduler gives NULL as its own environment; the message is
        // of this environment, which is not read again before `clear`.
        unsafe { sys::enif_send(ptr::null_mut(), to.as_c_arg(), self.raw(), message.0) != 0 }
    }

    /// The same on a scheduler, in a NIF that `caller` has called.
    pub fn send_from(&mut self, caller: Env<'_>, to: &LocalPid, message: Raw) -> bool {
        // SAFETY: the environment of the calling process; else as in `send`.
        unsafe { sys::enif_send(caller.as_c_arg(), to.as_c_arg(), self.raw(), message.0) != 0 }
    }

    /// The process registered under an existing Latin-1 atom.
    pub fn whereis(&self, name: &str) -> Option<LocalPid> {
        let latin1: Option<Vec<u8>> = name.chars().map(|c| u8::try_from(c).ok()).collect();
        let latin1 = latin1?;
        let mut atom = MaybeUninit::uninit();
        // SAFETY: ours; a name of `len` bytes; writes the atom when it answers non-zero.
        let known = unsafe {
            sys::enif_make_existing_atom_len(
                self.raw(),
                latin1.as_ptr().cast(),
                latin1.len(),
                atom.as_mut_ptr(),
                sys::ErlNifCharEncoding::ERL_NIF_LATIN1,
            )
        };
        if known == 0 {
            return None;
        }
        let mut pid = MaybeUninit::<ErlNifPid>::uninit();
        // SAFETY: no calling process on this thread, so NULL; the atom was written just above.
        let found =
            unsafe { sys::enif_whereis_pid(ptr::null_mut(), atom.assume_init(), pid.as_mut_ptr()) };
        // SAFETY: written, since it was found.
        (found != 0).then(|| LocalPid::from_c_arg(unsafe { pid.assume_init() }))
    }

    /// The pid in a term of this environment, if it is one of this node.
    pub fn as_local_pid(&self, term: Raw) -> Option<LocalPid> {
        let mut pid = MaybeUninit::<ErlNifPid>::uninit();
        // SAFETY: ours; writes the pid when it answers non-zero.
        let local = unsafe { sys::enif_get_local_pid(self.raw(), term.0, pid.as_mut_ptr()) };
        // SAFETY: written, since it is one.
        (local != 0).then(|| LocalPid::from_c_arg(unsafe { pid.assume_init() }))
    }

    /// `term_to_binary(Pid)`: tells the node's name and creation of this moment.
    pub fn encode_pid(&self, pid: &LocalPid) -> Option<Vec<u8>> {
        let mut binary = MaybeUninit::<ErlNifBinary>::uninit();
        // SAFETY: a local pid is an immediate, valid in every environment; fills the binary.
        let done = unsafe {
            let term = sys::enif_make_pid(self.raw(), *pid.as_c_arg());
            sys::enif_term_to_binary(self.raw(), term, binary.as_mut_ptr())
        };
        if done == 0 {
            return None;
        }
        // SAFETY: filled, since it was done.
        let mut binary = unsafe { binary.assume_init() };
        // SAFETY: `size` bytes at `data`, ours until released.
        let bytes = unsafe { std::slice::from_raw_parts(binary.data, binary.size) }.to_vec();
        // SAFETY: allocated by `enif_term_to_binary`, released once.
        unsafe { sys::enif_release_binary(&mut binary) };
        Some(bytes)
    }
}

impl Default for MsgEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for MsgEnv {
    fn drop(&mut self) {
        if self.is_made() {
            // SAFETY: ours, dropped once.
            unsafe { enif_free_env(self.raw()) };
        }
    }
}

impl Raw {
    pub fn atom(atom: Atom) -> Self {
        Raw(atom.as_c_arg())
    }

    /// A local pid is an immediate: valid in every environment.
    pub fn pid(pid: &LocalPid) -> Self {
        // SAFETY: only wraps the word of the pid.
        Raw(unsafe { sys::enif_make_pid(ptr::null_mut(), *pid.as_c_arg()) })
    }
}

/// The first element of a tuple of two.
pub fn first_of_pair(term: Term<'_>) -> Option<Term<'_>> {
    let (mut count, mut items) = (0, ptr::null());
    // SAFETY: the environment and a term of it; writes both when it answers non-zero.
    let found = unsafe {
        sys::enif_get_tuple(
            term.get_env().as_c_arg(),
            term.as_c_arg(),
            &mut count,
            &mut items,
        )
    };
    if found == 0 || count != 2 {
        return None;
    }
    // SAFETY: two terms, valid as long as the tuple.
    let first = unsafe { *items };
    // SAFETY: of the same environment.
    Some(unsafe { Term::new(term.get_env(), first) })
}

/// The memory of a binary term of a NIF's caller.
pub fn binary_of<'a>(term: Term<'a>) -> Option<&'a [u8]> {
    let (data, len) = inspect(term.get_env().as_c_arg(), term.as_c_arg())?;
    // SAFETY: `len` bytes that live as long as the term's environment.
    Some(unsafe { std::slice::from_raw_parts(data, len) })
}

fn inspect(env: *mut ErlNifEnv, term: ErlNifTerm) -> Option<(*const u8, usize)> {
    let mut binary = MaybeUninit::<ErlNifBinary>::uninit();
    // SAFETY: a live environment and a term of it; fills the binary when it answers non-zero.
    if unsafe { sys::enif_inspect_binary(env, term, binary.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled, since it was done.
    let binary = unsafe { binary.assume_init() };
    // An empty binary may come with a NULL, which no slice may have.
    let data = if binary.data.is_null() {
        NonNull::dangling().as_ptr()
    } else {
        binary.data
    };
    Some((data.cast_const(), binary.size))
}
