//! A format, read once: the pieces of every line.
//!
//! Knows nothing of Python. Thread: the loop's own.

use super::entry::{Entry, HEADERS, HOST, METHOD, TARGET};
use super::escape;
use super::field::{self, Field};
use super::number;
use super::stamp::{Moment, Stamp};

/// The most bytes of a line with its end: what a pipe takes as a whole.
pub const LINE: usize = 4096;

const COMMON: &str = r#"%(host)s - - [%(time)s] "%(request)s" %(status)s %(b)s"#;
/// The same where the time of a line is known.
const UNTIMED: &str = r#"%(client)s - "%(request)s" %(status)s"#;

/// The members of a JSON line, and the fields they have.
pub const JSON: &[(&str, &str)] = &[
    ("time", "iso_time"),
    ("client", "host"),
    ("port", "port"),
    ("method", "method"),
    ("target", "target"),
    ("protocol", "protocol"),
    ("status", "status"),
    ("bytes", "bytes"),
    ("ms", "ms"),
    ("referer", "referer"),
    ("user_agent", "user_agent"),
    ("request_id", "request_id"),
    ("trace_id", "trace_id"),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Text,
    Json,
}

#[derive(Debug)]
enum Piece {
    Text(Vec<u8>),
    Field(Field),
}

#[derive(Debug)]
pub struct Plan {
    shape: Shape,
    pieces: Vec<Piece>,
    /// Headers that an entry keeps, in lower case.
    headers: Vec<String>,
    is_common: bool,
    is_timed: bool,
    is_exact: bool,
}

/// How a request ended.
#[derive(Clone, Copy)]
pub struct Outcome {
    pub status: u16,
    /// Of the body of the response.
    pub bytes: u64,
}

impl Plan {
    /// `common`, `json`, or a text with `%(name)s` in it. The error says what is wrong.
    pub fn parse(format: &str) -> Result<Self, String> {
        Self::with_common(format, COMMON)
    }

    /// The same, with a `common` that has no time.
    pub fn parse_untimed(format: &str) -> Result<Self, String> {
        Self::with_common(format, UNTIMED)
    }

    fn with_common(format: &str, common: &str) -> Result<Self, String> {
        let mut plan = Plan {
            shape: Shape::Text,
            pieces: Vec::new(),
            headers: Vec::new(),
            is_common: false,
            is_timed: false,
            is_exact: false,
        };
        match format {
            "common" => {
                plan.is_common = true;
                plan.read(common)?;
                let place = plan.header("traceparent");
                plan.pieces.push(Piece::Field(Field::TraceTail(place)));
            }
            "json" => {
                plan.shape = Shape::Json;
                for (at, (member, name)) in JSON.iter().enumerate() {
                    let before = if at == 0 { '{' } else { ',' };
                    plan.text(format!("{before}\"{member}\":").as_bytes());
                    plan.field(name)?;
                }
                plan.text(b"}");
            }
            _ if !format.contains('%') => {
                return Err(format!(
                    "'{format}' is not common or json, and has no field such as %(status)s"
                ));
            }
            _ => plan.read(format)?,
        }
        Ok(plan)
    }

