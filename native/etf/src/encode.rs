//! Python objects to terms: the exact built-in types. All others: `other`.
//!
//! User code may run between any two values and change what is being converted: every item is
//! owned while it is used, and sizes are looked at again after it.

use std::collections::HashSet;

use pyrt::container::DictCursor;
use pyrt::error::Builtin;
use pyrt::kind::Kind;
use pyrt::text::Characters;
use pyrt::{Attached, FREE_THREADED, Obj, PyError};

use crate::decode::decode;
use crate::error::{Error, Res, bad, describe};
use crate::handle::{Opaque, copy_term};
use crate::host::{Host, Limits, NoNode};
use crate::input::{Input, Reader};
use crate::other::Rule;
use crate::tag;
use crate::types::Bound;
use crate::write::{write_atom, write_head, write_int};

/// What the receiver of an encoded term must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The pairs of the widest map in the term; of a fun that is not `fun M:F/A` nobody knows what it
    /// holds, so it counts as `usize::MAX`.
    pub widest_map: usize,
    /// Whether it holds a fun that is not `fun M:F/A`.
    pub local_funs: bool,
}

/// Appends the term of `object` to `out`, without the 131. After an error `out` is as before.
pub fn encode<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    object: &Obj<'py>,
    out: &mut Vec<u8>,
) -> Result<Summary, Error<'py>> {
    let start = out.len();
    let mut encoder = Encoder::new(bound, host, out);
    match encoder.value(object) {
        Ok(()) => Ok(encoder.summary),
        Err(error) => {
            out.truncate(start);
            Err(*error)
        }
    }
}

pub(crate) struct Encoder<'b, 'py> {
    pub bound: &'b Bound<'b, 'py>,
    pub py: Attached<'py>,
    pub limits: Limits<'b>,
    pub out: &'b mut Vec<u8>,
    pub summary: Summary,
    /// The class that was looked at last, and what is done with it.
    pub last: Option<(Obj<'py>, Rule<'py>)>,
    /// Counts the places where user code may have run.
    pub foreign: usize,
}

/// Which kinds of keys a map has: only some mixtures can collide.
#[derive(Default)]
pub(crate) struct Keys(u8);

impl Keys {
    const TEXT: u8 = 1;
    const BYTES: u8 = 2;
    const FIXED_ATOM: u8 = 4;
    const ATOM: u8 = 8;
    const ANY: u8 = 16;

    /// Keys of which nothing is known.
    pub fn any() -> Self {
        Keys(Self::ANY)
    }

    fn see(&mut self, kind: u8) {
        self.0 |= kind;
    }

    fn may_collide(&self) -> bool {
        let both = |mask| self.0 & mask == mask;
        both(Self::TEXT | Self::BYTES) || both(Self::FIXED_ATOM | Self::ATOM) || both(Self::ANY)
    }
}

impl<'b, 'py> Encoder<'b, 'py> {
    pub fn new(bound: &'b Bound<'b, 'py>, host: &'b dyn Host, out: &'b mut Vec<u8>) -> Self {
        Encoder {
            bound,
            py: bound.py,
            limits: Limits::new(host),
            out,
            summary: Summary::default(),
            last: None,
            foreign: 0,
        }
    }

    pub fn value(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        self.limits.tick()?;
        match object.kind() {
            Kind::Int => self.int(object),
            Kind::Text => self.text(object),
            Kind::Float => self.float(object),
            Kind::List => self.list(object),
            Kind::Tuple => self.tuple(object),
            Kind::Dict => self.dict(object),
            Kind::Bytes => self.binary(object.as_bytes().unwrap_or(&[])),
            Kind::Bool => {
                let value = object.as_bool().unwrap_or(false);
                self.atom(if value { "true" } else { "false" });
                Ok(())
            }
            Kind::None => {
                self.atom("none");
                Ok(())
            }
            Kind::Other => self.other(object),
        }
    }

    #[inline]
    pub fn int(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        match object.as_i64()? {
            Some(value) => {
                self.small_int(value);
                Ok(())
            }
            None => self.big_int(object),
        }
    }

