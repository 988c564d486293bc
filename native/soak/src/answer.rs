//! Reads answers as they come, and holds each byte against what was expected.

use crate::request::Expected;

/// Longer heads are a fault.
const LONGEST_HEAD: usize = 16 << 10;

/// What is being read.
enum State {
    Head,
    /// So many bytes of a body, or of a chunk, are still to come.
    Length(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
}

pub struct Reader {
    state: State,
    /// What has come and was not understood yet.
    buffer: Vec<u8>,
    /// Bytes of the body that were read.
    read: usize,
}

/// What a step of reading has found.
pub enum Found {
    /// The answer is complete.
    Answer,
    /// More bytes are needed.
    More,
    /// What came is not the answer to this request.
    Wrong(String),
}

impl Reader {
    pub fn new() -> Self {
        Reader {
            state: State::Head,
            buffer: Vec::new(),
            read: 0,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that belong to nothing that was asked for.
    pub fn rest(&self) -> &[u8] {
        &self.buffer
    }

    pub fn step(&mut self, expected: &Expected) -> Found {
        loop {
            let done = match self.state {
                State::Head => self.head(expected),
                State::Length(left) => self.body(expected, left, false),
                State::Chunk(left) => self.body(expected, left, true),
                State::ChunkSize => self.chunk_size(),
                State::ChunkEnd => self.line_end(State::ChunkSize),
                State::Trailer => self.trailer(expected),
            };
            match done {
                Ok(true) => {}
                Ok(false) => return Found::More,
                Err(End::Answer) => {
                    if !expected.is_head && self.read != expected.size {
                        let (read, size) = (self.read, expected.size);
                        return Found::Wrong(format!("{read} bytes of a body of {size}"));
                    }
                    self.read = 0;
                    self.state = State::Head;
                    return Found::Answer;
                }
                Err(End::Wrong(why)) => return Found::Wrong(why),
            }
        }
    }

    fn head(&mut self, expected: &Expected) -> Step {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let size = match response.parse(&self.buffer) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) if self.buffer.len() < LONGEST_HEAD => return Ok(false),
            _ => return wrong(format!("no head: {}", shown(&self.buffer))),
        };
        if response.code != Some(200) {
            return wrong(format!("status: {}", shown(&self.buffer)));
        }
        let find = |name: &str| {
            let mut same = response
                .headers
                .iter()
                .filter(|it| it.name.eq_ignore_ascii_case(name));
            same.next().map(|header| header.value)
        };
        let nonce = format!("{:016x}", expected.nonce);
        if find("x-nonce") != Some(nonce.as_bytes()) {
            let got = find("x-nonce").map(shown);
            return wrong(format!("nonce {got:?} in place of {nonce}"));
        }
        let length = find("content-length").map(|text| String::from_utf8_lossy(text).parse());
        self.state = match length {
            _ if expected.is_head => State::Length(0),
            Some(Ok(length)) if length == expected.size => State::Length(length),
            Some(length) => return wrong(format!("{length:?} in place of {}", expected.size)),
            None if find("transfer-encoding") == Some(b"chunked") => State::ChunkSize,
            None => return wrong("neither a length nor chunks".to_owned()),
        };
        self.buffer.drain(..size);
        Ok(true)
    }

    fn body(&mut self, expected: &Expected, left: usize, chunk: bool) -> Step {
        if left == 0 {
            if !chunk {
                return Err(End::Answer);
            }
            self.state = State::ChunkEnd;
            return Ok(true);
        }
        let size = left.min(self.buffer.len());
        if size == 0 {
            return Ok(false);
        }
        if !expected.has(self.read, &self.buffer[..size]) {
            let at = self.read;
            return wrong(format!(
                "foreign bytes at {at}: {}",
                shown(&self.buffer[..size])
            ));
        }
        self.buffer.drain(..size);
        self.read += size;
        self.state = if chunk {
            State::Chunk(left - size)
        } else {
            State::Length(left - size)
        };
        Ok(true)
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.windows(2).position(|two| two == b"\r\n")?;
        let line = self.buffer[..end].to_vec();
        self.buffer.drain(..end + 2);
        Some(line)
    }

