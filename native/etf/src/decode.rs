//! Terms to Python objects.

use pyrt::container::Filling;
use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, class};

use crate::error::{Error, Res, bad, describe};
use crate::handle::{Fun, Opaque, Pid, Port, Ref, atom_text, copy_tagged, is_atom};
use crate::host::{Host, Limits};
use crate::input::{Input, Reader};
use crate::structure::{self, Marks};
use crate::tag;
use crate::types::Bound;

/// The object that a term becomes.
pub fn decode<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    input: Input<'_>,
) -> Result<Obj<'py>, Error<'py>> {
    let mut decoder = Decoder::new(bound, host, input);
    decoder.whole().map_err(|error| *error)
}

/// As `decode`, for bytes that a user may have written: pids, references, ports, funs and object
/// references are refused, since whoever can write their bytes could make them up.
pub fn decode_plain<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    input: Input<'_>,
) -> Result<Obj<'py>, Error<'py>> {
    let mut decoder = Decoder::new(bound, host, input);
    decoder.plain = true;
    decoder.whole().map_err(|error| *error)
}

/// A dict gets room for at most this many pairs before they are there.
const MAX_ROOM: usize = 1 << 16;

pub(crate) struct Decoder<'a, 'b, 'py> {
    pub bound: &'b Bound<'b, 'py>,
    pub py: Attached<'py>,
    pub reader: Reader<'a>,
    pub limits: Limits<'b>,
    /// Whether handles are refused.
    pub plain: bool,
}

impl<'a, 'b, 'py> Decoder<'a, 'b, 'py> {
    pub fn new(bound: &'b Bound<'b, 'py>, host: &'b dyn Host, input: Input<'a>) -> Self {
        Decoder {
            bound,
            py: bound.py,
            reader: Reader::new(input),
            limits: Limits::new(host),
            plain: false,
        }
    }

    fn whole(&mut self) -> Res<'py, Obj<'py>> {
        self.start()?;
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    pub fn start(&mut self) -> Res<'py, ()> {
        match self.reader.byte()? {
            tag::VERSION if self.reader.peek()? == tag::COMPRESSED => Err(bad("a compressed term")),
            tag::VERSION => Ok(()),
            other => Err(bad(format!("a term starts with 131, not with {other}"))),
        }
    }

