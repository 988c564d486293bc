//! What stands of the table in the documentation, and the types of `erlang.serve.Options`.
//!
//! `./dev fmt` runs these tests with `DEV_WRITE` set; then they write what they compare otherwise.

use std::io;
use std::path::Path;

use super::row::{Kind, Row, Value, Worlds};
use super::{ANY, table};

#[test]
fn the_reference_has_the_options_of_the_table() -> io::Result<()> {
    let begin = "<!-- options: from native/pyloop/src/http/options.rs, by ./dev fmt -->\n";
    let end = "<!-- /options -->\n";
    stands_in("docs/serving-asgi.md", begin, end, &reference())
}

#[test]
fn the_types_of_options_are_those_of_the_table() -> io::Result<()> {
    stands_in("python/erlang/serve/_fields.pyi", "", "", &stub())
}

/// Between the two marks of a file is this text; without an end mark, to the end of the file.
fn stands_in(file: &str, begin: &str, end: &str, text: &str) -> io::Result<()> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file);
    let whole = std::fs::read_to_string(&path)?;
    let (before, rest) = whole.split_once(begin).unwrap_or(("", ""));
    let at = if end.is_empty() {
        Some(rest.len())
    } else {
        rest.find(end)
    };
    let (old, after) = rest.split_at(at.unwrap_or_default());
    if std::env::var_os("DEV_WRITE").is_none() {
        assert_eq!(old, text, "{file}: ./dev fmt writes it");
    } else if old != text && at.is_some() {
        std::fs::write(path, [before, begin, text, after].concat())?;
    }
    Ok(())
}

fn reference() -> String {
    let mut page = "| option | where | value | default | |\n|---|---|---|---|---|\n".to_owned();
    for row in table() {
        let cells = [
            format!("`{}`", row.name),
            holds_in(row.worlds).to_owned(),
            values(&row.kind),
            default(&row),
            row.help.to_owned(),
        ];
        page += &format!("| {} |\n", cells.join(" | "));
    }
    page
}

fn holds_in(worlds: Worlds) -> &'static str {
    match (worlds.command, worlds.program, worlds.node) {
        (_, true, true) => "everywhere",
        (_, true, false) => "wheel",
        (true, false, true) => "command, node",
        (true, false, false) => "command",
        (false, false, _) => "node",
    }
}

fn values(kind: &Kind) -> String {
    let named = |words: &[&str]| format!("`{}`", words.join("`, `"));
    match kind {
        Kind::Text | Kind::Secret => "a text".to_owned(),
        Kind::Prefix => "a text such as `/api`".to_owned(),
        Kind::Address => "an address or the name of a host; in a node also a tuple".to_owned(),
        Kind::Proxies => "with commas between; in a node also a list".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Paths => "a path; may be repeated".to_owned(),
        Kind::OneOf(words) => named(words),
        Kind::TextOr(words) => format!("{} or a text", named(words)),
        Kind::PathOr(words) => format!("{} or a path", named(words)),
        Kind::Boolean => "`true`, `false`".to_owned(),
        Kind::Integer(range) if *range.end() == ANY => format!("{} or more", range.start()),
        Kind::Integer(range) => format!("{} to {}", range.start(), range.end()),
        Kind::Permissions => "octal".to_owned(),
        Kind::Descriptor => "a number".to_owned(),
        Kind::Time { .. } => "a time".to_owned(),
        Kind::TimeOrInfinity => "a time or `infinity`".to_owned(),
        Kind::Name => "an atom".to_owned(),
        Kind::Mounts => "a map".to_owned(),
    }
}

fn default(row: &Row) -> String {
    match (&row.kind, &row.default) {
        (_, Value::None | Value::Text("")) => String::new(),
        (Kind::Permissions, Value::Number(number)) => format!("{number:o}"),
        (Kind::Time { .. } | Kind::TimeOrInfinity, Value::Number(number)) => {
            format!("{} s", *number as f64 / 1000.0)
        }
        (_, Value::Number(number)) => number.to_string(),
        (_, Value::Flag(flag)) => format!("`{flag}`"),
        (_, Value::Text(text)) => format!("`{text}`"),
    }
}

fn stub() -> String {
    let mut stub = "# From native/pyloop/src/http/options.rs, by ./dev fmt.
import dataclasses
from typing import Literal

@dataclasses.dataclass(frozen=True, kw_only=True)
class Fields:
"
    .to_owned();
    for row in table().iter().filter(|row| row.worlds.program) {
        stub += &format!("    {}: {} = ...\n", row.name, row.python_type());
        stub += &format!("    \"\"\"{}\"\"\"\n", row.help);
    }
    stub
}
