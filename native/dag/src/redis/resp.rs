//! RESP2 and RESP3: commands written, replies read piece by piece.
//!
//! The decoder keeps what it has of a reply that is cut, so that no byte is looked at twice
//! however the peer cuts it, and a map keeps its order.

use crate::redis::failure::Failure;

/// What Redis answers, in either version of the protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Nil,
    Int(i64),
    Double(f64),
    Bool(bool),
    Bytes(Vec<u8>),
    /// `OK`, and other words of the server itself.
    Simple(String),
    BigNumber(String),
    Error(String),
    Array(Vec<Reply>),
    Set(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// Not an answer: the server's own news.
    Push(Vec<Reply>),
}

#[derive(Clone, Copy)]
enum Shape {
    Array,
    Set,
    Map,
    Push,
    /// Said about the reply that follows; dropped.
    Attribute,
}

struct Open {
    shape: Shape,
    left: usize,
    items: Vec<Reply>,
}

/// Replies deeper than this are refused: nothing of Redis is.
const DEEPEST: usize = 128;
const LONGEST: usize = 512 << 20;
/// Numbers, and words of the server itself; Redis has this bound for lines of its own.
const LONGEST_LINE: usize = 64 << 10;

#[derive(Default)]
pub struct Decoder {
    open: Vec<Open>,
}

enum Step {
    Cut,
    Whole(Reply),
    Opens(Shape, usize),
}

impl Decoder {
    /// The next whole reply of `bytes` after `at`, which moves over what was used.
    pub fn decode(&mut self, bytes: &[u8], at: &mut usize) -> Result<Option<Reply>, Failure> {
        loop {
            let mut reply = match step(bytes, at)? {
                Step::Cut => return Ok(None),
                Step::Opens(shape, left) if left > 0 => {
                    if self.open.len() >= DEEPEST {
                        return Err(Failure::Protocol("nested too deeply"));
                    }
                    // A hostile length reserves little; a true one grows soon enough.
                    let items = Vec::with_capacity(left.min(1024));
                    self.open.push(Open { shape, left, items });
                    continue;
                }
                Step::Opens(Shape::Attribute, _) => continue,
                Step::Opens(shape, _) => close(shape, Vec::new()),
                Step::Whole(reply) => reply,
            };
            loop {
                let Some(open) = self.open.last_mut() else {
                    return Ok(Some(reply));
                };
                open.items.push(reply);
                open.left -= 1;
                if open.left > 0 {
                    break;
                }
                let Some(open) = self.open.pop() else { break };
                if matches!(open.shape, Shape::Attribute) {
                    break;
                }
                reply = close(open.shape, open.items);
            }
        }
    }
}

fn close(shape: Shape, items: Vec<Reply>) -> Reply {
    match shape {
        Shape::Array | Shape::Attribute => Reply::Array(items),
        Shape::Set => Reply::Set(items),
        Shape::Push => Reply::Push(items),
        Shape::Map => {
            let mut items = items.into_iter();
            let mut pairs = Vec::with_capacity(items.len() / 2);
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                pairs.push((key, value));
            }
            Reply::Map(pairs)
        }
    }
}

/// One element: a whole one, the beginning of a collection, or not all of it yet.
fn step(bytes: &[u8], at: &mut usize) -> Result<Step, Failure> {
    let rest = &bytes[*at..];
    let Some(end) = line_end(rest)? else {
        return Ok(Step::Cut);
    };
    let line = &rest[1..end];
    let after = end + 2;
    let step = match rest[0] {
        b'+' => Step::Whole(Reply::Simple(text(line)?)),
        b'-' => Step::Whole(Reply::Error(text(line)?)),
        b':' => Step::Whole(Reply::Int(int(line)?)),
        b'_' => Step::Whole(Reply::Nil),
        b'#' => Step::Whole(Reply::Bool(line == b"t")),
        b',' => Step::Whole(Reply::Double(double(line)?)),
        b'(' => Step::Whole(Reply::BigNumber(text(line)?)),
        b'$' | b'!' | b'=' => return blob(rest, rest[0], int(line)?, after, at),
        b'*' if line == b"-1" => Step::Whole(Reply::Nil),
        b'*' => Step::Opens(Shape::Array, count(line, 1)?),
        b'~' => Step::Opens(Shape::Set, count(line, 1)?),
        b'>' => Step::Opens(Shape::Push, count(line, 1)?),
        b'%' => Step::Opens(Shape::Map, count(line, 2)?),
        b'|' => Step::Opens(Shape::Attribute, count(line, 2)?),
        _ => return Err(Failure::Protocol("unknown type")),
    };
    *at += after;
    Ok(step)
}

