//! A node that is a function of Erlang: a message to the run's process, answered by `dag_reply`.
//!
//! Thread: handed over by any of ours. Never: on a scheduler (`enif_send` has no process there).

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dag::{Done, Given, Node, Place, Reason, Refusal, Stop, Value};
use rustler::LocalPid;

use crate::atoms;
use crate::dag_python::write_stopped;
use crate::dag_run::Context;
use crate::dag_value::{self, TermReason};
use crate::erts::{MsgEnv, Raw};
use crew::sync::lock;
use etf::write::{write_list_header, write_nil};

/// The functions that run for one graph, by the number of their call.
#[derive(Default)]
pub struct Calls {
    open: Mutex<HashMap<u64, Done>>,
    next: AtomicU64,
}

impl Calls {
    fn insert(&self, done: Done) -> u64 {
        // Relaxed: only uniqueness counts.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(id, done);
        id
    }

    pub fn take(&self, id: u64) -> Option<Done> {
        lock(&self.open).remove(&id)
    }
}

/// Each function has a process of its own; a wide graph shall not fill the table of processes.
const ERLANG: Place = Place {
    name: "erlang",
    at_once: 10_000,
};

/// `function` is the number by which the run's process knows it.
pub fn node(name: &str, function: u64, inputs: usize) -> Node {
    Node::foreign(name, ERLANG, move |given, done| {
        hand_over(function, inputs, &given, done)
    })
}

fn hand_over(function: u64, inputs: usize, given: &Given, done: Done) -> Result<Stop, Refusal> {
    let context = match given.values().first().and_then(Value::share::<Context>) {
        Some(context) => context,
        None => return Err(Refusal::Fails(done, Reason::new("no context"))),
    };
    let Some(to) = context.runner else {
        let reason = Reason::new("no process runs its functions");
        return Err(Refusal::Fails(done, reason));
    };
    let args = match arguments(&given.values()[1..=inputs]) {
        Ok(args) => args,
        Err(reason) => return Err(Refusal::Fails(done, reason)),
    };
    if !done.start() {
        // Its run is over: nobody waits for the function.
        return Ok(Box::new(|| {}));
    }
    let id = context.calls.insert(done);
    let mut env = MsgEnv::new();
    let message = env.tuple(&[
        Raw::atom(atoms::dag_call()),
        env.int(id as i64),
        env.int(function as i64),
        env.binary(&args),
    ]);
    if !env.send(&to, message)
        && let Some(done) = context.calls.take(id)
    {
        let mut out = Vec::new();
        write_stopped(&mut out);
        let reason = Reason::foreign(TermReason(out.into()));
        return Err(Refusal::Fails(done, reason));
    }
    Ok(Box::new(move || {
        // Open still: nobody waits for it any more.
        if context.calls.take(id).is_some() {
            stop(&to, id);
        }
    }))
}

fn stop(to: &LocalPid, id: u64) {
    let mut env = MsgEnv::new();
    let message = env.tuple(&[Raw::atom(atoms::dag_stop()), env.int(id as i64)]);
    env.send(to, message);
}

/// The values as one list, in External Term Format.
fn arguments(values: &[Value]) -> Result<Vec<u8>, Reason> {
    let mut out = vec![etf::tag::VERSION];
    if !values.is_empty() {
        write_list_header(&mut out, values.len());
        for value in values {
            dag_value::write(&mut out, value)?;
        }
    }
    write_nil(&mut out);
    Ok(out)
}
