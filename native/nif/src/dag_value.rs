//! What travels along the edges of a graph: a term as bytes, an object of Python, an answer of Redis.
//!
//! Thread: any; `to_python` attached. Never: converts an object between two Python nodes.

use dag::redis::Reply;
use dag::{Reason, Value};
use pyrt::{Kept, Obj};

use crate::failure::Failure;
use crate::interp::World;
use crate::job::Job;
use crate::out::{write_atom, write_binary, write_int, write_list_header, write_map_header};
use crate::out::{write_nil, write_tuple};
use crate::release;
use crate::run::JobHost;

pub enum NodeValue {
    /// External Term Format with its version byte, as Erlang encoded it.
    Term(Box<[u8]>),
    /// An object, and its term (without the version byte) where somebody needs that.
    Python(Object, Option<Box<[u8]>>),
    Reply(Reply),
}

/// An object that graphs keep; released soon after its last user.
pub struct Object(Option<Kept>);

impl Object {
    pub fn new(object: Obj<'_>) -> Self {
        Object(Some(Kept::new(object)))
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
        Some(NodeValue::Python(object, _)) => {
            let object = object.0.as_ref().and_then(|kept| kept.get(world.py));
            object.ok_or_else(|| Failure::BadArgument("an object of another interpreter".into()))
        }
    }
}

/// Appends the term, without the version byte; nothing is `none`.
pub fn write(out: &mut Vec<u8>, value: &Value) -> Result<(), Reason> {
    match of(value) {
        None => write_atom(out, "none"),
        Some(NodeValue::Term(bytes)) => out.extend_from_slice(&bytes[1..]),
        Some(NodeValue::Reply(reply)) => write_reply(out, reply),
        Some(NodeValue::Python(_, Some(term))) => out.extend_from_slice(term),
        Some(NodeValue::Python(_, None)) => return Err(Reason::new("not converted")),
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
