//! Hop 1 of a call: takes the bytes into a job of its own and queues it.
//!
//! Thread: the caller's scheduler, which looks for the answer for some microseconds where answers
//! come that quickly. Never: takes the GIL, sleeps, or copies a large binary (I9).

use std::sync::Arc;
use std::time::Duration;

use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, NifResult, ResourceArc, Term};

use crate::atoms;
use crate::callback;
use crate::event_loop::{self, Loop};
use crate::given::Given;
use crate::here::Thread;
use crate::job::{Flags, Job, Name, Op, Order, Reply, TicketRef};
use crate::plain;
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

/// Where a job goes.
struct Place<'a> {
    pool: Arc<Pool>,
    /// Takes the job; the pool calls what is no coroutine function.
    event_loop: Option<Arc<Loop>>,
    /// The pool, if the caller named one.
    named: Option<&'a PoolRef>,
}

/// Where the answer shall go: `py_nif:reply()`.
enum Wanted<'a> {
    Key(Term<'a>),
    Message { tag: Atom, to: LocalPid },
    Named { to: LocalPid, name: Term<'a> },
    Stream { to: LocalPid, window: u32 },
    Nowhere,
}

/// Every job of Erlang's. Returns why not, or what `py_nif:reply()` says.
#[rustler::nif]
fn submit<'a>(
    env: Env<'a>,
    slot: ResourceArc<Slot>,
    place: Term<'a>,
    reply: Term<'a>,
    op: u32,
    flags: u32,
    payload: Term<'a>,
) -> NifResult<Term<'a>> {
    let Some(place) = Place::of(place)? else {
        return Ok(atoms::not_running().encode(env));
    };
    let wanted = Wanted::of(reply)?;
    let event_loop = place.event_loop.as_ref();
    let mut job = order(slot, place.pool, op, flags)?;
    if !job.fill(payload) {
        return Err(rustler::Error::BadArg);
    }
    job.event_loop = event_loop.cloned();
    let submitted = match wanted {
        Wanted::Key(key) => {
            job.reply = Reply::Key(job.env.copy(key));
            match event_loop {
                Some(event_loop) => await_task(env, job, event_loop),
                None => call(env, job, place.named.is_none()),
            }
        }
        Wanted::Message { tag, to } => spawn(env, job, event_loop, tag, to),
        Wanted::Named { to, name } => {
            job.reply = Reply::Message {
                to,
                tag: atoms::async_result(),
                name: Name::Given {
                    term: job.env.copy(name),
                    _given: Given::new(name, &job.ticket),
                },
            };
            job.slot.remember(job.ticket.clone());
            admit(job, event_loop).map(|()| atoms::ok().encode(env))
        }
        Wanted::Stream { to, window } => {
            if let Some(named) = &place.named {
                job.event_loop = named.event_loop.get().map(event_loop::of_resource);
            }
            stream(env, job, event_loop, to, window)
        }
        Wanted::Nowhere => cast(env, job, event_loop),
    };
    Ok(submitted.unwrap_or_else(|refused| refusal(refused).encode(env)))
}

impl<'a> Place<'a> {
    /// A pool, a loop, or any atom for the main pool. `None`: there is no application.
    fn of(term: Term<'a>) -> NifResult<Option<Self>> {
        if term.is_atom() {
            return Ok(runtime::main_pool().map(|pool| Place {
                pool,
                event_loop: None,
                named: None,
            }));
        }
        if let Ok(named) = term.decode::<&PoolRef>() {
            return Ok(Some(Place {
                pool: named.pool.clone(),
                event_loop: None,
                named: Some(named),
            }));
        }
        let event_loop = event_loop::loop_of(term).ok_or(rustler::Error::BadArg)?;
        Ok(event_loop.workers().map(|pool| Place {
            pool,
            event_loop: Some(event_loop),
            named: None,
        }))
    }
}

impl<'a> Wanted<'a> {
    fn of(term: Term<'a>) -> NifResult<Self> {
        if term.is_ref() {
            return Ok(Wanted::Key(term));
        }
        if term.is_atom() {
            return Ok(Wanted::Nowhere);
        }
        if let Ok((tag, to)) = term.decode() {
            return Ok(Wanted::Message { tag, to });
        }
        let (kind, to, more): (Atom, LocalPid, Term<'a>) = term.decode()?;
        if kind == atoms::stream() {
            let window = more.decode()?;
            return Ok(Wanted::Stream { to, window });
        }
        match kind == atoms::named() {
            true => Ok(Wanted::Named { to, name: more }),
            false => Err(rustler::Error::BadArg),
        }
    }
}

/// The answer if it is there at once. Else the job's number, and `{Key, Answer}` will come.
fn call<'a>(env: Env<'a>, job: Box<Job>, default: bool) -> Result<Term<'a>, Refused> {
    let (ticket, slot) = (job.ticket.clone(), job.slot.clone());
    slot.remember(ticket.clone());
    // Somebody else's thread only where the caller did not name a pool; one of the named pool itself
    // always, for the others of that pool may all be waiting in the same way.
    let own = |thread: &Arc<Thread>| !job.pool.crew.is_single() && job.pool.has(thread);
    let nests = slot.nest().is_some_and(|thread| default || own(&thread));
    let looks = nests || job.pool.crew.is_looking();
    let meets = looks.then(|| slot.patience.take()).flatten();
    if meets.is_some() {
        ticket.meet.open();
    }
    enqueue(job, nests)?;
    if meets.is_none() && ticket.is_over() {
        // The thread that ran it took this scheduler's processor for so long: others have waited.
        rustler::schedule::consume_timeslice(env, 100);
    }
    let met = meets.and_then(|limit| meet(env, &ticket, &slot, limit));
    Ok(met.unwrap_or_else(|| ticket.id().encode(env)))
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