    fn read(&mut self, format: &str) -> Result<(), String> {
        if format.chars().any(char::is_control) {
            return Err("a line has no control characters".to_owned());
        }
        let mut rest = format;
        while let Some((before, after)) = rest.split_once('%') {
            self.text(before.as_bytes());
            if let Some(after) = after.strip_prefix('%') {
                self.text(b"%");
                rest = after;
                continue;
            }
            let named = after
                .strip_prefix('(')
                .and_then(|after| after.split_once(')'));
            let Some((name, after)) = named else {
                return Err("a % begins a field, %(name)s, or is doubled".to_owned());
            };
            let Some(after) = after.strip_prefix('s') else {
                return Err(format!("the field {name} is written %({name})s"));
            };
            self.field(name)?;
            rest = after;
        }
        self.text(rest.as_bytes());
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.extend_from_slice(text),
            _ => self.pieces.push(Piece::Text(text.to_vec())),
        }
    }

    fn field(&mut self, name: &str) -> Result<(), String> {
        let own = field::NAMES.iter().find(|(known, _)| *known == name);
        let header = field::HEADERS.iter().find(|(known, _)| *known == name);
        let any = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix("}i"));
        let field = match (own, header, any) {
            (Some((_, field)), ..) => *field,
            (_, Some((_, header)), _) => Field::Header(self.header(header)),
            (.., Some(header)) if !header.is_empty() => Field::Header(self.header(header)),
            _ if name == field::TRACE => Field::Trace(self.header("traceparent")),
            _ => return Err(unknown(name)),
        };
        self.is_timed |= field.is_timed();
        self.is_exact |= field == Field::IsoTime;
        self.pieces.push(Piece::Field(field));
        Ok(())
    }

    /// The place of a header in the entries.
    fn header(&mut self, name: &str) -> usize {
        let name = name.to_ascii_lowercase();
        let known = self.headers.iter().position(|header| *header == name);
        HEADERS
            + known.unwrap_or_else(|| {
                self.headers.push(name);
                self.headers.len() - 1
            })
    }

    pub fn headers(&self) -> &[String] {
        &self.headers
    }

    pub fn is_common(&self) -> bool {
        self.is_common
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether a line says how long the request took.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Whether a line has the milliseconds of its time.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Appends a line and its end.
    pub fn line(
        &self,
        out: &mut Vec<u8>,
        entry: &Entry,
        end: Outcome,
        at: Moment,
        stamp: &mut Stamp,
    ) {
        let start = out.len();
        let mut line = Line {
            out,
            entry,
            end,
            // Read once, so that all fields of a line tell the same time.
            took: entry.micros(),
            at,
            stamp,
            shape: self.shape,
        };
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line.out.extend_from_slice(text),
                Piece::Field(field) => line.field(*field),
            }
        }
        // Only a format string can have so many fields; the limits of each keep JSON below.
        if out.len() - start >= LINE {
            out.truncate(start + LINE - 4);
            out.extend_from_slice(b"...");
        }
        out.push(b'\n');
    }
}

fn unknown(name: &str) -> String {
    let own = field::NAMES.iter().map(|(name, _)| *name);
    let headers = field::HEADERS.iter().map(|(name, _)| *name);
    let names: Vec<_> = own
        .chain(headers)
        .chain([field::TRACE, "{header}i"])
        .collect();
    format!(
        "there is no field %({name})s; the fields are {}",
        names.join(", ")
    )
}

/// One line while it is written.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    entry: &'a Entry,
    end: Outcome,
    /// Microseconds.
    took: u64,
    at: Moment,
    stamp: &'a mut Stamp,
    shape: Shape,
}

