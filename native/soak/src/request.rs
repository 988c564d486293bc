//! Requests, and what their answers must be.

use crate::chance::Chance;

/// The files that the application sends: number times this is their size.
const FILES: u64 = 32;
const FILE_UNIT: usize = 4099;

/// The nonce and a line end, which bodies repeat.
pub const UNIT: usize = 17;

/// What the answer to a request must be.
#[derive(Clone, Debug)]
pub struct Expected {
    pub kind: &'static str,
    pub nonce: u64,
    /// The number that the body repeats: the nonce, or that of a file.
    pub repeats: u64,
    pub size: usize,
    pub is_head: bool,
    /// The server closes the connection after it.
    pub last: bool,
}

impl Expected {
    /// Whether `piece` is what the body has at `offset`.
    pub fn has(&self, offset: usize, piece: &[u8]) -> bool {
        let unit = unit(self.repeats);
        let mut left = piece;
        let mut at = offset % UNIT;
        while !left.is_empty() {
            let (part, rest) = left.split_at(left.len().min(UNIT - at));
            if part != &unit[at..at + part.len()] {
                return false;
            }
            (left, at) = (rest, 0);
        }
        true
    }
}

pub fn unit(nonce: u64) -> [u8; UNIT] {
    let mut unit = [b'\n'; UNIT];
    unit[..16].copy_from_slice(format!("{nonce:016x}").as_bytes());
    unit
}

/// `size` bytes of the nonce again and again.
pub fn pattern(nonce: u64, size: usize) -> Vec<u8> {
    let mut bytes = unit(nonce).repeat(size / UNIT + 1);
    bytes.truncate(size);
    bytes
}

/// What is asked for, and how often.
const KINDS: [(&str, usize); 11] = [
    ("len", 52),
    ("echo", 18),
    ("chk", 10),
    ("head", 5),
    ("slow", 4),
    ("file", 3),
    ("large", 1),
    ("sock", 2),
    ("conn", 2),
    ("thr", 1),
    ("early", 2),
];

fn kind(chance: &mut Chance) -> &'static str {
    let all: usize = KINDS.iter().map(|(_, often)| often).sum();
    let mut left = chance.below(all);
    for (kind, often) in KINDS {
        if left < often {
            return kind;
        }
        left -= often;
    }
    "len"
}

/// Appends a request by chance to `out`. `last`: no other follows on its connection.
pub fn write(out: &mut Vec<u8>, chance: &mut Chance, nonce: u64, last: bool) -> Expected {
    let mut kind = kind(chance);
    if kind == "early" && !last {
        kind = "len";
    }
    let mut expected = Expected {
        kind,
        nonce,
        repeats: nonce,
        size: size(kind, chance),
        is_head: kind == "head",
        last,
    };
    if kind == "file" {
        expected.repeats = nonce % FILES;
        expected.size = (nonce % FILES) as usize * FILE_UNIT;
    }
    let path = match kind {
        "head" | "large" => "len",
        other => other,
    };
    let method = match kind {
        "head" => "HEAD",
        "echo" | "early" => "POST",
        _ => "GET",
    };
    let size = expected.size;
    let close = if last { "Connection: close\r\n" } else { "" };
    let head = format!("{method} /{path}/{nonce:016x}/{size} HTTP/1.1\r\nHost: soak\r\n{close}");
    out.extend_from_slice(head.as_bytes());
    if method == "POST" {
        body(out, chance, nonce, size);
    } else {
        out.extend_from_slice(b"\r\n");
    }
    expected
}

fn size(kind: &str, chance: &mut Chance) -> usize {
    match kind {
        "large" => (64 << 10) + chance.below(1 << 20),
        "echo" | "early" if chance.once_in(20) => chance.below(128 << 10),
        "sock" | "conn" => 1 + chance.below(2_000),
        _ => chance.below(600),
    }
}

/// The end of the head and the body, with its length or in chunks.
fn body(out: &mut Vec<u8>, chance: &mut Chance, nonce: u64, size: usize) {
    let bytes = pattern(nonce, size);
    if chance.once_in(2) {
        out.extend_from_slice(format!("Content-Length: {size}\r\n\r\n").as_bytes());
        out.extend_from_slice(&bytes);
        return;
    }
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    let mut left = &bytes[..];
    while !left.is_empty() {
        let (piece, rest) = left.split_at(1 + chance.below(left.len()));
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
        left = rest;
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_from_any_offset_and_a_foreign_byte_is_seen() {
        let mut chance = Chance::new(7);
        let mut out = Vec::new();
        let mut expected = write(&mut out, &mut chance, 0xabcd, false);
        expected.repeats = 0xabcd;
        let bytes = pattern(0xabcd, 1000);
        for begin in [0, 1, 16, 17, 500] {
            assert!(expected.has(begin, &bytes[begin..]));
            assert!(!expected.has(begin + 1, &bytes[begin..]));
        }
        let mut wrong = bytes.clone();
        wrong[999] ^= 1;
        assert!(!expected.has(0, &wrong));
        assert!(!expected.has(0, &pattern(0xabce, 1000)));
    }
}
