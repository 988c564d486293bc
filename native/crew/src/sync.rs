//! Locks, atomics and parking: the standard library's, or loom's when the model is checked.

#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub use std::thread;

#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(loom)]
pub use loom::thread;

use std::sync::PoisonError;

/// A lock whose poison is ignored: what it guards is valid at every step, and a panic under it was
/// contained at the edge of its thread (I7).
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
