//! What travels along the edges of a graph: a term as bytes, an object of Python, an answer of Redis.
//!
//! Thread: any; `to_python` attached. Never: converts an object between two Python nodes.

use dag::redis::Reply;
use dag::{Reason, Value};
use pyrt::{Kept, Obj};

use crate::failure::Failure;
use crate::interp::World;
use crate::job::Job;
use crate::release;
use crate::run::JobHost;
use etf::write::{write_atom, write_binary, write_int, write_list_header, write_map_header};
use etf::write::{write_nil, write_tuple};

pub enum NodeValue {
    /// External Term Format with its version byte, as Erlang encoded it.
    Term(Box<[u8]>),
    Python(Made),
    Reply(Reply),
}

/// What Python gave.
pub struct Made {
    object: Object,
    /// Its term, without the version byte, where somebody needs that.
    term: Option<Box<[u8]>>,
    /// Whether Python takes it for true, where somebody asks.
    is_true: Option<bool>,
}

/// As what a value of Python is taken, besides as an object.
#[derive(Clone, Copy, Default)]
pub struct Needs {
    pub term: bool,
    pub condition: bool,
}

impl Needs {
    pub const TERM: Needs = Needs {
        term: true,
        condition: false,
    };

    pub fn and(self, other: Needs) -> Self {
        Needs {
            term: self.term || other.term,
            condition: self.condition || other.condition,
        }
    }
}

/// An object that graphs keep; released soon after its last user.
struct Object(Option<Kept>);

impl Made {
    pub fn term(&self) -> Option<&[u8]> {
        self.term.as_deref()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.0 = None;
        release::soon();
    }
}

/// Why a node failed, as the term of the reason.
pub struct TermReason(pub Box<[u8]>);

/// An object of Python as a value.
pub fn made<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    object: Obj<'py>,
    needs: Needs,
) -> Result<Value, Failure<'py>> {
    let mut term = None;
    if needs.term {
        let mut out = Vec::new();
        let host = JobHost { world, job };
        etf::encode(&world.bound, &host, &object, &mut out)?;
        term = Some(out.into());
    }
    let is_true = match needs.condition {
        true => Some(object.is_truthy()?),
        false => None,
    };
    Ok(Value::new(NodeValue::Python(Made {
        object: Object(Some(Kept::new(object))),
        term,
        is_true,
    })))
}

pub fn of(value: &Value) -> Option<&NodeValue> {
    value.get()
}

/// The object that a node of Python is given; nothing is `None`.
pub fn to_python<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    value: &Value,
) -> Result<Obj<'py>, Failure<'py>> {
    match of(value) {
        None => Ok(Obj::none(world.py)),
        Some(NodeValue::Term(bytes)) => {
            let host = JobHost { world, job };
            Ok(etf::decode(&world.bound, &host, etf::Input::one(bytes))?)
        }
        Some(NodeValue::Reply(reply)) => Ok(pyloop::graph::reply::to_python(world.py, reply)?),
        Some(NodeValue::Python(made)) => {
            let object = made.object.0.as_ref().and_then(|kept| kept.get(world.py));
            object.ok_or_else(foreign)
        }
    }
}

pub fn foreign<'py>() -> Failure<'py> {
    Failure::BadArgument("an object of another interpreter".into())
}

/// Whether a value lets the nodes run that have it as their condition: as Python has it, what is
/// false, nothing, zero or empty does not.
pub fn is_true(value: &Value) -> bool {
    match of(value) {
        None => false,
        Some(NodeValue::Term(bytes)) => !etf::is_false(bytes.get(1..).unwrap_or_default()),
        Some(NodeValue::Reply(reply)) => pyloop::graph::reply::is_true(reply),
        Some(NodeValue::Python(made)) => match (made.is_true, &made.term) {
            (Some(is_true), _) => is_true,
            // The result of what a function of Erlang asked for, which is taken as a term.
            (None, Some(term)) => !etf::is_false(term),
            (None, None) => true,
        },
    }
}

/// Appends the term, without the version byte; nothing is `none`.
pub fn write(out: &mut Vec<u8>, value: &Value) -> Result<(), Reason> {
    match of(value) {
        None => write_atom(out, "none"),
        Some(NodeValue::Term(bytes)) => match bytes.get(1..) {
            Some(term) => out.extend_from_slice(term),
            None => return Err(Reason::new("no term")),
        },
        Some(NodeValue::Reply(reply)) => write_reply(out, reply),
        Some(NodeValue::Python(made)) => match &made.term {
            Some(term) => out.extend_from_slice(term),
            None => return Err(Reason::new("not converted")),
        },
    }
    Ok(())
}

fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Nil => write_atom(out, "none"),
        Reply::Int(value) => write_int(out, *value),
        Reply::Double(value) => write_double(out, *value),
        Reply::Bool(true) => write_atom(out, "true"),
        Reply::Bool(false) => write_atom(out, "false"),
        Reply::Bytes(bytes) => write_binary(out, bytes),
        Reply::Simple(text) | Reply::BigNumber(text) => write_binary(out, text.as_bytes()),
        Reply::Error(text) => {
            write_tuple(out, 2);
            write_atom(out, "error");
            write_binary(out, text.as_bytes());
        }
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            if !items.is_empty() {
                write_list_header(out, items.len());
                items.iter().for_each(|item| write_reply(out, item));
            }
            write_nil(out);
        }
        Reply::Map(pairs) => {
            write_map_header(out, pairs.len() as u32);
            for (key, value) in pairs {
                write_reply(out, key);
                write_reply(out, value);
            }
        }
    }
}

fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.push(70);
        out.extend_from_slice(&value.to_be_bytes());
    } else if value.is_nan() {
        write_atom(out, "nan");
    } else if value > 0.0 {
        write_atom(out, "infinity");
    } else {
        write_atom(out, "neg_infinity");
    }
}
