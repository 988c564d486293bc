//! What travels along the edges of a graph of Python: objects as they are, answers of Redis.
//!
//! Thread: any; conversion attached.

use dag::Value;
use dag::redis::Reply;
use pyrt::{Attached, Kept, Obj, PyResult};

use super::command::{DEEPEST, Words, no_words, of_reply};
use super::reply;

/// An object, and its words where a command needs them; `None` inside: it has none.
pub struct PyValue {
    object: Kept,
    words: Option<Words>,
}

/// Why a node failed: the exception.
pub struct Raised(pub Kept);

impl PyValue {
    pub fn new(object: Obj<'_>, as_words: bool) -> Self {
        let words = if as_words { words(&object, 0) } else { None };
        let object = Kept::new(object);
        PyValue { object, words }
    }
}

/// The object; nothing is `None`.
pub fn to_python<'py>(py: Attached<'py>, value: &Value) -> PyResult<'py, Obj<'py>> {
    if let Some(reply) = value.get::<Reply>() {
        return reply::to_python(py, reply);
    }
    let object = value
        .get::<PyValue>()
        .and_then(|value| value.object.get(py));
    Ok(object.unwrap_or_else(|| Obj::none(py)))
}

pub fn to_words(value: &Value) -> Result<Words, dag::Reason> {
    if let Some(reply) = value.get::<Reply>() {
        return of_reply(reply, 0).ok_or_else(no_words);
    }
    let words = value
        .get::<PyValue>()
        .and_then(|value| value.words.as_ref());
    words.map(copy).ok_or_else(no_words)
}

fn copy(words: &Words) -> Words {
    match words {
        Words::One(word) => Words::One(word.clone()),
        Words::Many(list) => Words::Many(list.iter().map(copy).collect()),
    }
}

/// `str`, `bytes`, numbers, and lists and tuples of them.
fn words(object: &Obj<'_>, depth: usize) -> Option<Words> {
    if let Some(bytes) = object.as_bytes() {
        return Some(Words::One(bytes.to_vec()));
    }
    if object.is_text() {
        return Some(Words::One(object.as_utf8().ok()?.as_bytes().to_vec()));
    }
    if object.as_bool().is_none() && (object.is_int() || object.is_float()) {
        return Some(Words::One(object.display().into_bytes()));
    }
    if depth >= DEEPEST {
        return None;
    }
    let items: Vec<Obj<'_>> = if object.is_list() {
        (0..object.list_len())
            .map_while(|n| object.list_item(n))
            .collect()
    } else if object.is_tuple() {
        let items = (0..object.tuple_len()).map_while(|n| object.tuple_item(n));
        items.map(|item| item.clone()).collect()
    } else {
        return None;
    };
    let items = items.iter().map(|item| words(item, depth + 1));
    Some(Words::Many(items.collect::<Option<_>>()?))
}
