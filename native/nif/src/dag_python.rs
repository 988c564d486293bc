//! A node that is a function of Python: a job of the pool whose answer completes the node.
//!
//! Thread: handed over by any; runs attached, on a thread of the pool. Never: completes a node while
//! its job could still be cancelled (two nodes that fail at once would wait for each other).

use std::sync::Arc;

use dag::{Done, Given, Node, Reason, Refusal, Stop, Value};
use pyrt::Obj;

use crate::dag_run::Context;
use crate::dag_value::{self, NodeValue, Object, TermReason};
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Flags, Job, Op, Order, Reply};
use crate::out::{write_atom, write_tuple};
use crate::run::{self, JobHost};
use crew::Refused;

/// What is called.
pub struct Function {
    pub module: String,
    pub name: String,
    /// The place of the node in its graph.
    pub index: usize,
    /// Some node needs its value as a term.
    pub as_term: bool,
}

/// A node on its way through the pool.
pub struct NodeCall {
    function: Arc<Function>,
    given: Given,
    done: Done,
    as_term: bool,
}

pub fn node(name: &str, function: Function) -> Node {
    let function = Arc::new(function);
    Node::foreign(name, "python", move |given, done| {
        hand_over(&function, given, done)
    })
}

fn hand_over(function: &Arc<Function>, given: Given, done: Done) -> Result<Stop, Refusal> {
    let context: &Context = match given.get(0) {
        Ok(context) => context,
        Err(reason) => return Err(Refusal(done, reason)),
    };
    let as_term = function.as_term || context.wanted.contains(&function.index);
    let pool = context.pool.clone();
    let mut job = Job::new(Order {
        op: Op::Node,
        flags: Flags(context.flags),
        slot: context.slot.clone(),
        pool: pool.clone(),
    });
    job.reply = Reply::Node(Box::new(NodeCall {
        function: function.clone(),
        given,
        done,
        as_term,
    }));
    job.decodes = Some(pool.interp.exported.decodes());
    let ticket = job.ticket.clone();
    match pool.push(job) {
        Ok(()) => Ok(Box::new(move || {
            ticket.cancel();
        })),
        Err((mut job, refused)) => {
            job.ticket.cancel();
            let reply = std::mem::replace(&mut job.reply, Reply::Nobody);
            job.recycle();
            match reply {
                Reply::Node(call) => Err(Refusal(call.done, refusal(refused))),
                _ => Ok(Box::new(|| {})),
            }
        }
    }
}

fn refusal(refused: Refused) -> Reason {
    let mut out = Vec::new();
    match refused {
        Refused::Overload => write_atom(&mut out, "overload"),
        Refused::Closed => write_stopped(&mut out),
    }
    Reason::foreign(TermReason(out.into()))
}

/// `{context_died, stopped}`
pub fn write_stopped(out: &mut Vec<u8>) {
    write_tuple(out, 2);
    write_atom(out, "context_died");
    write_atom(out, "stopped");
}

/// The pool has closed before the job ran.
pub fn refuse(call: NodeCall) {
    call.done.complete(Err(refusal(Refused::Closed)));
}

pub fn call<'py>(world: &World<'_, 'py>, job: &mut Job) -> Result<Obj<'py>, Failure<'py>> {
    let Reply::Node(call) = &job.reply else {
        return Err(Failure::Cancelled);
    };
    if !call.done.start() {
        return Err(Failure::Cancelled);
    }
    let values = call.given.values();
    let mut args = Vec::with_capacity(values.len());
    for value in &values[1..] {
        args.push(dag_value::to_python(world, job, value)?);
    }
    let module = Obj::interned(world.py, &call.function.module)?;
    let name = Obj::interned(world.py, &call.function.name)?;
    let function = run::find(world, job, &module, &name)?;
    job.decodes = None;
    let value = function.call_owned(&args, None)?;
    if value.type_name() == "coroutine" {
        value.call_method(c"close", &[])?;
        let text = format!(
            "{name} is a coroutine function: give its node kind => io",
            name = name.display()
        );
        return Err(Failure::BadArgument(text));
    }
    Ok(value)
}

/// Ends the job, and then the node.
pub fn answer(world: &World<'_, '_>, mut job: Box<Job>, outcome: Result<Obj<'_>, Failure<'_>>) {
    let Reply::Node(call) = std::mem::replace(&mut job.reply, Reply::Nobody) else {
        return job.recycle();
    };
    let result = outcome.and_then(|value| keep(world, &job, &call, value));
    let result = result.map_err(|failure| reason(&job, &failure));
    let wanted = job.ticket.begin_reply();
    if wanted {
        job.ticket.finish();
    }
    job.recycle();
    if wanted {
        call.done.complete(result.map(Into::into));
    }
}

fn keep<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    call: &NodeCall,
    value: Obj<'py>,
) -> Result<Value, Failure<'py>> {
    let mut term = None;
    if call.as_term {
        let mut out = Vec::new();
        let host = JobHost { world, job };
        etf::encode(&world.bound, &host, &value, &mut out)?;
        term = Some(out.into());
    }
    Ok(Value::new(NodeValue::Python(Object::new(value), term)))
}

fn reason(job: &Job, failure: &Failure<'_>) -> Reason {
    if let Some(details) = failure.details() {
        job.slot.set_last_error(details);
    }
    let mut out = Vec::new();
    failure.write(&mut out, job.flags.traceback());
    Reason::foreign(TermReason(out.into()))
}
