//! The monotonic clock, in nanoseconds: the one Python's `time.monotonic` reads.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that never goes back.
pub fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// The same clock as of the kernel's last tick, some milliseconds ago; a quarter of the price.
pub fn coarse() -> u64 {
    read(ClockId::MonotonicCoarse)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// The first nanosecond that is not before `seconds`: rounded up, so nothing fires early.
pub fn from_seconds(seconds: f64) -> u64 {
    // `as` saturates: a negative or NaN time is 0, a huge one the end of the clock.
    (seconds * 1e9).ceil() as u64
}

pub fn to_seconds(nanos: u64) -> f64 {
    nanos as f64 * 1e-9
}
