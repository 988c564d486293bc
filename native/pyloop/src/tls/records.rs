//! Where the records of a TLS stream end: how often the engine can be read with success.
//!
//! Asked in vain, the engine raises, which costs more than a small record. So the records are
//! counted on their way in. The count may be too high, never too low: some records are none of the
//! protocol's data.

/// Type, version, length.
const HEADER: usize = 5;

/// The longest body: 16 KiB of data, and what any version adds to it.
const LONGEST: usize = (16 + 2) * 1024;

#[derive(Default)]
pub struct Records {
    header: [u8; HEADER],
    /// How much of the header is here.
    have: usize,
    /// How much of the body is still to come.
    missing: usize,
    /// Complete records that may not have been read.
    complete: usize,
    /// How much data they can bring at most.
    size: usize,
    /// The count is right. It is not before the engine was once read until it had no more: the
    /// handshake takes records as well.
    known: bool,
    /// This is no TLS: the engine is asked, and says so.
    broken: bool,
}

impl Records {
    /// The next bytes from the peer.
    pub fn feed(&mut self, mut data: &[u8]) {
        self.size += data.len();
        while !data.is_empty() {
            if self.have < HEADER {
                let take = data.len().min(HEADER - self.have);
                let (head, rest) = data.split_at(take);
                self.header[self.have..self.have + take].copy_from_slice(head);
                self.have += take;
                data = rest;
                if self.have < HEADER {
                    return;
                }
                self.missing = self.body();
                if self.header[1] != 3 || self.missing > LONGEST {
                    self.broken = true;
                }
            }
            let take = data.len().min(self.missing);
            data = &data[take..];
            self.missing -= take;
            if self.missing == 0 {
                self.have = 0;
                self.complete += 1;
            }
        }
    }

    /// How much of `data`, which comes next, ends at a record and is at least `least`; else all.
    pub fn piece(&self, data: &[u8], least: usize) -> usize {
        let mut end = match self.have {
            0 => 0,
            HEADER => self.missing,
            // A header in two parts: rare.
            _ => return data.len(),
        };
        while end < least
            && let Some(&[_, _, _, high, low]) = data.get(end..end + HEADER)
        {
            end += HEADER + usize::from(u16::from_be_bytes([high, low]));
        }
        if end < least {
            return data.len();
        }
        end.min(data.len())
    }

    /// Whether the engine may have data.
    pub fn any(&self) -> bool {
        !self.known || self.complete > 0 || self.broken
    }

    /// The engine is asked next time in any case.
    pub fn doubt(&mut self) {
        self.known = false;
    }

    /// Whether it has that of one record at most.
    pub fn one(&self) -> bool {
        self.known && self.complete == 1
    }

    /// More than the engine's data, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The engine gave `count` bytes where `asked` fitted: all of a record, unless they are equal.
    pub fn read(&mut self, count: usize, asked: usize) {
        if count < asked {
            self.complete = self.complete.saturating_sub(1);
        }
        // What is left is at most what a record that is not complete brought.
        self.size = self.size.saturating_sub(count);
        if self.known && self.complete == 0 {
            self.size = self.partial();
        }
    }

    /// The engine had no more.
    pub fn exhausted(&mut self) {
        self.known = true;
        self.complete = 0;
        self.size = self.partial();
    }

    /// What is here of a record that is not complete; its body may be here but for a byte.
    fn partial(&self) -> usize {
        if self.have < HEADER {
            return self.have;
        }
        HEADER + self.body() - self.missing
    }

    fn body(&self) -> usize {
        usize::from(u16::from_be_bytes([self.header[3], self.header[4]]))
    }
}

#[cfg(test)]
mod tests {
    use super::Records;

    fn record(len: usize) -> Vec<u8> {
        let mut record = vec![23, 3, 3];
        record.extend((len as u16).to_be_bytes());
        record.extend(std::iter::repeat_n(0, len));
        record
    }

    fn known() -> Records {
        let mut records = Records::default();
        records.exhausted();
        records
    }

    #[test]
    fn nothing_is_known_before_the_engine_had_no_more() {
        let mut records = Records::default();
        assert!(records.any() && !records.one());
        records.feed(&record(10));
        records.read(3, 100);
        assert!(records.any());
        records.exhausted();
        assert!(!records.any());
    }

    #[test]
    fn records_count_when_their_last_byte_is_here() {
        let data: Vec<u8> = [record(40), record(0), record(1)].concat();
        for cut in 1..data.len() {
            let mut records = known();
            let mut counts = Vec::new();
            for part in data.chunks(cut) {
                records.feed(part);
                counts.push(records.complete);
            }
            assert_eq!(counts.last(), Some(&3), "in parts of {cut}");
            let ends = [45, 50, 56];
            for (index, count) in counts.iter().enumerate() {
                let fed = ((index + 1) * cut).min(data.len());
                assert_eq!(*count, ends.iter().filter(|end| **end <= fed).count());
            }
        }
    }

    #[test]
    fn a_read_that_fills_its_room_may_leave_some_of_the_record() {
        let mut records = known();
        records.feed(&record(100));
        assert!(records.one());
        records.read(50, 50);
        assert!(records.one());
        records.read(30, 50);
        assert!(!records.any());
    }

    #[test]
    fn a_piece_ends_with_a_record() {
        let data = [record(10), record(20), record(30)].concat();
        let mut records = known();
        assert_eq!(records.piece(&data, 1), 15);
        assert_eq!(records.piece(&data, 16), 40);
        assert_eq!(records.piece(&data, 1000), data.len());
        assert_eq!(records.piece(&data[..50], 41), 50);
        records.feed(&data[..10]);
        assert_eq!(records.piece(&data[10..], 1), 5);
        records.feed(&data[10..17]);
        assert_eq!(records.piece(&data[17..], 1), data.len() - 17);
    }

    #[test]
    fn what_is_no_tls_is_for_the_engine_to_say() {
        let mut records = known();
        records.feed(b"GET / HTTP/1.1");
        assert!(records.any());
        records.exhausted();
        assert!(records.any());
    }

    #[test]
    fn the_size_is_never_less_than_what_is_there() {
        let mut records = known();
        records.feed(&record(100));
        records.feed(&record(200)[..50]);
        assert!(records.size() >= 155);
        records.read(83, 156);
        assert_eq!(records.size(), 50);
        records.feed(&record(200)[50..]);
        assert_eq!(records.size(), 205);
    }
}
