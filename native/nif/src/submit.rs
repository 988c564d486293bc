//! Hop 1 of a call: takes the bytes into a job of its own and queues it.
//!
//! Thread: the caller's scheduler, which looks for the answer for some microseconds where answers
//! come that quickly. Never: takes the GIL, sleeps, or copies a large binary (I9).

use std::sync::Arc;
use std::time::Duration;

use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, NifResult, ResourceArc, Term};

use crate::atoms;
use crate::event_loop::{self, Loop};
use crate::here::Thread;
use crate::job::{Flags, Job, Name, Op, Order, Reply, TicketRef};
use crate::pool::Pool;
use crate::resource::PoolRef;
use crate::runtime;
use crate::slot::Slot;
use crate::stream::{Running, Stream};
use crate::ticket::{Answered, Ticket};
use crew::Refused;

/// Python 3.12 counts calls of C code per thread and refuses the 1500th, which nothing can raise:
/// deeper levels go to another thread.
const MOST_NESTED: usize = if pyrt::BUILT_FOR.1 == 12 {
    400
} else {
    usize::MAX
};

/// Whether a job may nest on the thread that waits for its caller's callback.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The caller waits for the answer, wherever it is made.
    Yes,
    No,
}

/// Returns the answer if it was there at once. Else the job's number, and `{Key, Answer}` will come;
/// or the atom that says why not.
#[rustler::nif]
fn submit<'a>(
    env: Env<'a>,
    slot: ResourceArc<Slot>,
    key: Term<'a>,
    pool: Term<'a>,
    op: u32,
    flags: u32,
    payload: Term<'a>,
) -> NifResult<Term<'a>> {
    let default = pool.is_atom();
    let Some(pool) = pool_of(pool) else {
        return Ok(atoms::not_running().encode(env));
    };
    let mut job = order(slot, pool, op, flags)?;
    if !job.fill(payload) {
        return Err(rustler::Error::BadArg);
    }
    job.reply = Reply::Key(job.env.copy(key));
    let ticket = job.ticket.clone();
    job.slot.remember(ticket.clone());
    // Somebody else's thread only where the caller did not name a pool; one of the named pool itself
    // always, for the others of that pool may all be waiting in the same way.
    let own = |thread: &Arc<Thread>| !job.pool.crew.is_single() && job.pool.has(thread);
    let wait = if default || job.slot.nest().is_some_and(|thread| own(&thread)) {
        Wait::Yes
    } else {
        Wait::No
    };
    let slot = job.slot.clone();
    let nests = wait == Wait::Yes && slot.nest().is_some();
    let looks = nests || job.pool.crew.is_looking();
    let meets = looks.then(|| slot.patience.take()).flatten();
    if meets.is_some() {
        ticket.meet.open();
    }
    if let Err(refused) = admit(job, wait) {
        return Ok(refusal(refused).encode(env));
    }
    if meets.is_none() && ticket.is_over() {
        // The thread that ran it took this scheduler's processor for so long: others have waited.
        rustler::schedule::consume_timeslice(env, 100);
    }
    Ok(
        match meets.and_then(|limit| meet(env, &ticket, &slot, limit)) {
            Some(answer) => answer,
            None => ticket.id().encode(env),
        },
    )
}

/// Waits a moment for the answer before the caller goes to sleep.
fn meet<'a>(env: Env<'a>, ticket: &Ticket, slot: &Slot, limit: Duration) -> Option<Term<'a>> {
    let answered = ticket.meet.wait(limit);
    slot.patience.learn(answered.is_some());
    // A process that waited for its message would let the others run: ten calls and it does.
    rustler::schedule::consume_timeslice(env, 10);
    let Answered { job, body } = answered?;
    let answer = job.env.copy_to(env, body);
    ticket.finish();
    job.recycle();
    Some(answer)
}

/// `{Tag, Ref, Answer}` will come to `to`. Returns `{ok, Ref}` or `{Why, Ref}`.
#[rustler::nif]
#[expect(
    clippy::too_many_arguments,
    reason = "one argument per word of the request"
)]
fn spawn<'a>(
    env: Env<'a>,
    slot: ResourceArc<Slot>,
    to: LocalPid,
    tag: Atom,
    pool: Term<'a>,
    op: u32,
    flags: u32,
    payload: Term<'a>,
) -> NifResult<(Atom, ResourceArc<TicketRef>)> {
    let _ = env;
    let pool = pool_of(pool);
    let Some(pool) = pool else {
        return Ok((atoms::not_running(), dead_reference()));
    };
    let mut job = order(slot, pool, op, flags)?;
    if !job.fill(payload) {
        return Err(rustler::Error::BadArg);
    }
    let reference = ResourceArc::new(TicketRef {
        ticket: job.ticket.clone(),
        stream: None,
    });
    job.reply = Reply::Message {
        to,
        tag,
        name: Name::Reference(reference.clone()),
    };
    job.slot.remember(job.ticket.clone());
    Ok(match admit(job, Wait::No) {
        Ok(()) => (atoms::ok(), reference),
        Err(refused) => (refusal(refused), reference),
    })
}

