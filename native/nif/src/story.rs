//! The whole story of an exception, for `py:last_error/0` and `traceback => true` (API.md, "Errors").
//!
//! Thread: attached, the job's own.
//! Never: keeps a frame, which would keep every local variable alive; runs Python code that nobody
//! has asked for (`py:last_error/0` lets the text be written from this, when it is asked).

use std::collections::VecDeque;
use std::ffi::CStr;

use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, call};

use crate::failure::{text, write_class};
use etf::write::{
    write_atom, write_binary, write_int, write_list_header, write_map_header, write_nil,
};

/// The keys of a story and of its frames.
pub const KEYS: [&str; 22] = [
    "file",
    "line",
    "function",
    "text",
    "type",
    "message",
    "args",
    "traceback",
    "cause",
    "context",
    "notes",
    "formatted",
    "left_out",
    "suppress_context",
    "exceptions",
    "syntax",
    "column",
    "end_line",
    "end_column",
    "none",
    "true",
    "undefined",
];

/// Most frames that are told of each end of a traceback.
const MAX_FRAMES: usize = 50;
/// Most arguments, and most notes.
const MAX_TEXTS: usize = 100;
/// Most links of a chain of exceptions, most exceptions of a group, and most of them all.
const MAX_CHAIN: usize = 16;
const MAX_GROUP: usize = 15;
const MAX_TOLD: usize = 64;

/// A map small enough to be built on any thread. The `whole` one has the lines of the source and the
/// text Python prints, for which Python code runs.
pub fn write(out: &mut Vec<u8>, error: &PyError<'_>, whole: bool) {
    let value = error.value();
    // Before the lines: it lets those be found that only an importer knows.
    let formatted = whole.then(|| formatted(error));
    let mut teller = Teller {
        getline: whole.then(|| getline(error.py())).flatten(),
        left: MAX_TOLD,
    };
    teller.tell(out, value, 0, formatted.as_deref());
}

fn formatted(error: &PyError<'_>) -> String {
    let value = error.value();
    let written = call::import_c(error.py(), c"erlang._story")
        .and_then(|module| module.call_method(c"written", &[value]))
        .and_then(|written| written.to_lossy());
    match written {
        Ok(written) => written,
        Err(_) => format!("{}: {}\n", value.type_name(), value.display()),
    }
}

fn getline(py: Attached<'_>) -> Option<Obj<'_>> {
    let linecache = call::import_c(py, c"linecache").ok()?;
    linecache.getattr_c(c"getline").ok()
}

struct Teller<'py> {
    getline: Option<Obj<'py>>,
    /// Exceptions that may still be told.
    left: usize,
}

impl<'py> Teller<'py> {
    fn tell(&mut self, out: &mut Vec<u8>, value: &Obj<'py>, depth: usize, formatted: Option<&str>) {
        self.left = self.left.saturating_sub(1);
        let error = PyError::from_value(value.clone());
        let cause = linked(value, c"__cause__");
        let context = linked(value, c"__context__");
        let suppressed = cause.is_none() && context.is_some() && is_suppressed(value);
        let group = members(&error).filter(|_| depth < MAX_CHAIN);
        let is_syntax = error.is_a(Builtin::SyntaxError);
        let (traces, left_out) = ends(value);
        let extra = [
            formatted.is_some(),
            suppressed,
            group.is_some(),
            is_syntax,
            left_out > 0,
        ];
        write_map_header(
            out,
            7 + extra.iter().map(|&there| u32::from(there)).sum::<u32>(),
        );
        pair(out, "type", |out| write_class(out, value));
        pair(out, "message", |out| {
            write_binary(out, value.display().as_bytes())
        });
        pair(out, "args", |out| write_args(out, value));
        pair(out, "notes", |out| write_notes(out, value));
        pair(out, "traceback", |out| self.write_frames(out, &traces));
        pair(out, "cause", |out| {
            self.tell_linked(out, cause.as_ref(), depth)
        });
        // What was told as the cause is not told again with all that led to it.
        let same = matches!((&cause, &context), (Some(cause), Some(context)) if cause.is(context));
        let depth_of_context = if same {
            depth.max(MAX_CHAIN - 1)
        } else {
            depth
        };
        pair(out, "context", |out| {
            self.tell_linked(out, context.as_ref(), depth_of_context);
        });
        if let Some(formatted) = formatted {
            pair(out, "formatted", |out| {
                write_binary(out, formatted.as_bytes())
            });
        }
        if suppressed {
            pair(out, "suppress_context", |out| write_atom(out, "true"));
        }
        if let Some(group) = group {
            pair(out, "exceptions", |out| self.tell_group(out, &group, depth));
        }
        if is_syntax {
            pair(out, "syntax", |out| write_syntax(out, value));
        }
        if left_out > 0 {
            pair(out, "left_out", |out| write_int(out, left_out as i64));
        }
    }

    fn tell_linked(&mut self, out: &mut Vec<u8>, other: Option<&Obj<'py>>, depth: usize) {
        match other {
            Some(other) if depth < MAX_CHAIN && self.left > 0 => {
                self.tell(out, other, depth + 1, None);
            }
            _ => write_atom(out, "undefined"),
        }
    }

    fn tell_group(&mut self, out: &mut Vec<u8>, group: &Obj<'py>, depth: usize) {
        let count = group.tuple_len().min(MAX_GROUP).min(self.left);
        let told: Vec<_> = (0..count)
            .filter_map(|index| group.tuple_item(index))
            .collect();
        if !told.is_empty() {
            write_list_header(out, told.len());
        }
        for member in told {
            self.tell(out, &member, depth + 1, None);
        }
        write_nil(out);
    }