    pub fn end(&self) -> Res<'py, ()> {
        match self.reader.left() {
            0 => Ok(()),
            left => Err(bad(format!("{left} bytes after the term"))),
        }
    }

    pub fn value(&mut self) -> Res<'py, Obj<'py>> {
        self.limits.tick()?;
        let py = self.py;
        match self.reader.byte()? {
            tag::SMALL_INTEGER => Ok(Obj::int(py, self.reader.byte()?.into())?),
            tag::INTEGER => Ok(Obj::int(
                py,
                i32::from_be_bytes(self.reader.array()?).into(),
            )?),
            tag::BINARY => {
                let len = self.reader.u32()?;
                let taken = self.reader.take(len)?;
                Ok(Obj::text_or_bytes(py, &taken.bytes)?)
            }
            tag @ (tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8) => {
                let name = atom_text(&mut self.reader, tag)?;
                self.atom(&name)
            }
            tag::NIL => Ok(Obj::list_new(py)?),
            tag::LIST => self.list(),
            tag::STRING => self.string(),
            tag::SMALL_TUPLE => {
                let arity = self.reader.byte()?;
                self.tuple(arity.into())
            }
            tag::LARGE_TUPLE => {
                let arity = self.reader.u32()?;
                self.tuple(arity)
            }
            tag::MAP => self.map(),
            tag::NEW_FLOAT => Ok(Obj::float(py, f64::from_be_bytes(self.reader.array()?))?),
            tag::SMALL_BIG => {
                let len = self.reader.byte()?;
                self.big(len.into())
            }
            tag => self.rare(tag),
        }
    }

    /// Tags that are not met often.
    #[inline(never)]
    fn rare(&mut self, tag: u8) -> Res<'py, Obj<'py>> {
        match tag {
            tag::LARGE_BIG => {
                let len = self.reader.u32()?;
                self.big(len)
            }
            tag::FLOAT => match old_float(&self.reader.array()?) {
                Some(value) => Ok(Obj::float(self.py, value)?),
                None => Err(bad("a float that is none")),
            },
            tag::BIT_BINARY => {
                let len = self.reader.u32()?;
                let bits = self.reader.byte()?;
                let bits = (8 * len).saturating_sub(8) + usize::from(bits);
                Err(bad(format!("a bitstring of {bits} bits")))
            }
            tag::PID
            | tag::NEW_PID
            | tag::PORT
            | tag::NEW_PORT
            | tag::V4_PORT
            | tag::REFERENCE
            | tag::NEW_REFERENCE
            | tag::NEWER_REFERENCE
            | tag::NEW_FUN
            | tag::EXPORT => self.handle(tag),
            _ => Err(bad(format!("unknown tag {tag}"))),
        }
    }

    #[inline]
    pub fn atom(&mut self, name: &str) -> Res<'py, Obj<'py>> {
        Ok(match name {
            "true" => Obj::bool(self.py, true),
            "false" => Obj::bool(self.py, false),
            "none" | "nil" | "undefined" => Obj::none(self.py),
            name => Obj::text_fast(self.py, name)?,
        })
    }

    fn list(&mut self) -> Res<'py, Obj<'py>> {
        let len = self.reader.u32()?;
        self.reader.owe(len)?;
        self.limits.enter()?;
        let mut list = Filling::list(self.py, len)?;
        for _ in 0..len {
            self.reader.due();
            list.push(self.item()?);
        }
        if self.reader.peek()? != tag::NIL {
            return Err(self.improper(&list));
        }
        self.reader.byte()?;
        self.limits.leave();
        Ok(list.finish()?)
    }

    /// A value in a list, where integers come in thousands.
    #[inline]
    fn item(&mut self) -> Res<'py, Obj<'py>> {
        match self.reader.next_int() {
            Some(value) => {
                self.limits.tick()?;
                Ok(Obj::int(self.py, value)?)
            }
            None => self.value(),
        }
    }

    #[cold]
    fn improper(&mut self, list: &Filling<'py>) -> Box<Error<'py>> {
        let tail = match self.value() {
            Ok(tail) => describe(&tail),
            Err(error) => return error,
        };
        match list.so_far() {
            Ok(head) => bad(format!(
                "an improper list: {} with the tail {tail}",
                describe(&head)
            )),
            Err(error) => error.into(),
        }
    }

    /// A list of small integers.
    fn string(&mut self) -> Res<'py, Obj<'py>> {
        let len = self.reader.u16()?;
        let items = self.reader.take(len)?.bytes;
        let mut list = Filling::list(self.py, len)?;
        for &item in items.iter() {
            list.push(Obj::int(self.py, item.into())?);
        }
        Ok(list.finish()?)
    }

    fn map(&mut self) -> Res<'py, Obj<'py>> {
        let len = self.reader.u32()?;
        self.reader.owe(len.saturating_mul(2))?;
        self.limits.enter()?;
        let dict = Obj::dict_for(self.py, len.min(MAX_ROOM))?;
        let mut is_struct = false;
        let mut atoms = Marks::default();
        for done in 0..len {
            self.reader.due();
            let key = self.key(&mut is_struct)?;
            self.reader.due();
            if is_atom(self.reader.peek()?) {
                atoms.mark(done);
            }
            let value = self.value()?;
            if let Err(error) = dict.dict_set(&key, &value) {
                return Err(if error.is_a(Builtin::TypeError) {
                    bad(format!(
                        "a map key that cannot be hashed: {}",
                        describe(&key)
                    ))
                } else {
                    error.into()
                });
            }
            if dict.dict_len() != done + 1 {
                return Err(bad(format!("two map keys become one: {}", describe(&key))));
            }
        }
        self.limits.leave();
        if is_struct {
            return self.structure(dict, &atoms);
        }
        Ok(dict)
    }

    /// Atoms as keys are few and come often: their `str` is made once.
    #[inline]
    fn key(&mut self, is_struct: &mut bool) -> Res<'py, Obj<'py>> {
        match self.reader.peek()? {
            tag @ (tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8) => {
                self.limits.tick()?;
                self.reader.byte()?;
                let name = atom_text(&mut self.reader, tag)?;
                if matches!(&*name, "true" | "false" | "none" | "nil" | "undefined") {
                    return self.atom(&name);
                }
                *is_struct |= name == structure::KEY;
                match self.bound.name(name.as_bytes())? {
                    Some(key) => Ok(key),
                    None => self.atom(&name),
                }
            }
            _ => self.value(),
        }
    }

    fn big(&mut self, len: usize) -> Res<'py, Obj<'py>> {
        let negative = self.reader.byte()? != 0;
        let digits = self.reader.take(len)?.bytes;
        if len <= 8 {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&digits);
            if let Ok(value) = i64::try_from(u64::from_le_bytes(word)) {
                return Ok(Obj::int(self.py, if negative { -value } else { value })?);
            }
        }
        Ok(Obj::int_from_le(self.py, &digits, negative)?)
    }

    /// A pid, reference, port or fun; its tag has been read.
    fn handle(&mut self, tag: u8) -> Res<'py, Obj<'py>> {
        if self.plain {
            return Err(bad(
                "a pid, reference, port or fun cannot be made from bytes",
            ));
        }
        let mut term = Opaque::default();
        copy_tagged(tag, &mut self.reader, &mut self.limits, &mut term)?;
        let types = self.bound.types;
        let (py, lost) = (self.py, || {
            PyError::new(
                self.py,
                Builtin::SystemError,
                "a class of another interpreter",
            )
        });
        Ok(match tag {
            tag::PID | tag::NEW_PID => {
                class::instance(&types.pid.get(py).ok_or_else(lost)?, Pid(term))?
            }
            tag::PORT | tag::NEW_PORT | tag::V4_PORT => {
                class::instance(&types.port.get(py).ok_or_else(lost)?, Port(term))?
            }
            tag::NEW_FUN | tag::EXPORT => {
                class::instance(&types.fun.get(py).ok_or_else(lost)?, Fun(term))?
            }
            _ => class::instance(&types.reference.get(py).ok_or_else(lost)?, Ref(term))?,
        })
    }
}

/// Text of 31 bytes, filled up with zeroes.
pub(crate) fn old_float(text: &[u8; 31]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next()?;
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
