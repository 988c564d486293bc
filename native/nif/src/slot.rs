//! The caller slot: one per calling process, made at its first call and kept in its dictionary.
//! One monitor tells of the process's death; the slot knows its jobs and owns its namespace.
//!
//! Thread: any. `down` and `Drop` run on schedulers: they only post (I9).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyrt::{Attached, Kept, Obj, PyResult};
use rustler::{Env, LocalPid, Monitor, Resource, ResourceArc};

use crate::executor::{self, Seat};
use crate::here::Thread;
use crate::job::Job;
use crate::leader::{self, Leader};
use crate::release;
use crate::ticket::Ticket;
use crate::vars::Vars;
use crew::sync::lock;
use crew::{Company, Patience};

/// Most answers are there within two microseconds, and going to sleep costs more than that.
const MEET: Duration = Duration::from_micros(8);
/// The longest a caller looks for the message of its answer: going to sleep costs as much.
const LINGER: Duration = Duration::from_micros(10);

pub struct Slot {
    pid: LocalPid,
    /// Where `print` goes.
    leader: Mutex<ResourceArc<Leader>>,
    dead: AtomicBool,
    /// In the order of their ids; those that are over are thrown out now and then.
    jobs: Mutex<Vec<Arc<Ticket>>>,
    /// A job ready to be used again.
    spare: Mutex<Option<Box<Job>>>,
    namespace: Namespace,
    /// The thread that waits for the callback this process is running: its calls nest there.
    nest: Mutex<Option<Arc<Thread>>>,
    /// Whether answers come quickly.
    pub patience: Patience,
    /// The same for answers that come as messages.
    pub linger: Patience,
    /// Who else calls the loop it calls.
    pub company: Company,
    /// Where this process, if it runs callbacks, waits for a moment for the next.
    pub seat: Seat,
    /// What jobs with the flag for it are told about themselves.
    about: Mutex<Option<Arc<[u8]>>>,
    /// What `py:last_error/0` shows, as External Term Format.
    last_error: Mutex<Option<Vec<u8>>>,
}

/// What a process, or a context, has in an interpreter.
#[derive(Default)]
pub struct Namespace {
    /// A dict of names, made when first needed.
    names: Mutex<Option<Arc<Kept>>>,
    vars: Arc<Vars>,
}

#[rustler::resource_impl]
impl Resource for Slot {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        self.dead.store(true, Ordering::Release);
        let jobs = std::mem::take(&mut *lock(&self.jobs));
        for ticket in jobs {
            ticket.cancel();
        }
        executor::ended(self);
        self.namespace.vars.end();
        self.namespace.forget();
        *lock(&self.spare) = None;
        *lock(&self.last_error) = None;
    }
}

impl Slot {
    pub fn new(env: Env<'_>, group_leader: LocalPid) -> Option<ResourceArc<Slot>> {
        let pid = env.pid();
        let slot = ResourceArc::new(Slot {
            pid,
            leader: Mutex::new(leader::of(env, group_leader)),
            dead: AtomicBool::new(false),
            jobs: Mutex::new(Vec::new()),
            spare: Mutex::new(None),
            namespace: Namespace::default(),
            nest: Mutex::new(None),
            patience: Patience::new(MEET),
            linger: Patience::new(LINGER),
            company: Company::default(),
            seat: Seat::default(),
            about: Mutex::new(None),
            last_error: Mutex::new(None),
        });
        slot.monitor(Some(env), &pid)?;
        Some(slot)
    }

    pub fn pid(&self) -> &LocalPid {
        &self.pid
    }

    pub fn leader(&self) -> ResourceArc<Leader> {
        lock(&self.leader).clone()
    }

