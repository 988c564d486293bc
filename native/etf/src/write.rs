//! The smallest pieces of a term, for whoever writes one by itself.

use crate::tag;

/// An integer.
#[inline]
pub fn write_int(out: &mut Vec<u8>, value: i64) {
    if let Ok(value) = u8::try_from(value) {
        out.extend_from_slice(&[tag::SMALL_INTEGER, value]);
    } else if let Ok(value) = i32::try_from(value) {
        let [a, b, c, d] = value.to_be_bytes();
        out.extend_from_slice(&[tag::INTEGER, a, b, c, d]);
    } else {
        let digits = value.unsigned_abs().to_le_bytes();
        let len = 8 - value.unsigned_abs().leading_zeros() as usize / 8;
        out.extend_from_slice(&[tag::SMALL_BIG, len as u8, u8::from(value < 0)]);
        out.extend_from_slice(&digits[..len]);
    }
}

/// An atom of at most 255 characters, so of at most 1020 bytes.
#[inline]
pub fn write_atom(out: &mut Vec<u8>, name: &str) {
    match u8::try_from(name.len()) {
        Ok(len) => out.extend_from_slice(&[tag::SMALL_ATOM_UTF8, len]),
        Err(_) => {
            out.push(tag::ATOM_UTF8);
            out.extend_from_slice(&(name.len() as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(name.as_bytes());
}

/// A tag and a count of four bytes.
#[inline]
pub fn write_head(out: &mut Vec<u8>, tag: u8, count: u32) {
    let [a, b, c, d] = count.to_be_bytes();
    out.extend_from_slice(&[tag, a, b, c, d]);
}

/// Its items come next.
pub fn write_tuple(out: &mut Vec<u8>, arity: u8) {
    out.extend_from_slice(&[tag::SMALL_TUPLE, arity]);
}

pub fn write_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, tag::BINARY, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// Before the items; `write_nil` comes after them.
pub fn write_list_header(out: &mut Vec<u8>, count: usize) {
    write_head(out, tag::LIST, count as u32);
}

/// Before the pairs.
pub fn write_map_header(out: &mut Vec<u8>, count: u32) {
    write_head(out, tag::MAP, count);
}

pub fn write_nil(out: &mut Vec<u8>) {
    out.push(tag::NIL);
}

pub const EMPTY_MAP: [u8; 5] = [tag::MAP, 0, 0, 0, 0];

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn integers_take_as_few_bytes_as_erlang_writes() {
        for (value, bytes) in [
            (0, &b"a\0"[..]),
            (255, b"a\xff"),
            (256, b"b\0\0\x01\0"),
            (-1, b"b\xff\xff\xff\xff"),
            (1 << 31, b"n\x04\0\0\0\0\x80"),
            (-(1 << 31) - 1, b"n\x04\x01\x01\0\0\x80"),
            (i64::MIN, b"n\x08\x01\0\0\0\0\0\0\0\x80"),
        ] {
            assert_eq!(written(|out| write_int(out, value)), bytes, "{value}");
        }
    }

    #[test]
    fn a_term_is_written_piece_by_piece() {
        let term = written(|out| {
            write_tuple(out, 3);
            write_atom(out, "ok");
            write_list_header(out, 1);
            write_binary(out, b"text");
            write_nil(out);
            write_map_header(out, 1);
            write_atom(out, "k");
            out.extend_from_slice(&EMPTY_MAP);
        });
        assert_eq!(
            term,
            b"h\x03w\x02okl\0\0\0\x01m\0\0\0\x04textjt\0\0\0\x01w\x01kt\0\0\0\0"
        );
        let long = "x".repeat(256);
        assert_eq!(
            written(|out| write_atom(out, &long)),
            [b"v\x01\0", long.as_bytes()].concat()
        );
    }
}
