//! permessage-deflate (RFC 7692): what is agreed on, and the two streams.
//!
//! No WebSocket crate fits: tungstenite and fastwebsockets have no compression, those that have it
//! own the socket and its runtime. So frames are our own, over flate2 with zlib-rs: pure Rust.
//! Knows nothing of Python.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Where the client lets us choose: 4 KiB of history cost little memory and pack nearly as well.
const WINDOW: u8 = 12;
/// A shorter message is sent as it is.
const WORTH: usize = 64;
/// What a sync flush ends with, and what is left out on the wire.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// What client and server agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    server_forgets: bool,
    client_forgets: bool,
    server_window: u8,
    client_window: Option<u8>,
}

/// The state of both directions; each is made when first needed.
pub struct Deflate {
    terms: Terms,
    packer: Option<Compress>,
    unpacker: Option<Decompress>,
}

pub enum Inflated {
    Data(Vec<u8>),
    TooBig,
    Broken,
}

/// What an offer of `sec-websocket-extensions` comes to, if it can be met.
pub fn agree(text: &str) -> Option<Terms> {
    let mut parts = text.split(';').map(str::trim);
    if parts.next() != Some("permessage-deflate") {
        return None;
    }
    let mut terms = Terms {
        server_forgets: false,
        client_forgets: false,
        server_window: WINDOW,
        client_window: None,
    };
    let mut seen = Vec::new();
    for part in parts {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
            None => (part, None),
        };
        if seen.contains(&name) {
            return None;
        }
        seen.push(name);
        match (name, value) {
            ("server_no_context_takeover", None) => terms.server_forgets = true,
            ("client_no_context_takeover", None) => terms.client_forgets = true,
            ("server_max_window_bits", Some(bits)) => {
                terms.server_window = window(bits)?.min(WINDOW);
            }
            ("client_max_window_bits", None) => terms.client_window = Some(WINDOW),
            ("client_max_window_bits", Some(bits)) => {
                terms.client_window = Some(window(bits)?.min(WINDOW));
            }
            _ => return None,
        }
    }
    Some(terms)
}

/// 8 is allowed by the RFC, but zlib has no raw stream of it.
fn window(bits: &str) -> Option<u8> {
    if bits.len() > 2 || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    bits.parse().ok().filter(|bits| (9..=15).contains(bits))
}

impl Terms {
    /// The value of our `sec-websocket-extensions`.
    pub fn answer(&self) -> String {
        let mut text = format!(
            "permessage-deflate; server_max_window_bits={}",
            self.server_window
        );
        if self.server_forgets {
            text.push_str("; server_no_context_takeover");
        }
        if self.client_forgets {
            text.push_str("; client_no_context_takeover");
        }
        if let Some(bits) = self.client_window {
            text.push_str(&format!("; client_max_window_bits={bits}"));
        }
        text
    }
}

impl Deflate {
    pub fn new(terms: Terms) -> Self {
        Deflate {
            terms,
            packer: None,
            unpacker: None,
        }
    }

    /// The packed form; `None` where it is not worth it.
    pub fn deflate(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        if data.len() < WORTH {
            return None;
        }
        let window = self.terms.server_window;
        let packer = self.packer.get_or_insert_with(|| {
            Compress::new_with_window_bits(Compression::fast(), false, window)
        });
        let (start, mut out) = (packer.total_in(), Vec::with_capacity(data.len() / 2 + 64));
        loop {
            let used = (packer.total_in() - start) as usize;
            out.reserve(256);
            let done = packer.compress_vec(&data[used..], &mut out, FlushCompress::Sync);
            if done.is_err() {
                // The stream is of no use any more; a new one begins a new history, which is
                // always allowed.
                self.packer = None;
                return None;
            }
            let all = (packer.total_in() - start) as usize == data.len();
            if all && out.len() < out.capacity() {
                break;
            }
        }
        if self.terms.server_forgets {
            self.packer = None;
        }
        if out.ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
        Some(out)
    }

    /// The message behind its packed form, if it is not larger than `most`.
    pub fn inflate(&mut self, data: &[u8], most: usize) -> Inflated {
        let unpacker = self.unpacker.get_or_insert_with(|| Decompress::new(false));
        let mut out = Vec::with_capacity((data.len() * 4).clamp(256, most.max(256)));
        for input in [data, &TAIL] {
            let mut rest = input;
            loop {
                if out.len() == out.capacity() {
                    out.reserve(out.len().clamp(256, 1 << 20));
                }
                let before = (unpacker.total_in(), out.len());
                let step = unpacker.decompress_vec(rest, &mut out, FlushDecompress::Sync);
                let used = (unpacker.total_in() - before.0) as usize;
                rest = &rest[used..];
                match step {
                    Ok(Status::Ok | Status::BufError) => {}
                    // A last block ends the stream; what follows is a new one.
                    Ok(Status::StreamEnd) => unpacker.reset(false),
                    Err(_) => return Inflated::Broken,
                }
                if out.len() > most {
                    return Inflated::TooBig;
                }
                let full = out.len() == out.capacity();
                let stuck = used == 0 && out.len() == before.1;
                if !full && (rest.is_empty() || stuck) {
                    break;
                }
            }
        }
        if self.terms.client_forgets {
            self.unpacker = None;
        }
        Inflated::Data(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(offer: &str) -> (Deflate, Deflate) {
        let terms = agree(offer).expect_terms();
        (Deflate::new(terms), Deflate::new(terms))
    }

    trait ExpectTerms {
        fn expect_terms(self) -> Terms;
    }

    impl ExpectTerms for Option<Terms> {
        fn expect_terms(self) -> Terms {
            match self {
                Some(terms) => terms,
                None => panic!("no offer could be met"),
            }
        }
    }

    fn data(inflated: Inflated) -> Option<Vec<u8>> {
        match inflated {
            Inflated::Data(data) => Some(data),
            Inflated::TooBig | Inflated::Broken => None,
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let offers = [
            "permessage-deflate",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
            "permessage-deflate; server_max_window_bits=9; client_max_window_bits=10",
        ];
        for offer in offers {
            let (mut here, mut there) = both(offer);
            for size in [64_u64, 100, 5000, 300_000] {
                let message: Vec<u8> = (0..size).map(|at| (at * at / 7 % 251) as u8).collect();
                for _ in 0..3 {
                    let packed = here.deflate(&message).unwrap_or_default();
                    assert_eq!(data(there.inflate(&packed, 400_000)), Some(message.clone()));
                }
            }
        }
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let (mut here, mut there) = both("permessage-deflate");
        let packed = here.deflate(&vec![0; 10_000_000]).unwrap_or_default();
        assert!(packed.len() < 100_000);
        assert!(matches!(there.inflate(&packed, 1000), Inflated::TooBig));
        let (_, mut other) = both("permessage-deflate");
        assert!(matches!(other.inflate(&[0xff; 50], 1000), Inflated::Broken));
    }

    #[test]
    fn an_offer_is_met_as_a_whole_or_not_at_all() {
        let terms = agree("permessage-deflate; client_max_window_bits").expect_terms();
        let answer = "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12";
        assert_eq!(terms.answer(), answer);
        for bad in [
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; unknown",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; client_max_window_bits=x",
            "x-other",
            "",
        ] {
            assert_eq!(agree(bad), None, "{bad}");
        }
    }
}
