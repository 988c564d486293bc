//! The smallest pieces of a term.

use crate::tag;

/// An integer.
#[inline]
pub(crate) fn write_int(out: &mut Vec<u8>, value: i64) {
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
pub(crate) fn write_atom(out: &mut Vec<u8>, name: &str) {
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
