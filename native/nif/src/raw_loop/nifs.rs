//! The functions of `py_nif` that drive a loop from Erlang.
//!
//! Thread: the caller's scheduler; `poll_events`, which waits, a dirty one.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use reactor::{Key, TimerKey};
use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, NifResult, ResourceArc, Term};

use super::resource::{self, Handle};
use super::{Event, Id, Kind, RawLoop};
use crate::{atoms, event_loop, posix};

/// What `add_reader` and `add_writer` give out.
pub struct FdRef(Key);

#[rustler::resource_impl]
impl rustler::Resource for FdRef {}

/// What `call_later` gives out.
pub struct TimerRef(TimerKey);

#[rustler::resource_impl]
impl rustler::Resource for TimerRef {}

/// The longest wait and the longest timer: a month.
const LONGEST: u64 = 31 * 24 * 3600 * 1000;

fn ok<'a>(env: Env<'a>, value: impl Encoder) -> Term<'a> {
    (atoms::ok(), value).encode(env)
}

fn not_running(env: Env<'_>) -> Term<'_> {
    (atoms::error(), atoms::not_running()).encode(env)
}

pub(super) fn failed<'a>(env: Env<'a>, error: &io::Error) -> Term<'a> {
    (atoms::error(), (atoms::posix(), posix::atom(error))).encode(env)
}

/// `ok`, or that the loop is gone.
fn done(env: Env<'_>, alive: Option<()>) -> Term<'_> {
    match alive {
        Some(()) => atoms::ok().encode(env),
        None => not_running(env),
    }
}

#[rustler::nif]
fn event_loop_new(env: Env<'_>) -> Term<'_> {
    match RawLoop::new() {
        Ok(raw) => ok(env, resource::new_term(env, raw)),
        Err(error) => failed(env, &error),
    }
}

#[rustler::nif]
fn event_loop_destroy<'a>(env: Env<'a>, raw: Handle) -> Term<'a> {
    raw.destroy(env);
    atoms::ok().encode(env)
}

/// A loop with Python in it has a driver already.
#[rustler::nif]
fn event_loop_set_router<'a>(env: Env<'a>, raw: Term<'a>, router: LocalPid) -> NifResult<Term<'a>> {
    if event_loop::is_open(raw).is_some() {
        return Ok((atoms::error(), atoms::not_supported()).encode(env));
    }
    let raw: Handle = raw.decode()?;
    Ok(done(env, raw.set_router(env, router).then_some(())))
}

/// What kind of loop a term is.
#[rustler::nif]
fn event_loop_kind(any_loop: Term<'_>) -> NifResult<Atom> {
    Ok(match event_loop::is_open(any_loop) {
        Some(true) => atoms::python(),
        Some(false) => atoms::gone(),
        None => {
            let raw: Handle = any_loop.decode()?;
            match raw.with(|_| ()) {
                Some(()) => atoms::raw(),
                None => atoms::gone(),
            }
        }
    })
}

#[rustler::nif]
fn add_reader<'a>(env: Env<'a>, raw: Handle, fd: RawFd, id: Id) -> Term<'a> {
    watch(env, &raw, fd, Kind::Read, id)
}

#[rustler::nif]
fn add_writer<'a>(env: Env<'a>, raw: Handle, fd: RawFd, id: Id) -> Term<'a> {
    watch(env, &raw, fd, Kind::Write, id)
}

fn watch<'a>(env: Env<'a>, raw: &Handle, fd: RawFd, kind: Kind, id: Id) -> Term<'a> {
    if fd < 0 {
        return failed(env, &rustix::io::Errno::BADF.into());
    }
    match raw.with(|raw| raw.add(resource::lend(fd), fd, kind, id)) {
        Some(Ok(key)) => ok(env, ResourceArc::new(FdRef(key))),
        Some(Err(error)) => failed(env, &error),
        None => not_running(env),
    }
}

#[rustler::nif]
fn remove_reader<'a>(env: Env<'a>, raw: Handle, fd: ResourceArc<FdRef>) -> Term<'a> {
    done(env, raw.with(|raw| raw.remove(fd.0, Kind::Read)))
}

#[rustler::nif]
fn remove_writer<'a>(env: Env<'a>, raw: Handle, fd: ResourceArc<FdRef>) -> Term<'a> {
    done(env, raw.with(|raw| raw.remove(fd.0, Kind::Write)))
}

#[rustler::nif]
fn call_later<'a>(env: Env<'a>, raw: Handle, ms: u64, id: Id) -> Term<'a> {
    let delay = Duration::from_millis(ms.min(LONGEST));
    match raw.with(|raw| raw.call_later(delay, id)) {
        Some(key) => ok(env, ResourceArc::new(TimerRef(key))),
        None => not_running(env),
    }
}

/// As `call_later`, at a nanosecond of the system's monotonic clock.
#[rustler::nif]
fn call_at<'a>(env: Env<'a>, raw: Handle, deadline: u64, id: Id) -> Term<'a> {
    match raw.with(|raw| raw.call_at(deadline, id)) {
        Some(key) => ok(env, ResourceArc::new(TimerRef(key))),
        None => not_running(env),
    }
}

#[rustler::nif]
fn cancel_timer<'a>(env: Env<'a>, raw: Handle, timer: ResourceArc<TimerRef>) -> Term<'a> {
    done(env, raw.with(|raw| raw.cancel_timer(timer.0)))
}

/// Waits for at most `ms`; `{ok, N}`: so many events were added to the pending ones.
#[rustler::nif(schedule = "DirtyIo")]
fn poll_events<'a>(env: Env<'a>, raw: Handle, ms: u64) -> Term<'a> {
    let waited = match raw.duplicate() {
        Some(Ok(fd)) => super::wait_readable(&fd, Duration::from_millis(ms.min(LONGEST))),
        Some(Err(error)) => Err(error),
        None => return not_running(env),
    };
    match waited {
        Ok(()) => step(env, &raw),
        Err(error) => failed(env, &error),
    }
}

/// Takes what is ready, then waits for the next message. As `poll_events` with no time to wait.
#[rustler::nif]
fn event_loop_step<'a>(env: Env<'a>, raw: Handle) -> Term<'a> {
    let stepped = step(env, &raw);
    raw.arm(env);
    stepped
}

fn step<'a>(env: Env<'a>, raw: &Handle) -> Term<'a> {
    match raw.with(RawLoop::step) {
        Some(Ok(count)) => ok(env, count),
        Some(Err(error)) => failed(env, &error),
        None => not_running(env),
    }
}

/// `[{Id, read | write | timer}]`, each event once.
#[rustler::nif]
fn get_pending<'a>(env: Env<'a>, raw: Handle) -> Term<'a> {
    let events = raw.with(RawLoop::take_pending).unwrap_or_default();
    let terms: Vec<(Id, Atom)> = events.into_iter().map(pair).collect();
    terms.encode(env)
}

fn pair(event: Event) -> (Id, Atom) {
    let kind = match event.kind {
        Kind::Read => atoms::read(),
        Kind::Write => atoms::write(),
        Kind::Timer => atoms::timer(),
    };
    (event.id, kind)
}

#[rustler::nif]
fn event_loop_wakeup(raw: Handle) -> Atom {
    super::wake(raw.waker());
    atoms::ok()
}
