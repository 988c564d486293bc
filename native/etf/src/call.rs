//! The term of a call, `{Module, Function, Args, Kwargs}`, straight into the form that Python's
//! vectorcall takes.

use std::borrow::Cow;

use pyrt::Obj;

use crate::decode::Decoder;
use crate::error::{Error, Res, bad, describe};
use crate::handle::{atom_bytes, is_atom};
use crate::host::Host;
use crate::input::Input;
use crate::tag;
use crate::types::Bound;

/// What is to be called. The arguments are in the vector that was given to `decode_call`.
#[derive(Debug)]
pub struct Call<'py> {
    /// A `str`, mostly interned.
    pub module: Obj<'py>,
    /// A `str`, mostly interned.
    pub function: Obj<'py>,
    /// The names of the keyword arguments, a tuple: their values are the last of the arguments.
    pub names: Option<Obj<'py>>,
}

/// Decodes a call. `args` is emptied, then filled with the positional arguments and the values of
/// the keyword arguments; it is empty after an error.
pub fn decode_call<'py>(
    bound: &Bound<'_, 'py>,
    host: &dyn Host,
    input: Input<'_>,
    args: &mut Vec<Obj<'py>>,
) -> Result<Call<'py>, Error<'py>> {
    args.clear();
    let mut decoder = Decoder::new(bound, host, input);
    decoder.call(args).map_err(|error| {
        args.clear();
        *error
    })
}

/// A call whose names are known, and whose arguments are not looked at yet.
pub struct Named<'a, 'b, 'py> {
    /// A `str`, mostly interned.
    pub module: Obj<'py>,
    /// A `str`, mostly interned.
    pub function: Obj<'py>,
    decoder: Decoder<'a, 'b, 'py>,
}

impl<'a, 'b, 'py> Named<'a, 'b, 'py> {
    /// Module and function of a call.
    pub fn decode(
        bound: &'b Bound<'b, 'py>,
        host: &'b dyn Host,
        input: Input<'a>,
    ) -> Result<Self, Error<'py>> {
        let mut decoder = Decoder::new(bound, host, input);
        let (module, function) = decoder.names().map_err(|error| *error)?;
        Ok(Named {
            module,
            function,
            decoder,
        })
    }

    /// The arguments, as `decode_call` gives them; returns the names of the last of them.
    pub fn arguments(mut self, args: &mut Vec<Obj<'py>>) -> Result<Option<Obj<'py>>, Error<'py>> {
        args.clear();
        self.decoder.arguments(args).map_err(|error| {
            args.clear();
            *error
        })
    }
}

impl<'py> Decoder<'_, '_, 'py> {
    fn names(&mut self) -> Res<'py, (Obj<'py>, Obj<'py>)> {
        self.start()?;
        if self.reader.array()? != [tag::SMALL_TUPLE, 4] {
            return Err(bad("a call is a tuple of four"));
        }
        Ok((self.name("module")?, self.name("function")?))
    }

    fn call(&mut self, args: &mut Vec<Obj<'py>>) -> Res<'py, Call<'py>> {
        let (module, function) = self.names()?;
        let names = self.arguments(args)?;
        Ok(Call {
            module,
            function,
            names,
        })
    }

    fn arguments(&mut self, args: &mut Vec<Obj<'py>>) -> Res<'py, Option<Obj<'py>>> {
        self.positional(args)?;
        let names = self.keywords(args)?;
        self.end()?;
        Ok(names)
    }

    /// An atom, a binary or a string, as a `str`.
    fn name(&mut self, what: &str) -> Res<'py, Obj<'py>> {
        let taken = match self.reader.byte()? {
            tag @ (tag::ATOM | tag::SMALL_ATOM) => latin1(atom_bytes(&mut self.reader, tag)?.bytes),
            tag if is_atom(tag) => atom_bytes(&mut self.reader, tag)?.bytes,
            tag::BINARY => {
                let len = self.reader.u32()?;
                self.reader.take(len)?.bytes
            }
            // A string is a list of characters.
            tag::STRING => {
                let len = self.reader.u16()?;
                latin1(self.reader.take(len)?.bytes)
            }
            _ => return Err(bad(format!("the {what} must be an atom or a binary"))),
        };
        match self.bound.name(&taken)? {
            Some(name) => Ok(name),
            None => Err(bad(format!("the {what} is not UTF-8"))),
        }
    }

    fn positional(&mut self, args: &mut Vec<Obj<'py>>) -> Res<'py, ()> {
        match self.reader.byte()? {
            tag::NIL => Ok(()),
            tag::STRING => {
                let len = self.reader.u16()?;
                for &item in self.reader.take(len)?.bytes.iter() {
                    args.push(Obj::int(self.py, item.into())?);
                }
                Ok(())
            }
            tag::LIST => {
                let len = self.reader.u32()?;
                self.reader.owe(len)?;
                self.limits.enter()?;
                args.reserve(len);
                for _ in 0..len {
                    self.reader.due();
                    args.push(self.value()?);
                }
                self.limits.leave();
                match self.reader.byte()? {
                    tag::NIL => Ok(()),
                    _ => Err(bad("the arguments are an improper list")),
                }
            }
            _ => Err(bad("the arguments must be a list")),
        }
    }

    fn keywords(&mut self, args: &mut Vec<Obj<'py>>) -> Res<'py, Option<Obj<'py>>> {
        if self.reader.byte()? != tag::MAP {
            return Err(bad("the keyword arguments must be a map"));
        }
        let len = self.reader.u32()?;
        if len == 0 {
            return Ok(None);
        }
        self.reader.owe(len.saturating_mul(2))?;
        self.limits.enter()?;
        let mut names = Vec::with_capacity(len);
        for _ in 0..len {
            self.reader.due();
            names.push(self.name("name of a keyword argument")?);
            self.reader.due();
            args.push(self.value()?);
        }
        self.limits.leave();
        if let Some(twice) = twice(&names)? {
            let name = describe(twice);
            return Err(bad(format!("two keyword arguments become one: {name}")));
        }
        Ok(Some(Obj::tuple(self.py, names.into_iter())?))
    }
}

/// A name that is there more than once.
fn twice<'a, 'py>(names: &'a [Obj<'py>]) -> Res<'py, Option<&'a Obj<'py>>> {
    if names.len() < 2 {
        return Ok(None);
    }
    let mut sorted = Vec::with_capacity(names.len());
    for name in names {
        sorted.push((name.as_utf8()?, name));
    }
    sorted.sort_unstable_by_key(|(text, _)| *text);
    let pair = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0);
    Ok(pair.map(|pair| pair[0].1))
}

/// The UTF-8 of Latin-1.
fn latin1(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if bytes.is_ascii() {
        return bytes;
    }
    let text: String = bytes.iter().copied().map(char::from).collect();
    Cow::Owned(text.into_bytes())
}
