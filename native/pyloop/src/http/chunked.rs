//! The chunked coding of a request body, strictly: hexadecimal sizes, CRLF at the end of each line.
//!
//! Knows nothing of Python.

/// The most digits of a size: no chunk is larger than 2^60.
const DIGITS: u8 = 15;
/// The most bytes of chunk extensions or trailers of one body.
const ASIDE: u32 = 8192;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Size {
        digits: u8,
    },
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    /// At the start of a line after the last chunk.
    Trailer,
    TrailerName,
    TrailerLine,
    TrailerLf,
    EndLf,
    End,
}

/// Where in the coding we are.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    place: Place,
    /// Of the chunk, still to come.
    left: u64,
    aside: u32,
}

/// The coding is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            place: Place::Size { digits: 0 },
            left: 0,
            aside: 0,
        }
    }
}

impl Decoder {
    pub fn is_done(&self) -> bool {
        self.place == Place::End
    }

    /// Gives each piece of the body to `sink`, until the end of the body or of `data`; how much
    /// of `data` belongs to this body.
    pub fn feed(&mut self, data: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, Broken> {
        let mut at = 0;
        while at < data.len() && self.place != Place::End {
            if self.place == Place::Data {
                let rest = &data[at..];
                let len = rest
                    .len()
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                sink(&rest[..len]);
                self.left -= len as u64;
                at += len;
                if self.left == 0 {
                    self.place = Place::DataCr;
                }
            } else {
                self.place = self.byte(data[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn byte(&mut self, byte: u8) -> Result<Place, Broken> {
        match (self.place, byte) {
            (Place::Size { digits }, _) if byte.is_ascii_hexdigit() && digits < DIGITS => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.left = self.left * 16 + u64::from(digit);
                Ok(Place::Size { digits: digits + 1 })
            }
            (Place::Size { digits: 1.. }, b';') => Ok(Place::Extension),
            (Place::Size { digits: 1.. } | Place::Extension, b'\r') => Ok(Place::SizeEnd),
            (Place::Extension, _) => self.skip(byte, Place::Extension),
            (Place::SizeEnd, b'\n') if self.left == 0 => Ok(Place::Trailer),
            (Place::SizeEnd, b'\n') => Ok(Place::Data),
            (Place::DataCr, b'\r') => Ok(Place::DataLf),
            (Place::DataLf, b'\n') => Ok(Place::Size { digits: 0 }),
            (Place::Trailer, b'\r') => Ok(Place::EndLf),
            (Place::TrailerName, b':') => Ok(Place::TrailerLine),
            (Place::Trailer | Place::TrailerName, _) if is_token(byte) => {
                self.skip(byte, Place::TrailerName)
            }
            (Place::TrailerLine, b'\r') => Ok(Place::TrailerLf),
            (Place::TrailerLine, _) => self.skip(byte, Place::TrailerLine),
            (Place::TrailerLf, b'\n') => Ok(Place::Trailer),
            (Place::EndLf, b'\n') => Ok(Place::End),
            _ => Err(Broken),
        }
    }

    /// A byte of what nobody reads.
    fn skip(&mut self, byte: u8, next: Place) -> Result<Place, Broken> {
        self.aside += 1;
        let control = byte < b' ' && byte != b'\t';
        if self.aside > ASIDE || control || byte == 0x7f {
            return Err(Broken);
        }
        Ok(next)
    }
}

/// Whether a name may have this byte (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body and what is left, in pieces of `size`.
    fn decode(data: &[u8], size: usize) -> Result<(Vec<u8>, usize), Broken> {
        let (mut decoder, mut body, mut used) = (Decoder::default(), Vec::new(), 0);
        for piece in data.chunks(size) {
            used += decoder.feed(piece, |bytes| body.extend_from_slice(bytes))?;
        }
        if decoder.is_done() {
            Ok((body, used))
        } else {
            Err(Broken)
        }
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let data = b"5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\nTrailer: x\r\n\r\nGET";
        for size in 1..data.len() {
            let body = decode(data, size);
            assert_eq!(body, Ok((b"hello world".to_vec(), data.len() - 3)));
        }
    }

    #[test]
    fn a_broken_coding_is_refused() {
        let bad: [&[u8]; 14] = [
            b"\r\n0\r\n\r\n",
            b"0x1\r\na\r\n0\r\n\r\n",
            b"1\na\r\n0\r\n\r\n",
            b"1\r\nab\r\n0\r\n\r\n",
            b"1\r\na\n0\r\n\r\n",
            b"-1\r\na\r\n0\r\n\r\n",
            b" 1\r\na\r\n0\r\n\r\n",
            b"1000000000000000\r\n",
            b"0\r\n folded\r\n\r\n",
            b"1;\x00\r\na\r\n0\r\n\r\n",
            b"1 \r\na\r\n0\r\n\r\n",
            b"0\r\nno colon\r\n\r\n",
            b"0\r\nname\r\n\r\n",
            b"0\r\nname : value\r\n\r\n",
        ];
        for data in bad {
            assert_eq!(
                decode(data, 64),
                Err(Broken),
                "{}",
                String::from_utf8_lossy(data)
            );
        }
        let long = [b"1;".to_vec(), vec![b'x'; 9000]].concat();
        assert_eq!(decode(&long, 64), Err(Broken));
    }
}
