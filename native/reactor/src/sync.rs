//! Locks and atomics: the standard ones, or loom's when the crate is compiled for its models.

#[cfg(loom)]
pub use loom::sync::{Arc, atomic};
#[cfg(not(loom))]
pub use std::sync::{Arc, atomic};

#[cfg(loom)]
use loom::sync::{
    Mutex as Inner, MutexGuard, RwLock as InnerRw, RwLockReadGuard, RwLockWriteGuard,
};
#[cfg(not(loom))]
use std::sync::{Mutex as Inner, MutexGuard, RwLock as InnerRw, RwLockReadGuard, RwLockWriteGuard};

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

/// The same for one that many may hold at once to read.
pub struct RwLock<T>(InnerRw<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> Self {
        RwLock(InnerRw::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        match self.0.read() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        match self.0.write() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
