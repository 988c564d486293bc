//! What Erlang asks of the loops.
//!
//! Thread: schedulers. Nothing here takes the GIL or waits (I9).

use std::sync::Arc;

use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, Monitor, NifResult, Resource, ResourceArc, Term};

use super::beam::{self, Beam};
use super::{Loop, Place};
use crate::job::TicketRef;
use crate::resource::PoolRef;
use crate::slot::Slot;
use crate::ticket::Ticket;
use crate::{atoms, callback, runtime, watch};

/// A loop; closed when the process that made it is gone.
pub struct LoopRef {
    event_loop: Arc<Loop>,
}

#[rustler::resource_impl]
impl Resource for LoopRef {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        self.event_loop.close();
    }
}

/// Whether a term is a loop with Python in it, and if so whether it takes work.
pub fn is_open(term: Term<'_>) -> Option<bool> {
    let resource: ResourceArc<LoopRef> = term.decode().ok()?;
    Some(resource.event_loop.is_open())
}

/// The loop a resource stands for.
pub fn of_resource(resource: &ResourceArc<LoopRef>) -> Arc<Loop> {
    resource.event_loop.clone()
}

/// The loop that a term names, if it names one.
pub fn loop_of(term: Term<'_>) -> Option<Arc<Loop>> {
    let named: &LoopRef = term.decode().ok()?;
    Some(named.event_loop.clone())
}

/// A new loop with its thread; both belong to the calling process.
#[rustler::nif]
fn loop_new(env: Env<'_>, max_queue: usize) -> NifResult<ResourceArc<LoopRef>> {
    let interp = runtime::started_interp().ok_or(rustler::Error::BadArg)?;
    let event_loop = Loop::new(Place::Node(interp), env.pid(), max_queue, None);
    let resource = owned(env, &event_loop)?;
    event_loop.begin();
    Ok(resource)
}

/// It ends with the calling process.
fn owned(env: Env<'_>, event_loop: &Arc<Loop>) -> NifResult<ResourceArc<LoopRef>> {
    let resource = ResourceArc::new(LoopRef {
        event_loop: event_loop.clone(),
    });
    resource
        .monitor(Some(env), &env.pid())
        .ok_or(rustler::Error::BadArg)?;
    Ok(resource)
}

/// Gives a context of the calling process a loop, whose thread starts with its first job.
#[rustler::nif]
fn pool_add_loop(env: Env<'_>, pool: ResourceArc<PoolRef>, max_queue: usize) -> NifResult<Atom> {
    let context = pool.pool.clone();
    let event_loop = Loop::new(Place::Context(context), env.pid(), max_queue, None);
    let resource = owned(env, &event_loop)?;
    if !pool.pool.interp.is_main() {
        pool.pool.interp.set_loop(&event_loop);
    }
    let _ = pool.event_loop.set(resource);
    Ok(atoms::ok())
}

/// The loop of a context; the atom `none` for any other pool.
#[rustler::nif]
fn pool_loop<'a>(env: Env<'a>, pool: ResourceArc<PoolRef>) -> Term<'a> {
    match pool.event_loop.get() {
        Some(event_loop) => event_loop.encode(env),
        None => atoms::none().encode(env),
    }
}

/// Tells the tasks of a context's loop to stop. `false`: there are none.
pub fn interrupt_tasks(pool: &PoolRef) -> bool {
    let event_loop = pool.event_loop.get().map(of_resource);
    let busy = event_loop.filter(|event_loop| event_loop.has_tasks());
    // There may be many: not on a scheduler.
    busy.map(watch::interrupt_tasks).is_some()
}

/// A new loop without a thread: the calling process drives it. It is told `{py_loop_up, Fd}`, and
/// after each step `{py_loop_rests, Nanoseconds}`.
#[rustler::nif]
fn loop_new_beam(env: Env<'_>, max_queue: usize) -> NifResult<ResourceArc<LoopRef>> {
    let interp = runtime::started_interp().ok_or(rustler::Error::BadArg)?;
    let beam = Some(Beam::new(env.pid()));
    let event_loop = Loop::new(Place::Node(interp), env.pid(), max_queue, beam);
    let resource = owned(env, &event_loop)?;
    beam::schedule(&event_loop);
    Ok(resource)
}

/// Runs what is ready in a loop without a thread.
#[rustler::nif]
fn loop_step(event_loop: ResourceArc<LoopRef>) -> Atom {
    beam::ask(&event_loop.event_loop);
    atoms::ok()
}

#[rustler::nif]
fn loop_close(event_loop: ResourceArc<LoopRef>) -> Atom {
    event_loop.event_loop.close();
    atoms::ok()
}

/// `{Queued, Waiting, Started}`
#[rustler::nif]
fn loop_info(event_loop: ResourceArc<LoopRef>) -> (usize, usize, u64) {
    event_loop.event_loop.counts()
}

/// Looks a moment for the message of a job that was spawned, where messages have come that quickly of late.
#[rustler::nif]
fn linger<'a>(env: Env<'a>, slot: &'a Slot, reference: Term<'a>) -> Atom {
    let ticket = match reference.decode::<&TicketRef>() {
        Ok(reference) if !reference.ticket.is_over() => &reference.ticket,
        _ => return atoms::ok(),
    };
    if slot.runs_callback()
        && let Some(event_loop) = ticket.event_loop()
    {
        callback::waits_for_loop(slot, &event_loop);
    }
    linger_for(env, slot, ticket);
    atoms::ok()
}

pub fn linger_for(env: Env<'_>, slot: &Slot, ticket: &Ticket) {
    if slot.company.is_small()
        && let Some(limit) = slot.linger.take()
    {
        slot.linger.learn(crew::spin(limit, || ticket.is_over()));
        rustler::schedule::consume_timeslice(env, 1);
    }
}