    /// `#{file, line, function, text}` of each, outermost first.
    fn write_frames(&self, out: &mut Vec<u8>, traces: &[Obj<'py>]) {
        let frames: Vec<Frame<'py>> = traces.iter().filter_map(frame).collect();
        if !frames.is_empty() {
            write_list_header(out, frames.len());
        }
        for frame in frames {
            write_map_header(out, 4);
            pair(out, "file", |out| {
                write_binary(out, frame.file.display().as_bytes())
            });
            pair(out, "line", |out| write_plain(out, &frame.line));
            pair(out, "function", |out| {
                write_binary(out, frame.function.as_bytes())
            });
            pair(out, "text", |out| match self.line_of(&frame) {
                Some(text) => write_binary(out, text.as_bytes()),
                None => write_atom(out, "none"),
            });
        }
        write_nil(out);
    }

    fn line_of(&self, frame: &Frame<'py>) -> Option<String> {
        let line = self.getline.as_ref()?.call(&[&frame.file, &frame.line]);
        let line = line.ok()?.display();
        Some(line.trim().to_owned()).filter(|line| !line.is_empty())
    }
}

fn linked<'py>(value: &Obj<'py>, name: &CStr) -> Option<Obj<'py>> {
    value.getattr_c(name).ok().filter(|other| !other.is_none())
}

/// Whether it was raised `from None`.
fn is_suppressed(value: &Obj<'_>) -> bool {
    let flag = value.getattr_c(c"__suppress_context__");
    flag.is_ok_and(|flag| flag.as_bool() == Some(true))
}

fn members<'py>(error: &PyError<'py>) -> Option<Obj<'py>> {
    let is_group = error.is_a(Builtin::BaseExceptionGroup);
    is_group.then(|| error.value().getattr_c(c"exceptions").ok())?
}

/// The first and the last of a traceback, and how many are between them.
fn ends<'py>(value: &Obj<'py>) -> (Vec<Obj<'py>>, usize) {
    let (mut first, mut last, mut left_out) = (Vec::new(), VecDeque::new(), 0);
    let mut next = linked(value, c"__traceback__");
    while let Some(trace) = next {
        next = linked(&trace, c"tb_next");
        if first.len() < MAX_FRAMES {
            first.push(trace);
            continue;
        }
        last.push_back(trace);
        if last.len() > MAX_FRAMES {
            last.pop_front();
            left_out += 1;
        }
    }
    first.extend(last);
    (first, left_out)
}

struct Frame<'py> {
    file: Obj<'py>,
    line: Obj<'py>,
    function: String,
}

fn frame<'py>(trace: &Obj<'py>) -> Option<Frame<'py>> {
    let frame = trace.getattr_c(c"tb_frame").ok()?;
    let code = frame.getattr_c(c"f_code").ok()?;
    let function = if pyrt::BUILT_FOR >= (3, 11) {
        text(&code, c"co_qualname")
    } else {
        text(&code, c"co_name")
    };
    Some(Frame {
        file: code.getattr_c(c"co_filename").ok()?,
        line: trace.getattr_c(c"tb_lineno").ok()?,
        function,
    })
}

fn pair(out: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    write_atom(out, name);
    value(out);
}

/// Where the source is wrong, in Python's own numbers: those of columns begin at 1.
fn write_syntax(out: &mut Vec<u8>, value: &Obj<'_>) {
    let parts = [
        ("message", c"msg"),
        ("file", c"filename"),
        ("line", c"lineno"),
        ("column", c"offset"),
        ("text", c"text"),
        ("end_line", c"end_lineno"),
        ("end_column", c"end_offset"),
    ];
    write_map_header(out, parts.len() as u32);
    for (name, attribute) in parts {
        pair(out, name, |out| match value.getattr_c(attribute) {
            Ok(part) => write_plain(out, &part),
            Err(_) => write_atom(out, "none"),
        });
    }
}

/// A number, a text or `None`.
fn write_plain(out: &mut Vec<u8>, value: &Obj<'_>) {
    if value.is_none() {
        return write_atom(out, "none");
    }
    match value.as_i64() {
        Ok(Some(number)) => write_int(out, number),
        _ => write_binary(out, shortened(&value.display()).as_bytes()),
    }
}

fn write_args(out: &mut Vec<u8>, value: &Obj<'_>) {
    let args = value.getattr_c(c"args").ok();
    let count = args.as_ref().map_or(0, Obj::tuple_len).min(MAX_TEXTS);
    write_texts(
        out,
        (0..count).map(|index| {
            let item = args.as_ref().and_then(|args| args.tuple_item(index));
            item.map_or_else(String::new, |item| shown(&item))
        }),
    );
}

fn shown(item: &Obj<'_>) -> String {
    match item.repr() {
        Ok(repr) => shortened(&repr.display()),
        Err(_) => format!("<{}>", item.type_name()),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(1000).collect()
}

fn write_notes(out: &mut Vec<u8>, value: &Obj<'_>) {
    let notes: Vec<String> = match value.getattr_c(c"__notes__").and_then(|notes| notes.iter()) {
        Ok(iter) => std::iter::from_fn(|| iter.next().ok().flatten())
            .take(MAX_TEXTS)
            .map(|note| note.display())
            .collect(),
        Err(_) => Vec::new(),
    };
    write_texts(out, notes.into_iter());
}

fn write_texts(out: &mut Vec<u8>, texts: impl ExactSizeIterator<Item = String>) {
    if texts.len() > 0 {
        write_list_header(out, texts.len());
        texts.for_each(|text| write_binary(out, text.as_bytes()));
    }
    write_nil(out);
}
