//! What the codec needs of an interpreter: its classes, its tables, the users' converters.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyrt::class;
use pyrt::error::Builtin;
use pyrt::{Attached, Kept, Obj, PyError, PyResult, buffer, module};

use crate::atom::Atoms;
use crate::handle::{Fun, Pid, Port, Ref};
use crate::names::Names;

/// Longer names (an atom has at most 1020 bytes) are not remembered.
const MAX_NAME: usize = 1024;

/// Whether this Python keeps interned texts until its end.
const INTERNS_FOR_EVER: bool = pyrt::BUILT_FOR.1 == 12 || pyrt::FREE_THREADED;

/// So many names are interned there at most; names come from outside, and there is no end of them.
const MOST_INTERNED: usize = 16_384;

/// The classes and tables of one interpreter.
pub struct Types {
    pub(crate) atoms: Arc<Atoms>,
    pub(crate) pid: Kept,
    pub(crate) reference: Kept,
    pub(crate) port: Kept,
    pub(crate) fun: Kept,
    /// The class whose instances lend memory of the node.
    pub(crate) lender: Kept,
    /// Names of modules, functions, keywords and map keys.
    pub(crate) names: Names,
    /// How many names were interned, where that is for ever.
    interned: AtomicUsize,
    /// `dict` of tag (`str`) to callable.
    constructors: Registry,
    /// `dict` of class to callable.
    converters: Registry,
}

/// A dict of callables and whether it has any: the usual answer is a load.
struct Registry {
    table: Kept,
    used: AtomicBool,
}

/// `Types` seen by an attached thread, for a batch of conversions.
#[derive(Clone, Copy)]
pub struct Bound<'a, 'py> {
    pub(crate) types: &'a Types,
    pub(crate) py: Attached<'py>,
}

impl Types {
    /// Makes the classes and adds `Atom`, `Pid`, `Ref`, `Port`, `Fun` to `module`.
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Types> {
        let py = module.py();
        let add = |name: &CStr, class: Obj<'py>| -> PyResult<'py, Kept> {
            module::add(module, name, &class)?;
            Ok(Kept::new(class))
        };
        let atoms = Atoms::make(module)?;
        if let Some(class) = atoms.class(py) {
            module::add(module, c"Atom", &class)?;
        }
        Ok(Types {
            atoms,
            pid: add(c"Pid", class::make::<Pid>(module)?)?,
            reference: add(c"Ref", class::make::<Ref>(module)?)?,
            port: add(c"Port", class::make::<Port>(module)?)?,
            fun: add(c"Fun", class::make::<Fun>(module)?)?,
            lender: Kept::new(buffer::make_lender(module)?),
            names: Names::new(4096),
            interned: AtomicUsize::new(0),
            constructors: Registry::new(py)?,
            converters: Registry::new(py)?,
        })
    }

    pub fn bind<'a, 'py>(&'a self, py: Attached<'py>) -> Bound<'a, 'py> {
        Bound { types: self, py }
    }

    fn may_intern(&self) -> bool {
        // Relaxed: only the number counts.
        !INTERNS_FOR_EVER || self.interned.fetch_add(1, Ordering::Relaxed) < MOST_INTERNED
    }

    /// Releases everything, for the module's `free`.
    pub fn release(self, py: Attached<'_>) {
        self.atoms.release(py);
        self.names.clear(py);
        let tables = [self.constructors.table, self.converters.table];
        let classes = [self.pid, self.reference, self.port, self.fun, self.lender];
        for kept in tables.into_iter().chain(classes) {
            kept.release(py);
        }
    }
}

