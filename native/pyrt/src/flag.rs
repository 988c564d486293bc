//! Cells that one thread may look at while another sets them, as plain as cells.
//!
//! Thread: any. Relaxed: what must be seen together with one is guarded by the GIL, or by a critical
//! section where there is none.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::FREE_THREADED;

/// As a `Cell<bool>`.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Flag {
    pub fn new(value: bool) -> Self {
        Flag(AtomicBool::new(value))
    }

    #[inline]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value before. With a GIL nobody comes between.
    #[inline]
    pub fn replace(&self, value: bool) -> bool {
        if FREE_THREADED {
            return self.0.swap(value, Ordering::Relaxed);
        }
        let before = self.get();
        self.set(value);
        before
    }
}

/// As a `Cell<u64>`.
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
