//! `str` and `bytes`.

use std::ffi::c_char;
use std::ptr::NonNull;

use pyo3_ffi as ffi;

use crate::error::Builtin;
use crate::{Attached, Obj, PyError, PyResult};

/// The characters of a `str`, in the width Python chose.
#[derive(Clone, Copy, Debug)]
pub enum Characters<'a> {
    Ascii(&'a [u8]),
    Latin1(&'a [u8]),
    Ucs2(&'a [u16]),
    Ucs4(&'a [u32]),
}

/// Whether the form of a `str` is final; before 3.12 it may not be.
#[inline]
fn is_ready(text: *mut ffi::PyObject) -> bool {
    #[cfg(not(Py_3_12))]
    // SAFETY: I1, attached; a living `str`.
    return unsafe { ffi::PyUnicode_IS_READY(text) } != 0;
    #[cfg(Py_3_12)]
    {
        let _ = text;
        true
    }
}

/// Whether a ready `str` of one byte each is ASCII.
///
/// # Safety
/// It is such a `str`.
#[inline]
unsafe fn is_ascii(text: *mut ffi::PyObject) -> bool {
    #[cfg(not(Py_3_14))]
    // SAFETY: the caller's word.
    return unsafe { ffi::PyUnicode_IS_ASCII(text) } != 0;
    // The characters of ASCII follow the short head, those of Latin-1 a longer one. A subclass has
    // them elsewhere and passes for Latin-1, which takes longer and gives the same.
    #[cfg(Py_3_14)]
    // SAFETY: the caller's word.
    return unsafe { ffi::PyUnicode_DATA(text) } as usize
        == text as usize + size_of::<ffi::PyASCIIObject>();
}

impl<'py> Obj<'py> {
    /// A `str` from Rust text.
    pub fn text(py: Attached<'py>, text: &str) -> PyResult<'py, Self> {
        // SAFETY: I1, attached; pointer and length are those of a `str`.
        let raw = unsafe {
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t)
        };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// A `str` that is kept in the table of interned ones: for names.
    pub fn interned(py: Attached<'py>, text: &str) -> PyResult<'py, Self> {
        let mut raw = Self::text(py, text)?.into_ptr();
        // SAFETY: I1, attached; an owned exact `str`, replaced in place by the interned one.
        unsafe { ffi::PyUnicode_InternInPlace(&mut raw) };
        // SAFETY: a new reference, never NULL here.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// `bytes` with a copy of `data`.
    pub fn bytes(py: Attached<'py>, data: &[u8]) -> PyResult<'py, Self> {
        // SAFETY: I1, attached; pointer and length are those of a slice.
        let raw = unsafe {
            ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), data.len() as ffi::Py_ssize_t)
        };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Obj::from_new_ref(py, raw) }
    }

    /// A `str` from text that is mostly ASCII and mostly short.
    #[inline]
    pub fn text_fast(py: Attached<'py>, text: &str) -> PyResult<'py, Self> {
        match Self::ascii(py, text.as_bytes()) {
            Some(made) => made,
            None => Self::text(py, text),
        }
    }

    /// `str` if `data` is UTF-8, else `bytes`.
    #[inline]
    pub fn text_or_bytes(py: Attached<'py>, data: &[u8]) -> PyResult<'py, Self> {
        if let Some(made) = Self::ascii(py, data) {
            return made;
        }
        match std::str::from_utf8(data) {
            Ok(text) => Self::text(py, text),
            Err(_) => Self::bytes(py, data),
        }
    }

    /// A `str` of two or more ASCII characters; `None` for other data.
    #[inline]
    fn ascii(py: Attached<'py>, data: &[u8]) -> Option<PyResult<'py, Self>> {
        // Texts of one character are singletons of the interpreter: `PyUnicode_From…` finds them.
        if data.len() < 2 || !data.is_ascii() {
            return None;
        }
        // SAFETY: I1, attached.
        let raw = unsafe { ffi::PyUnicode_New(data.len() as ffi::Py_ssize_t, 127) };
        if raw.is_null() {
            return Some(Err(PyError::fetch(py)));
        }
        // SAFETY: a fresh ASCII text that nobody has seen: its characters follow its head.
        let target = unsafe { ffi::PyUnicode_1BYTE_DATA(raw) };
        // SAFETY: room for as many bytes as the text has characters.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), target, data.len()) };
        // SAFETY: a new reference, not NULL.
        Some(unsafe { Obj::from_new_ref(py, raw) })
    }

    /// The characters of a `str` as Python stores them; `None` for anything else.
    #[inline]
    pub fn characters(&self) -> Option<Characters<'_>> {
        let object = self.as_ptr();
        if !self.is_text() || !is_ready(object) {
            return None;
        }
        // SAFETY: a ready `str`; the same for the three reads below.
        let len = unsafe { ffi::PyUnicode_GET_LENGTH(object) } as usize;
        // SAFETY: as above.
        let data = unsafe { ffi::PyUnicode_DATA(object) };
        // SAFETY: `len` units of the size that the kind says, never changed, kept by `self`.
        unsafe {
            Some(match ffi::PyUnicode_KIND(object) {
                ffi::PyUnicode_1BYTE_KIND => {
                    let units = std::slice::from_raw_parts(data.cast(), len);
                    if is_ascii(object) {
                        Characters::Ascii(units)
                    } else {
                        Characters::Latin1(units)
                    }
                }
                ffi::PyUnicode_2BYTE_KIND => {
                    Characters::Ucs2(std::slice::from_raw_parts(data.cast(), len))
                }
                _ => Characters::Ucs4(std::slice::from_raw_parts(data.cast(), len)),
            })
        }
    }

    /// An instance of `str` or of a subclass?
    #[inline]
    pub fn is_text(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyUnicode_Check(self.as_ptr()) == 1 }
    }

    /// How many characters a `str` has; 0 for anything else.
    pub fn text_len(&self) -> usize {
        if !self.is_text() {
            return 0;
        }
        // SAFETY: I1, attached; it is a `str`.
        unsafe { ffi::PyUnicode_GetLength(self.as_ptr()).max(0) as usize }
    }

    /// An instance of `bytes` or of a subclass?
    pub fn is_bytes(&self) -> bool {
        // SAFETY: I1, attached; reads a flag of the type.
        unsafe { ffi::PyBytes_Check(self.as_ptr()) == 1 }
    }

    /// The UTF-8 of a `str`, kept by the object itself. Lone surrogates: `UnicodeEncodeError`.
    pub fn as_utf8(&self) -> PyResult<'py, &str> {
        let mut len: ffi::Py_ssize_t = 0;
        // SAFETY: I1, attached; anything but a `str` sets `TypeError`.
        let data = unsafe { ffi::PyUnicode_AsUTF8AndSize(self.as_ptr(), &mut len) };
        match NonNull::new(data.cast_mut()) {
            None => Err(PyError::fetch(self.py())),
            // SAFETY: `len` bytes of UTF-8, owned by the object, which `self` keeps alive.
            Some(data) => Ok(unsafe { utf8(data, len) }),
        }
    }

    /// The content of `bytes`; `None` for anything else.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if !self.is_bytes() {
            return None;
        }
        // SAFETY: I1, attached; it is a `bytes`.
        let data = unsafe { ffi::PyBytes_AsString(self.as_ptr()) };
        // SAFETY: as above.
        let len = unsafe { ffi::PyBytes_Size(self.as_ptr()) };
        // SAFETY: immutable content of `len` bytes, kept alive by `self`.
        Some(unsafe { std::slice::from_raw_parts(data.cast(), len as usize) })
    }

    /// Text for people, whatever the object is: `str(self)`, lone surrogates replaced, and if even
    /// `str` fails, the name of the type.
    pub fn display(&self) -> String {
        let text = if self.is_text() {
            Ok(self.clone())
        } else {
            self.str()
        };
        match text.and_then(|text| text.to_lossy()) {
            Ok(text) => text,
            Err(_) => format!("<unprintable {}>", self.type_name()),
        }
    }

    /// A `str` as Rust text, lone surrogates replaced by U+FFFD.
    pub fn to_lossy(&self) -> PyResult<'py, String> {
        if let Ok(text) = self.as_utf8() {
            return Ok(text.to_owned());
        }
        // SAFETY: I1, attached; a `str` (else `TypeError`), and two texts that end in NUL.
        let raw = unsafe {
            ffi::PyUnicode_AsEncodedString(
                self.as_ptr(),
                c"utf-8".as_ptr(),
                c"surrogatepass".as_ptr(),
            )
        };
        // SAFETY: a new reference, or NULL with an exception set.
        let bytes = unsafe { Obj::from_new_ref(self.py(), raw) }?;
        match bytes.as_bytes() {
            Some(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            None => Err(PyError::new(self.py(), Builtin::TypeError, "not a str")),
        }
    }

    /// `type(self).__name__` for messages; never fails.
    pub fn type_name(&self) -> String {
        let class = self.type_of();
        match class.getattr_c(c"__name__").and_then(|n| n.to_lossy()) {
            Ok(name) => name,
            Err(_) => "object".to_owned(),
        }
    }
}

/// # Safety
/// `len` bytes of UTF-8 at `data`, unchanged for `'a`.
unsafe fn utf8<'a>(data: NonNull<c_char>, len: ffi::Py_ssize_t) -> &'a str {
    // SAFETY: the caller's word.
    let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), len as usize) };
    // SAFETY: the caller's word.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}
