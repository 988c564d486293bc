//! Pids, references, ports and funs: opaque to Python, kept as their own bytes.
//!
//! What belongs to this node is stored without the node's name and creation, and written with
//! those of the moment: bytes made as `nonode@nohost` would be undeliverable after a rename.

use std::borrow::Cow;
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};

use pyrt::class::Class;

use crate::error::{Res, bad};
use crate::host::{Limits, NodeId};
use crate::input::{Reader, Taken};
use crate::repr;
use crate::tag;

/// The bytes of a term, with gaps for what is only known when it is written.
#[derive(Debug, Default)]
pub(crate) struct Opaque {
    pub bytes: Vec<u8>,
    /// Where the gaps are, in order.
    pub gaps: Vec<(usize, Gap)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    /// The name of this node, as an atom with this tag.
    Node(u8),
    /// The creation of this node.
    Creation,
    /// The size of a fun, which ends at the `FunEnd` that belongs to it.
    FunSize,
    FunEnd,
}

impl Opaque {
    pub fn write(&self, node: &NodeId, out: &mut Vec<u8>) {
        let mut sizes = Vec::new();
        let mut written = 0;
        for &(place, gap) in &self.gaps {
            out.extend_from_slice(&self.bytes[written..place]);
            written = place;
            match gap {
                Gap::Node(tag) => write_node(tag, &node.name, out),
                Gap::Creation => out.extend_from_slice(&node.creation.to_be_bytes()),
                Gap::FunSize => {
                    sizes.push(out.len());
                    out.extend_from_slice(&[0; 4]);
                }
                Gap::FunEnd => {
                    if let Some(start) = sizes.pop() {
                        let size = (out.len() - start) as u32;
                        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
                    }
                }
            }
        }
        out.extend_from_slice(&self.bytes[written..]);
    }

    pub fn tag(&self) -> u8 {
        self.bytes.first().copied().unwrap_or(0)
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.gaps.iter().map(|&(place, _)| place)
    }

    fn same(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.places().eq(other.places())
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        self.places().for_each(|place| place.hash(&mut hasher));
        hasher.finish()
    }
}

