//! The closed list of what a line can have, and its names in a format string.
//!
//! Knows nothing of Python.

/// One part of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Host,
    Port,
    Client,
    Time,
    BracketedTime,
    IsoTime,
    Request,
    Method,
    Target,
    Path,
    Query,
    Protocol,
    Status,
    Bytes,
    BytesOrDash,
    WholeSeconds,
    Seconds,
    WholeMillis,
    Millis,
    Micros,
    Pid,
    Nothing,
    /// The header at this place of the entry.
    Header(usize),
    /// The trace in the `traceparent` at this place.
    Trace(usize),
    /// The same with its name in front, or nothing.
    TraceTail(usize),
}

/// Names and what they stand for. The short ones are those of gunicorn.
pub const NAMES: &[(&str, Field)] = &[
    ("host", Field::Host),
    ("h", Field::Host),
    ("port", Field::Port),
    ("client", Field::Client),
    ("time", Field::Time),
    ("t", Field::BracketedTime),
    ("iso_time", Field::IsoTime),
    ("request", Field::Request),
    ("r", Field::Request),
    ("method", Field::Method),
    ("m", Field::Method),
    ("target", Field::Target),
    ("path", Field::Path),
    ("U", Field::Path),
    ("query", Field::Query),
    ("q", Field::Query),
    ("protocol", Field::Protocol),
    ("H", Field::Protocol),
    ("status", Field::Status),
    ("s", Field::Status),
    ("bytes", Field::Bytes),
    ("B", Field::Bytes),
    ("b", Field::BytesOrDash),
    ("seconds", Field::Seconds),
    ("L", Field::Seconds),
    ("T", Field::WholeSeconds),
    ("ms", Field::Millis),
    ("M", Field::WholeMillis),
    ("us", Field::Micros),
    ("D", Field::Micros),
    ("pid", Field::Pid),
    ("p", Field::Pid),
    ("l", Field::Nothing),
    ("u", Field::Nothing),
];

/// Names of fields that are headers of the request.
pub const HEADERS: &[(&str, &str)] = &[
    ("referer", "referer"),
    ("f", "referer"),
    ("user_agent", "user-agent"),
    ("a", "user-agent"),
    ("request_id", "x-request-id"),
];

/// The name of the field that is the trace of a `traceparent`.
pub const TRACE: &str = "trace_id";

impl Field {
    pub fn is_timed(self) -> bool {
        matches!(
            self,
            Field::WholeSeconds
                | Field::Seconds
                | Field::WholeMillis
                | Field::Millis
                | Field::Micros
        )
    }
}

/// The trace of a `traceparent` (W3C Trace Context): 32 digits in lower case, not all of them zero.
pub fn trace(value: &[u8]) -> Option<&[u8]> {
    let value = value.trim_ascii();
    let dashes = [2, 35, 52];
    let well = value.len() >= 55
        && value[..55].iter().enumerate().all(|(at, byte)| {
            matches!((byte, dashes.contains(&at)), (b'-', true) | (b'0'..=b'9' | b'a'..=b'f', false))
        });
    if !well || value.starts_with(b"ff") {
        return None;
    }
    // Version 00 ends here; a later one may go on after a dash.
    let ends = value.len() == 55 || (!value.starts_with(b"00") && value[55] == b'-');
    let (trace, parent) = (&value[3..35], &value[36..52]);
    let is_zero = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
    (ends && !is_zero(trace) && !is_zero(parent)).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_taken_from_a_valid_traceparent_only() {
        let id = b"4bf92f3577b34da6a3ce929d0e0e4736".as_slice();
        let good: [&[u8]; 3] = [
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00 ",
            b"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ];
        for value in good {
            assert_eq!(trace(value), Some(id));
        }
        let bad: [&[u8]; 9] = [
            b"",
            b"00",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            b"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01",
        ];
        for value in bad {
            assert_eq!(trace(value), None, "{}", String::from_utf8_lossy(value));
        }
    }
}