fn blob(rest: &[u8], kind: u8, length: i64, after: usize, at: &mut usize) -> Result<Step, Failure> {
    if length == -1 && kind == b'$' {
        *at += after;
        return Ok(Step::Whole(Reply::Nil));
    }
    let length = usize::try_from(length).map_err(|_| Failure::Protocol("negative length"))?;
    if length > LONGEST {
        return Err(Failure::Protocol("a string of more than 512 MiB"));
    }
    let Some(end) = rest.get(after + length..after + length + 2) else {
        return Ok(Step::Cut);
    };
    if end != b"\r\n" {
        return Err(Failure::Protocol("a string without its end"));
    }
    let data = &rest[after..after + length];
    *at += after + length + 2;
    Ok(Step::Whole(match kind {
        b'!' => Reply::Error(text(data)?),
        // `txt:` or `mkd:` before the text itself.
        b'=' => Reply::Bytes(data.get(4..).unwrap_or_default().to_vec()),
        _ => Reply::Bytes(data.to_vec()),
    }))
}

/// Where the first line of `rest` ends; its first byte is the type.
fn line_end(rest: &[u8]) -> Result<Option<usize>, Failure> {
    let line = &rest[..rest.len().min(LONGEST_LINE)];
    let Some(end) = line.iter().position(|byte| *byte == b'\r') else {
        return match rest.len() {
            LONGEST_LINE.. => Err(Failure::Protocol("a line of more than 64 KiB")),
            _ => Ok(None),
        };
    };
    match rest.get(end + 1) {
        None => Ok(None),
        Some(b'\n') if end > 0 => Ok(Some(end)),
        Some(_) => Err(Failure::Protocol("a line without its end")),
    }
}

fn int(line: &[u8]) -> Result<i64, Failure> {
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value = 0_i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        let next = value.checked_mul(10).and_then(|value| match negative {
            true => value.checked_sub(i64::from(digit)),
            false => value.checked_add(i64::from(digit)),
        });
        match next {
            Some(next) if digit < 10 => value = next,
            _ => return Err(Failure::Protocol("not a number")),
        }
    }
    match digits {
        [] => Err(Failure::Protocol("not a number")),
        _ => Ok(value),
    }
}

fn count(line: &[u8], each: usize) -> Result<usize, Failure> {
    let count = usize::try_from(int(line)?).ok();
    let count = count.and_then(|count| count.checked_mul(each));
    count.ok_or(Failure::Protocol("negative length"))
}

fn double(line: &[u8]) -> Result<f64, Failure> {
    let parsed = text(line)?.parse();
    parsed.map_err(|_| Failure::Protocol("not a number"))
}

fn text(line: &[u8]) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Writes a number without going through `fmt`: two of them per argument.
fn write_count(out: &mut Vec<u8>, mark: u8, mut count: usize) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (count % 10) as u8;
        count /= 10;
        if count == 0 {
            break;
        }
    }
    out.push(mark);
    out.extend_from_slice(&digits[first..]);
    out.extend_from_slice(b"\r\n");
}

/// A command as the array of strings that Redis takes.
pub fn encode<A: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[A]) {
    write_count(out, b'*', args.len());
    for arg in args {
        let arg = arg.as_ref();
        write_count(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
