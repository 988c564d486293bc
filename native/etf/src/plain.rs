//! Terms without Python: descriptions that Erlang or Python has made, values on their way to Redis.
//!
//! Thread: any, attached or not. Never: trusts a length, makes an atom.

use std::borrow::Cow;
use std::fmt;

use crate::decode::old_float;
use crate::error::Res;
use crate::handle::{Opaque, atom_text, copy_tagged, is_atom};
use crate::host::{Limits, NoNode};
use crate::input::{Input, Reader};
use crate::tag;

/// A term, as far as it needs neither a node nor an interpreter.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain<'a> {
    Int(i64),
    /// An integer of more than 64 bits: its absolute value, the lowest byte first.
    Big {
        negative: bool,
        digits: Cow<'a, [u8]>,
    },
    Float(f64),
    Atom(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
    List(Vec<Plain<'a>>),
    Tuple(Vec<Plain<'a>>),
    Map(Vec<(Plain<'a>, Plain<'a>)>),
    /// A pid, a reference, a port, a fun, a bitstring, an improper list.
    Other,
}

/// A container gets room for at most this many items before they are there.
const MAX_ROOM: usize = 1 << 12;

impl<'a> Plain<'a> {
    /// A whole term, 131 first; nothing where the bytes are none.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        Plain::inside(bytes.strip_prefix(&[tag::VERSION])?)
    }

    /// A term as it stands inside of another one, without the 131.
    pub fn inside(bytes: &'a [u8]) -> Option<Self> {
        let mut reading = Reading {
            reader: Reader::new(Input::one(bytes)),
            limits: Limits::new(&NoNode),
        };
        let value = reading.value().ok()?;
        (reading.reader.left() == 0).then_some(value)
    }

    /// The text of an atom or of a binary.
    pub fn text(&self) -> Option<&str> {
        match self {
            Plain::Atom(name) => Some(name),
            Plain::Binary(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub fn is_atom(&self, name: &str) -> bool {
        matches!(self, Plain::Atom(own) if own == name)
    }

    pub fn items(&self) -> Option<&[Plain<'a>]> {
        match self {
            Plain::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn elements(&self) -> Option<&[Plain<'a>]> {
        match self {
            Plain::Tuple(elements) => Some(elements),
            _ => None,
        }
    }
}

/// Whether a term, without the 131, is one of those that Python takes for false: `false`, the atoms that
/// become `None`, zero, what is empty. Looks at its head only.
pub fn is_false(term: &[u8]) -> bool {
    let Some((&tag, rest)) = term.split_first() else {
        return false;
    };
    match tag {
        tag if is_atom(tag) => {
            let name = atom_text(&mut Reader::new(Input::one(rest)), tag);
            name.is_ok_and(|name| matches!(&*name, "false" | "none" | "undefined"))
        }
        tag::SMALL_INTEGER => rest == [0],
        // Of either sign.
        tag::NEW_FLOAT => {
            let bytes = rest.try_into().map(f64::from_be_bytes);
            bytes.is_ok_and(|value| value == 0.0)
        }
        tag::BINARY | tag::MAP => rest == [0; 4],
        tag::SMALL_TUPLE => rest == [0],
        tag::NIL => true,
        _ => false,
    }
}

/// For messages: texts as they are, what is long not at all.
impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plain::Int(value) => write!(f, "{value}"),
            Plain::Float(value) => write!(f, "{value:?}"),
            Plain::Atom(name) => f.write_str(name),
            Plain::Binary(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Plain::List(_) => f.write_str("[...]"),
            Plain::Tuple(_) => f.write_str("{...}"),
            Plain::Map(_) => f.write_str("#{...}"),
            Plain::Big { .. } | Plain::Other => f.write_str("..."),
        }
    }
}

struct Reading<'a> {
    reader: Reader<'a>,
    limits: Limits<'static>,
}

impl<'a> Reading<'a> {
    fn value(&mut self) -> Res<'static, Plain<'a>> {
        self.limits.tick()?;
        let reader = &mut self.reader;
        Ok(match reader.byte()? {
            tag::SMALL_INTEGER => Plain::Int(reader.byte()?.into()),
            tag::INTEGER => Plain::Int(i32::from_be_bytes(reader.array()?).into()),
            tag::SMALL_BIG => {
                let len = reader.byte()?.into();
                self.big(len)?
            }
            tag::LARGE_BIG => {
                let len = reader.u32()?;
                self.big(len)?
            }
            tag::NEW_FLOAT => Plain::Float(f64::from_be_bytes(reader.array()?)),
            tag::FLOAT => {
                let value = old_float(&reader.array()?);
                value.map_or(Plain::Other, Plain::Float)
            }
            tag if is_atom(tag) => Plain::Atom(atom_text(reader, tag)?),
            tag::BINARY => {
                let len = reader.u32()?;
                Plain::Binary(reader.take(len)?.bytes)
            }
            tag::BIT_BINARY => {
                let len = reader.u32()?.saturating_add(1);
                reader.take(len)?;
                Plain::Other
            }
            tag => self.container(tag)?,
        })
    }

    fn container(&mut self, tag: u8) -> Res<'static, Plain<'a>> {
        let reader = &mut self.reader;
        Ok(match tag {
            tag::NIL => Plain::List(Vec::new()),
            // A list of small integers.
            tag::STRING => {
                let len = reader.u16()?;
                let items = reader.take(len)?.bytes;
                Plain::List(items.iter().map(|&item| Plain::Int(item.into())).collect())
            }
            tag::LIST => {
                let len = reader.u32()?;
                let items = self.items(len)?;
                match self.value()? {
                    Plain::List(tail) if tail.is_empty() => Plain::List(items),
                    _ => Plain::Other,
                }
            }
            tag::SMALL_TUPLE => {
                let arity = reader.byte()?.into();
                Plain::Tuple(self.items(arity)?)
            }
            tag::LARGE_TUPLE => {
                let arity = reader.u32()?;
                Plain::Tuple(self.items(arity)?)
            }
            tag::MAP => {
                let len = reader.u32()?;
                self.map(len)?
            }
            tag => {
                copy_tagged(tag, reader, &mut self.limits, &mut Opaque::default())?;
                Plain::Other
            }
        })
    }

    fn big(&mut self, len: usize) -> Res<'static, Plain<'a>> {
        let negative = self.reader.byte()? != 0;
        let digits = self.reader.take(len)?.bytes;
        if len <= 8 {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&digits);
            let value = i128::from(u64::from_le_bytes(word));
            if let Ok(value) = i64::try_from(if negative { -value } else { value }) {
                return Ok(Plain::Int(value));
            }
        }
        Ok(Plain::Big { negative, digits })
    }

    fn items(&mut self, len: usize) -> Res<'static, Vec<Plain<'a>>> {
        self.reader.owe(len)?;
        self.limits.enter()?;
        let mut items = Vec::with_capacity(len.min(MAX_ROOM));
        for _ in 0..len {
            self.reader.due();
            items.push(self.value()?);
        }
        self.limits.leave();
        Ok(items)
    }

    fn map(&mut self, len: usize) -> Res<'static, Plain<'a>> {
        self.reader.owe(len.saturating_mul(2))?;
        self.limits.enter()?;
        let mut pairs = Vec::with_capacity(len.min(MAX_ROOM));
        for _ in 0..len {
            self.reader.due();
            let key = self.value()?;
            self.reader.due();
            pairs.push((key, self.value()?));
        }
        self.limits.leave();
        Ok(Plain::Map(pairs))
    }
}
