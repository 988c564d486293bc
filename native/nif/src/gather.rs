//! All calls of one gather: each job leaves its answer here, and the last one sends them as one message.
//!
//! Thread: the scheduler of the calling process; `put` by whoever answers a job.
//! Never: runs Python under the lock (I3); sends twice (I4).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crew::Refused;
use crew::sync::lock;
use rustler::types::atom::Atom;
use rustler::{Env, ListIterator, NifResult, Resource, ResourceArc, Term};

use crate::erts::{MsgEnv, Raw, binary_of};
use crate::event_loop::{self, Loop, LoopRef};
use crate::job::{Flags, Job, Op, Order, Reply, bytes_of};
use crate::pool::Pool;
use crate::slot::Slot;
use crate::ticket::Ticket;
use crate::{atoms, callback, courier, submit};

/// Tasks that are told to stop by one call of the NIF (I9).
const STOPPED_AT_ONCE: usize = 64;

pub struct Gather {
    slot: ResourceArc<Slot>,
    /// The caller wants to hear of the first failure at once, and stops the rest.
    hasty: bool,
    /// `None`: the message is sent.
    open: Mutex<Option<Open>>,
    tickets: Mutex<Vec<Arc<Ticket>>>,
}

/// Answers that wait for the others.
struct Open {
    env: MsgEnv,
    key: Raw,
    /// By the number of their call; the atom `none` where there is none yet.
    answers: Vec<Raw>,
    left: usize,
    /// One of the jobs has sent something by the courier, which the answers must not overtake.
    couriered: bool,
}

/// Where the answer of one job goes.
pub struct Part {
    gather: Arc<Gather>,
    index: usize,
}

impl Part {
    /// Leaves an answer, which `make` builds in the environment of the message. On a scheduler `caller` is
    /// the environment of the NIF.
    pub fn put(
        &self,
        caller: Option<Env<'_>>,
        failed: bool,
        couriered: bool,
        make: impl FnOnce(&MsgEnv) -> Raw,
    ) {
        let mut open = lock(&self.gather.open);
        let Some(answers) = &mut *open else { return };
        let answer = make(&answers.env);
        if let Some(place) = answers.answers.get_mut(self.index) {
            *place = answer;
        }
        answers.left = answers.left.saturating_sub(1);
        answers.couriered |= couriered;
        if answers.left == 0 || (failed && self.gather.hasty) {
            // Under the lock: whoever finds it sent can receive it.
            self.gather.send(caller, open.take());
        }
    }
}

impl Gather {
    fn send(&self, caller: Option<Env<'_>>, open: Option<Open>) {
        let Some(mut open) = open else { return };
        let to = self.slot.pid();
        let message = open.env.tuple(&[open.key, open.env.list(&open.answers)]);
        match caller {
            _ if open.couriered => {
                let count = open.answers.len();
                let mut owed = courier::owed_with(&open.env, to, &[open.key], |env, error| {
                    env.list(&vec![error; count])
                });
                owed.alias = Some(owed.env.copy_from(&open.env, open.key));
                courier::forward(caller, &mut open.env, open.key, message, Some(owed))
            }
            Some(caller) => open.env.send_from(caller, to, message),
            None => open.env.send(to, message),
        };
    }
}

pub struct GatherRef(Arc<Gather>);

#[rustler::resource_impl]
impl Resource for GatherRef {}

/// `{Key, Answers}` will come when there are `count` of them; or at the first failure, if `hasty`. By way of the courier
/// it may come late, so the key is an alias.
#[rustler::nif]
fn gather_new<'a>(
    slot: ResourceArc<Slot>,
    key: Term<'a>,
    count: usize,
    hasty: bool,
) -> ResourceArc<GatherRef> {
    let env = MsgEnv::new();
    let key = env.copy(key);
    let open = Open {
        env,
        key,
        answers: vec![Raw::atom(atoms::none()); count],
        left: count,
        couriered: false,
    };
    ResourceArc::new(GatherRef(Arc::new(Gather {
        slot,
        hasty,
        open: Mutex::new(Some(open)),
        tickets: Mutex::default(),
    })))
}

