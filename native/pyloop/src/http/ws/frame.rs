//! WebSocket frames: bytes of a client become messages and control frames, or a reason to close.
//!
//! Knows nothing of Python.

use super::deflate::{Deflate, Inflated};

/// Why a connection is closed (RFC 6455, 7.4.1).
pub mod code {
    pub const NORMAL: u16 = 1000;
    pub const PROTOCOL: u16 = 1002;
    /// For the application only: the peer gave none.
    pub const NONE: u16 = 1005;
    /// For the application only: the connection was lost.
    pub const LOST: u16 = 1006;
    pub const DATA: u16 = 1007;
    pub const TOO_BIG: u16 = 1009;
    pub const FAILED: u16 = 1011;
    pub const RESTART: u16 = 1012;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// What a client has said.
#[derive(PartialEq, Eq, Debug)]
pub enum Said {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close(u16, String),
}

impl Said {
    /// How much data it has.
    pub fn len(&self) -> usize {
        match self {
            Said::Text(text) => text.len(),
            Said::Binary(data) | Said::Ping(data) => data.len(),
            Said::Pong | Said::Close(..) => 0,
        }
    }
}

/// The head of a frame.
struct Head {
    last: bool,
    packed: bool,
    opcode: Opcode,
    mask: [u8; 4],
    /// Of the head itself.
    size: usize,
    /// Of what follows.
    len: u64,
}

/// A message whose frames are still coming.
struct Partial {
    is_text: bool,
    packed: bool,
    data: Vec<u8>,
}

/// Reads the frames of one connection.
pub struct Reader {
    partial: Option<Partial>,
    /// The largest message.
    most: usize,
}

const LONGEST_CONTROL: u64 = 125;

impl Reader {
    pub fn new(most: usize) -> Self {
        Reader {
            partial: None,
            most,
        }
    }

    /// The next frame at the start of `data`: how much of `data` it was, and what it said if it
    /// completes something. `Ok(None)`: not all of it is there. `Err`: the code to close with.
    pub fn next(
        &mut self,
        data: &[u8],
        deflate: Option<&mut Deflate>,
    ) -> Result<Option<(usize, Option<Said>)>, u16> {
        let Some(head) = parse(data, deflate.is_some())? else {
            return Ok(None);
        };
        self.check(&head)?;
        let len = usize::try_from(head.len).map_err(|_| code::TOO_BIG)?;
        let Some(payload) = data.get(head.size..head.size + len) else {
            return Ok(None);
        };
        let used = head.size + len;
        if head.opcode.is_control() {
            let mut bytes = payload.to_vec();
            unmask(&mut bytes, head.mask);
            return control(head.opcode, bytes).map(|said| Some((used, Some(said))));
        }
        let partial = self.partial.get_or_insert_with(|| Partial {
            is_text: head.opcode == Opcode::Text,
            packed: head.packed,
            data: Vec::new(),
        });
        let start = partial.data.len();
        partial.data.extend_from_slice(payload);
        unmask(&mut partial.data[start..], head.mask);
        if !head.last {
            return Ok(Some((used, None)));
        }
        match self.partial.take() {
            Some(partial) => {
                let said = message(partial, self.most, deflate)?;
                Ok(Some((used, Some(said))))
            }
            None => Err(code::PROTOCOL),
        }
    }

    /// Whether the frame may come here, before all of it is there.
    fn check(&self, head: &Head) -> Result<(), u16> {
        if head.opcode.is_control() {
            let well = head.last && !head.packed && head.len <= LONGEST_CONTROL;
            return if well { Ok(()) } else { Err(code::PROTOCOL) };
        }
        let goes_on = head.opcode == Opcode::Continuation;
        if goes_on != self.partial.is_some() || (goes_on && head.packed) {
            return Err(code::PROTOCOL);
        }
        let before = self
            .partial
            .as_ref()
            .map_or(0, |partial| partial.data.len());
        if head.len.saturating_add(before as u64) > self.most as u64 {
            return Err(code::TOO_BIG);
        }
        Ok(())
    }
}

fn parse(data: &[u8], may_pack: bool) -> Result<Option<Head>, u16> {
    let &[first, second, ..] = data else {
        return Ok(None);
    };
    let packed = first & 0x40 != 0;
    let Some(opcode) = Opcode::from(first & 0x0f) else {
        return Err(code::PROTOCOL);
    };
    // Reserved bits; and a client has to mask.
    if first & 0x30 != 0 || (packed && !may_pack) || second & 0x80 == 0 {
        return Err(code::PROTOCOL);
    }
    let (len, at) = match second & 0x7f {
        126 => match data.get(2..4).and_then(|two| two.try_into().ok()) {
            Some(two) => (u64::from(u16::from_be_bytes(two)), 4),
            None => return Ok(None),
        },
        127 => match data.get(2..10).and_then(|eight| eight.try_into().ok()) {
            Some(eight) => (u64::from_be_bytes(eight), 10),
            None => return Ok(None),
        },
        short => (u64::from(short), 2),
    };
    let Some(mask) = data.get(at..at + 4).and_then(|four| four.try_into().ok()) else {
        return Ok(None);
    };
    Ok(Some(Head {
        last: first & 0x80 != 0,
        packed,
        opcode,
        mask,
        size: at + 4,
        len,
    }))
}

fn unmask(data: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from_ne_bytes([
        mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3],
    ]);
    let mut chunks = data.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        chunk.copy_from_slice(&(u64::from_ne_bytes(eight) ^ wide).to_ne_bytes());
    }
    for (byte, mask) in chunks
        .into_remainder()
        .iter_mut()
        .zip(mask.into_iter().cycle())
    {
        *byte ^= mask;
    }
}

