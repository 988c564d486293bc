//! What a running job is called in a log: read from the first bytes of its payload, and only then.
//!
//! Thread: copied by the thread that runs the job, read by the watch.

use etf::tag;

use crate::job::{Job, Op};

/// Enough for the names of a call, or the beginning of some code.
const MOST: usize = 64;

/// The first bytes of a job's payload.
pub struct Label {
    op: Op,
    bytes: [u8; MOST],
    len: usize,
}

impl Label {
    pub fn of(job: &Job) -> Self {
        let start = job.first_segment();
        let mut bytes = [0; MOST];
        for (to, from) in bytes.iter_mut().zip(start) {
            *to = *from;
        }
        Label {
            op: job.op,
            bytes,
            len: start.len().min(MOST),
        }
    }

    /// `module.function`, or the beginning of the code.
    pub fn text(&self) -> String {
        let mut head = Head(self.bytes.get(..self.len).unwrap_or_default());
        let text = match self.op {
            Op::Node => Some("a node of a graph".to_owned()),
            Op::Eval | Op::Exec | Op::CollectEval | Op::StreamEval => head.code(),
            Op::Call
            | Op::Collect
            | Op::Stream
            | Op::Async
            | Op::AsyncCollect
            | Op::AsyncStream => head.names(),
        };
        text.unwrap_or_else(|| "a call".to_owned())
    }
}

/// The beginning of a term in External Term Format, which may break off anywhere.
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    fn names(&mut self) -> Option<String> {
        self.expect(&[tag::VERSION, tag::SMALL_TUPLE, 4])?;
        let module = self.name()?;
        Some(match self.name() {
            Some(function) => format!("{module}.{function}"),
            None => format!("a function of {module}"),
        })
    }

    /// Its first line.
    fn code(&mut self) -> Option<String> {
        self.expect(&[tag::VERSION, tag::SMALL_TUPLE, 2, tag::SMALL_TUPLE, 2])?;
        self.name()?;
        let code = self.name()?;
        let line = code.trim_start().lines().next()?;
        Some(format!("the code \"{line}\""))
    }

    fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    /// An atom or a binary; what is cut off ends in three dots.
    fn name(&mut self) -> Option<String> {
        /// The tags of atoms (of both encodings) and binaries, and how many bytes the length has.
        const LENGTHS: [(u8, usize); 5] = [
            (tag::SMALL_ATOM_UTF8, 1),
            (tag::ATOM_UTF8, 2),
            (tag::SMALL_ATOM, 1),
            (tag::ATOM, 2),
            (tag::BINARY, 4),
        ];
        let found = self.take(1)?.first().copied()?;
        let (_, size) = LENGTHS.into_iter().find(|(known, _)| *known == found)?;
        let length = self.take(size)?;
        let length = length
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let there = self.take(length.min(self.0.len()))?;
        let text = String::from_utf8_lossy(there);
        Some(if there.len() < length {
            format!("{}...", text.trim_end_matches(char::REPLACEMENT_CHARACTER))
        } else {
            text.into_owned()
        })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}
