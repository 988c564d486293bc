//! Tuples, and those whose first element gives them another meaning: `{bytes, Bin}`,
//! `{view, Bin}`, `{ndarray, Dtype, Shape, Bin}`, object references, and what users registered.

use pyrt::buffer;
use pyrt::container::Filling;
use pyrt::error::Builtin;
use pyrt::{Obj, PyError};

use crate::array;
use crate::decode::Decoder;
use crate::error::{Res, bad};
use crate::handle::{Opaque, atom_text, copy_term, is_atom};
use crate::tag;

impl<'py> Decoder<'_, '_, 'py> {
    pub fn tuple(&mut self, arity: usize) -> Res<'py, Obj<'py>> {
        if arity == 0 {
            return Ok(Filling::tuple(self.py, 0)?.finish()?);
        }
        self.reader.owe(arity)?;
        self.limits.enter()?;
        self.reader.due();
        let first = self.reader.peek()?;
        let value = if is_atom(first) {
            self.limits.tick()?;
            self.reader.byte()?;
            let name = atom_text(&mut self.reader, first)?;
            match self.tagged(&name, arity)? {
                Some(value) => value,
                None => {
                    let first = self.atom(&name)?;
                    self.elements(first, arity)?
                }
            }
        } else {
            let first = self.value()?;
            self.elements(first, arity)?
        };
        self.limits.leave();
        Ok(value)
    }

    fn elements(&mut self, first: Obj<'py>, arity: usize) -> Res<'py, Obj<'py>> {
        let mut tuple = Filling::tuple(self.py, arity)?;
        tuple.push(first);
        for _ in 1..arity {
            self.reader.due();
            tuple.push(self.value()?);
        }
        Ok(tuple.finish()?)
    }

    /// The value of a tuple that means something else; `None` for a plain one.
    #[inline]
    fn tagged(&mut self, name: &str, arity: usize) -> Res<'py, Option<Obj<'py>>> {
        match (name, arity) {
            ("bytes", 2) if self.reader.peek()? == tag::BINARY => self.bytes().map(Some),
            ("view", 2) if self.reader.peek()? == tag::BINARY => {
                self.reader.due();
                self.view().map(Some)
            }
            ("ndarray", 4) => self.array().map(Some),
            ("$py_ref", 5) => self.object().map(Some),
            _ if self.bound.has_constructors() => self.construct(name, arity),
            _ => Ok(None),
        }
    }

    fn bytes(&mut self) -> Res<'py, Obj<'py>> {
        self.reader.due();
        self.reader.byte()?;
        let len = self.reader.u32()?;
        Ok(Obj::bytes(self.py, &self.reader.take(len)?.bytes)?)
    }

    /// A binary as a `memoryview`: of the node's own memory where that can be kept.
    fn view(&mut self) -> Res<'py, Obj<'py>> {
        self.reader.byte()?;
        let len = self.reader.u32()?;
        let taken = self.reader.take(len)?;
        let owner = match taken.bytes {
            std::borrow::Cow::Borrowed(_) => self.limits.host.segment_owner(taken.segment),
            std::borrow::Cow::Owned(_) => None,
        };
        let lender = self.bound.types.lender.get(self.py);
        if let (Some(owner), Some(class)) = (owner, lender)
            && let Some(view) = buffer::view(&class, owner, &taken.bytes)?
        {
            return Ok(view);
        }
        Ok(Obj::bytes(self.py, &taken.bytes)?.memory_view()?)
    }

    fn array(&mut self) -> Res<'py, Obj<'py>> {
        self.reader.due();
        let dtype = self.value()?;
        self.reader.due();
        let shape = self.value()?;
        self.reader.due();
        if self.reader.peek()? != tag::BINARY {
            return Err(bad("an ndarray whose data is no binary"));
        }
        let data = self.view()?;
        array::make(&dtype, &shape, &data)
    }

    fn object(&mut self) -> Res<'py, Obj<'py>> {
        if self.plain {
            return Err(bad("an object reference cannot be made from bytes"));
        }
        let mut numbers = [0; 3];
        for number in &mut numbers {
            self.reader.due();
            let value = self.value()?.as_i64().ok().flatten();
            *number = match value.map(u64::try_from) {
                Some(Ok(value)) => value,
                _ => return Err(bad("an object reference that is none")),
            };
        }
        self.reader.due();
        // The resource that keeps the object for Erlang; nothing to read in it.
        copy_term(&mut self.reader, &mut self.limits, &mut Opaque::default())?;
        let [interp, index, generation] = numbers;
        let object = self.limits.host.object(self.py, interp, index, generation);
        object.ok_or_else(|| bad("an object reference whose object is gone or lives elsewhere"))
    }

    /// `{tag, …}` for a tag that a user registered.
    fn construct(&mut self, name: &str, arity: usize) -> Res<'py, Option<Obj<'py>>> {
        let Some(tag) = self.bound.name(name.as_bytes())? else {
            return Ok(None);
        };
        let Some(constructor) = self.bound.constructor(&tag)? else {
            return Ok(None);
        };
        let mut args = Vec::new();
        for _ in 1..arity {
            self.reader.due();
            args.push(self.value()?);
        }
        let value = constructor.call_owned(&args, None)?;
        if PyError::occurred(self.py) {
            let text = "a constructor returned with an exception set";
            return Err(PyError::new(self.py, Builtin::SystemError, text).into());
        }
        Ok(Some(value))
    }
}
