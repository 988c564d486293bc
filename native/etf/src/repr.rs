//! How pids, references, ports and funs show themselves: much like in the Erlang shell.

use std::fmt::Write;

use crate::handle::{Gap, Opaque, atom_bytes, is_atom};
use crate::input::{Input, Reader};
use crate::tag;

/// `<erlang.Pid 0.123.0>`; the first part is the node, 0 for this one.
pub(crate) fn opaque(class: &str, term: &Opaque) -> String {
    match identity(term) {
        Some(identity) => format!("<erlang.{class} {identity}>"),
        None => format!("<erlang.{class}>"),
    }
}

fn identity(term: &Opaque) -> Option<String> {
    let reader = &mut Reader::new(Input::one(&term.bytes));
    match reader.byte().ok()? {
        tag::EXPORT => {
            let (module, function) = (atom(reader)?, atom(reader)?);
            Some(format!("{module}:{function}/{}", number(reader)?))
        }
        tag::NEW_FUN => {
            reader.take(1 + 16 + 4 + 4).ok()?;
            let (module, index) = (atom(reader)?, number(reader)?);
            Some(format!("{module}.{index}.{}", number(reader)?))
        }
        tag => of_node(tag, reader, term),
    }
}

fn of_node(tag: u8, reader: &mut Reader<'_>, term: &Opaque) -> Option<String> {
    let words = match tag {
        tag::NEWER_REFERENCE | tag::NEW_REFERENCE => reader.u16().ok()?,
        tag::PID | tag::NEW_PID => 2,
        _ => 1,
    };
    let local = matches!(term.gaps.first(), Some((_, Gap::Node(_))));
    let mut text = if local { "0".to_owned() } else { atom(reader)? };
    match tag {
        tag::NEWER_REFERENCE if !local => drop(reader.take(4).ok()?),
        tag::NEW_REFERENCE => drop(reader.take(1).ok()?),
        _ => {}
    }
    if tag == tag::V4_PORT {
        let _ = write!(text, ".{}", u64::from_be_bytes(reader.array().ok()?));
        return Some(text);
    }
    let mut ids = Vec::new();
    for _ in 0..words {
        ids.push(reader.u32().ok()?);
    }
    if matches!(tag, tag::NEWER_REFERENCE | tag::NEW_REFERENCE) {
        ids.reverse();
    }
    for id in ids {
        let _ = write!(text, ".{id}");
    }
    Some(text)
}

fn atom(reader: &mut Reader<'_>) -> Option<String> {
    let tag = reader.byte().ok()?;
    if !is_atom(tag) {
        return None;
    }
    let name = atom_bytes(reader, tag).ok()?;
    Some(String::from_utf8_lossy(&name.bytes).into_owned())
}

fn number(reader: &mut Reader<'_>) -> Option<i64> {
    match reader.byte().ok()? {
        tag::SMALL_INTEGER => Some(reader.byte().ok()?.into()),
        tag::INTEGER => Some(i32::from_be_bytes(reader.array().ok()?).into()),
        _ => None,
    }
}