/// Nobody waits. Returns `{ok, Ref}` or `{Why, Ref}`.
#[rustler::nif]
fn cast<'a>(
    slot: ResourceArc<Slot>,
    pool: Term<'a>,
    op: u32,
    flags: u32,
    payload: Term<'a>,
) -> NifResult<(Atom, ResourceArc<TicketRef>)> {
    let Some(pool) = pool_of(pool) else {
        return Ok((atoms::not_running(), dead_reference()));
    };
    let mut job = order(slot, pool, op, flags)?;
    if !job.fill(payload) {
        return Err(rustler::Error::BadArg);
    }
    job.reply = Reply::Nobody;
    let reference = ResourceArc::new(TicketRef {
        ticket: job.ticket.clone(),
        stream: None,
    });
    // Not remembered by the slot: a cast outlives its caller.
    Ok(match admit(job, Wait::No) {
        Ok(()) => (atoms::ok(), reference),
        Err(refused) => (refusal(refused), reference),
    })
}

/// `{py_stream, Ref, _}` messages will come to `to`. `window`: 0 for none.
#[rustler::nif]
fn stream<'a>(
    slot: ResourceArc<Slot>,
    to: LocalPid,
    window: u32,
    pool: Term<'a>,
    op: u32,
    flags: u32,
    payload: Term<'a>,
) -> NifResult<(Atom, ResourceArc<TicketRef>)> {
    let event_loop = loop_of(pool);
    let Some(pool) = pool_of(pool) else {
        return Ok((atoms::not_running(), dead_reference()));
    };
    let mut job = order(slot, pool, op, flags)?;
    if !job.fill(payload) {
        return Err(rustler::Error::BadArg);
    }
    job.event_loop = event_loop;
    let stream = Stream::new((window > 0).then_some(window));
    let reference = ResourceArc::new(TicketRef {
        ticket: job.ticket.clone(),
        stream: Some(stream.clone()),
    });
    job.reply = Reply::Stream {
        to,
        stream: Running(stream),
        reference: reference.clone(),
    };
    job.slot.remember(job.ticket.clone());
    Ok(match admit(job, Wait::No) {
        Ok(()) => (atoms::ok(), reference),
        Err(refused) => (refusal(refused), reference),
    })
}

pub fn dead_reference() -> ResourceArc<TicketRef> {
    let ticket = Ticket::new(false);
    ticket.cancel();
    ResourceArc::new(TicketRef {
        ticket,
        stream: None,
    })
}

pub fn order(slot: ResourceArc<Slot>, pool: Arc<Pool>, op: u32, flags: u32) -> NifResult<Box<Job>> {
    let op = Op::from_code(op).ok_or(rustler::Error::BadArg)?;
    let about = Flags(flags).about().then(|| slot.about()).flatten();
    let job = Job::new(Order {
        op,
        flags: Flags(flags),
        slot,
        pool,
    });
    if let Some(about) = about {
        job.ticket.set_about(about);
    }
    Ok(job)
}

/// A pool's resource, or any atom for the main pool.
pub fn pool_of(term: Term<'_>) -> Option<Arc<Pool>> {
    if term.is_atom() {
        return runtime::main_pool();
    }
    let pool: ResourceArc<PoolRef> = term.decode().ok()?;
    Some(pool.pool.clone())
}

/// The loop of a context.
fn loop_of(term: Term<'_>) -> Option<Arc<Loop>> {
    let pool: ResourceArc<PoolRef> = term.decode().ok()?;
    pool.event_loop.get().map(event_loop::of_resource)
}

/// Queues a job whose answer nobody waits for in the NIF.
pub fn enqueue(job: Box<Job>) -> Result<(), Refused> {
    admit(job, Wait::No)
}

fn admit(mut job: Box<Job>, wait: Wait) -> Result<(), Refused> {
    job.decodes = Some(job.pool.interp.exported.decodes());
    if wait == Wait::Yes {
        // The caller runs a callback of a thread that waits: nowhere else is sure to be free.
        let slot = job.slot.clone();
        job = match slot.nest_job(job, MOST_NESTED) {
            Ok(()) => return Ok(()),
            Err(job) => job,
        };
    }
    let pool = job.pool.clone();
    match pool.push(job) {
        Ok(()) => Ok(()),
        Err((job, refused)) => {
            job.ticket.cancel();
            job.recycle();
            Err(refused)
        }
    }
}

pub fn refusal(refused: Refused) -> Atom {
    match refused {
        Refused::Overload => atoms::overload(),
        Refused::Closed => atoms::context_died(),
    }
}
