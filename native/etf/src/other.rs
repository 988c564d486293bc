//! Python objects to terms: classes that are not exactly built-in ones.
//!
//! Here user code may run (`__str__`, `items`, a converter), and does what it likes.

use std::ffi::CStr;

use pyrt::buffer::Buffer;
use pyrt::call::imported;
use pyrt::class;
use pyrt::error::Builtin;
use pyrt::kind::BaseKind;
use pyrt::{Obj, PyError, PyResult};

use crate::array;
use crate::encode::{Encoder, Keys};
use crate::error::{Error, Res, describe};
use crate::handle::{Fun, Opaque, Pid, Port, Ref};
use crate::repr;
use crate::tag;

/// What is done with the instances of a class.
#[derive(Clone, Debug)]
pub(crate) enum Rule<'py> {
    /// A user's callable gives what is converted instead.
    Convert(Obj<'py>),
    Base(BaseKind),
    Dataclass,
    /// `isoformat()`
    Iso,
    /// `str()`
    Text,
    Mapping,
    /// A numpy scalar: `item()`
    Scalar,
    Array,
    None,
}

/// Classes by module and name. They are looked up only where somebody has imported the module.
const KNOWN: [(&str, &CStr, Rule<'static>); 9] = [
    ("datetime", c"date", Rule::Iso),
    ("datetime", c"time", Rule::Iso),
    ("decimal", c"Decimal", Rule::Text),
    ("uuid", c"UUID", Rule::Text),
    ("pathlib", c"PurePath", Rule::Text),
    ("numpy", c"generic", Rule::Scalar),
    ("numpy", c"memmap", Rule::Array),
    // Only itself: what a subclass means by its data (a mask, a unit) would be lost.
    ("numpy", c"ndarray", Rule::Array),
    ("_collections_abc", c"Mapping", Rule::Mapping),
];

impl<'py> Encoder<'_, 'py> {
    #[inline(never)]
    pub fn other(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        let types = self.bound.types;
        let class = object.type_of();
        if types.atoms.is_class(&class) {
            types.atoms.check(object)?;
            self.atom(object.as_utf8()?);
            return Ok(());
        }
        if types.pid.is(&class) {
            return self.handle(class::body::<Pid>(object, &class).map(|pid| &pid.0));
        }
        if types.reference.is(&class) {
            return self.handle(class::body::<Ref>(object, &class).map(|reference| &reference.0));
        }
        if types.port.is(&class) {
            return self.handle(class::body::<Port>(object, &class).map(|port| &port.0));
        }
        if types.fun.is(&class) {
            return self.handle(class::body::<Fun>(object, &class).map(|fun| &fun.0));
        }
        let rule = match &self.last {
            Some((last, rule)) if last.is(&class) => rule.clone(),
            _ => {
                let rule = self.rule(object, &class)?;
                self.last = Some((class, rule.clone()));
                rule
            }
        };
        self.apply(object, &rule)
    }

    fn handle(&mut self, term: Option<&Opaque>) -> Res<'py, ()> {
        let Some(term) = term else {
            return Ok(());
        };
        match term.tag() {
            tag::NEW_FUN => {
                self.summary.local_funs = true;
                self.summary.widest_map = usize::MAX;
            }
            tag::EXPORT if !self.limits.host.knows(&term.bytes) => {
                let fun = repr::opaque("Fun", term);
                let text = format!("{fun} (this node does not have the function)");
                return Err(Box::new(Error::NotConvertible(text)));
            }
            _ => {}
        }
        if term.gaps.is_empty() {
            self.out.extend_from_slice(&term.bytes);
        } else {
            term.write(self.limits.node(), self.out);
        }
        Ok(())
    }

    /// What is done with objects of this class. The class is asked, which may run user code.
    fn rule(&mut self, object: &Obj<'py>, class: &Obj<'py>) -> PyResult<'py, Rule<'py>> {
        if let Some(converter) = self.bound.converter(class)? {
            return Ok(Rule::Convert(converter));
        }
        match object.base_kind() {
            BaseKind::Other => {}
            base => return Ok(Rule::Base(base)),
        }
        if self.module("dataclasses")?.is_some() && has(class, c"__dataclass_fields__")? {
            return Ok(Rule::Dataclass);
        }
        for (module, name, rule) in KNOWN {
            let Some(module) = self.module(module)? else {
                continue;
            };
            // A module that has only begun to be imported does not have it yet.
            let Ok(known) = module.getattr_c(name) else {
                continue;
            };
            let is_one = match rule {
                Rule::Mapping => {
                    self.foreign += 1;
                    object.is_instance(&known)?
                }
                Rule::Array if name == c"ndarray" => object.is_exactly(&known),
                _ => object.is_subtype(&known),
            };
            if is_one {
                return Ok(rule);
            }
        }
        Ok(Rule::None)
    }

    fn module(&self, name: &str) -> PyResult<'py, Option<Obj<'py>>> {
        match self.bound.name(name.as_bytes())? {
            Some(name) => imported(&name),
            None => Ok(None),
        }
    }

    fn apply(&mut self, object: &Obj<'py>, rule: &Rule<'py>) -> Res<'py, ()> {
        if let Rule::Base(base) = rule {
            return self.base(object, *base);
        }
        self.foreign += 1;
        match rule {
            Rule::Convert(converter) => {
                let converted = converter.call(&[object])?;
                self.instead(&converted)
            }
            Rule::Dataclass => self.dataclass(object),
            Rule::Iso => self.string(object.call_method(c"isoformat", &[])?),
            Rule::Text => self.string(object.str()?),
            Rule::Mapping => self.mapping(object),
            Rule::Scalar => {
                let item = object.call_method(c"item", &[])?;
                // What has no counterpart in Python (`longdouble`) gives itself.
                if item.is_exactly(&object.type_of()) {
                    return Err(not_convertible(object));
                }
                self.instead(&item)
            }
            Rule::Array => array::write(self, object),
            Rule::Base(_) | Rule::None => Err(not_convertible(object)),
        }
    }

    /// Converts `object` in place of another; a converter that gives its argument back ends at
    /// the bound of the depth.
    fn instead(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        self.limits.enter()?;
        self.value(object)?;
        self.limits.leave();
        Ok(())
    }

    /// By its value, whatever the class adds to it.
    fn base(&mut self, object: &Obj<'py>, base: BaseKind) -> Res<'py, ()> {
        match base {
            BaseKind::Int => self.int(object),
            BaseKind::Float => self.float(object),
            BaseKind::Text => self.text(object),
            BaseKind::Bytes => self.binary(object.as_bytes().unwrap_or(&[])),
            BaseKind::List => self.list(object),
            BaseKind::Tuple => self.tuple(object),
            BaseKind::Dict => self.dict(object),
            BaseKind::Set => self.set(object),
            BaseKind::ByteArray | BaseKind::MemoryView => {
                let buffer = Buffer::of(object)?;
                self.head(tag::BINARY, buffer.len())?;
                Ok(buffer.append_to(self.out)?)
            }
            BaseKind::Other => Err(not_convertible(object)),
        }
    }

    fn string(&mut self, text: Obj<'py>) -> Res<'py, ()> {
        if text.is_text() {
            self.text(&text)
        } else {
            Err(not_convertible(&text))
        }
    }

    fn set(&mut self, set: &Obj<'py>) -> Res<'py, ()> {
        self.foreign += 1;
        self.limits.enter()?;
        let start = self.out.len();
        self.head(tag::LIST, 0)?;
        let items = set.iter()?;
        let mut len = 0;
        while let Some(item) = items.next()? {
            self.value(&item)?;
            len += 1;
        }
        if len == 0 {
            self.out.truncate(start);
        } else {
            self.count(start, len)?;
        }
        self.out.push(tag::NIL);
        self.limits.leave();
        Ok(())
    }

    /// `items()` of any mapping.
    fn mapping(&mut self, mapping: &Obj<'py>) -> Res<'py, ()> {
        self.limits.enter()?;
        let start = self.out.len();
        self.head(tag::MAP, 0)?;
        let items = mapping.call_method(c"items", &[])?.iter()?;
        let mut len = 0;
        while let Some(item) = items.next()? {
            let (Some(key), Some(value), 2) =
                (item.tuple_item(0), item.tuple_item(1), item.tuple_len())
            else {
                let text = format!("items() gave {} instead of a pair", describe(&item));
                return Err(PyError::new(self.py, Builtin::TypeError, &text).into());
            };
            self.value(&key)?;
            self.value(&value)?;
            len += 1;
        }
        self.count(start, len)?;
        self.limits.leave();
        self.map_done(start, len, &Keys::any())
    }

    /// The fields of a dataclass; their values are converted, not copied.
    fn dataclass(&mut self, object: &Obj<'py>) -> Res<'py, ()> {
        let Some(dataclasses) = self.module("dataclasses")? else {
            return Err(not_convertible(object));
        };
        let fields = dataclasses.call_method(c"fields", &[object])?;
        let len = fields.tuple_len();
        self.limits.enter()?;
        let start = self.out.len();
        self.head(tag::MAP, len)?;
        for index in 0..len {
            let Some(field) = fields.tuple_item(index) else {
                break;
            };
            let name = field.getattr_c(c"name")?;
            self.string(name.clone())?;
            let value = object.getattr(&name)?;
            self.value(&value)?;
        }
        self.limits.leave();
        self.map_done(start, len, &Keys::any())
    }
}

fn has<'py>(class: &Obj<'py>, name: &CStr) -> PyResult<'py, bool> {
    match class.getattr_c(name) {
        Ok(_) => Ok(true),
        Err(error) if error.is_a(Builtin::AttributeError) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cold]
pub(crate) fn not_convertible<'py>(object: &Obj<'py>) -> Box<Error<'py>> {
    Box::new(Error::NotConvertible(describe(object)))
}
