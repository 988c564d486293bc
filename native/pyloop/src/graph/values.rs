//! What travels along the edges of a graph of Python: objects as they are, answers of Redis.
//!
//! Thread: any; conversion attached.

use dag::Value;
use dag::redis::Reply;
use pyrt::{Attached, Kept, Obj, PyResult};

use super::command::{DEEPEST, Words, no_words, of_reply};
use super::reply;

/// As what the value of a node is taken, besides as an object.
#[derive(Clone, Copy, Default)]
pub struct Needs {
    pub words: bool,
    pub condition: bool,
}

/// An object; its words where a command needs them (`None`: it has none), and whether it is true
/// where it is a condition.
pub struct PyValue {
    object: Kept,
    words: Option<Words>,
    is_true: bool,
}

/// Why a node failed: the exception.
pub struct Raised(pub Kept);

impl PyValue {
    /// What Python raises when it is asked whether the object is true is the node's own failure.
    pub fn new<'py>(object: Obj<'py>, needs: Needs) -> PyResult<'py, Self> {
        let words = needs.words.then(|| words(&object, 0)).flatten();
        let is_true = !needs.condition || object.is_truthy()?;
        let object = Kept::new(object);
        Ok(PyValue {
            object,
            words,
            is_true,
        })
    }

    /// The value of a node that failed. Where that is the result of an asked graph, who takes it and as
    /// what is not known yet.
    pub fn default<'py>(object: Obj<'py>, needs: Needs) -> PyResult<'py, Self> {
        let words = words(&object, 0);
        let is_true = match object.is_truthy() {
            Err(_) if !needs.condition => true,
            answer => answer?,
        };
        let object = Kept::new(object);
        Ok(PyValue {
            object,
            words,
            is_true,
        })
    }
}

/// Whether a value lets the nodes run that have it as their condition.
pub fn is_true(value: &Value) -> bool {
    if let Some(reply) = value.get::<Reply>() {
        return reply::is_true(reply);
    }
    value.get::<PyValue>().is_some_and(|value| value.is_true)
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
