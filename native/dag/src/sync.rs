//! Locks and atomics: the standard ones, or loom's when the models are checked.

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub use std::sync::{Condvar, Mutex, MutexGuard, atomic};

use std::sync::PoisonError;

/// A lock whose poison is ignored: what it guards is valid at every step, and a panic under it was
/// contained at the edge of its thread (I7).
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
