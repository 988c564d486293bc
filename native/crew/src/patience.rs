//! How long to look for what is about to come before going to sleep: one policy for all who do so.
//!
//! Being woken costs more than what is waited for takes, if it comes soon. So a look pays while it finds something
//! in quick succession, and only then: after `MOST_MISSES` looks in vain there is none, save for one in
//! `PROBE_EVERY`.

use std::time::Duration;

use crate::sync::atomic::{AtomicU32, Ordering};

/// How long one who serves looks, and how long a probe takes.
const USUAL: Duration = Duration::from_micros(20);
const PROBE: Duration = Duration::from_micros(100);
const MOST_MISSES: u32 = 4;
const PROBE_EVERY: u32 = 32;

/// Whether looking has paid of late.
#[derive(Debug)]
pub struct Patience {
    usual: Duration,
    /// Whether probes are longer than other looks.
    serves: bool,
    misses: AtomicU32,
}

impl Patience {
    /// For one who asks.
    pub fn new(usual: Duration) -> Self {
        Patience {
            usual,
            serves: false,
            misses: AtomicU32::new(0),
        }
    }

    /// For one who serves. Now and then it looks for so long that who was sent to sleep by its sleeping has come
    /// back, finds it awake, and both stay so. The second look is one of these, and those after 4, 8 and 16 in vain.
    pub fn serving() -> Self {
        Patience {
            serves: true,
            ..Patience::new(USUAL)
        }
    }

    /// How long to look this time; zero: not at all. `learn` comes after it.
    pub fn time(&self) -> Duration {
        // Relaxed, here and below: a habit, not a fact.
        let misses = self.misses.load(Ordering::Relaxed);
        let tries = misses < MOST_MISSES;
        let probes = !tries && misses.is_multiple_of(PROBE_EVERY);
        let early = misses == 1 || !tries && misses < PROBE_EVERY && misses.is_power_of_two();
        match (probes || early, probes || tries) {
            (true, _) if self.serves => PROBE,
            (_, true) => self.usual,
            _ => Duration::ZERO,
        }
    }

    /// The same, where a look that does not take place is counted at once.
    pub fn take(&self) -> Option<Duration> {
        let time = self.time();
        if time.is_zero() {
            self.learn(false);
            return None;
        }
        Some(time)
    }

    /// Whether that look has found something.
    pub fn learn(&self, paid: bool) {
        let misses = if paid {
            0
        } else {
            self.misses.load(Ordering::Relaxed).wrapping_add(1)
        };
        self.misses.store(misses, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The looks in vain, by their number, that take `time`.
    fn taking(patience: &Patience, time: Duration, looks: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for look in 0..looks {
            if patience.time() == time {
                found.push(look);
            }
            patience.learn(false);
        }
        found
    }

    #[test]
    fn who_asks_looks_four_times_in_vain_and_then_once_in_thirty_two() {
        let looks = taking(&Patience::new(USUAL), USUAL, 100);
        assert_eq!(looks, [0, 1, 2, 3, 32, 64, 96]);
        let patience = Patience::new(USUAL);
        let none = taking(&patience, Duration::ZERO, 100);
        assert_eq!(none.len() + looks.len(), 100);
        patience.learn(true);
        assert_eq!(patience.time(), USUAL);
    }

    #[test]
    fn who_serves_looks_for_long_now_and_then() {
        let patience = || Patience::serving();
        assert_eq!(taking(&patience(), USUAL, 100), [0, 2, 3]);
        let probes = taking(&patience(), PROBE, 100);
        assert_eq!(probes, [1, 4, 8, 16, 32, 64, 96]);
        assert_eq!(taking(&patience(), Duration::ZERO, 100).len(), 100 - 10);
    }

    #[test]
    fn a_look_that_is_left_out_counts_and_one_that_pays_begins_anew() {
        let patience = Patience::new(USUAL);
        (0..4).for_each(|_| patience.learn(false));
        assert_eq!((4..32).find_map(|_| patience.take()), None);
        // The probe is counted by who has looked.
        assert_eq!(
            (patience.take(), patience.take()),
            (Some(USUAL), Some(USUAL))
        );
        patience.learn(false);
        assert_eq!(patience.take(), None);
        patience.learn(true);
        assert_eq!(patience.take(), Some(USUAL));
    }
}
