//! `erlang.Atom`: a `str` that becomes an atom. Only names the maker has accepted can be one.
//!
//! The class is written in Python; its constructor is `New`, which asks the table, then the maker.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyrt::call::{Source, compile, run_code};
use pyrt::class::{self, Class};
use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult};

use crate::names::Names;
use crate::tag;

const SOURCE: &[u8] = br#"
class Atom(str):
    """An Erlang atom. A str in every respect, except that it is converted to an atom."""

    __slots__ = ()
    __module__ = "erlang"

    def __new__(cls, text, /):
        return _new(cls, text, str.__new__)

    def __init_subclass__(cls):
        raise TypeError("erlang.Atom cannot be subclassed")

    def __repr__(self):
        return f"erlang.Atom({str.__repr__(self)})"
"#;

/// The atoms of one interpreter.
pub(crate) struct Atoms {
    class: OnceLock<Kept>,
    /// Called with the text before an atom is made for the first time; raises to refuse.
    maker: Mutex<Option<Kept>>,
    made: Names,
}

impl Atoms {
    /// The table, with its class.
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Arc<Self>> {
        let py = module.py();
        let atoms = Arc::new(Atoms {
            class: OnceLock::new(),
            maker: Mutex::new(None),
            made: Names::new(65_536),
        });
        let new = class::instance(&class::make::<New>(module)?, New(atoms.clone()))?;
        let globals = Obj::dict(py)?;
        globals.dict_set_c(c"__builtins__", &pyrt::call::builtins(py))?;
        globals.dict_set_c(c"__name__", &Obj::text(py, "erlang")?)?;
        globals.dict_set_c(c"_new", &new)?;
        let code = compile(py, SOURCE, c"<erlang.Atom>", Source::Statements)?;
        run_code(&code, &globals, &globals)?;
        match globals.dict_get(&Obj::text(py, "Atom")?)? {
            Some(class) => drop(atoms.class.set(Kept::new(class))),
            None => return Err(PyError::new(py, Builtin::SystemError, "no class Atom")),
        }
        Ok(atoms)
    }

    pub fn class<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.class.get()?.get(py)
    }

    #[inline]
    pub fn is_class(&self, class: &Obj<'_>) -> bool {
        self.class.get().is_some_and(|own| own.is(class))
    }

    fn maker(&self) -> MutexGuard<'_, Option<Kept>> {
        // Held for a move of one pointer: it can't be poisoned half-way.
        self.maker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_maker<'py>(&self, py: Attached<'py>, maker: Option<Obj<'py>>) {
        let old = std::mem::replace(&mut *self.maker(), maker.map(Kept::new));
        if let Some(old) = old {
            old.release(py);
        }
    }

    /// The accepted text of an `Atom`. One that did not come from the constructor
    /// (`str.__new__(Atom, …)`) goes through it now.
    pub fn check<'py>(&self, atom: &Obj<'py>) -> PyResult<'py, ()> {
        if self.made.holds(atom.as_utf8()?.as_bytes(), atom) {
            return Ok(());
        }
        match self.class(atom.py()) {
            Some(class) => class.call(&[atom]).map(drop),
            None => Err(PyError::new(
                atom.py(),
                Builtin::SystemError,
                "no class Atom",
            )),
        }
    }

    /// `Atom(text)`; `str_new` is `str.__new__`.
    fn new_atom<'py>(
        &self,
        class: &Obj<'py>,
        text: &Obj<'py>,
        str_new: &Obj<'py>,
    ) -> PyResult<'py, Obj<'py>> {
        let py = class.py();
        if !text.is_text() || !self.is_class(class) {
            let message = format!("an atom is made from a str, not {}", text.type_name());
            return Err(PyError::new(py, Builtin::TypeError, &message));
        }
        let name = text.as_utf8()?;
        if let Some(found) = self.made.get(py, name.as_bytes()) {
            return Ok(found);
        }
        if name.chars().count() > tag::MAX_ATOM {
            let message = "an atom has at most 255 characters";
            return Err(PyError::new(py, Builtin::ValueError, message));
        }
        let plain = Obj::text(py, name)?;
        let maker = self.maker().as_ref().and_then(|maker| maker.get(py));
        if let Some(maker) = maker {
            maker.call(&[&plain])?;
        }
        let atom = str_new.call(&[class, &plain])?;
        Ok(self.made.put(name.as_bytes(), atom))
    }

    /// The `Atom` of a name that Erlang has given: there is nothing to ask.
    pub fn existing<'py>(&self, py: Attached<'py>, name: &str) -> PyResult<'py, Obj<'py>> {
        if let Some(found) = self.made.get(py, name.as_bytes()) {
            return Ok(found);
        }
        let plain = Obj::text(py, name)?;
        let Some(class) = self.class(py) else {
            return Ok(plain);
        };
        let atom = plain
            .type_of()
            .getattr_c(c"__new__")?
            .call(&[&class, &plain])?;
        Ok(self.made.put(name.as_bytes(), atom))
    }

    pub fn release(&self, py: Attached<'_>) {
        self.made.clear(py);
        self.set_maker(py, None);
    }
}

/// The native half of `Atom.__new__`.
struct New(Arc<Atoms>);

impl Class for New {
    const NAME: &'static std::ffi::CStr = c"erlang._native.NewAtom";
    const DOC: &'static std::ffi::CStr = c"Finds or makes an atom.";

    fn repr(&self) -> String {
        "<the constructor of erlang.Atom>".to_owned()
    }

    fn hash(&self) -> u64 {
        Arc::as_ptr(&self.0) as u64
    }

    fn equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> =
        Some(call_new);
}

fn call_new<'py>(new: &Obj<'py>, args: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let parts = (args.tuple_item(0), args.tuple_item(1), args.tuple_item(2));
    let (Some(class), Some(text), Some(str_new)) = parts else {
        let message = "an atom is made from one str";
        return Err(PyError::new(new.py(), Builtin::TypeError, message));
    };
    match class::body::<New>(new, &new.type_of()) {
        Some(body) => body.0.new_atom(&class, &text, &str_new),
        None => Err(PyError::new(
            new.py(),
            Builtin::SystemError,
            "not a constructor",
        )),
    }
}
