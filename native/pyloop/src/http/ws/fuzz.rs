//! Any bytes as frames of a client: read in pieces, they are the same messages, and no message is
//! larger than it may be. The first byte of an input says what was agreed on.

use super::deflate::{Deflate, Inflated, agree};
use super::frame::{Opcode, Reader, Said, code, write};

/// The largest message.
const MOST: usize = 4096;
const OFFERS: [&str; 3] = [
    "permessage-deflate",
    "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
    "permessage-deflate; client_max_window_bits=9; server_max_window_bits=9",
];

fn agreed(kind: u8) -> Option<Deflate> {
    let offer = OFFERS.get(usize::from(kind % 4).wrapping_sub(1))?;
    agree(offer).map(Deflate::new)
}

/// What was said, and the code to close with if a rule was broken.
type Heard = (Vec<Said>, Option<u16>);

/// As a connection does: what is not a whole frame yet waits for the next piece.
fn in_pieces(kind: u8, data: &[u8], size: usize) -> Heard {
    let (mut reader, mut deflate) = (Reader::new(MOST), agreed(kind));
    let (mut input, mut all) = (Vec::new(), Vec::new());
    for piece in data.chunks(size) {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match reader.next(&input[at..], deflate.as_mut()) {
                Ok(None) => break,
                Ok(Some((used, said))) => {
                    assert!(used > 0 && at + used <= input.len());
                    at += used;
                    all.extend(said);
                }
                Err(number) => return (all, Some(number)),
            }
        }
        input.drain(..at);
    }
    (all, None)
}

/// What we write of a message, a client reads as that message.
fn comes_back(kind: u8, said: &Said) {
    let (opcode, data) = match said {
        Said::Text(text) => (Opcode::Text, text.as_bytes()),
        Said::Binary(data) => (Opcode::Binary, data.as_slice()),
        Said::Ping(_) | Said::Pong | Said::Close(..) => return,
    };
    let (Some(mut here), Some(mut there)) = (agreed(kind), agreed(kind)) else {
        let mut out = Vec::new();
        write(&mut out, opcode, false, data);
        return assert!(out.ends_with(data));
    };
    if let Some(packed) = here.deflate(data) {
        let back = there.inflate(&packed, MOST);
        assert!(matches!(back, Inflated::Data(back) if back == data));
    }
}

#[test]
fn fuzz_frames() {
    fuzz::fuzz("frames", |data| {
        let (kind, frames) = data.split_first().unwrap_or((&0, &[]));
        let (all, end) = in_pieces(*kind, frames, frames.len().max(1));
        for size in [1, 3] {
            let again = in_pieces(*kind, frames, size);
            assert_eq!((&all, end), (&again.0, again.1), "pieces of {size}");
        }
        for said in &all {
            assert!(said.len() <= MOST);
            comes_back(*kind, said);
        }
        let known = [code::PROTOCOL, code::DATA, code::TOO_BIG];
        assert!(end.is_none_or(|end| known.contains(&end)));
        let kinds = all
            .iter()
            .map(|said| (std::mem::discriminant(said), said.len().min(2)));
        (kind % 4, kinds.take(5).collect::<Vec<_>>(), end)
    });
}
