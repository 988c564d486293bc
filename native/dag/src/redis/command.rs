//! The arguments of commands: whatever can be said as bytes.

use std::borrow::Cow;

/// One argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg<'a>(Cow<'a, [u8]>);

impl AsRef<[u8]> for Arg<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Arg(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Arg(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Arg(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Arg<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Arg(Cow::Borrowed(bytes))
    }
}

impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Arg(Cow::Owned(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Arg<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Arg(Cow::Owned(bytes))
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Arg(Cow::Owned(number.to_string().into_bytes()))
    }
}
