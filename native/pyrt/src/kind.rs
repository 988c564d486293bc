//! What an object is, by the address of its type: the first look of every conversion.
//!
//! Thread: any attached one. Never: calls Python.

use pyo3_ffi as ffi;

use crate::Obj;

/// The exact built-in type of an object, or the built-in type its class comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    None,
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    List,
    Tuple,
    Dict,
    /// Not exactly one of the above: `base_kind` says more.
    Other,
}

/// The built-in type that a class is or comes from, in the order a conversion prefers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseKind {
    Int,
    Float,
    Text,
    Bytes,
    List,
    Tuple,
    Dict,
    Set,
    ByteArray,
    MemoryView,
    Other,
}

impl Obj<'_> {
    /// Compares addresses only.
    #[inline]
    pub fn kind(&self) -> Kind {
        // SAFETY: every live object has a type.
        let class = unsafe { ffi::Py_TYPE(self.as_ptr()) };
        if class == &raw mut ffi::PyLong_Type {
            Kind::Int
        } else if class == &raw mut ffi::PyUnicode_Type {
            Kind::Text
        } else if class == &raw mut ffi::PyFloat_Type {
            Kind::Float
        } else if class == &raw mut ffi::PyList_Type {
            Kind::List
        } else if class == &raw mut ffi::PyTuple_Type {
            Kind::Tuple
        } else if class == &raw mut ffi::PyDict_Type {
            Kind::Dict
        } else if class == &raw mut ffi::PyBytes_Type {
            Kind::Bytes
        } else if class == &raw mut ffi::PyBool_Type {
            Kind::Bool
        } else if self.is_none() {
            Kind::None
        } else {
            Kind::Other
        }
    }

    /// Which built-in type the class of this object is or comes from. Runs no Python.
    pub fn base_kind(&self) -> BaseKind {
        let object = self.as_ptr();
        // SAFETY: I1, attached; each test reads the flags or the bases of the type.
        unsafe {
            if ffi::PyLong_Check(object) != 0 {
                BaseKind::Int
            } else if ffi::PyUnicode_Check(object) != 0 {
                BaseKind::Text
            } else if ffi::PyBytes_Check(object) != 0 {
                BaseKind::Bytes
            } else if ffi::PyList_Check(object) != 0 {
                BaseKind::List
            } else if ffi::PyTuple_Check(object) != 0 {
                BaseKind::Tuple
            } else if ffi::PyDict_Check(object) != 0 {
                BaseKind::Dict
            } else if ffi::PyFloat_Check(object) != 0 {
                BaseKind::Float
            } else if ffi::PyAnySet_Check(object) != 0 {
                BaseKind::Set
            } else if ffi::PyByteArray_Check(object) != 0 {
                BaseKind::ByteArray
            } else if ffi::PyMemoryView_Check(object) != 0 {
                BaseKind::MemoryView
            } else {
                BaseKind::Other
            }
        }
    }

    /// Whether the class of this object is `class` or comes from it; what `__class__` says does
    /// not count, so no Python runs.
    pub fn is_subtype(&self, class: &Obj<'_>) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        if unsafe { ffi::PyType_Check(class.as_ptr()) } == 0 {
            return false;
        }
        // SAFETY: every live object has a type.
        let own = unsafe { ffi::Py_TYPE(self.as_ptr()) };
        // SAFETY: I1, attached; two types.
        unsafe { ffi::PyType_IsSubtype(own, class.as_ptr().cast()) == 1 }
    }

    /// Whether this is a class.
    pub fn is_class(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyType_Check(self.as_ptr()) == 1 }
    }
}