/// In the form it came in, if the name of now still has that form.
fn write_node(tag: u8, name: &[u8], out: &mut Vec<u8>) {
    let latin1 = name.is_ascii() && matches!(tag, tag::ATOM | tag::SMALL_ATOM);
    let short = matches!(tag, tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8) && name.len() <= 255;
    match (latin1, short) {
        (true, true) => out.extend_from_slice(&[tag::SMALL_ATOM, name.len() as u8]),
        (false, true) => out.extend_from_slice(&[tag::SMALL_ATOM_UTF8, name.len() as u8]),
        (_, false) => {
            out.push(if latin1 { tag::ATOM } else { tag::ATOM_UTF8 });
            out.extend_from_slice(&(name.len() as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(name);
}

pub(crate) fn is_atom(tag: u8) -> bool {
    matches!(
        tag,
        tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8
    )
}

/// The bytes of an atom's name; its tag has been read.
pub(crate) fn atom_bytes<'a, 'py>(reader: &mut Reader<'a>, tag: u8) -> Res<'py, Taken<'a>> {
    let len = match tag {
        tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => reader.byte()?.into(),
        _ => reader.u16()?,
    };
    Ok(reader.take(len)?)
}

/// The name of an atom; its tag has been read.
pub(crate) fn atom_text<'a, 'py>(reader: &mut Reader<'a>, tag: u8) -> Res<'py, Cow<'a, str>> {
    let latin1 = matches!(tag, tag::ATOM | tag::SMALL_ATOM);
    let name = match atom_bytes(reader, tag)?.bytes {
        name if latin1 && !name.is_ascii() => {
            return Ok(name.iter().copied().map(char::from).collect());
        }
        Cow::Borrowed(name) => std::str::from_utf8(name).map(Cow::Borrowed).ok(),
        Cow::Owned(name) => String::from_utf8(name).map(Cow::Owned).ok(),
    };
    name.ok_or_else(|| bad("an atom that is not UTF-8"))
}

/// Copies one term of any kind out of the input, leaving gaps for this node.
pub(crate) fn copy_term<'py>(
    reader: &mut Reader<'_>,
    limits: &mut Limits<'_>,
    into: &mut Opaque,
) -> Res<'py, ()> {
    limits.tick()?;
    let tag = reader.byte()?;
    copy_tagged(tag, reader, limits, into)
}

/// As `copy_term`, the tag having been read.
pub(crate) fn copy_tagged<'py>(
    tag: u8,
    reader: &mut Reader<'_>,
    limits: &mut Limits<'_>,
    into: &mut Opaque,
) -> Res<'py, ()> {
    into.bytes.push(tag);
    match tag {
        tag::NIL => {}
        tag::SMALL_INTEGER => copy(reader, 1, into)?,
        tag::INTEGER => copy(reader, 4, into)?,
        tag::FLOAT => copy(reader, 31, into)?,
        tag::NEW_FLOAT => copy(reader, 8, into)?,
        tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => copy_counted::<1>(reader, 0, into)?,
        tag::ATOM | tag::ATOM_UTF8 | tag::STRING => copy_counted::<2>(reader, 0, into)?,
        tag::BINARY => copy_counted::<4>(reader, 0, into)?,
        tag::BIT_BINARY | tag::LARGE_BIG => copy_counted::<4>(reader, 1, into)?,
        tag::SMALL_BIG => copy_counted::<1>(reader, 1, into)?,
        tag::SMALL_TUPLE => copy_terms::<1>(reader, limits, 1, 0, into)?,
        tag::LARGE_TUPLE => copy_terms::<4>(reader, limits, 1, 0, into)?,
        tag::LIST => copy_terms::<4>(reader, limits, 1, 1, into)?,
        tag::MAP => copy_terms::<4>(reader, limits, 2, 0, into)?,
        tag::EXPORT => (0..3).try_for_each(|_| copy_term(reader, limits, into))?,
        tag::NEW_FUN => copy_fun(reader, limits, into)?,
        tag::NEW_PID => copy_of_node(reader, limits, 8, 0, into)?,
        tag::NEW_PORT => copy_of_node(reader, limits, 4, 0, into)?,
        tag::V4_PORT => copy_of_node(reader, limits, 8, 0, into)?,
        tag::NEWER_REFERENCE => {
            let words = copy_count::<2>(reader, into)?;
            copy_of_node(reader, limits, 0, 4 * words, into)?;
        }
        // The old forms have a creation of one byte, which no living node has.
        tag::PID => copy_old(reader, 9, into)?,
        tag::PORT | tag::REFERENCE => copy_old(reader, 5, into)?,
        tag::NEW_REFERENCE => {
            let words = copy_count::<2>(reader, into)?;
            copy_old(reader, 1 + 4 * words, into)?;
        }
        _ => return Err(bad(format!("unknown tag {tag}"))),
    }
    Ok(())
}

fn copy<'py>(reader: &mut Reader<'_>, count: usize, into: &mut Opaque) -> Res<'py, ()> {
    into.bytes.extend_from_slice(&reader.take(count)?.bytes);
    Ok(())
}

fn copy_count<'py, const N: usize>(reader: &mut Reader<'_>, into: &mut Opaque) -> Res<'py, usize> {
    let count = reader.array::<N>()?;
    into.bytes.extend_from_slice(&count);
    Ok(count
        .iter()
        .fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
}

fn copy_counted<'py, const N: usize>(
    reader: &mut Reader<'_>,
    more: usize,
    into: &mut Opaque,
) -> Res<'py, ()> {
    let count = copy_count::<N>(reader, into)?;
    copy(reader, count + more, into)
}