impl Line<'_> {
    fn field(&mut self, field: Field) {
        let entry = self.entry;
        match field {
            Field::Host => self.value(entry.get(HOST), 255),
            Field::Port => match entry.port {
                Some(port) => number::decimal(self.out, u64::from(port)),
                None => self.value(None, 0),
            },
            Field::Client => {
                escape::text(self.out, entry.get(HOST).unwrap_or(b"-"), 255);
                if let Some(port) = entry.port {
                    self.out.push(b':');
                    number::decimal(self.out, u64::from(port));
                }
            }
            Field::Time | Field::BracketedTime | Field::IsoTime => self.time(field),
            Field::Request => self.request(),
            Field::Method => self.value(entry.get(METHOD), 32),
            Field::Target => self.value(entry.get(TARGET), 1536),
            Field::Path => self.value(entry.get(TARGET).map(|target| halves(target).0), 1536),
            Field::Query => self.value(entry.get(TARGET).map(|target| halves(target).1), 1536),
            Field::Protocol => self.value(protocol(entry), 8),
            Field::Status => number::decimal(self.out, u64::from(self.end.status)),
            Field::BytesOrDash if self.end.bytes == 0 => self.out.push(b'-'),
            Field::Bytes | Field::BytesOrDash => number::decimal(self.out, self.end.bytes),
            Field::Seconds => number::parts(self.out, self.took, 6),
            Field::WholeSeconds => number::decimal(self.out, self.took / 1_000_000),
            Field::Millis => number::parts(self.out, self.took, 3),
            Field::WholeMillis => number::decimal(self.out, self.took / 1000),
            Field::Micros => number::decimal(self.out, self.took),
            Field::Pid => number::decimal(self.out, u64::from(std::process::id())),
            Field::Nothing => self.out.push(b'-'),
            Field::Header(place) => self.value(entry.get(place), 512),
            Field::Trace(place) => self.value(entry.get(place).and_then(field::trace), 32),
            Field::TraceTail(place) => {
                if let Some(trace) = entry.get(place).and_then(field::trace) {
                    self.out.extend_from_slice(b" trace_id=");
                    self.out.extend_from_slice(trace);
                }
            }
        }
    }

    fn value(&mut self, value: Option<&[u8]>, most: usize) {
        match (value, self.shape) {
            (Some(value), Shape::Text) if !value.is_empty() => escape::text(self.out, value, most),
            (_, Shape::Text) => self.out.push(b'-'),
            (Some(value), Shape::Json) => escape::json(self.out, value, most),
            (None, Shape::Json) => self.out.extend_from_slice(b"null"),
        }
    }

    fn time(&mut self, field: Field) {
        match (field, self.shape) {
            (Field::IsoTime, Shape::Text) => self.stamp.iso(self.at, self.out),
            (_, Shape::Json) => {
                self.out.push(b'"');
                self.stamp.iso(self.at, self.out);
                self.out.push(b'"');
            }
            (Field::BracketedTime, _) => {
                self.out.push(b'[');
                self.out.extend_from_slice(self.stamp.common(self.at));
                self.out.push(b']');
            }
            _ => self.out.extend_from_slice(self.stamp.common(self.at)),
        }
    }

    /// `GET /path?query HTTP/1.1`
    fn request(&mut self) {
        let (Some(method), Some(target), Some(protocol)) = (
            self.entry.get(METHOD),
            self.entry.get(TARGET),
            protocol(self.entry),
        ) else {
            return self.out.push(b'-');
        };
        escape::text(self.out, method, 32);
        self.out.push(b' ');
        escape::text(self.out, target, 1536);
        self.out.push(b' ');
        self.out.extend_from_slice(protocol);
    }
}

fn protocol(entry: &Entry) -> Option<&'static [u8]> {
    entry.modern.map(|modern| match modern {
        true => b"HTTP/1.1".as_slice(),
        false => b"HTTP/1.0".as_slice(),
    })
}

/// The path of a target, and its query.
fn halves(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, b""),
    }
}

/// Appends the line that tells how many others are missing.
pub fn notice(out: &mut Vec<u8>, shape: Shape, count: u64) {
    const WHY: &str = "requests were not logged: the access log is read too slowly";
    let (mut stamp, at) = (Stamp::default(), Moment::now(true));
    match shape {
        Shape::Text => {
            let time = String::from_utf8_lossy(stamp.common(at)).into_owned();
            out.extend_from_slice(format!("[{time}] {count} {WHY}\n").as_bytes());
        }
        Shape::Json => {
            let mut time = Vec::new();
            stamp.iso(at, &mut time);
            let time = String::from_utf8_lossy(&time);
            let line = format!(
                "{{\"time\":\"{time}\",\"dropped\":{count},\"message\":\"{count} {WHY}\"}}\n"
            );
            out.extend_from_slice(line.as_bytes());
        }
    }
}

/// What a record of `logging` has: the client, the method, the target and the version.
pub fn parts(entry: &Entry) -> [String; 4] {
    let text = |value: Option<&[u8]>, most| {
        let mut out = Vec::new();
        escape::text(&mut out, value.unwrap_or(b"-"), most);
        String::from_utf8_lossy(&out).into_owned()
    };
    let mut client = text(entry.get(HOST), 255);
    if let Some(port) = entry.port {
        client = format!("{client}:{port}");
    }
    let version = match entry.modern {
        Some(true) => "1.1",
        Some(false) => "1.0",
        None => "-",
    };
    [
        client,
        text(entry.get(METHOD), 32),
        text(entry.get(TARGET), 1536),
        version.to_owned(),
    ]
}
