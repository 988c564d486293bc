//! The time of a line, in UTC. The text of a second is made once.
//!
//! Knows nothing of Python. Thread: the loop's own.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use super::number;

#[derive(Default)]
pub struct Stamp {
    second: u64,
    /// `18/Nov/2026:07:23:05 +0000`
    common: Vec<u8>,
    /// `2026-11-18T07:23:05`
    iso: Vec<u8>,
}

/// A moment, as the system's clock has it.
#[derive(Clone, Copy, Default)]
pub struct Moment {
    pub second: u64,
    pub millis: u64,
}

impl Moment {
    /// `exact`: to the millisecond; else as old as the last tick of the system, which costs less.
    pub fn now(exact: bool) -> Self {
        let clock = if exact {
            ClockId::Realtime
        } else {
            ClockId::RealtimeCoarse
        };
        let time = clock_gettime(clock);
        Moment {
            second: u64::try_from(time.tv_sec).unwrap_or(0),
            millis: u64::try_from(time.tv_nsec / 1_000_000).unwrap_or(0),
        }
    }
}

const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

impl Stamp {
    /// As the Common Log Format has it.
    pub fn common(&mut self, moment: Moment) -> &[u8] {
        self.make(moment.second);
        &self.common
    }

    /// ISO 8601, to the millisecond.
    pub fn iso(&mut self, moment: Moment, out: &mut Vec<u8>) {
        self.make(moment.second);
        out.extend_from_slice(&self.iso);
        out.push(b'.');
        number::padded(out, moment.millis, 3);
        out.push(b'Z');
    }

    fn make(&mut self, second: u64) {
        if second == self.second && !self.iso.is_empty() {
            return;
        }
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(second));
        // "Sun, 06 Nov 1994 08:49:37 GMT"
        let text = httpdate::fmt_http_date(time.unwrap_or(SystemTime::UNIX_EPOCH));
        let (day, month, year) = (&text[5..7], &text[8..11], &text[12..16]);
        let clock = &text[17..25];
        let at = MONTHS.find(month).unwrap_or(0) / 3 + 1;
        self.common = format!("{day}/{month}/{year}:{clock} +0000").into_bytes();
        self.iso = format!("{year}-{at:02}-{day}T{clock}").into_bytes();
        self.second = second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(second: u64, millis: u64) -> (String, String) {
        let (mut stamp, moment) = (Stamp::default(), Moment { second, millis });
        let common = String::from_utf8_lossy(stamp.common(moment)).into_owned();
        let mut iso = Vec::new();
        stamp.iso(moment, &mut iso);
        (common, String::from_utf8_lossy(&iso).into_owned())
    }

    #[test]
    fn a_second_has_two_forms() {
        let (common, iso) = both(784_111_777, 7);
        assert_eq!(common, "06/Nov/1994:08:49:37 +0000");
        assert_eq!(iso, "1994-11-06T08:49:37.007Z");
        let (common, iso) = both(0, 0);
        assert_eq!(common, "01/Jan/1970:00:00:00 +0000");
        assert_eq!(iso, "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_next_second_has_its_own_text() {
        let mut stamp = Stamp::default();
        let at = |second| Moment { second, millis: 0 };
        assert_eq!(stamp.common(at(59)), b"01/Jan/1970:00:00:59 +0000");
        assert_eq!(stamp.common(at(60)), b"01/Jan/1970:00:01:00 +0000");
        assert_eq!(stamp.common(at(59)), b"01/Jan/1970:00:00:59 +0000");
    }
}
