//! Any bytes as a chunked body: read in pieces, they are what the grammar says of the whole.

use super::chunked::{Broken, Decoder};

/// The most bytes of extensions and trailers.
const ASIDE: usize = 8192;

/// The body, and how much of the data it was; `None` if more must come.
type Read = Result<Option<(Vec<u8>, usize)>, Broken>;

fn in_pieces(data: &[u8], size: usize) -> Read {
    let (mut decoder, mut body, mut used) = (Decoder::default(), Vec::new(), 0);
    for piece in data.chunks(size) {
        used += decoder.feed(piece, |bytes| body.extend_from_slice(bytes))?;
    }
    Ok(decoder.is_done().then_some((body, used)))
}

/// RFC 9112, 7.1, from the whole of the data. What is cut off may be broken or not.
fn by_the_grammar(data: &[u8]) -> Read {
    let (mut body, mut at, mut aside) = (Vec::new(), 0, 0);
    loop {
        let Some(line) = line(&data[at..]) else {
            return Ok(None);
        };
        at += line.len() + 2;
        let size = line.iter().position(|byte| !byte.is_ascii_hexdigit());
        let (size, rest) = line.split_at(size.unwrap_or(line.len()));
        aside += rest.len().saturating_sub(1);
        let well = (1..=15).contains(&size.len()) && (rest.is_empty() || rest[0] == b';');
        if !well || !rest.iter().all(is_shown) || aside > ASIDE {
            return Err(Broken);
        }
        let size = size.iter().fold(0, |sum, digit| {
            sum * 16
                + (*digit as char)
                    .to_digit(16)
                    .map_or(0, |digit| digit as usize)
        });
        if size == 0 {
            return trailers(data, at, aside).map(|end| end.map(|end| (body, end)));
        }
        let Some(chunk) = data.get(at..at + size) else {
            return Ok(None);
        };
        body.extend_from_slice(chunk);
        at += size;
        match data.get(at..at + 2) {
            None => return Ok(None),
            Some(b"\r\n") => at += 2,
            Some(_) => return Err(Broken),
        }
    }
}

fn trailers(data: &[u8], mut at: usize, mut aside: usize) -> Result<Option<usize>, Broken> {
    loop {
        let Some(line) = line(&data[at..]) else {
            return Ok(None);
        };
        at += line.len() + 2;
        if line.is_empty() {
            return Ok(Some(at));
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (halves.next(), halves.next()) else {
            return Err(Broken);
        };
        aside += name.len() + value.len();
        let token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        if name.is_empty()
            || !name.iter().all(token)
            || !value.iter().all(is_shown)
            || aside > ASIDE
        {
            return Err(Broken);
        }
    }
}

/// What comes before the next CRLF.
fn line(data: &[u8]) -> Option<&[u8]> {
    let end = data.windows(2).position(|two| two == b"\r\n")?;
    Some(&data[..end])
}

fn is_shown(byte: &u8) -> bool {
    *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f)
}

#[test]
fn fuzz_chunked() {
    fuzz::fuzz("chunked", |data| {
        let whole = in_pieces(data, data.len().max(1));
        for size in [1, 3] {
            assert_eq!(in_pieces(data, size), whole, "pieces of {size}");
        }
        match by_the_grammar(data) {
            // Refused before its end was there, or not yet.
            Ok(None) => assert!(!matches!(whole, Ok(Some(_)))),
            read => assert_eq!(whole, read),
        }
        whole
            .ok()
            .map(|read| read.map(|(body, used)| (body.len().min(4), data.len() - used > 0)))
    });
}
