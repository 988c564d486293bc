//! Deadlines of jobs whose answer no process waits for: when the time is up the job is cancelled, and
//! its reader or the log is told. A job that ends in time takes its deadline with it.
//!
//! Thread: `set` schedulers; `over` whichever ends the job; `expire` and `next` the watch.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crew::sync::lock;
use rustler::types::atom::Atom;
use rustler::{LocalPid, NifResult, ResourceArc, Term};

use crate::erts::Raw;
use crate::job::TicketRef;
use crate::ticket::Ticket;
use crate::{atoms, courier, log, watch};

/// What happens when the time is up, beside the end of the job.
enum Then {
    /// `{Tag, Ref, {error, timeout}}` to a process.
    Tell(LocalPid, Atom),
    /// Nobody reads an answer: a line in the log.
    Log,
}

struct Deadline {
    reference: ResourceArc<TicketRef>,
    limit: Duration,
    then: Then,
}

struct Deadlines {
    /// By time, and by the number of the job.
    all: BTreeMap<(Instant, u64), Deadline>,
    /// When the watch looks next, at the latest.
    looks: Option<Instant>,
}

/// Jobs that are not over only: it has their bound (I8).
static DEADLINES: Mutex<Deadlines> = Mutex::new(Deadlines {
    all: BTreeMap::new(),
    looks: None,
});

/// A deadline for a job that was submitted with the flag for it. `to`: a pid, or an atom for the log. A
/// reference that names no job is fine.
#[rustler::nif]
fn deadline_set(reference: Term<'_>, limit_ms: u64, to: Term<'_>, tag: Atom) -> NifResult<Atom> {
    let Ok(reference) = reference.decode::<ResourceArc<TicketRef>>() else {
        return Ok(atoms::ok());
    };
    let then = match to.is_atom() {
        true => Then::Log,
        false => Then::Tell(to.decode()?, tag),
    };
    set(Deadline {
        reference,
        limit: Duration::from_millis(limit_ms),
        then,
    });
    Ok(atoms::ok())
}

fn set(deadline: Deadline) {
    let Some(due) = Instant::now().checked_add(deadline.limit) else {
        return;
    };
    let is_next = {
        let mut deadlines = lock(&DEADLINES);
        let ticket = &deadline.reference.ticket;
        // Under the lock, which `over` takes after the end of the job: one of both sees the other.
        if ticket.is_over() || !ticket.set_due(due) {
            return;
        }
        let key = (due, ticket.id());
        deadlines.all.insert(key, deadline);
        let is_next = deadlines.looks.is_none_or(|looks| due < looks);
        if is_next {
            deadlines.looks = Some(due);
        }
        is_next
    };
    if is_next {
        watch::look();
    }
}

/// The job is over.
pub fn over(ticket: &Ticket) {
    let deadline = {
        let mut deadlines = lock(&DEADLINES);
        let due = ticket.due();
        due.and_then(|due| deadlines.all.remove(&(due, ticket.id())))
    };
    // Without the lock: it may be the last to hold the job.
    drop(deadline);
}

/// When the watch has to look. A deadline that is gone does not change that: else each answered job
/// would wake it.
pub fn next(now: Instant) -> Option<Instant> {
    let mut deadlines = lock(&DEADLINES);
    let planned = deadlines.looks.filter(|looks| *looks > now);
    let first = deadlines.all.keys().next().map(|(due, _)| *due);
    deadlines.looks = planned.into_iter().chain(first).min();
    deadlines.looks
}

/// Ends the jobs whose time is up.
pub fn expire(now: Instant) {
    let due = {
        let mut deadlines = lock(&DEADLINES);
        match deadlines.all.keys().next() {
            Some((first, _)) if *first <= now => {
                let later = deadlines.all.split_off(&(now, u64::MAX));
                std::mem::replace(&mut deadlines.all, later)
            }
            _ => return,
        }
    };
    for deadline in due.into_values() {
        if deadline.reference.ticket.cancel() {
            deadline.tell();
        }
    }
}

impl Deadline {
    fn tell(&self) {
        let Then::Tell(to, tag) = &self.then else {
            let limit = self.limit.as_millis();
            return log::warning(&format!("py:cast was stopped: its {limit} ms were over"));
        };
        log::with_env(|env| {
            let error = env.tuple(&[Raw::atom(atoms::error()), Raw::atom(atoms::timeout())]);
            let reference = env.resource(&self.reference);
            let message = env.tuple(&[Raw::atom(*tag), reference, error]);
            // It must not overtake what the job has sent before.
            if self.reference.ticket.is_couriered() {
                let owed = courier::owed(env, to, &[Raw::atom(*tag), reference]);
                courier::forward(None, env, Raw::pid(to), message, Some(owed));
            } else {
                env.send(to, message);
            }
        });
    }
}