    fn chunk_size(&mut self) -> Step {
        let Some(line) = self.line() else {
            return Ok(false);
        };
        let text = String::from_utf8_lossy(&line);
        self.state = match usize::from_str_radix(&text, 16) {
            Ok(0) => State::Trailer,
            Ok(size) => State::Chunk(size),
            Err(_) => return wrong(format!("no size of a chunk: {}", shown(&line))),
        };
        Ok(true)
    }

    fn line_end(&mut self, next: State) -> Step {
        match self.line() {
            Some(line) if line.is_empty() => {
                self.state = next;
                Ok(true)
            }
            Some(line) => wrong(format!("after a chunk: {}", shown(&line))),
            None => Ok(false),
        }
    }

    fn trailer(&mut self, expected: &Expected) -> Step {
        match self.line() {
            Some(line) if line.is_empty() => Err(End::Answer),
            Some(line) => wrong(format!("a trailer to {}: {}", expected.kind, shown(&line))),
            None => Ok(false),
        }
    }
}

/// `Ok(false)`: more bytes are needed.
type Step = Result<bool, End>;

enum End {
    Answer,
    Wrong(String),
}

fn wrong(why: String) -> Step {
    Err(End::Wrong(why))
}

/// The first bytes, for people.
pub fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(120)])
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::pattern;

    fn expected(size: usize) -> Expected {
        Expected {
            kind: "len",
            nonce: 5,
            repeats: 5,
            size,
            is_head: false,
            last: false,
        }
    }

    fn answer(nonce: u64, body: &[u8], size: usize) -> Vec<u8> {
        let head =
            format!("HTTP/1.1 200 OK\r\nX-Nonce: {nonce:016x}\r\nContent-Length: {size}\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    fn is_wrong(bytes: &[u8], expected: &Expected) -> bool {
        let mut reader = Reader::new();
        reader.feed(bytes);
        matches!(reader.step(expected), Found::Wrong(_))
    }

    #[test]
    fn the_right_answer_is_found_in_any_pieces() {
        let bytes = answer(5, &pattern(5, 40), 40);
        for cut in 0..bytes.len() {
            let mut reader = Reader::new();
            reader.feed(&bytes[..cut]);
            assert!(matches!(reader.step(&expected(40)), Found::More));
            reader.feed(&bytes[cut..]);
            assert!(matches!(reader.step(&expected(40)), Found::Answer));
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn an_answer_in_chunks_is_the_same() {
        let head =
            b"HTTP/1.1 200 OK\r\nx-nonce: 0000000000000005\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = pattern(5, 20);
        let chunks = [
            b"3\r\n",
            &body[..3],
            b"\r\n11\r\n",
            &body[3..],
            b"\r\n0\r\n\r\n",
        ]
        .concat();
        let mut reader = Reader::new();
        reader.feed(&[&head[..], &chunks].concat());
        assert!(matches!(reader.step(&expected(20)), Found::Answer));
        assert!(is_wrong(&[&head[..], &chunks].concat(), &expected(21)));
    }

    #[test]
    fn another_answer_is_wrong() {
        let own = pattern(5, 40);
        assert!(is_wrong(&answer(6, &own, 40), &expected(40)));
        assert!(is_wrong(&answer(5, &pattern(6, 40), 40), &expected(40)));
        assert!(is_wrong(&answer(5, &own, 40), &expected(39)));
        let mut late = own.clone();
        late[39] = b'!';
        assert!(is_wrong(&answer(5, &late, 40), &expected(40)));
        assert!(is_wrong(
            b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
            &expected(0)
        ));
        assert!(is_wrong(&own, &expected(40)));
    }
}
