//! The edge of every thread body and every C callback: a panic ends one job, never the node (I7).

use std::panic::AssertUnwindSafe;

/// A panic was caught at the named place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked(pub &'static str);

/// Runs `body`; a panic in it stays here.
#[inline]
pub fn contain<T>(place: &'static str, body: impl FnOnce() -> T) -> Result<T, Panicked> {
    std::panic::catch_unwind(AssertUnwindSafe(body)).map_err(|_| Panicked(place))
}
