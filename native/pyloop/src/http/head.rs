//! The head of a request: parsed by httparse, then judged. What two readers could understand
//! differently is refused, since such a message smuggles another one past a proxy.
//!
//! Knows nothing of Python.

use std::cell::Cell;
use std::mem::MaybeUninit;

use httparse::{Error, Header, Status};

/// The most headers a request may have, whatever the configuration says.
pub const MOST_HEADERS: usize = 256;

/// A head of this size is parsed again only when its end has come.
const LONG: usize = 4096;

/// The most bytes of empty lines before a head.
const EMPTY: usize = 16;

/// What limits a head.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub headers: usize,
}

/// How the body of a request ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// What the connection needs to know of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub framing: Framing,
    /// HTTP/1.1, not 1.0.
    pub modern: bool,
    pub keep_alive: bool,
    /// `Expect: 100-continue`
    pub expects: bool,
    /// `Upgrade: websocket`, and the connection says so.
    pub websocket: bool,
    pub is_head: bool,
    /// `TE: trailers`
    pub trailers: bool,
}

/// A head that may be served.
pub struct Head<'a> {
    pub method: &'a str,
    pub target: &'a str,
    pub headers: &'a [Header<'a>],
    pub facts: Facts,
    /// Its size.
    pub len: usize,
}

/// Room for the headers while a head is used.
pub type Room<'a> = [MaybeUninit<Header<'a>>; MOST_HEADERS];

/// Parses the head at the start of `data`. `Ok(None)`: not all of it is there. `Err`: the status
/// to refuse it with. `searched` counts the bytes of a long head that are known to hold no end. It stays
/// with the connection, so that a head which comes byte by byte is searched once.
pub fn parse<'a>(
    data: &'a [u8],
    limits: Limits,
    room: &'a mut Room<'a>,
    searched: &Cell<u32>,
) -> Result<Option<Head<'a>>, u16> {
    let is_empty = |byte: &&u8| matches!(**byte, b'\r' | b'\n');
    let start = data.iter().take(EMPTY + 1).take_while(is_empty).count();
    if start > EMPTY {
        return Err(400);
    }
    if data.len() > LONG && !has_end(&data[start..], searched) {
        return too_long(data, limits).map_or(Ok(None), Err);
    }
    searched.set(0);
    let most = limits.headers.min(MOST_HEADERS);
    let mut request = httparse::Request::new(&mut []);
    let len = match request.parse_with_uninit_headers(data, &mut room[..most]) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return too_long(data, limits).map_or(Ok(None), Err),
        Err(Error::TooManyHeaders) => return Err(431),
        Err(Error::Version) => return Err(if version(data).is_some() { 505 } else { 400 }),
        Err(_) => return Err(400),
    };
    if len > limits.bytes {
        return Err(431);
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(400);
    };
    check_method(method)?;
    if !ends_lines_well(&data[..len]) || !target.is_ascii() {
        return Err(400);
    }
    let facts = judge(method, request.version == Some(1), request.headers)?;
    Ok(Some(Head {
        method,
        target,
        headers: request.headers,
        facts,
        len,
    }))
}

/// Why a head that has not ended yet is refused.
fn too_long(data: &[u8], limits: Limits) -> Option<u16> {
    if data.len() <= limits.bytes {
        return None;
    }
    Some(if data.contains(&b'\n') { 431 } else { 414 })
}

fn has_end(data: &[u8], searched: &Cell<u32>) -> bool {
    let known = u32::try_from(data.len()).unwrap_or(0);
    let from = (searched.replace(known) as usize).saturating_sub(3);
    let fresh = data.get(from..).unwrap_or(data);
    fresh.windows(4).any(|four| four == b"\r\n\r\n")
}

/// Where the version begins, in a first line that has some version of HTTP as its third and last word.
fn version(data: &[u8]) -> Option<usize> {
    // Empty lines before it are skipped, as httparse does.
    let is_end = |byte: &u8| *byte == b'\r' || *byte == b'\n';
    let start = data.iter().position(|byte| !is_end(byte))?;
    let line = data[start..].split(is_end).next()?;
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, word) = (words.next()?, words.next()?, words.next()?);
    let well = words.next().is_none()
        && matches!(word, [b'H', b'T', b'T', b'P', b'/', rest @ ..] if is_version(rest));
    well.then_some(start + method.len() + target.len() + 2)
}