fn control(opcode: Opcode, bytes: Vec<u8>) -> Result<Said, u16> {
    match opcode {
        Opcode::Ping => Ok(Said::Ping(bytes)),
        Opcode::Pong => Ok(Said::Pong),
        _ => match bytes.split_first_chunk::<2>() {
            Some((number, reason)) => {
                let number = u16::from_be_bytes(*number);
                if !may_be_sent(number) {
                    return Err(code::PROTOCOL);
                }
                let reason = std::str::from_utf8(reason).map_err(|_| code::DATA)?;
                Ok(Said::Close(number, reason.to_owned()))
            }
            None if bytes.is_empty() => Ok(Said::Close(code::NONE, String::new())),
            None => Err(code::PROTOCOL),
        },
    }
}

/// Whether a close frame may carry the code.
pub fn may_be_sent(number: u16) -> bool {
    matches!(number, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

fn message(partial: Partial, most: usize, deflate: Option<&mut Deflate>) -> Result<Said, u16> {
    let data = match (partial.packed, deflate) {
        (true, Some(deflate)) => match deflate.inflate(&partial.data, most) {
            Inflated::Data(data) => data,
            Inflated::TooBig => return Err(code::TOO_BIG),
            Inflated::Broken => return Err(code::DATA),
        },
        _ => partial.data,
    };
    if !partial.is_text {
        return Ok(Said::Binary(data));
    }
    String::from_utf8(data)
        .map(Said::Text)
        .map_err(|_| code::DATA)
}

/// Writes one whole frame of the server's.
pub fn write(out: &mut Vec<u8>, opcode: Opcode, packed: bool, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.push(0x80 | if packed { 0x40 } else { 0 } | opcode.bits());
    match payload.len() {
        len @ 0..=125 => out.push(len as u8),
        len @ 126..=65535 => {
            out.push(126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Writes a close frame; a reason that is too long is cut at a character.
pub fn write_close(out: &mut Vec<u8>, number: u16, reason: &str) {
    if number == code::NONE {
        return write(out, Opcode::Close, false, &[]);
    }
    let mut end = reason.len().min(LONGEST_CONTROL as usize - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let payload = [&number.to_be_bytes(), &reason.as_bytes()[..end]].concat();
    write(out, Opcode::Close, false, &payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut masked = payload.to_vec();
        unmask(&mut masked, mask);
        let mut out = vec![first];
        match payload.len() {
            len @ 0..=125 => out.push(0x80 | len as u8),
            len => {
                out.push(0x80 | 126);
                out.extend_from_slice(&(len as u16).to_be_bytes());
            }
        }
        out.extend_from_slice(&mask);
        out.extend_from_slice(&masked);
        out
    }

    fn read(data: &[u8]) -> Result<Vec<Said>, u16> {
        let (mut reader, mut at, mut all) = (Reader::new(1000), 0, Vec::new());
        while let Some((used, said)) = reader.next(&data[at..], None)? {
            at += used;
            all.extend(said);
        }
        Ok(all)
    }

    #[test]
    fn a_message_may_come_in_pieces_with_pings_between() {
        let pieces = [
            frame(0x01, "caf".as_bytes()),
            frame(0x89, b"?"),
            frame(0x00, &[0xc3]),
            frame(0x80, &[0xa9]),
            frame(0x82, &[7; 300]),
        ];
        let text = Said::Text("caf\u{e9}".to_owned());
        let expected = vec![Said::Ping(b"?".to_vec()), text, Said::Binary(vec![7; 300])];
        assert_eq!(read(&pieces.concat()), Ok(expected));
    }

    #[test]
    fn the_masked_frame_of_the_rfc_is_read() {
        let data = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        assert_eq!(read(&data), Ok(vec![Said::Text("Hello".to_owned())]));
    }

    #[test]
    fn a_frame_out_of_rule_is_a_protocol_error() {
        let unmasked = vec![0x81, 0x01, b'a'];
        let bad = [
            unmasked,
            frame(0xc1, b"a"),
            frame(0xa1, b"a"),
            frame(0x83, b"a"),
            frame(0x8b, b"a"),
            frame(0x80, b"a"),
            [frame(0x01, b"a"), frame(0x81, b"b")].concat(),
            frame(0x09, b"a"),
            frame(0x89, &[0; 126]),
            frame(0x88, b"a"),
            frame(0x88, &1005u16.to_be_bytes()),
            frame(0x88, &999u16.to_be_bytes()),
        ];
        for data in bad {
            assert_eq!(read(&data), Err(code::PROTOCOL), "{data:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_and_what_is_too_big_have_their_codes() {
        assert_eq!(read(&frame(0x81, &[0xff])), Err(code::DATA));
        assert_eq!(read(&frame(0x88, &[3, 0xe8, 0xff])), Err(code::DATA));
        assert_eq!(read(&frame(0x82, &[0; 1001])), Err(code::TOO_BIG));
        let pieces = [frame(0x02, &[0; 600]), frame(0x80, &[0; 600])].concat();
        assert_eq!(read(&pieces), Err(code::TOO_BIG));
        // Before it has come.
        let head = [0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(read(&head), Err(code::TOO_BIG));
    }

    #[test]
    fn a_reason_is_cut_at_a_character() {
        let mut out = Vec::new();
        write_close(&mut out, 1000, &"\u{e9}".repeat(100));
        assert_eq!(out[..2], [0x88, 2 + 122]);
    }
}
