//! Locks and atomics: the standard ones, or loom's when the crate is compiled for its models.

#[cfg(loom)]
pub use loom::sync::{Arc, atomic};
#[cfg(not(loom))]
pub use std::sync::{Arc, atomic};

#[cfg(loom)]
use loom::sync::{Mutex as Inner, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Mutex as Inner, MutexGuard};

/// A lock whose guard is the answer: a poisoned one belongs to a panic that was contained, and the
/// data behind our locks is valid at every step.
pub struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(Inner::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
