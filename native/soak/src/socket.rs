//! WebSockets: a handshake with a nonce, and messages that come back as they were sent.

use crate::answer::shown;
use crate::chance::Chance;
use crate::request::pattern;

/// The answer to any other key is another.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &[u8] = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame that must come.
pub struct Due {
    opcode: u8,
    payload: Vec<u8>,
}

impl Due {
    pub fn is_message(&self) -> bool {
        self.opcode < CLOSE
    }

    /// The server answers a ping itself: its pong may come before what the application has to say.
    pub fn is_pong(&self) -> bool {
        self.opcode == PONG
    }

    pub fn is_close(&self) -> bool {
        self.opcode == CLOSE
    }
}

pub fn handshake(out: &mut Vec<u8>, nonce: u64) {
    let head = format!(
        "GET /ws/{nonce:016x}/0 HTTP/1.1\r\nHost: soak\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    );
    out.extend_from_slice(head.as_bytes());
}

/// The size of the head, once it is all there.
pub fn accepted(bytes: &[u8], nonce: u64) -> Result<Option<usize>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let size = match response.parse(bytes) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("{error}: {}", shown(bytes))),
    };
    let has = |name: &str, value: &[u8]| {
        let mut all = response.headers.iter();
        all.any(|header| header.name.eq_ignore_ascii_case(name) && header.value == value)
    };
    let right = response.code == Some(101)
        && has("sec-websocket-accept", ACCEPT)
        && has("x-nonce", format!("{nonce:016x}").as_bytes());
    if right {
        Ok(Some(size))
    } else {
        Err(format!(
            "a handshake in place of that of {nonce:016x}: {}",
            shown(bytes)
        ))
    }
}

/// Appends a message, perhaps in several frames with a ping between them; gives what must come back.
pub fn message(out: &mut Vec<u8>, due: &mut Vec<Due>, chance: &mut Chance, nonce: u64) {
    let size = if chance.once_in(30) {
        chance.below(100_000)
    } else {
        chance.below(400)
    };
    let payload = pattern(nonce, size);
    let opcode = if chance.once_in(2) { TEXT } else { 2 };
    if size > 1 && chance.once_in(4) {
        let (first, rest) = payload.split_at(1 + chance.below(size - 1));
        frame(out, opcode, false, first, nonce as u32);
        if chance.once_in(2) {
            let payload = pattern(nonce, 16);
            frame(out, PING, true, &payload, 7);
            due.push(Due {
                opcode: PONG,
                payload,
            });
        }
        frame(out, 0, true, rest, 0);
    } else {
        frame(out, opcode, true, &payload, nonce as u32);
    }
    due.push(Due { opcode, payload });
}

/// Asks for the end.
pub fn close(out: &mut Vec<u8>, due: &mut Vec<Due>) {
    let payload = 1000u16.to_be_bytes().to_vec();
    frame(out, CLOSE, true, &payload, 1);
    due.push(Due {
        opcode: CLOSE,
        payload,
    });
}

fn frame(out: &mut Vec<u8>, opcode: u8, last: bool, payload: &[u8], mask: u32) {
    out.push(opcode | if last { 0x80 } else { 0 });
    match payload.len() {
        size @ 0..126 => out.push(0x80 | size as u8),
        size @ 126..65536 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(size as u16).to_be_bytes());
        }
        size => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(size as u64).to_be_bytes());
        }
    }
    let mask = mask.to_be_bytes();
    out.extend_from_slice(&mask);
    out.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
}

/// Whether a pong comes next.
pub fn pong_arrives(bytes: &[u8]) -> bool {
    bytes.first() == Some(&(0x80 | PONG))
}

/// The size of the frame at the begin of `bytes` if it is all there and what is due. A server sends no fragments
/// of what came as one message.
pub fn arrived(bytes: &[u8], due: &Due) -> Result<Option<usize>, String> {
    let [first, second, ..] = *bytes else {
        return Ok(None);
    };
    let (head, size) = match second {
        126 => (4, bytes.get(2..4).map(number)),
        127 => (10, bytes.get(2..10).map(number)),
        size => (2, Some(usize::from(size))),
    };
    let Some(size) = size else {
        return Ok(None);
    };
    if first != 0x80 | due.opcode || size != due.payload.len() {
        let wanted = (due.opcode, shown(&due.payload));
        return Err(format!("a frame in place of {wanted:?}: {}", shown(bytes)));
    }
    let Some(payload) = bytes.get(head..head + size) else {
        return Ok(None);
    };
    if payload != due.payload {
        return Err(format!(
            "{} in place of {}",
            shown(payload),
            shown(&due.payload)
        ));
    }
    Ok(Some(head + size))
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_whole_and_a_foreign_one_refused() {
        for size in [0, 125, 126, 65_536] {
            let due = Due {
                opcode: TEXT,
                payload: pattern(3, size),
            };
            let mut masked = Vec::new();
            frame(&mut masked, TEXT, true, &due.payload, 0);
            // As the server sends it: without a mask.
            let head = masked.len() - size - 4;
            let mut bytes = [&masked[..head], &due.payload].concat();
            bytes[1] &= 0x7f;
            assert_eq!(arrived(&bytes, &due), Ok(Some(bytes.len())));
            assert_eq!(arrived(&bytes[..bytes.len() - 1], &due), Ok(None));
            let other = Due {
                opcode: TEXT,
                payload: pattern(4, size.max(1)),
            };
            assert!(arrived(&bytes, &other).is_err());
        }
    }
}
