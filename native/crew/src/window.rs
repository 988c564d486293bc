//! How far a stream may be ahead of its reader, and where what waits for the reader is kept.
//!
//! Thread: one gives and waits; any other acknowledges or cancels, and whoever takes what waits out of here has it.

use crate::sync::atomic::{AtomicI64, Ordering};
use crate::sync::{Mutex, lock};

/// How many messages may still be sent before the reader says more.
#[derive(Debug)]
pub struct Credits(AtomicI64);

impl Credits {
    /// `None`: as many as there are.
    pub fn new(window: Option<u32>) -> Self {
        Credits(AtomicI64::new(window.map_or(i64::MAX / 2, i64::from)))
    }

    /// The reader has taken `count` messages.
    pub fn add(&self, count: u32) {
        // AcqRel, pairs with `has` in a `park`: either that sees the credits, or what it has parked is found.
        self.0.fetch_add(i64::from(count), Ordering::AcqRel);
    }

    /// A message was sent.
    pub fn take(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn has(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// A place for one thing that waits until it is wanted.
#[derive(Debug)]
pub struct Parked<T>(Mutex<Option<T>>);

impl<T> Default for Parked<T> {
    fn default() -> Self {
        Parked(Mutex::new(None))
    }
}

impl<T> Parked<T> {
    /// Leaves it here. It comes back if it is wanted by now and nobody else has taken it: who makes it wanted does
    /// so first, and looks here then.
    pub fn park(&self, thing: T, is_wanted: impl FnOnce() -> bool) -> Option<T> {
        *lock(&self.0) = Some(thing);
        is_wanted().then(|| self.take()).flatten()
    }

    pub fn take(&self) -> Option<T> {
        lock(&self.0).take()
    }
}