impl<'py> Bound<'_, 'py> {
    pub fn py(&self) -> Attached<'py> {
        self.py
    }

    /// `callable(*rest)` gives the value of every tuple whose first element is the atom `tag`.
    pub fn register_constructor(&self, tag: &Obj<'py>, callable: &Obj<'py>) -> PyResult<'py, ()> {
        let reserved = ["bytes", "view", "ndarray", "$py_ref"];
        let refused = match tag.is_text() {
            true if reserved.contains(&tag.as_utf8()?) => "this tag has a meaning already",
            true if callable.is_callable() => {
                let tag = Obj::interned(self.py, tag.as_utf8()?)?;
                return self.types.constructors.add(&tag, callable);
            }
            true => "the constructor must be callable",
            false => "the tag must be a str",
        };
        Err(PyError::new(self.py, Builtin::TypeError, refused))
    }

    /// `callable(object)` gives what is converted in place of each instance of `class`.
    pub fn register_converter(&self, class: &Obj<'py>, callable: &Obj<'py>) -> PyResult<'py, ()> {
        let refused = if !class.is_class() {
            "the first argument must be a class"
        } else if !callable.is_callable() {
            "the converter must be callable"
        } else if self.is_fixed(class) {
            "this class has a fixed conversion"
        } else {
            return self.types.converters.add(class, callable);
        };
        Err(PyError::new(self.py, Builtin::TypeError, refused))
    }

    /// Classes that the encoder knows by their address, before any converter is looked up.
    fn is_fixed(&self, class: &Obj<'py>) -> bool {
        let types = self.types;
        let own = [&types.pid, &types.reference, &types.port, &types.fun];
        let names = [
            "int", "str", "float", "bool", "bytes", "list", "tuple", "dict", "object",
        ];
        let builtins = pyrt::call::builtins(self.py);
        let is_builtin = |name: &&str| {
            let found = Obj::text(self.py, name).and_then(|name| builtins.dict_get(&name));
            found.is_ok_and(|found| found.is_some_and(|found| found.is(class)))
        };
        types.atoms.is_class(class)
            || own.iter().any(|kept| kept.is(class))
            || names.iter().any(is_builtin)
            || Obj::none(self.py).is_exactly(class)
    }

    /// Called with the text of each new atom; raises to refuse it. `None`: every text is accepted.
    pub fn set_atom_maker(&self, maker: Option<Obj<'py>>) {
        self.types.atoms.set_maker(self.py, maker);
    }

    pub(crate) fn constructor(&self, tag: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        self.types.constructors.find(tag)
    }

    #[inline]
    pub(crate) fn has_constructors(&self) -> bool {
        self.types.constructors.is_used()
    }

    /// The converter of the first class in the method resolution order that has one.
    pub(crate) fn converter(&self, class: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        if !self.types.converters.is_used() {
            return Ok(None);
        }
        let bases = class.getattr_c(c"__mro__")?;
        for index in 0..bases.tuple_len() {
            let Some(base) = bases.tuple_item(index) else {
                break;
            };
            if let Some(found) = self.types.converters.find(&base)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The `str` of a name, made once and mostly interned; `None` if the bytes are not UTF-8.
    pub(crate) fn name(&self, name: &[u8]) -> PyResult<'py, Option<Obj<'py>>> {
        if let Some(found) = self.types.names.get(self.py, name) {
            return Ok(Some(found));
        }
        let Ok(text) = std::str::from_utf8(name) else {
            return Ok(None);
        };
        let made = match self.types.may_intern() {
            true => Obj::interned(self.py, text)?,
            false => Obj::text(self.py, text)?,
        };
        Ok(Some(match name.len() {
            0..=MAX_NAME => self.types.names.put(name, made),
            _ => made,
        }))
    }
}

impl Registry {
    fn new(py: Attached<'_>) -> PyResult<'_, Self> {
        Ok(Registry {
            table: Kept::new(Obj::dict(py)?),
            used: AtomicBool::new(false),
        })
    }

    fn is_used(&self) -> bool {
        // Relaxed: the table itself is read under Python's own locking.
        self.used.load(Ordering::Relaxed)
    }

    fn add<'py>(&self, key: &Obj<'py>, callable: &Obj<'py>) -> PyResult<'py, ()> {
        if let Some(table) = self.table.get(key.py()) {
            table.dict_set(key, callable)?;
            // Relaxed: see `is_used`.
            self.used.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn find<'py>(&self, key: &Obj<'py>) -> PyResult<'py, Option<Obj<'py>>> {
        match self.table.get(key.py()) {
            Some(table) => table.dict_get(key),
            None => Ok(None),
        }
    }
}
