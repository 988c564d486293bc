//! Maps with the key `__struct__`, as Elixir's structs are: `erlang._structs` says what each becomes.

use pyrt::call::import_c;
use pyrt::container::DictCursor;
use pyrt::error::Builtin;
use pyrt::{Obj, PyError};

use crate::decode::Decoder;
use crate::error::Res;

/// The key that makes a map a struct; its value is the atom of a module.
pub(crate) const KEY: &str = "__struct__";

/// Which values of a map are atoms, by the number of their pair.
#[derive(Default)]
pub(crate) struct Marks {
    first: u64,
    /// Of the pairs after the first 64, a word for each 64.
    more: Vec<u64>,
}

impl Marks {
    #[inline]
    pub fn mark(&mut self, pair: usize) {
        if pair < 64 {
            self.first |= 1 << pair;
        } else {
            self.mark_more(pair);
        }
    }

    #[cold]
    fn mark_more(&mut self, pair: usize) {
        let word = pair / 64 - 1;
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= 1 << (pair % 64);
    }

    fn has(&self, pair: usize) -> bool {
        let word = match pair / 64 {
            0 => self.first,
            word => self.more.get(word - 1).copied().unwrap_or(0),
        };
        word >> (pair % 64) & 1 == 1
    }
}

impl<'py> Decoder<'_, '_, 'py> {
    /// `fields` has the pairs of a map in their order.
    #[cold]
    pub fn structure(&mut self, fields: Obj<'py>, atoms: &Marks) -> Res<'py, Obj<'py>> {
        let key = Obj::text(self.py, KEY)?;
        let Some(module) = fields.dict_get(&key)?.filter(Obj::is_text) else {
            return Ok(fields);
        };
        if let Some(constructor) = self.bound.constructor(&module)? {
            fields.dict_remove(&key)?;
            return self.checked(constructor.call(&[&fields])?);
        }
        if !self.plain {
            self.name_atoms(&fields, atoms)?;
        }
        fields.dict_remove(&key)?;
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

    /// Fields that are atoms are `erlang.Atom` here, so that they go back as what they were. `true`, `nil` and their
    /// like are no text.
    fn name_atoms(&mut self, fields: &Obj<'py>, atoms: &Marks) -> Res<'py, ()> {
        let mut cursor = DictCursor::default();
        let mut pair = 0;
        while let Some((name, value)) = fields.dict_next(&mut cursor) {
            if atoms.has(pair) && value.is_text() {
                let atom = self.bound.types.atoms.existing(self.py, value.as_utf8()?)?;
                fields.dict_set(&name, &atom)?;
            }
            pair += 1;
        }
        Ok(())
    }
}