    pub fn set_leader(&self, leader: ResourceArc<Leader>) {
        *lock(&self.leader) = leader;
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Remembers a job until it is over. O(1) on average: the list is swept when it has doubled.
    pub fn remember(&self, ticket: Arc<Ticket>) {
        let mut jobs = lock(&self.jobs);
        if jobs.len() >= 4 && jobs.len() == jobs.capacity() {
            jobs.retain(|ticket| !ticket.is_over());
            let room = jobs.len().max(4);
            jobs.reserve(room);
        }
        jobs.push(ticket);
    }

    /// The same for many, in the order of their ids.
    pub fn remember_all(&self, tickets: impl ExactSizeIterator<Item = Arc<Ticket>>) {
        let mut jobs = lock(&self.jobs);
        if jobs.len() + tickets.len() > jobs.capacity() {
            jobs.retain(|ticket| !ticket.is_over());
            let room = jobs.len().max(4) + tickets.len();
            jobs.reserve(room);
        }
        jobs.extend(tickets);
    }

    pub fn job(&self, id: u64) -> Option<Arc<Ticket>> {
        let jobs = lock(&self.jobs);
        let index = jobs.binary_search_by_key(&id, |ticket| ticket.id()).ok()?;
        jobs.get(index).cloned()
    }

    pub fn take_spare(&self) -> Option<Box<Job>> {
        lock(&self.spare).take()
    }

    /// Keeps a used job for the next call; gives it back if there is one already.
    pub fn give_spare(&self, job: Box<Job>) -> Option<Box<Job>> {
        let mut spare = lock(&self.spare);
        // Under the lock: `down` says dead first and empties this place after, and a job left here
        // would keep the slot alive for ever.
        if self.is_dead() {
            return Some(job);
        }
        spare.replace(job)
    }

    pub fn nest(&self) -> Option<Arc<Thread>> {
        lock(&self.nest).clone()
    }

    /// Whether a thread waits for a callback of this process.
    pub fn runs_callback(&self) -> bool {
        lock(&self.nest).is_some()
    }

    /// Gives a job to the thread that waits for this process, if that nests less than `most` deep; else
    /// it comes back. Under the lock: a thread that has left gets no more.
    pub fn nest_job(&self, job: Box<Job>, most: usize) -> Result<(), Box<Job>> {
        match &*lock(&self.nest) {
            Some(thread) if thread.depth() < most => {
                thread.nest(job);
                Ok(())
            }
            _ => Err(job),
        }
    }

    /// That thread does not wait for this process any more.
    pub fn leave_nest(&self, thread: &Arc<Thread>) {
        let mut nest = lock(&self.nest);
        // Another one may wait by now.
        nest.take_if(|nest| Arc::ptr_eq(nest, thread));
    }

    pub fn set_nest(&self, thread: Option<Arc<Thread>>) {
        *lock(&self.nest) = thread;
    }

    pub fn set_about(&self, about: &[u8]) {
        *lock(&self.about) = Some(about.into());
    }

    pub fn about(&self) -> Option<Arc<[u8]>> {
        lock(&self.about).clone()
    }

    pub fn set_last_error(&self, bytes: Vec<u8>) {
        if !self.is_dead() {
            *lock(&self.last_error) = Some(bytes);
        }
    }

    pub fn last_error(&self) -> Option<Vec<u8>> {
        lock(&self.last_error).clone()
    }
}

impl Namespace {
    /// The dict, made now if there is none.
    pub fn get<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        let known = lock(&self.names).clone();
        if let Some(dict) = known.and_then(|kept| kept.get(py)) {
            return Ok(dict);
        }
        let dict = Obj::dict(py)?;
        dict.dict_set_c(c"__builtins__", &pyrt::call::builtins(py))?;
        dict.dict_set_c(c"__name__", &Obj::text(py, "__main__")?)?;
        *lock(&self.names) = Some(Arc::new(Kept::new(dict.clone())));
        Ok(dict)
    }

    /// Its context variables.
    pub fn vars(&self) -> &Arc<Vars> {
        &self.vars
    }

    /// Lets go of all names and variables. Their objects are released by a thread that is attached.
    pub fn forget(&self) {
        self.vars.forget();
        let names = lock(&self.names).take();
        if names.is_some() {
            drop(names);
            release::soon();
        }
    }
}
