//! A node that is a function of Python: a job of the pool whose answer completes the node.
//!
//! Thread: handed over by any; runs attached, on a thread of the pool. Never: completes a node while
//! its job could still be cancelled (two nodes that fail at once would wait for each other).

use std::sync::Arc;

use dag::{Done, Given, Node, Output, Place, Reason, Refusal, Stop};
use pyrt::{Kept, Obj};

use crate::dag_more;
use crate::dag_run::Context;
use crate::dag_value::{self, Needs, TermReason};
use crate::event_loop;
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Flags, Job, Op, Order, Reply};
use crate::out::{write_atom, write_tuple};
use crate::run;
use crew::Refused;

/// What is called.
pub enum Called {
    Named {
        module: String,
        name: String,
    },
    /// A function that was asked for when the graph ran.
    Object(Arc<Kept>),
}

pub struct Function {
    pub called: Called,
    /// The place of the node in its graph.
    pub index: usize,
    /// How many of the values it is given are its arguments.
    pub inputs: usize,
    /// What it gives may be awaited, on a loop.
    pub is_io: bool,
    /// As what the other nodes take its value.
    pub needs: Needs,
}

/// Enough to keep a pool busy; of a wide graph the rest waits where it does not keep others from it.
const PYTHON: Place = Place {
    name: "python",
    at_once: 64,
};

/// A node on its way through the pool.
pub struct NodeCall {
    function: Arc<Function>,
    pub given: Given,
    done: Done,
    pub needs: Needs,
}

pub fn node(name: &str, function: Function) -> Node {
    let function = Arc::new(function);
    Node::foreign(name, PYTHON, move |given, done| {
        hand_over(&function, given, done)
    })
}

fn hand_over(function: &Arc<Function>, given: Given, done: Done) -> Result<Stop, Refusal> {
    let context: &Context = match given.get(0) {
        Ok(context) => context,
        Err(reason) => return Err(Refusal::Fails(done, reason)),
    };
    let needs = context.needs(function.index, function.needs);
    let pool = context.pool.clone();
    let mut job = Job::new(Order {
        op: Op::Node,
        flags: Flags(context.flags),
        slot: context.slot.clone(),
        pool: pool.clone(),
    });
    if function.is_io {
        job.event_loop = context.event_loop.clone();
    }
    job.reply = Reply::Node(Box::new(NodeCall {
        function: function.clone(),
        given,
        done,
        needs,
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
            match (reply, refused) {
                (Reply::Node(call), Refused::Overload) => Err(Refusal::Busy(call.done)),
                (Reply::Node(call), Refused::Closed) => Err(Refusal::Fails(call.done, stopped())),
                _ => Ok(Box::new(|| {})),
            }
        }
    }
}

fn stopped() -> Reason {
    let mut out = Vec::new();
    write_stopped(&mut out);
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
    call.done.complete(Err(stopped()));
}

pub fn call<'py>(world: &World<'_, 'py>, job: &mut Job) -> Result<Obj<'py>, Failure<'py>> {
    let Reply::Node(call) = &job.reply else {
        return Err(Failure::Cancelled);
    };
    if !call.done.start() {
        return Err(Failure::Cancelled);
    }
    let called = call.function.clone();
    let values = &call.given.values()[1..=called.inputs];
    let args = values
        .iter()
        .map(|value| dag_value::to_python(world, job, value));
    let args: Vec<Obj<'py>> = args.collect::<Result<_, _>>()?;
    let function = match &called.called {
        Called::Named { module, name } => {
            let module = Obj::text(world.py, module)?;
            run::find(world, job, &module, &Obj::text(world.py, name)?)?
        }
        Called::Object(callable) => callable.get(world.py).ok_or_else(dag_value::foreign)?,
    };
    job.decodes = None;
    let value = function.call_owned(&args, None)?;
    match &called.called {
        _ if called.is_io => awaited(world, job, value),
        Called::Named { name, .. } if value.is_coroutine() => {
            value.call_method(c"close", &[])?;
            let text = format!("{name} is a coroutine function: give its node kind => io");
            Err(Failure::BadArgument(text))
        }
        _ => Ok(value),
    }
}

/// What a loop will await needs no thread of the pool meanwhile; without a loop it is awaited here.
fn awaited<'py>(
    world: &World<'_, 'py>,
    job: &mut Job,
    value: Obj<'py>,
) -> Result<Obj<'py>, Failure<'py>> {
    let value = event_loop::settle(world, job, value)?;
    if event_loop::is_to_be_awaited(job, &value)
        && let Reply::Node(call) = &mut job.reply
    {
        call.done.waits();
    }
    Ok(value)
}

/// Ends the job, and then the node.
pub fn answer(world: &World<'_, '_>, mut job: Box<Job>, outcome: Result<Obj<'_>, Failure<'_>>) {
    let Reply::Node(call) = std::mem::replace(&mut job.reply, Reply::Nobody) else {
        return job.recycle();
    };
    let result = outcome.and_then(|value| output(world, &job, &call, value));
    let result = result.map_err(|failure| reason(&job, &failure));
    let wanted = job.ticket.begin_reply();
    if wanted {
        job.ticket.finish();
    }
    job.recycle();
    if wanted {
        call.done.complete(result);
    }
}

/// What a function gave: a value, or more nodes.
fn output<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    call: &NodeCall,
    value: Obj<'py>,
) -> Result<Output, Failure<'py>> {
    match dag_more::of(world, job, call, &value)? {
        Some(more) => Ok(more.into()),
        None => Ok(dag_value::made(world, job, value, call.needs)?.into()),
    }
}

fn reason(job: &Job, failure: &Failure<'_>) -> Reason {
    let mut out = Vec::new();
    let story = failure.write(&mut out, job.flags.traceback());
    if !job.ticket.is_cancelled()
        && let Some(story) = story
    {
        job.slot.set_last_error(story);
    }
    Reason::foreign(TermReason(out.into()))
}