/// The begin of two digits with a dot between.
fn is_version(text: &[u8]) -> bool {
    let digit = |at: usize| text.get(at).is_none_or(u8::is_ascii_digit);
    text.len() <= 3 && digit(0) && text.get(1).is_none_or(|byte| *byte == b'.') && digit(2)
}

/// The same data as HTTP/1.1, if it is of a later minor version: that is how it is to be read
/// (RFC 9110, 2.5).
#[cold]
pub fn as_one_one(data: &[u8]) -> Option<Vec<u8>> {
    let minor = version(data)? + "HTTP/1.".len();
    if data.get(..minor)?.ends_with(b"1.") && matches!(data.get(minor)?, b'2'..=b'9') {
        let mut copy = data.to_vec();
        copy[minor] = b'1';
        return Some(copy);
    }
    None
}

/// The application hears of a method in upper case. Where that changes how the answer ends, another
/// reader, to whom `head` is no HEAD, would not agree.
fn check_method(method: &str) -> Result<(), u16> {
    if method.len() == 7 && method.eq_ignore_ascii_case("CONNECT") {
        return Err(501);
    }
    if method.len() == 4 && method != "HEAD" && method.eq_ignore_ascii_case("HEAD") {
        return Err(400);
    }
    Ok(())
}

/// httparse takes a bare line feed as the end of a line; others do not.
fn ends_lines_well(head: &[u8]) -> bool {
    let mut before = 0;
    for byte in head {
        if *byte == b'\n' && before != b'\r' {
            return false;
        }
        before = *byte;
    }
    true
}

