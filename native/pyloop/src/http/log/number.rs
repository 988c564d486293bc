//! Numbers in a line, without the machinery of `format!`.

/// A number in decimal.
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    padded(out, value, 1);
}

/// The same with zeros in front, for at least `width` digits.
pub fn padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let (mut digits, mut at, mut rest) = ([b'0'; 20], 20, value);
    while rest > 0 && at > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at.min(20 - width.min(20))..]);
}

/// A number of parts of which `10^places` are one: `1234` with 3 places is `1.234`.
pub fn parts(out: &mut Vec<u8>, value: u64, places: u32) {
    let one = 10u64.pow(places);
    decimal(out, value / one);
    out.push(b'.');
    padded(out, value % one, places as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(written(&|out| decimal(out, 0)), "0");
        assert_eq!(written(&|out| decimal(out, 200)), "200");
        assert_eq!(written(&|out| decimal(out, u64::MAX)), u64::MAX.to_string());
        assert_eq!(written(&|out| padded(out, 7, 3)), "007");
        assert_eq!(written(&|out| padded(out, 0, 3)), "000");
        assert_eq!(written(&|out| parts(out, 1_234_567, 3)), "1234.567");
        assert_eq!(written(&|out| parts(out, 42, 6)), "0.000042");
    }
}