    #[inline]
    pub fn small_int(&mut self, value: i64) {
        write_int(self.out, value);
    }

    #[cold]
    fn big_int(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        let (negative, digits) = object.int_to_le()?;
        match u8::try_from(digits.len()) {
            Ok(len) => self.out.extend_from_slice(&[tag::SMALL_BIG, len]),
            Err(_) => self.head(tag::LARGE_BIG, digits.len())?,
        }
        self.out.push(negative.into());
        self.out.extend_from_slice(&digits);
        Ok(())
    }

    /// A tag and a count of four bytes.
    #[inline]
    pub fn head(&mut self, tag: u8, count: usize) -> Res<'py, ()> {
        let Ok(count) = u32::try_from(count) else {
            return Err(bad("larger than a term can be"));
        };
        write_head(self.out, tag, count);
        Ok(())
    }

    /// Writes the count into the head at `start`.
    pub fn count(&mut self, start: usize, count: usize) -> Res<'py, ()> {
        let Ok(count) = u32::try_from(count) else {
            return Err(bad("larger than a term can be"));
        };
        self.out[start + 1..start + 5].copy_from_slice(&count.to_be_bytes());
        Ok(())
    }

    pub fn float(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        let value = object.as_f64()?;
        match fixed_float(value) {
            Some(atom) => self.atom(atom),
            None => {
                self.out.push(tag::NEW_FLOAT);
                self.out.extend_from_slice(&value.to_be_bytes());
            }
        }
        Ok(())
    }

    #[inline]
    pub fn atom(&mut self, name: &str) {
        write_atom(self.out, name);
    }

    #[inline]
    pub fn binary(&mut self, bytes: &[u8]) -> Res<'py, ()> {
        self.head(tag::BINARY, bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Not by way of `as_utf8`: that would leave a second copy in every `str` that is not ASCII.
    #[inline]
    pub fn text(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        match object.characters() {
            Some(Characters::Ascii(bytes)) => self.binary(bytes),
            Some(Characters::Latin1(units)) => {
                self.wide(object, units.len(), units.iter().map(|&unit| unit.into()))
            }
            Some(Characters::Ucs2(units)) => {
                self.wide(object, units.len(), units.iter().map(|&unit| unit.into()))
            }
            Some(Characters::Ucs4(units)) => self.wide(object, units.len(), units.iter().copied()),
            None => self.binary(object.as_utf8()?.as_bytes()),
        }
    }

    fn wide(
        &mut self,
        object: &Obj<'py>,
        len: usize,
        units: impl Iterator<Item = u32>,
    ) -> Res<'py, ()> {
        let start = self.out.len();
        self.head(tag::BINARY, len)?;
        self.out.reserve(2 * len);
        for unit in units {
            match char::from_u32(unit) {
                Some(char) => match char.len_utf8() {
                    1 => self.out.push(unit as u8),
                    2 => self.out.extend_from_slice(&utf8::<2>(char)),
                    3 => self.out.extend_from_slice(&utf8::<3>(char)),
                    _ => self.out.extend_from_slice(&utf8::<4>(char)),
                },
                // A lone surrogate: Python has the exception for it.
                None => return self.binary(object.as_utf8()?.as_bytes()),
            }
        }
        let written = self.out.len() - start - 5;
        self.count(start, written)
    }

    pub fn list(&mut self, list: &Obj<'py>) -> Res<'py, ()> {
        let len = list.list_len();
        if len == 0 {
            self.out.push(tag::NIL);
            return Ok(());
        }
        self.limits.enter()?;
        self.head(tag::LIST, len)?;
        for index in 0..len {
            match list.list_item(index) {
                Some(item) if item.kind() == Kind::Int => {
                    self.limits.tick()?;
                    self.int(&item)?;
                }
                Some(item) => self.value(&item)?,
                None => return Err(self.changed("list")),
            }
        }
        if list.list_len() != len {
            return Err(self.changed("list"));
        }
        self.out.push(tag::NIL);
        self.limits.leave();
        Ok(())
    }

    pub fn tuple(&mut self, tuple: &Obj<'py>) -> Res<'py, ()> {
        let len = tuple.tuple_len();
        self.limits.enter()?;
        match u8::try_from(len) {
            Ok(len) => self.out.extend_from_slice(&[tag::SMALL_TUPLE, len]),
            Err(_) => self.head(tag::LARGE_TUPLE, len)?,
        }
        for index in 0..len {
            match tuple.tuple_item(index) {
                Some(item) => self.value(&item)?,
                None => return Err(self.changed("tuple")),
            }
        }
        self.limits.leave();
        Ok(())
    }

    pub fn dict(&mut self, dict: &Obj<'py>) -> Res<'py, ()> {
        let copy = if FREE_THREADED {
            Some(dict.dict_copy()?)
        } else {
            None
        };
        let dict = copy.as_ref().unwrap_or(dict);
        let (len, start, foreign) = (dict.dict_len(), self.out.len(), self.foreign);
        self.limits.enter()?;
        self.head(tag::MAP, len)?;
        let mut keys = Keys::default();
        let mut cursor = DictCursor::default();
        for _ in 0..len {
            let Some((key, value)) = dict.dict_next(&mut cursor) else {
                return Err(self.changed("dictionary"));
            };
            keys.see(self.kind_of_key(&key));
            self.value(&key)?;
            self.value(&value)?;
        }
        if self.foreign != foreign {
            if dict.dict_len() != len {
                return Err(self.changed("dictionary"));
            }
            // Changed and of the same size again, it may have given a key twice.
            keys.see(Keys::ANY);
        }
        self.limits.leave();
        self.map_done(start, len, &keys)
    }

    #[cold]
    fn changed(&self, what: &str) -> Box<Error<'py>> {
        let text = format!("{what} changed size during conversion");
        PyError::new(self.py, Builtin::RuntimeError, &text).into()
    }

    #[inline]
    fn kind_of_key(&self, key: &Obj<'py>) -> u8 {
        match key.kind() {
            Kind::Int => 0,
            Kind::Text => Keys::TEXT,
            Kind::Bytes => Keys::BYTES,
            Kind::None | Kind::Bool => Keys::FIXED_ATOM,
            Kind::Other if self.bound.types.atoms.is_class(&key.type_of()) => Keys::ATOM,
            _ => Keys::ANY,
        }
    }

    /// The end of a map whose head is at `start`.
    pub fn map_done(&mut self, start: usize, len: usize, keys: &Keys) -> Res<'py, ()> {
        self.summary.widest_map = self.summary.widest_map.max(len);
        if len > 1 && keys.may_collide() {
            return self.check_keys(start, len);
        }
        Ok(())
    }

    /// Reads the map again and compares its keys as they were written.
    #[cold]
    fn check_keys(&mut self, start: usize, len: usize) -> Res<'py, ()> {
        let written = &self.out[start + 5..];
        let mut reader = Reader::new(Input::one(written));
        let mut seen = HashSet::with_capacity(len);
        let mut limits = Limits::new(self.limits.host);
        let mut passed = Opaque::default();
        for _ in 0..len {
            let from = written.len() - reader.left();
            copy_term(&mut reader, &mut limits, &mut passed)?;
            let key = &written[from..written.len() - reader.left()];
            if !seen.insert(key) {
                let term = [&[tag::VERSION], key].concat();
                let name = match decode(self.bound, &NoNode, Input::one(&term)) {
                    Ok(key) => describe(&key),
                    Err(_) => "a key".to_owned(),
                };
                return Err(bad(format!("two keys become one map key: {name}")));
            }
            copy_term(&mut reader, &mut limits, &mut passed)?;
            passed.bytes.clear();
            passed.gaps.clear();
        }
        Ok(())
    }
}

/// The UTF-8 of a character that takes `N` bytes: of a length known to the compiler.
#[inline]
fn utf8<const N: usize>(char: char) -> [u8; N] {
    let mut bytes = [0; N];
    char.encode_utf8(&mut bytes);
    bytes
}

/// The atom of a float that Erlang does not have.
pub(crate) fn fixed_float(value: f64) -> Option<&'static str> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some("nan")
    } else if value > 0.0 {
        Some("infinity")
    } else {
        Some("neg_infinity")
    }
}
