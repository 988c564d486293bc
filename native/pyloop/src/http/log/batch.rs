//! Lines that wait for the owner of the server, who hands them on many at a time: in a node, to `logger`.
//!
//! Thread: the loop's own.

use super::number;
use super::plan::LINE;
use super::stamp::Moment;

/// Lines wait in at most this much memory.
const BOUND: usize = 1024 * 1024;

#[derive(Default)]
pub struct Batch {
    lines: Vec<u8>,
    dropped: u64,
    /// The owner knows that lines wait, and will take them.
    told: bool,
}

impl Batch {
    /// `line` appends one line, behind its time in microseconds. Whether the owner has to be told.
    pub fn push(&mut self, at: Moment, line: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.lines.len() + LINE > BOUND {
            self.dropped += 1;
            return false;
        }
        let micros = at.second * 1_000_000 + at.millis * 1000;
        number::padded(&mut self.lines, micros, 16);
        self.lines.push(b' ');
        line(&mut self.lines);
        !std::mem::replace(&mut self.told, true)
    }

    /// What waits, and how many lines had no room. Nothing: the owner is told of the next one.
    pub fn take(&mut self) -> (Vec<u8>, u64) {
        self.told = !self.lines.is_empty();
        (
            std::mem::take(&mut self.lines),
            std::mem::take(&mut self.dropped),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Moment = Moment {
        second: 784_111_777,
        millis: 7,
    };

    fn push(batch: &mut Batch, text: &str) -> bool {
        batch.push(AT, |out| {
            out.extend_from_slice(format!("{text}\n").as_bytes())
        })
    }

    #[test]
    fn the_owner_is_told_of_the_first_line_after_it_found_nothing() {
        let mut batch = Batch::default();
        assert!(push(&mut batch, "a"));
        assert!(!push(&mut batch, "b"));
        let lines = b"0784111777007000 a\n0784111777007000 b\n".to_vec();
        assert_eq!(batch.take(), (lines, 0));
        assert!(!push(&mut batch, "c"));
        assert_eq!(batch.take().0.len(), 19);
        assert_eq!(batch.take(), (Vec::new(), 0));
        assert!(push(&mut batch, "d"));
    }

    #[test]
    fn lines_without_room_are_counted() {
        let mut batch = Batch::default();
        for _ in 0..2000 {
            push(&mut batch, &"x".repeat(1000));
        }
        let (lines, dropped) = batch.take();
        assert!(lines.len() <= BOUND);
        assert_eq!(
            lines.split(|byte| *byte == b'\n').count() as u64 - 1 + dropped,
            2000
        );
        assert!(dropped > 0);
    }
}
