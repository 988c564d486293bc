//! The pieces of a term, for those who put one together by hand.

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
pub(crate) fn write_head(out: &mut Vec<u8>, tag: u8, count: u32) {
    let [a, b, c, d] = count.to_be_bytes();
    out.extend_from_slice(&[tag, a, b, c, d]);
}

/// A binary of less than 4 GiB.
pub fn write_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, tag::BINARY, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// The start of a list of that many items; they and `write_nil` follow.
pub fn write_list_header(out: &mut Vec<u8>, len: usize) {
    write_head(out, tag::LIST, len as u32);
}

/// The end of a list, or the empty one.
pub fn write_nil(out: &mut Vec<u8>) {
    out.push(tag::NIL);
}

/// The start of a tuple of that many elements; they follow.
pub fn write_tuple(out: &mut Vec<u8>, arity: usize) {
    match u8::try_from(arity) {
        Ok(arity) => out.extend_from_slice(&[tag::SMALL_TUPLE, arity]),
        Err(_) => write_head(out, tag::LARGE_TUPLE, arity as u32),
    }
}

/// The start of a map of that many pairs; they follow.
pub fn write_map_header(out: &mut Vec<u8>, len: usize) {
    write_head(out, tag::MAP, len as u32);
}
