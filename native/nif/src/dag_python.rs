//! A node that is a function of Python: a job of the pool whose answer completes the node.
//!
//! Thread: handed over by any; runs attached, on a thread of the pool. Never: completes a node while
//! its job could still be cancelled (two nodes that fail at once would wait for each other).

use std::sync::Arc;

use dag::{Done, Given, NoTurn, Node, Output, Queue, Reason, Taken, Turn, Value};
use pyrt::{Kept, Obj};

use crate::dag_more;
use crate::dag_run::Context;
use crate::dag_value::{self, Needs, TermReason};
use crate::event_loop;
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Flags, Job, Op, Order, Reply};
use crate::run;
use crew::Refused;
use etf::write::{write_atom, write_tuple};

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
static PYTHON: Queue = Queue {
    name: "python",
    at_once: 64,
    enter,
};

/// What a job of a graph is for.
pub enum NodeCall {
    /// The most urgent node, when a worker has come to it.
    Turn(Turn),
    Runs(Running),
    Nothing,
}

/// A node that runs.
pub struct Running {
    pub given: Given,
    done: Done,
    pub needs: Needs,
}

pub fn node(name: &str, function: Function) -> Node {
    Node::queued(name, &PYTHON, function)
}

/// A job for a turn of a run, in the queue of its pool.
fn enter(turn: Turn) -> Result<(), NoTurn> {
    let Some(context) = turn.inputs().first().and_then(Value::share::<Context>) else {
        return Err(NoTurn::Fails(turn, Reason::new("no context")));
    };
    let pool = context.pool.clone();
    let mut job = Job::new(Order {
        op: Op::Node,
        flags: Flags(context.flags),
        slot: context.slot.clone(),
        pool: pool.clone(),
    });
    job.reply = Reply::Node(Box::new(NodeCall::Turn(turn)));
    job.decodes = Some(pool.interp.exported.decodes());
    let Err((mut job, refused)) = pool.push(job) else {
        return Ok(());
    };
    job.ticket.cancel();
    let reply = std::mem::replace(&mut job.reply, Reply::Nobody);
    job.recycle();
    let Reply::Node(call) = reply else {
        return Ok(());
    };
    match (*call, refused) {
        (NodeCall::Turn(turn), Refused::Overload) => Err(NoTurn::Busy(turn)),
        (NodeCall::Turn(turn), Refused::Closed) => Err(NoTurn::Fails(turn, stopped())),
        _ => Ok(()),
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
    match call {
        NodeCall::Turn(turn) => turn.refuse(stopped()),
        NodeCall::Runs(running) => running.done.complete(Err(stopped())),
        NodeCall::Nothing => {}
    }
}

/// Takes the node that the job's turn is for now.
fn take(job: &mut Job) -> Option<(Arc<Function>, Given)> {
    let Reply::Node(call) = &mut job.reply else {
        return None;
    };
    let NodeCall::Turn(turn) = std::mem::replace(&mut **call, NodeCall::Nothing) else {
        return None;
    };
    let taken = turn.take()?;
    let function = taken.function::<Function>()?;
    let Taken { given, done, .. } = taken;
    let context: &Context = given.get(0).ok()?;
    if function.is_io {
        job.event_loop = context.event_loop.clone();
    }
    let ticket = job.ticket.clone();
    done.stops_by(Box::new(move || {
        ticket.cancel();
    }));
    let running = Running {
        needs: context.needs(function.index, function.needs),
        given: given.clone(),
        done,
    };
    **call = NodeCall::Runs(running);
    Some((function, given))
}

/// Runs the node that is the most urgent now.
pub fn call<'py>(world: &World<'_, 'py>, job: &mut Job) -> Result<Obj<'py>, Failure<'py>> {
    let (called, given) = take(job).ok_or(Failure::Cancelled)?;
    let args = given.values()[1..=called.inputs]
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
        && let NodeCall::Runs(running) = &mut **call
    {
        running.done.waits();
    }
    Ok(value)
}

/// Ends the job, and then the node.
pub fn answer(world: &World<'_, '_>, mut job: Box<Job>, outcome: Result<Obj<'_>, Failure<'_>>) {
    let reply = std::mem::replace(&mut job.reply, Reply::Nobody);
    let ended = match reply {
        Reply::Node(call) => match *call {
            NodeCall::Runs(running) => {
                let result = outcome.and_then(|value| output(world, &job, &running, value));
                Some((
                    running.done,
                    result.map_err(|failure| reason(&job, &failure)),
                ))
            }
            // Nobody waited for a node any more.
            _ => None,
        },
        _ => None,
    };
    let wanted = job.ticket.begin_reply();
    if wanted {
        job.ticket.finish();
    }
    job.recycle();
    if let Some((done, result)) = ended
        && wanted
    {
        done.complete(result);
    }
}

/// What a function gave: a value, or more nodes.
fn output<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    call: &Running,
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
