//! What the log needs of a request, copied when its head is read: at the end, when the line is written,
//! the head is gone, and its scope belongs to the application.
//!
//! Knows nothing of Python. Thread: the loop's own.

use std::time::Instant;

use super::plan::Plan;
use crate::http::head::Head;

/// The places of what every entry has; headers come behind it, in the order of the plan.
pub const HOST: usize = 0;
pub const METHOD: usize = 1;
pub const TARGET: usize = 2;
pub const HEADERS: usize = 3;

/// No field of a line is longer, so no more is kept.
const MOST: usize = 2048;
/// The length of what is not there.
const ABSENT: u32 = u32::MAX;

pub struct Entry {
    /// One after another: a length of four bytes, and the value.
    data: Vec<u8>,
    pub port: Option<u16>,
    /// HTTP/1.1, not 1.0; unknown where no head was read.
    pub modern: Option<bool>,
    /// When the head was complete, for a line that says how long it took.
    since: Option<Instant>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Default)]
pub struct Client<'a> {
    pub host: Option<&'a str>,
    pub port: Option<u16>,
}

/// What was asked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub root: &'a str,
    pub path: &'a str,
    pub query: &'a str,
}

impl Entry {
    /// Of a request whose head could not be read.
    pub fn unread(client: Client<'_>) -> Self {
        let mut entry = Entry {
            data: Vec::with_capacity(64),
            port: client.port,
            modern: None,
            since: None,
        };
        entry.push(client.host.map(str::as_bytes));
        entry
    }

    pub fn of(plan: &Plan, client: Client<'_>, head: &Head<'_>, asked: Asked<'_>) -> Self {
        let mut entry = Entry {
            data: Vec::with_capacity(128),
            port: client.port,
            modern: Some(head.facts.modern),
            since: plan.is_timed().then(Instant::now),
        };
        entry.push(client.host.map(str::as_bytes));
        entry.push(Some(head.method.as_bytes()));
        entry.target(asked);
        for name in plan.headers() {
            let found = head.headers.iter().find(|header| {
                header.name.len() == name.len() && header.name.eq_ignore_ascii_case(name)
            });
            entry.push(found.map(|header| header.value));
        }
        entry
    }

    fn push(&mut self, value: Option<&[u8]>) {
        let Some(value) = value else {
            return self.data.extend_from_slice(&ABSENT.to_ne_bytes());
        };
        let value = &value[..value.len().min(MOST)];
        self.data
            .extend_from_slice(&(value.len() as u32).to_ne_bytes());
        self.data.extend_from_slice(value);
    }

    /// The path under its root, and the query.
    fn target(&mut self, asked: Asked<'_>) {
        let at = self.data.len();
        self.data.extend_from_slice(&[0; 4]);
        let mark = if asked.query.is_empty() { "" } else { "?" };
        for piece in [asked.root, asked.path, mark, asked.query] {
            let room = MOST - (self.data.len() - at - 4);
            let piece = piece.as_bytes();
            self.data.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        let len = (self.data.len() - at - 4) as u32;
        self.data[at..at + 4].copy_from_slice(&len.to_ne_bytes());
    }

    /// What is at a place.
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let mut rest = self.data.as_slice();
        for _ in 0..place {
            let (_, after) = split(rest)?;
            rest = after;
        }
        split(rest)?.0
    }

    /// Microseconds since the head was complete.
    pub fn micros(&self) -> u64 {
        self.since.map_or(0, |since| {
            u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
        })
    }
}

/// The first value, and what is behind it.
fn split(data: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, rest) = data.split_first_chunk()?;
    match u32::from_ne_bytes(*len) {
        ABSENT => Some((None, rest)),
        len => {
            let (value, rest) = rest.split_at_checked(len as usize)?;
            Some((Some(value), rest))
        }
    }
}