fn judge(method: &str, modern: bool, headers: &[Header<'_>]) -> Result<Facts, u16> {
    let mut facts = Facts {
        framing: Framing::None,
        modern,
        keep_alive: modern,
        expects: false,
        websocket: false,
        is_head: method == "HEAD",
        trailers: false,
    };
    let (mut hosts, mut upgrade, mut upgrades, mut closes) = (0, false, false, false);
    for header in headers {
        let name = header.name;
        match name.len() {
            2 if name.eq_ignore_ascii_case("te") => {
                let words = header.value.split(|byte| *byte == b',');
                facts.trailers |= words.into_iter().any(|word| is(word, "trailers"));
            }
            4 if name.eq_ignore_ascii_case("host") => hosts += 1,
            6 if name.eq_ignore_ascii_case("expect") => {
                facts.expects = modern && is(header.value, "100-continue");
            }
            7 if name.eq_ignore_ascii_case("upgrade") => {
                upgrade = is(header.value, "websocket");
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                for word in header.value.split(|byte| *byte == b',') {
                    if is(word, "close") {
                        closes = true;
                    } else if is(word, "keep-alive") && !modern {
                        facts.keep_alive = true;
                    } else if is(word, "upgrade") {
                        upgrades = true;
                    }
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                if facts.framing != Framing::None {
                    return Err(400);
                }
                facts.framing = Framing::Length(length(header.value).ok_or(400u16)?);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if facts.framing != Framing::None || !modern {
                    return Err(400);
                }
                if !is(header.value, "chunked") {
                    return Err(501);
                }
                facts.framing = Framing::Chunked;
            }
            _ => {}
        }
    }
    if hosts > 1 || (modern && hosts == 0) {
        return Err(400);
    }
    // Whatever stands beside it (RFC 9112, 9.3).
    facts.keep_alive &= !closes;
    facts.websocket = modern && upgrade && upgrades && method == "GET";
    Ok(facts)
}

fn is(value: &[u8], word: &str) -> bool {
    value.trim_ascii().eq_ignore_ascii_case(word.as_bytes())
}

/// Digits and nothing else.
pub fn length(value: &[u8]) -> Option<u64> {
    let well = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    if !well {
        return None;
    }
    let digits = value.iter();
    Some(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 8192,
        headers: 5,
    };

    fn facts(data: &[u8]) -> Result<Option<Facts>, u16> {
        let mut room = [MaybeUninit::uninit(); MOST_HEADERS];
        parse(data, LIMITS, &mut room, &Cell::new(0)).map(|head| head.map(|head| head.facts))
    }

    #[test]
    fn a_long_head_that_comes_in_pieces_is_searched_once() {
        let data = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "a".repeat(5000)
        );
        let (data, searched) = (data.as_bytes(), Cell::new(0));
        for len in LONG + 1..data.len() {
            let mut room = [MaybeUninit::uninit(); MOST_HEADERS];
            let head = parse(&data[..len], LIMITS, &mut room, &searched);
            assert!(matches!(head, Ok(None)), "{len}");
            assert_eq!(searched.get() as usize, len);
        }
        let mut room = [MaybeUninit::uninit(); MOST_HEADERS];
        assert!(matches!(
            parse(data, LIMITS, &mut room, &searched),
            Ok(Some(_))
        ));
        assert_eq!(searched.get(), 0);
    }

    #[test]
    fn empty_lines_before_a_head_are_few() {
        let after =
            |count: usize| format!("{}GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n".repeat(count));
        assert!(matches!(facts(after(2).as_bytes()), Ok(Some(_))));
        assert_eq!(facts(after(9).as_bytes()), Err(400));
    }

    #[test]
    fn a_head_says_how_its_body_ends() {
        let framing = |data: &[u8]| facts(data).map(|facts| facts.map(|facts| facts.framing));
        let none = framing(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(none, Ok(Some(Framing::None)));
        let length = framing(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n");
        assert_eq!(length, Ok(Some(Framing::Length(12))));
        let chunked = framing(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n");
        assert_eq!(chunked, Ok(Some(Framing::Chunked)));
        assert_eq!(framing(b"GET / HTTP/1.1\r\nHost: a\r\n"), Ok(None));
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        let bad: [&[u8]; 12] = [
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\n\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"G\x00T / HTTP/1.1\r\nHost: a\r\n\r\n",
        ];
        for data in bad {
            assert_eq!(facts(data), Err(400), "{}", String::from_utf8_lossy(data));
        }
        let gzip = b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        assert_eq!(facts(gzip), Err(501));
        assert_eq!(facts(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(505));
    }

    #[test]
    fn a_connection_that_is_to_close_is_not_kept_whatever_stands_beside_it() {
        let kept = |lines: &str| {
            let data = format!("GET / HTTP/1.0\r\n{lines}\r\n");
            facts(data.as_bytes()).map(|facts| facts.map(|facts| facts.keep_alive))
        };
        assert_eq!(kept("Connection: keep-alive\r\n"), Ok(Some(true)));
        for close in [
            "Connection: close, keep-alive\r\n",
            "Connection: keep-alive, close\r\n",
            "Connection: close\r\nConnection: keep-alive\r\n",
        ] {
            assert_eq!(kept(close), Ok(Some(false)), "{close}");
        }
    }

    #[test]
    fn a_later_minor_version_is_read_as_one_one_after_empty_lines_too() {
        for lines in ["", "\r\n", "\r\n\r\n"] {
            let data = format!("{lines}GET / HTTP/1.2\r\nHost: a\r\n\r\n");
            assert_eq!(facts(data.as_bytes()), Err(505), "{lines:?}");
            let copy = as_one_one(data.as_bytes()).unwrap_or_default();
            assert!(matches!(facts(&copy), Ok(Some(_))), "{lines:?}");
        }
    }

    #[test]
    fn a_head_that_is_too_large_is_refused_before_its_end() {
        let line = [b"GET /".to_vec(), vec![b'a'; 9000]].concat();
        assert_eq!(facts(&line), Err(414));
        let header = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 9000]].concat();
        assert_eq!(facts(&header), Err(431));
        let many = [b"GET / HTTP/1.1\r\n".to_vec(), b"A: b\r\n".repeat(6)].concat();
        assert_eq!(facts(&many), Err(431));
    }
}
