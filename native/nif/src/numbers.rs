//! The numbers of `py_nif.hrl`, read when this is compiled: they stand there and nowhere else.

const HEADER: &[u8] = include_bytes!("../../../src/py_nif.hrl");

/// The number in `-define(NAME, NUMBER)`. A name that is not there, or is no plain number, does not compile.
pub const fn number(name: &str) -> u32 {
    const DEFINE: &[u8] = b"\n-define(";
    let mut at = 0;
    while at < HEADER.len() {
        if starts_with(at, DEFINE) {
            let named = at + DEFINE.len();
            if starts_with(named, name.as_bytes()) && starts_with(named + name.len(), b", ") {
                return digits(named + name.len() + 2);
            }
        }
        at += 1;
    }
    panic!("not in py_nif.hrl");
}

const fn starts_with(at: usize, text: &[u8]) -> bool {
    let mut index = 0;
    while index < text.len() {
        if at + index >= HEADER.len() || HEADER[at + index] != text[index] {
            return false;
        }
        index += 1;
    }
    true
}

const fn digits(begin: usize) -> u32 {
    let mut at = begin;
    let mut value = 0;
    while HEADER[at].is_ascii_digit() {
        value = value * 10 + (HEADER[at] - b'0') as u32;
        at += 1;
    }
    assert!(at > begin && starts_with(at, b")."), "no plain number");
    value
}
