//! What the time of a node is measured from that waits for its turn in a line.
//!
//! Thread: the clock is started by whoever takes the node, the time is asked for on the loop.

use std::sync::Arc;
use std::time::Duration;

use reactor::clock;

use crate::ready::Line;
use crate::sync::atomic::{AtomicU64, Ordering};

/// When the first of the attempts at a node began that have their time together.
#[derive(Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub fn start(&self) {
        // Relaxed: only the number counts.
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.0.compare_exchange(0, clock::now(), set, get);
    }

    fn started(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|time| *time != 0)
    }
}

/// The wait for its turn is no part of a node's time as long as the line moves.
pub(crate) struct Since {
    clock: Arc<Clock>,
    line: Arc<Line>,
    taken: u64,
}

impl Since {
    pub fn new(line: Arc<Line>, clock: Arc<Clock>) -> Self {
        let taken = line.taken();
        Since { clock, line, taken }
    }

    /// Asked when `time` is over since the last answer: what is left of it.
    pub fn left(&mut self, time: Duration) -> Option<Duration> {
        if let Some(started) = self.clock.started() {
            let age = Duration::from_nanos(clock::now().saturating_sub(started));
            return time.checked_sub(age).filter(|left| !left.is_zero());
        }
        let taken = self.line.taken();
        let moves = std::mem::replace(&mut self.taken, taken) != taken;
        moves.then_some(time)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ready::{Entry, Rank};

    const TIME: Duration = Duration::from_secs(60);

    fn waiting() -> Arc<Line> {
        let line = Line::new(1);
        line.push(Rank::default(), Entry::Node(0));
        assert!(line.begin_turn());
        Arc::new(line)
    }

    #[test]
    fn the_time_begins_again_as_long_as_others_are_taken() {
        let line = waiting();
        let mut since = Since::new(line.clone(), Arc::default());
        assert_eq!(since.left(TIME), None);
        assert!(line.take().is_some());
        assert_eq!(since.left(TIME), Some(TIME));
        assert_eq!(since.left(TIME), None);
    }

    #[test]
    fn a_node_that_has_begun_has_its_own_time() {
        let line = waiting();
        let clock = Arc::new(Clock::default());
        let mut since = Since::new(line.clone(), clock.clone());
        clock.start();
        assert!(line.take().is_some());
        assert!(since.left(TIME).is_some_and(|left| left < TIME));
        assert_eq!(since.left(Duration::from_nanos(1)), None);
    }
}
