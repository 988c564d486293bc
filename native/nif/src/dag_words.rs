//! Values as words of Redis commands: text, bytes and numbers, or lists of them.
//!
//! Thread: the loop's. Never: trusts a length of a term.

use dag::{Reason, Value};
use pyloop::graph::command::{DEEPEST, Words, no_words, of_reply};

use crate::dag_value::{self, NodeValue};

/// The words of a value; an error says what can't be one.
pub fn of(value: &Value) -> Result<Words, Reason> {
    let found = match dag_value::of(value) {
        Some(NodeValue::Term(bytes)) => Cursor(&bytes[1..]).words(0),
        Some(NodeValue::Python(made)) => made.term().and_then(|term| Cursor(term).words(0)),
        Some(NodeValue::Reply(reply)) => of_reply(reply, 0),
        _ => None,
    };
    found.ok_or_else(no_words)
}

/// Reads External Term Format.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.number().map(|size| u32::from_be_bytes(size) as usize)
    }

    fn words(&mut self, depth: usize) -> Option<Words> {
        let text = |value: &dyn std::fmt::Display| Words::One(value.to_string().into_bytes());
        Some(match self.take(1)?[0] {
            97 => text(&self.take(1)?[0]),
            98 => text(&i32::from_be_bytes(self.number()?)),
            70 => text(&f64::from_be_bytes(self.number()?)),
            110 => text(&self.big()?),
            109 => {
                let len = self.size()?;
                Words::One(self.take(len)?.to_vec())
            }
            119 | 115 => {
                let len = usize::from(self.take(1)?[0]);
                Words::One(self.take(len)?.to_vec())
            }
            118 | 100 => {
                let len = usize::from(u16::from_be_bytes(self.number()?));
                Words::One(self.take(len)?.to_vec())
            }
            106 => Words::Many(Vec::new()),
            // Small numbers, one word each: text is a binary.
            107 => {
                let len = usize::from(u16::from_be_bytes(self.number()?));
                Words::Many(self.take(len)?.iter().map(|number| text(number)).collect())
            }
            108 => {
                let len = self.size()?;
                let items = self.items(len, depth)?;
                (self.take(1)? == [106]).then_some(items)?
            }
            104 => {
                let len = usize::from(self.take(1)?[0]);
                self.items(len, depth)?
            }
            _ => return None,
        })
    }

    fn items(&mut self, len: usize, depth: usize) -> Option<Words> {
        if depth >= DEEPEST || len > self.0.len() {
            return None;
        }
        let items = (0..len).map(|_| self.words(depth + 1));
        Some(Words::Many(items.collect::<Option<_>>()?))
    }

    fn big(&mut self) -> Option<i128> {
        let [len, sign] = self.number()?;
        let mut digits = [0; 16];
        let little = self.take(usize::from(len))?;
        digits.get_mut(..little.len())?.copy_from_slice(little);
        let value = i128::try_from(u128::from_le_bytes(digits)).ok()?;
        Some(if sign == 0 { value } else { -value })
    }
}