/// Gives some of the calls to a loop; the number of the first of them counts from 0.
#[rustler::nif]
fn gather_submit<'a>(
    env: Env<'a>,
    gather: ResourceArc<GatherRef>,
    event_loop: ResourceArc<LoopRef>,
    flags: u32,
    first: usize,
    payloads: Term<'a>,
) -> NifResult<Atom> {
    let (gather, event_loop) = (&gather.0, event_loop::of_resource(&event_loop));
    let payloads: Vec<Term<'a>> = payloads.decode::<ListIterator<'a>>()?.collect();
    let Some(pool) = event_loop.workers() else {
        for index in first..first + payloads.len() {
            let part = Part {
                gather: gather.clone(),
                index,
            };
            refuse(env, &part, None);
        }
        return Ok(atoms::ok());
    };
    let jobs = jobs(gather, &event_loop, &pool, Flags(flags), first, &payloads)
        .ok_or(rustler::Error::BadArg)?;
    let tickets = || jobs.iter().map(|job| job.ticket.clone());
    gather.slot.remember_all(tickets());
    lock(&gather.tickets).extend(tickets());
    let left = to_pool(jobs, &event_loop);
    let waits = !left.is_empty();
    if let Err((jobs, refused)) = event_loop.push_all(left) {
        for mut job in jobs {
            job.ticket.cancel();
            if let Reply::Part(part) = std::mem::replace(&mut job.reply, Reply::Nobody) {
                refuse(env, &part, Some(refused));
            }
            job.recycle();
        }
    }
    if waits {
        callback::waits_for_loop(&gather.slot, &event_loop);
    }
    Ok(atoms::ok())
}

/// What the loop would give to its pool goes there by itself. Leaves what is for the loop, and what the pool has no
/// room for.
fn to_pool(jobs: VecDeque<Box<Job>>, event_loop: &Loop) -> VecDeque<Box<Job>> {
    let direct = |job: Box<Job>| match submit::is_for_pool(&job, event_loop) {
        true => job.pool.clone().push(job).err().map(|(job, _)| job),
        false => Some(job),
    };
    jobs.into_iter().filter_map(direct).collect()
}

/// One job for each payload; their bytes are in one piece.
fn jobs(
    gather: &Arc<Gather>,
    event_loop: &Arc<Loop>,
    pool: &Arc<Pool>,
    flags: Flags,
    first: usize,
    payloads: &[Term<'_>],
) -> Option<VecDeque<Box<Job>>> {
    let about = flags.about().then(|| gather.slot.about()).flatten();
    let (bytes, ranges) = copied(payloads);
    let mut jobs = VecDeque::with_capacity(payloads.len());
    for ((index, payload), range) in (first..).zip(payloads).zip(ranges) {
        let mut job = Job::fresh(Order {
            op: Op::Async,
            flags,
            slot: gather.slot.clone(),
            pool: pool.clone(),
        });
        match range {
            Some(range) => job.share(&bytes, range),
            None if job.fill(*payload) => {}
            None => return None,
        }
        if let Some(about) = &about {
            job.ticket.set_about(about.clone());
        }
        job.event_loop = Some(event_loop.clone());
        job.reply = Reply::Part(Part {
            gather: gather.clone(),
            index,
        });
        job.decodes = Some(pool.interp.exported.decodes());
        jobs.push_back(job);
    }
    Some(jobs)
}

/// The bytes of all payloads that are small, one after the other, and where each of them lies.
fn copied(payloads: &[Term<'_>]) -> (Arc<Vec<u8>>, Vec<Option<Range<usize>>>) {
    let mut bytes = Vec::new();
    let ranges = payloads.iter().map(|payload| {
        let part = binary_of(bytes_of(*payload))?;
        let begin = bytes.len();
        bytes.extend_from_slice(part);
        Some(begin..bytes.len())
    });
    let ranges = ranges.collect();
    (Arc::new(bytes), ranges)
}

/// `None`: there is no application.
fn refuse(env: Env<'_>, part: &Part, refused: Option<Refused>) {
    part.put(Some(env), true, false, |env| {
        let reason = match refused {
            None => Raw::atom(atoms::not_running()),
            Some(Refused::Overload) => Raw::atom(atoms::overload()),
            Some(Refused::Closed) => env.tuple(&[
                Raw::atom(atoms::context_died()),
                Raw::atom(atoms::stopped()),
            ]),
        };
        env.tuple(&[Raw::atom(atoms::error()), reason])
    });
}

/// Nobody waits any longer: sends the answers that are there, unless that is done.
#[rustler::nif]
fn gather_close(env: Env<'_>, gather: ResourceArc<GatherRef>) -> Atom {
    let mut open = lock(&gather.0.open);
    let rest = open.take().map(|open| Open {
        couriered: false,
        ..open
    });
    gather.0.send(Some(env), rest);
    atoms::ok()
}

/// Stops some of the calls that are not over. Whether there may be more of them.
#[rustler::nif]
fn gather_cancel(gather: ResourceArc<GatherRef>) -> bool {
    let mut tickets = lock(&gather.0.tickets);
    let from = tickets.len().saturating_sub(STOPPED_AT_ONCE);
    let some = tickets.split_off(from);
    drop(tickets);
    for ticket in some {
        ticket.cancel();
    }
    from > 0
}
