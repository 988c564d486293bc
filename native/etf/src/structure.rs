//! Maps with the key `__struct__`, as Elixir's structs are: `erlang._structs` says what each becomes.

use pyrt::call::import_c;
use pyrt::error::Builtin;
use pyrt::{Obj, PyError};

use crate::decode::Decoder;
use crate::error::Res;
use crate::handle::{Opaque, atom_text, copy_term, is_atom};
use crate::input::Reader;

/// The key that makes a map a struct; its value is the atom of a module.
pub(crate) const KEY: &str = "__struct__";

impl<'a, 'py> Decoder<'a, '_, 'py> {
    /// `pairs` is the place of the first pair of the map, whose `len` pairs `fields` has.
    #[cold]
    pub fn structure(
        &mut self,
        fields: Obj<'py>,
        pairs: Reader<'a>,
        len: usize,
    ) -> Res<'py, Obj<'py>> {
        let key = Obj::text(self.py, KEY)?;
        let Some(module) = fields.dict_get(&key)?.filter(Obj::is_text) else {
            return Ok(fields);
        };
        fields.dict_remove(&key)?;
        if let Some(constructor) = self.bound.constructor(&module)? {
            return self.checked(constructor.call(&[&fields])?);
        }
        self.name_atoms(&fields, pairs, len)?;
        match import_c(self.py, c"erlang._structs") {
            Ok(structs) => self.checked(structs.call_method(c"make", &[&module, &fields])?),
            // Not the package, but its native module alone.
            Err(error) if error.is_a(Builtin::ImportError) => Ok(fields),
            Err(error) => Err(error.into()),
        }
    }

    fn checked(&self, value: Obj<'py>) -> Res<'py, Obj<'py>> {
        if PyError::occurred(self.py) {
            let text = "a constructor returned with an exception set";
            return Err(PyError::new(self.py, Builtin::SystemError, text).into());
        }
        Ok(value)
    }

    /// Fields that are atoms are `erlang.Atom` here, so that they go back as what they were.
    fn name_atoms(&mut self, fields: &Obj<'py>, mut pairs: Reader<'a>, len: usize) -> Res<'py, ()> {
        for _ in 0..len {
            let name = match pairs.peek()? {
                tag if is_atom(tag) => {
                    pairs.byte()?;
                    Some(atom_text(&mut pairs, tag)?)
                }
                _ => {
                    copy_term(&mut pairs, &mut self.limits, &mut Opaque::default())?;
                    None
                }
            };
            let tag = pairs.peek()?;
            if !is_atom(tag) {
                copy_term(&mut pairs, &mut self.limits, &mut Opaque::default())?;
                continue;
            }
            pairs.byte()?;
            let value = atom_text(&mut pairs, tag)?;
            let fixed = matches!(&*value, "true" | "false" | "none" | "nil" | "undefined");
            if let (Some(name), false) = (name, fixed || self.plain) {
                let key = Obj::text(self.py, &name)?;
                if fields.dict_get(&key)?.is_some() {
                    let atom = self.bound.types.atoms.existing(self.py, &value)?;
                    fields.dict_set(&key, &atom)?;
                }
            }
        }
        Ok(())
    }
}
