//! The arguments of a call that comes from Python.
//!
//! Thread: the attached one that calls.

use std::ptr::{self, NonNull};

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult};

/// The arguments of a native function: positional ones, then keyword values with their names.
pub struct Args<'a, 'py> {
    raw: &'a [*mut ffi::PyObject],
    positional: usize,
    names: Option<Obj<'py>>,
    py: Attached<'py>,
}

impl<'a, 'py> Args<'a, 'py> {
    /// # Safety
    /// What a `METH_FASTCALL | METH_KEYWORDS` call lends for all of `'a`.
    #[inline]
    pub(crate) unsafe fn lent(
        py: Attached<'py>,
        args: *const *mut ffi::PyObject,
        count: ffi::Py_ssize_t,
        names: *mut ffi::PyObject,
    ) -> Self {
        // SAFETY: lent for this call, or NULL.
        let names = NonNull::new(names).map(|names| unsafe { Obj::from_borrowed(py, names) });
        let total = count as usize + names.as_ref().map_or(0, Obj::tuple_len);
        let raw = if total == 0 {
            &[][..]
        } else {
            // SAFETY: `total` pointers, lent for this call.
            unsafe { std::slice::from_raw_parts(args, total) }
        };
        Args {
            raw,
            positional: count as usize,
            names,
            py,
        }
    }

    /// The positional ones from `first` on.
    #[inline]
    pub fn rest(&self, first: usize) -> &'a [crate::Borrowed<'a, 'py>] {
        let raw = self.raw.get(first..self.positional).unwrap_or_default();
        let borrowed = raw.as_ptr().cast::<crate::Borrowed<'a, 'py>>();
        // SAFETY: `Borrowed` is a transparent pointer to an object; these are lent, never NULL.
        unsafe { std::slice::from_raw_parts(borrowed, raw.len()) }
    }

    /// The positional one at `index`, if it is there and not `None`.
    pub fn given(&self, index: usize) -> Option<Obj<'py>> {
        let value = self.get(index)?;
        (!value.is_none()).then(|| value.clone())
    }

    /// The value given by the keyword `name`: the same object first, then one that is equal.
    #[inline]
    pub fn named(&self, name: &Obj<'py>) -> Option<crate::Borrowed<'a, 'py>> {
        let names = self.names.as_ref()?;
        let count = names.tuple_len();
        let is = |index: &usize| names.tuple_item(*index).is_some_and(|item| item.is(name));
        let equal = |index: &usize| {
            let item = names.tuple_item(*index);
            item.is_some_and(|item| item.as_utf8().ok() == name.as_utf8().ok())
        };
        let index = (0..count).find(is).or_else(|| (0..count).find(equal))?;
        let raw = NonNull::new(*self.raw.get(self.positional + index)?)?;
        // SAFETY: lent by the caller for the call.
        Some(unsafe { crate::Borrowed::from_ptr(raw) })
    }

    /// Calls another function with the same arguments.
    pub fn forward(&self, callee: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
        let names = self.names.as_ref().map_or(ptr::null_mut(), Obj::as_ptr);
        let (callee, args) = (callee.as_ptr(), self.raw.as_ptr());
        // SAFETY: I1, attached; everything was lent for longer than this call.
        let raw = unsafe { ffi::PyObject_Vectorcall(callee, args, self.positional, names) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(self.py, raw) }
    }

    /// The only keyword value, if its names are this very tuple.
    #[inline]
    pub fn sole_value(&self, names: &crate::Member) -> Option<crate::Borrowed<'a, 'py>> {
        if !self.names.as_ref().is_some_and(|own| names.is(own)) {
            return None;
        }
        let raw = NonNull::new(*self.raw.get(self.positional)?)?;
        // SAFETY: lent by the caller for the call.
        Some(unsafe { crate::Borrowed::from_ptr(raw) })
    }

    /// The tuple of keyword names.
    pub fn names(&self) -> Option<&Obj<'py>> {
        self.names.as_ref()
    }

    /// How many were given by keyword.
    #[inline]
    pub fn keywords(&self) -> usize {
        self.names.as_ref().map_or(0, Obj::tuple_len)
    }

    /// The name of a keyword that is none of `known`.
    pub fn unknown_keyword(&self, known: &[&Obj<'py>]) -> Option<String> {
        let names = self.names.as_ref()?;
        let known: Vec<_> = known
            .iter()
            .filter_map(|name| name.as_utf8().ok())
            .collect();
        (0..names.tuple_len())
            .filter_map(|index| names.tuple_item(index))
            .find(|item| !item.as_utf8().is_ok_and(|text| known.contains(&text)))
            .map(|item| item.display())
    }

    /// How many positional ones.
    pub fn len(&self) -> usize {
        self.positional
    }

    pub fn is_empty(&self) -> bool {
        self.positional == 0
    }

    pub fn py(&self) -> Attached<'py> {
        self.py
    }

    pub fn get(&self, index: usize) -> Option<crate::Borrowed<'a, 'py>> {
        if index >= self.positional {
            return None;
        }
        let raw = NonNull::new(*self.raw.get(index)?)?;
        // SAFETY: lent by the caller for the call.
        Some(unsafe { crate::Borrowed::from_ptr(raw) })
    }

    /// A positional argument that must be there.
    pub fn want(&self, index: usize, name: &str) -> PyResult<'py, crate::Borrowed<'a, 'py>> {
        self.get(index).ok_or_else(|| {
            let text = format!("missing required argument: '{name}'");
            PyError::new(self.py, Builtin::TypeError, &text)
        })
    }

    /// The value given by keyword.
    pub fn keyword(&self, name: &str) -> Option<crate::Borrowed<'a, 'py>> {
        let names = self.names.as_ref()?;
        let index = (0..names.tuple_len()).find(|&index| {
            names
                .tuple_item(index)
                .is_some_and(|item| item.as_utf8().is_ok_and(|text| text == name))
        })?;
        let raw = NonNull::new(*self.raw.get(self.positional + index)?)?;
        // SAFETY: lent by the caller for the call.
        Some(unsafe { crate::Borrowed::from_ptr(raw) })
    }
}