fn copy_terms<'py, const N: usize>(
    reader: &mut Reader<'_>,
    limits: &mut Limits<'_>,
    each: usize,
    more: usize,
    into: &mut Opaque,
) -> Res<'py, ()> {
    let count = copy_count::<N>(reader, into)?;
    limits.enter()?;
    for _ in 0..count * each + more {
        copy_term(reader, limits, into)?;
    }
    limits.leave();
    Ok(())
}

fn copy_fun<'py>(
    reader: &mut Reader<'_>,
    limits: &mut Limits<'_>,
    into: &mut Opaque,
) -> Res<'py, ()> {
    let _size = reader.u32()?;
    into.gaps.push((into.bytes.len(), Gap::FunSize));
    // Arity, the hash of the module, the index; then how many variables it holds.
    copy(reader, 1 + 16 + 4, into)?;
    let variables = copy_count::<4>(reader, into)?;
    limits.enter()?;
    // Module, old index, old hash, the process that made it; then the variables.
    for _ in 0..4 + variables {
        copy_term(reader, limits, into)?;
    }
    limits.leave();
    into.gaps.push((into.bytes.len(), Gap::FunEnd));
    Ok(())
}

/// A node's name, `before` bytes, its creation, `after` bytes.
fn copy_of_node<'py>(
    reader: &mut Reader<'_>,
    limits: &mut Limits<'_>,
    before: usize,
    after: usize,
    into: &mut Opaque,
) -> Res<'py, ()> {
    let tag = node_tag(reader)?;
    let name = atom_bytes(reader, tag)?.bytes;
    let middle = reader.take(before)?.bytes;
    let creation = reader.array::<4>()?;
    let node = limits.node();
    // A name in Latin-1 that is not ASCII never equals one in UTF-8: it stays as it is.
    if *node.name == *name && node.creation == u32::from_be_bytes(creation) {
        into.gaps.push((into.bytes.len(), Gap::Node(tag)));
        into.bytes.extend_from_slice(&middle);
        into.gaps.push((into.bytes.len(), Gap::Creation));
    } else {
        write_atom(tag, &name, into);
        into.bytes.extend_from_slice(&middle);
        into.bytes.extend_from_slice(&creation);
    }
    copy(reader, after, into)
}

fn copy_old<'py>(reader: &mut Reader<'_>, after: usize, into: &mut Opaque) -> Res<'py, ()> {
    let tag = node_tag(reader)?;
    let name = atom_bytes(reader, tag)?.bytes;
    write_atom(tag, &name, into);
    copy(reader, after, into)
}

fn node_tag<'py>(reader: &mut Reader<'_>) -> Res<'py, u8> {
    match reader.byte()? {
        tag if is_atom(tag) => Ok(tag),
        tag => Err(bad(format!("tag {tag} where a node's name must be"))),
    }
}

fn write_atom(tag: u8, name: &[u8], into: &mut Opaque) {
    into.bytes.push(tag);
    match tag {
        tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => into.bytes.push(name.len() as u8),
        _ => into
            .bytes
            .extend_from_slice(&(name.len() as u16).to_be_bytes()),
    }
    into.bytes.extend_from_slice(name);
}

macro_rules! handle {
    ($class:ident, $name:literal, $doc:literal) => {
        pub(crate) struct $class(pub Opaque);

        impl Class for $class {
            const NAME: &'static CStr = $name;
            const DOC: &'static CStr = $doc;

            fn repr(&self) -> String {
                repr::opaque(stringify!($class), &self.0)
            }

            fn hash(&self) -> u64 {
                self.0.digest()
            }

            fn equal(&self, other: &Self) -> bool {
                self.0.same(&other.0)
            }
        }
    };
}

handle!(Pid, c"erlang.Pid", c"An Erlang process.");
handle!(Ref, c"erlang.Ref", c"An Erlang reference.");
handle!(Port, c"erlang.Port", c"An Erlang port.");
handle!(Fun, c"erlang.Fun", c"An Erlang fun.");
