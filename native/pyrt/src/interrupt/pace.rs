//! How an interrupt is tried again: by the time since it was asked for.

use std::time::Duration;

use super::Manner;

/// When code that could not be interrupted is looked at again: at first, and once it has gone on for long.
const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(10);
/// For this long code is left alone while it is in a module of the standard library that has locks.
const PATIENCE: Duration = Duration::from_millis(500);
/// An import that takes longer is interrupted like everything else.
const IMPORTS: Duration = Duration::from_secs(60);
/// Code that could not be interrupted by then is left to itself.
const LONGEST: Duration = Duration::from_secs(65);
/// How long an exception stays that must not stay (`Sent::Briefly`): at first, and at most.
const BRIEFLY: Duration = Duration::from_micros(200);
const LESS_BRIEFLY: Duration = Duration::from_millis(5);

impl Manner {
    /// The manner of a try at this age of the order. Not for what a loop runs (`briefly`).
    pub fn at(age: Duration) -> Self {
        Manner {
            patient: age < PATIENCE,
            imports: age > IMPORTS,
            briefly: false,
        }
    }
}

/// The time until the next try.
pub fn next_try(age: Duration) -> Duration {
    (age / 8).clamp(SOON, LATER)
}

/// The time until `Sent::Briefly` is taken back.
pub fn take_back_after(age: Duration) -> Duration {
    (age / 64).clamp(BRIEFLY, LESS_BRIEFLY)
}

/// Whether there is no next try.
pub fn is_given_up(age: Duration) -> bool {
    age > LONGEST
}