/// The number of a task's job; `{Key, Answer}` will come.
fn await_task<'a>(
    env: Env<'a>,
    job: Box<Job>,
    event_loop: &Arc<Loop>,
) -> Result<Term<'a>, Refused> {
    let (ticket, slot) = (job.ticket.clone(), job.slot.clone());
    slot.remember(ticket.clone());
    post(job, event_loop)?;
    // What a worker calls does not wait for the loop.
    if ticket.event_loop().is_some() {
        callback::waits_for_loop(&slot, event_loop);
    }
    event_loop::linger_for(env, &slot, &ticket);
    Ok(ticket.id().encode(env))
}

/// A reference, by which the answer will be known.
fn spawn<'a>(
    env: Env<'a>,
    mut job: Box<Job>,
    event_loop: Option<&Arc<Loop>>,
    tag: Atom,
    to: LocalPid,
) -> Result<Term<'a>, Refused> {
    let reference = reference(&job, None);
    job.reply = Reply::Message {
        to,
        tag,
        name: Name::Reference(reference.clone()),
    };
    job.slot.remember(job.ticket.clone());
    admit(job, event_loop)?;
    Ok(reference.encode(env))
}

/// The same, for messages `{py_stream, Ref, _}`. `window`: 0 for none.
fn stream<'a>(
    env: Env<'a>,
    mut job: Box<Job>,
    event_loop: Option<&Arc<Loop>>,
    to: LocalPid,
    window: u32,
) -> Result<Term<'a>, Refused> {
    let stream = Stream::new((window > 0).then_some(window));
    let reference = reference(&job, Some(stream.clone()));
    job.reply = Reply::Stream {
        to,
        stream: Running(stream),
        reference: reference.clone(),
    };
    job.slot.remember(job.ticket.clone());
    admit(job, event_loop)?;
    Ok(reference.encode(env))
}

/// Nobody waits; a reference where there may be a deadline.
fn cast<'a>(
    env: Env<'a>,
    job: Box<Job>,
    event_loop: Option<&Arc<Loop>>,
) -> Result<Term<'a>, Refused> {
    // Not remembered by the slot: a cast outlives its caller.
    let reference = job.flags.timed().then(|| reference(&job, None));
    admit(job, event_loop)?;
    Ok(match reference {
        Some(reference) => reference.encode(env),
        None => atoms::ok().encode(env),
    })
}

fn reference(job: &Job, stream: Option<Arc<Stream>>) -> ResourceArc<TicketRef> {
    ResourceArc::new(TicketRef {
        ticket: job.ticket.clone(),
        stream,
    })
}

fn order(slot: ResourceArc<Slot>, pool: Arc<Pool>, op: u32, flags: u32) -> NifResult<Box<Job>> {
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

fn admit(job: Box<Job>, event_loop: Option<&Arc<Loop>>) -> Result<(), Refused> {
    match event_loop {
        Some(event_loop) => post(job, event_loop),
        None => enqueue(job, false),
    }
}

/// Whether a loop would give the job to its pool.
pub fn is_for_pool(job: &Job, event_loop: &Loop) -> bool {
    plain::is_known(job) && event_loop.is_open()
}

/// To a loop; or to its pool, if that is where the loop would send it.
fn post(mut job: Box<Job>, event_loop: &Arc<Loop>) -> Result<(), Refused> {
    if is_for_pool(&job, event_loop) {
        return enqueue(job, false);
    }
    job.decodes = Some(job.pool.interp.exported.decodes());
    event_loop.push(job).map_err(given_back)
}

/// To the job's pool; or, if it may nest, to the thread that waits for its caller's callback.
fn enqueue(mut job: Box<Job>, nests: bool) -> Result<(), Refused> {
    job.decodes = Some(job.pool.interp.exported.decodes());
    if nests {
        // The caller runs a callback of a thread that waits: nowhere else is sure to be free.
        let slot = job.slot.clone();
        job = match slot.nest_job(job, MOST_NESTED) {
            Ok(()) => return Ok(()),
            Err(job) => job,
        };
    }
    let pool = job.pool.clone();
    pool.push(job).map_err(given_back)
}

fn given_back((job, refused): (Box<Job>, Refused)) -> Refused {
    job.ticket.cancel();
    job.recycle();
    refused
}

pub fn refusal(refused: Refused) -> Atom {
    match refused {
        Refused::Overload => atoms::overload(),
        Refused::Closed => atoms::context_died(),
    }
}
