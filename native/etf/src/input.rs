//! The bytes of one term, in one piece or in several, read with every bound checked.

use std::borrow::Cow;

use crate::error::Cut;
use crate::tag;

/// The bytes of a term as segments: their concatenation is the term, 131 first.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    first: &'a [u8],
    rest: &'a [&'a [u8]],
}

impl<'a> Input<'a> {
    pub fn one(bytes: &'a [u8]) -> Self {
        Input {
            first: bytes,
            rest: &[],
        }
    }

    /// What `term_to_iovec` gives; a term may be cut anywhere.
    pub fn segments(segments: &'a [&'a [u8]]) -> Self {
        match segments.split_first() {
            Some((first, rest)) => Input { first, rest },
            None => Input::one(&[]),
        }
    }
}

/// A place in an `Input`.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    /// What is left of the current segment.
    here: &'a [u8],
    rest: &'a [&'a [u8]],
    /// Bytes in `rest`.
    later: usize,
    /// The number of the current segment.
    segment: usize,
    /// Values that containers around this place have announced and that are still to come. Each
    /// takes a byte at least, so a container can't announce more than the input holds.
    owed: usize,
}

/// Bytes of the input: part of one segment, or joined from several.
pub(crate) struct Taken<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub segment: usize,
}

impl<'a> Reader<'a> {
    pub fn new(input: Input<'a>) -> Self {
        Reader {
            here: input.first,
            rest: input.rest,
            later: input.rest.iter().map(|segment| segment.len()).sum(),
            segment: 0,
            owed: 0,
        }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.here.len() + self.later
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Cut> {
        match self.here.split_first() {
            Some((&byte, rest)) => {
                self.here = rest;
                Ok(byte)
            }
            None => {
                self.advance()?;
                self.byte()
            }
        }
    }

    /// The next byte, not taken.
    #[inline]
    pub fn peek(&mut self) -> Result<u8, Cut> {
        match self.here.first() {
            Some(&byte) => Ok(byte),
            None => {
                self.advance()?;
                self.peek()
            }
        }
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Cut> {
        match self.here.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.here = rest;
                Ok(*bytes)
            }
            None => self.array_across(),
        }
    }

    /// The next value, taken, if it is an integer of at most four bytes that lies in one piece.
    #[inline]
    pub fn next_int(&mut self) -> Option<i64> {
        match *self.here {
            [tag::INTEGER, a, b, c, d, ref rest @ ..] => {
                self.here = rest;
                Some(i32::from_be_bytes([a, b, c, d]).into())
            }
            [tag::SMALL_INTEGER, value, ref rest @ ..] => {
                self.here = rest;
                Some(value.into())
            }
            _ => None,
        }
    }

    #[cold]
    fn array_across<const N: usize>(&mut self) -> Result<[u8; N], Cut> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<usize, Cut> {
        Ok(u16::from_be_bytes(self.array()?).into())
    }

    #[inline]
    pub fn u32(&mut self) -> Result<usize, Cut> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Result<Taken<'a>, Cut> {
        // A binary of its own segment starts where the segment before it ends.
        if self.here.is_empty() && count > 0 {
            self.advance()?;
        }
        let segment = self.segment;
        let bytes = match self.here.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.here = rest;
                Cow::Borrowed(bytes)
            }
            None => Cow::Owned(self.join(count)?),
        };
        Ok(Taken { bytes, segment })
    }

    #[cold]
    fn join(&mut self, count: usize) -> Result<Vec<u8>, Cut> {
        if count > self.left() {
            return Err(Cut);
        }
        let mut joined = Vec::with_capacity(count);
        while joined.len() < count {
            if self.here.is_empty() {
                self.advance()?;
            }
            let part = self.here.len().min(count - joined.len());
            let (bytes, rest) = self.here.split_at(part);
            joined.extend_from_slice(bytes);
            self.here = rest;
        }
        Ok(joined)
    }

    /// To the next segment that is not empty; the current one is used up.
    #[cold]
    fn advance(&mut self) -> Result<(), Cut> {
        while let Some((next, rest)) = self.rest.split_first() {
            self.rest = rest;
            self.segment += 1;
            self.later -= next.len();
            if !next.is_empty() {
                self.here = next;
                return Ok(());
            }
        }
        Err(Cut)
    }

    /// A container announces `count` values.
    #[inline]
    pub fn owe(&mut self, count: usize) -> Result<(), Cut> {
        let owed = self.owed.saturating_add(count);
        if owed > self.left() {
            return Err(Cut);
        }
        self.owed = owed;
        Ok(())
    }

    /// One of the announced values comes now.
    #[inline]
    pub fn due(&mut self) {
        self.owed -= 1;
    }
}
