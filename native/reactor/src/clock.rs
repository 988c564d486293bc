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

/// A time of the clock in seconds, before its start and beyond its end too, in the order of numbers.
///
/// The bits of a float that is not negative are ordered as its value is; those of a negative one are
/// inverted. So comparing two moments costs what comparing two integers costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(u64);

const SIGN: u64 = 1 << 63;

impl Moment {
    /// After every other.
    pub const LAST: Moment = Moment(u64::MAX);

    /// NaN is the start of the clock.
    #[inline]
    pub fn at_seconds(seconds: f64) -> Self {
        // Adding 0.0 makes one zero of two.
        let bits = if seconds.is_nan() { 0.0 } else { seconds + 0.0 }.to_bits();
        Moment(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    }

    /// Keeps the order of nanoseconds. After 97 days, neighbours may be one moment.
    #[inline]
    pub fn at_nanos(nanos: u64) -> Self {
        Moment(to_seconds(nanos).to_bits() | SIGN)
    }

    pub fn seconds(self) -> f64 {
        let bits = if self.0 & SIGN == 0 {
            !self.0
        } else {
            self.0 & !SIGN
        };
        f64::from_bits(bits)
    }

    /// The first nanosecond of the clock that is not before it.
    pub fn nanos(self) -> u64 {
        from_seconds(self.seconds())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const INFINITY: f64 = f64::INFINITY;

    #[test]
    fn moments_have_the_order_and_the_values_of_their_seconds() {
        let seconds = [
            -INFINITY, -1e300, -3e9, -2.0, -1.5, -1e-9, -1e-300, 0.0, 1e-300, 1e-10, 2e-10, 7.0,
            1e19, 1e300, INFINITY,
        ];
        for pair in seconds.windows(2) {
            let [first, second] = [pair[0], pair[1]].map(Moment::at_seconds);
            assert!(first < second && second < Moment::LAST, "{pair:?}");
            assert_eq!([first, second].map(Moment::seconds), pair);
        }
        assert_eq!(Moment::at_seconds(-0.0), Moment::at_seconds(0.0));
        assert_eq!(Moment::at_seconds(f64::NAN), Moment::at_nanos(0));
    }

    #[test]
    fn a_moment_of_nanoseconds_is_reached_with_them_and_not_before() {
        for nanos in [0, 1, 999_999_999, 3_600_000_000_007, 8_000_000_000_000_001] {
            let moment = Moment::at_nanos(nanos);
            assert!(Moment::at_nanos(nanos + 1) > moment);
            assert!(moment.nanos().abs_diff(nanos) <= 1, "{nanos}");
        }
        assert_eq!(Moment::at_seconds(-INFINITY).nanos(), 0);
        assert_eq!(Moment::at_seconds(INFINITY).nanos(), u64::MAX);
    }
}
