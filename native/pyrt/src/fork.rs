//! Values that a process has for itself: the child of a fork begins with new ones.
//!
//! A fork copies the memory with one thread. A lock that another thread held at that moment stays held in the
//! child for ever, and what it guards may be half written. So the child gets another lock and another value; its
//! parent's copy is left alone. The library's own descriptors are the parent's, and nothing in the child.
//!
//! Thread: any. Never: waits in a child for a thread of its parent.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How many forks lie between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Calls its argument with each descriptor of the library's own, without a lock.
pub type Owned = fn(&mut dyn FnMut(RawFd));

static OWNED: OnceLock<Owned> = OnceLock::new();

extern "C" fn in_child() {
    // Relaxed: the child has one thread.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    if let Some(owned) = OWNED.get() {
        give_up(*owned);
    }
}

/// What belongs to the parent becomes nothing, in its place: a number that was closed would be another file's
/// soon, and whoever has it still closes it in the end.
fn give_up(owned: Owned) {
    // SAFETY: a path that ends in a zero.
    let nothing = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if nothing < 0 {
        return;
    }
    owned(&mut |fd| {
        // SAFETY: numbers only; the second one is the library's own.
        unsafe { libc::dup3(nothing, fd, libc::O_CLOEXEC) };
    });
    // SAFETY: opened above.
    unsafe { libc::close(nothing) };
}

/// Counts forks from here on, and has their children give up what is `owned`; called when the module is made.
pub fn watch(owned: Owned) {
    if OWNED.set(owned).is_ok() {
        // SAFETY: a function of this library, which is never unloaded. Without memory for it forks go unseen.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Counts the forks that made this process.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

struct Own<T> {
    generation: u32,
    value: Mutex<T>,
}

/// A value under a lock, anew in each process.
pub struct PerProcess<T>(AtomicPtr<Own<T>>);

impl<T: Default> PerProcess<T> {
    pub const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let own = self.own();
        own.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self) -> &Own<T> {
        let generation = generation();
        // Acquire, pairs with the exchange below: what is found is whole.
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: NULL, or made by `Box` below and never freed before `self`.
        if let Some(own) = unsafe { found.as_ref() }
            && own.generation == generation
        {
            return own;
        }
        let fresh = Box::into_raw(Box::new(Own {
            generation,
            value: Mutex::default(),
        }));
        let set = self
            .0
            .compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire);
        let own = match set {
            // The parent's is left: its lock may be held, its value in the middle of a change.
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: made just above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
        // SAFETY: made by `Box`, and never freed before `self`.
        unsafe { &*own }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let own = *self.0.get_mut();
        // SAFETY: NULL, or made by `Box`; nobody has a reference to it any more.
        let generation = unsafe { own.as_ref() }.map(|own| own.generation);
        if generation == Some(self::generation()) {
            // SAFETY: as above; freed once.
            drop(unsafe { Box::from_raw(own) });
        }
    }
}
