//! Bytes of a client in a line of the log: whatever they are, they stay inside of their field.
//!
//! Knows nothing of Python.

/// What stands behind a field that was cut.
const CUT: &[u8] = b"...";

/// Which bytes of a text stand for themselves: printable ASCII, without the quote and the backslash.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        plain[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    plain
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A field of a text line: each byte that is not plain becomes `\xHH`. At most `most` bytes, and a mark
/// if that is not all.
pub fn text(out: &mut Vec<u8>, value: &[u8], most: usize) {
    let end = out.len() + most;
    let mut rest = value;
    while let Some(&first) = rest.first() {
        let plain = run(rest);
        if plain > 0 {
            let room = end.saturating_sub(out.len());
            out.extend_from_slice(&rest[..plain.min(room)]);
            if plain > room {
                return out.extend_from_slice(CUT);
            }
            rest = &rest[plain..];
            continue;
        }
        if out.len() + 4 > end {
            return out.extend_from_slice(CUT);
        }
        out.extend_from_slice(b"\\x");
        hex(out, first);
        rest = &rest[1..];
    }
}

/// How many plain bytes it begins with.
fn run(value: &[u8]) -> usize {
    let plain = |byte: &u8| PLAIN[usize::from(*byte)];
    value
        .iter()
        .position(|byte| !plain(byte))
        .unwrap_or(value.len())
}

fn hex(out: &mut Vec<u8>, byte: u8) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

/// A string of JSON, with its quotes: always valid, always without a character that ends a line or
/// controls a terminal. What is not UTF-8 is read as Latin-1, as HTTP has it.
pub fn json(out: &mut Vec<u8>, value: &[u8], most: usize) {
    out.push(b'"');
    let end = out.len() + most;
    let whole = match std::str::from_utf8(value) {
        Ok(text) => characters(out, text.chars(), end),
        // It was cut within its last character, behind what has room.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > most => {
            let whole = String::from_utf8_lossy(&value[..error.valid_up_to()]);
            characters(out, whole.chars(), end)
        }
        Err(_) => characters(out, value.iter().map(|byte| char::from(*byte)), end),
    };
    if !whole {
        out.extend_from_slice(CUT);
    }
    out.push(b'"');
}

/// Whether all of them had room.
fn characters(out: &mut Vec<u8>, text: impl Iterator<Item = char>, end: usize) -> bool {
    for character in text {
        let before = out.len();
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            ' '..='~' => out.push(character as u8),
            // Line separators, and marks that turn the direction of what follows.
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                unicode(out, character);
            }
            _ if character.is_control() => unicode(out, character),
            _ => {
                let mut room = [0; 4];
                out.extend_from_slice(character.encode_utf8(&mut room).as_bytes());
            }
        }
        if out.len() > end {
            out.truncate(before);
            return false;
        }
    }
    true
}

/// `\uHHHH`, for a character of the first plane.
fn unicode(out: &mut Vec<u8>, character: char) {
    let number = character as u32;
    out.extend_from_slice(b"\\u");
    hex(out, (number >> 8) as u8);
    hex(out, number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_text(value: &[u8], most: usize) -> String {
        let mut out = Vec::new();
        text(&mut out, value, most);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn as_json(value: &[u8], most: usize) -> String {
        let mut out = Vec::new();
        json(&mut out, value, most);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_text_has_no_byte_that_ends_a_line_or_a_field() {
        assert_eq!(as_text(b"curl/8.5 (x; y)", 100), "curl/8.5 (x; y)");
        assert_eq!(as_text(b"a\"b\\c", 100), "a\\x22b\\x5cc");
        assert_eq!(
            as_text(b"\r\n\x1b[2J\x7f\x00", 100),
            "\\x0d\\x0a\\x1b[2J\\x7f\\x00"
        );
        assert_eq!(as_text(b"caf\xc3\xa9 \xff", 100), "caf\\xc3\\xa9 \\xff");
        for byte in 0..=255u8 {
            let mut out = Vec::new();
            text(&mut out, &[byte; 3], 100);
            assert!(
                out.iter()
                    .all(|byte| (0x20..0x7f).contains(byte) && *byte != b'"')
            );
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_and_marked() {
        assert_eq!(as_text(b"abcdef", 6), "abcdef");
        assert_eq!(as_text(b"abcdefg", 6), "abcdef...");
        assert_eq!(as_text(b"abc\n", 6), "abc...");
        assert_eq!(as_text(b"ab\n", 6), "ab\\x0a");
        assert_eq!(as_text(b"ab\n-", 6), "ab\\x0a...");
    }

    #[test]
    fn a_string_of_json_is_valid_for_any_bytes() {
        assert_eq!(as_json(b"a\"b\\c", 100), r#""a\"b\\c""#);
        assert_eq!(
            as_json(b"\r\n\x1b\x7f", 100),
            r#""\u000d\u000a\u001b\u007f""#
        );
        assert_eq!(
            as_json("caf\u{e9} \u{1f600}".as_bytes(), 100),
            "\"caf\u{e9} \u{1f600}\""
        );
        assert_eq!(
            as_json("\u{85}\u{2028}\u{202e}\u{61c}".as_bytes(), 100),
            r#""\u0085\u2028\u202e\u061c""#
        );
        // Not UTF-8: Latin-1.
        assert_eq!(as_json(b"caf\xe9 \x85", 100), "\"caf\u{e9} \\u0085\"");
    }

    #[test]
    fn a_string_of_json_is_cut_between_characters() {
        assert_eq!(as_json("ab\u{e9}".as_bytes(), 4), "\"ab\u{e9}\"");
        assert_eq!(as_json("abc\u{e9}".as_bytes(), 4), "\"abc...\"");
        assert_eq!(as_json(b"ab\n", 4), "\"ab...\"");
    }

    #[test]
    fn a_text_whose_last_character_was_cut_is_utf_8_still() {
        let cut = &"\u{e9}".repeat(10).into_bytes()[..19];
        assert_eq!(as_json(cut, 4), "\"\u{e9}\u{e9}...\"");
        // All of it is shown: nobody has cut it.
        assert_eq!(as_json(b"caf\xc3", 100), "\"caf\u{c3}\"");
    }
}
