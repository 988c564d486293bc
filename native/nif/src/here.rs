//! A thread that runs jobs or waits for Erlang: what others may do to it.
//!
//! Thread: `Thread` is shared; `here()` is the calling thread's own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use crew::Member;
use crew::backlog::MayWait;
use crew::sync::lock;
use pyrt::interrupt::{Rest, Sent, Target, while_stopped};
use pyrt::thread::raise_in;
use pyrt::{Attached, Obj};
use rustler::LocalPid;
use rustler::types::atom::Atom;

use crate::erts::Raw;
use crate::job::Job;
use crate::pool::Pool;
use crate::ticket::Ticket;
use crate::{atoms, log};

pub struct Thread {
    member: Arc<Member>,
    /// Python's number of it.
    ident: u64,
    /// The jobs it runs, innermost last.
    jobs: Mutex<Vec<Running>>,
    /// Jobs of the very process that runs this thread's callback: they nest here.
    inbox: Mutex<VecDeque<Box<Job>>>,
    /// The Erlang process that stands for it.
    owner: OnceLock<LocalPid>,
    /// The pool that it is one of; it may run jobs of others, which nest.
    home: OnceLock<Weak<Pool>>,
}

struct Running {
    ticket: Arc<Ticket>,
    target: Target,
    rest: Option<Rest>,
    /// An exception was sent to it, which must not outlive it.
    sent: bool,
}

thread_local! {
    static HERE: RefCell<Option<Arc<Thread>>> = const { RefCell::new(None) };
}

/// The calling thread, known from its first use on.
pub fn here() -> Arc<Thread> {
    HERE.with(|here| {
        here.borrow_mut()
            .get_or_insert_with(|| Arc::new(Thread::current()))
            .clone()
    })
}

/// As a sender: the calling thread may wait.
pub fn may_wait() -> MayWait {
    MayWait::Yes(here().member().clone())
}

impl Thread {
    fn current() -> Self {
        Thread {
            member: Arc::new(Member::current()),
            ident: pyrt::thread::ident(),
            jobs: Mutex::new(Vec::new()),
            inbox: Mutex::new(VecDeque::new()),
            owner: OnceLock::new(),
            home: OnceLock::new(),
        }
    }

    pub fn set_owner(&self, owner: LocalPid) {
        let _ = self.owner.set(owner);
    }

    pub fn set_home(&self, pool: &Arc<Pool>) {
        let _ = self.home.set(Arc::downgrade(pool));
    }

    /// The pool that it is one of.
    pub fn home(&self) -> Option<Arc<Pool>> {
        self.home.get().and_then(Weak::upgrade)
    }

    /// It hangs in C code: its owner should get another thread.
    pub fn tell_owner_stuck(&self) {
        self.tell_owner(atoms::stuck());
    }

    pub fn tell_owner(&self, why: Atom) {
        if let Some(owner) = self.owner.get() {
            log::with_env(|env| {
                let message = env.tuple(&[Raw::atom(atoms::py_worker_down()), Raw::atom(why)]);
                env.send(owner, message);
            });
        }
    }

    /// What the crew knows of it.
    pub fn member(&self) -> &Arc<Member> {
        &self.member
    }

    pub fn ident(&self) -> u64 {
        self.ident
    }

    /// The calling thread, which is this one, runs a job from here on, until `pop_job`.
    pub fn push_job(&self, py: Attached<'_>, ticket: Arc<Ticket>) {
        let mut jobs = lock(&self.jobs);
        // SAFETY: used under this lock only, under which `pop_job` takes it out.
        let target = unsafe { Target::here(py, !jobs.is_empty()) };
        let was_sent = jobs.last().is_some_and(|below| below.sent);
        jobs.push(Running {
            ticket,
            target,
            rest: None,
            sent: false,
        });
        drop(jobs);
        if was_sent {
            // For the job below, which waits, and looks whether it must stop when this one returns.
            raise_in(py, self.ident, None);
        }
    }

    /// The job no longer runs: no exception that was meant for it may stay behind.
    pub fn pop_job(&self, py: Attached<'_>) {
        let job = lock(&self.jobs).pop();
        if job.is_some_and(|job| job.sent) {
            raise_in(py, self.ident, None);
        }
    }

    /// All that it runs, innermost last.
    pub fn running(&self) -> Vec<Arc<Ticket>> {
        lock(&self.jobs)
            .iter()
            .map(|job| job.ticket.clone())
            .collect()
    }

    pub fn has_job(&self, ticket: &Arc<Ticket>) -> bool {
        lock(&self.jobs)
            .iter()
            .any(|job| Arc::ptr_eq(&job.ticket, ticket))
    }

    pub fn depth(&self) -> usize {
        lock(&self.jobs).len()
    }

    /// Runs `body` while no job of this thread can end, if `ticket` is the innermost one; `body` says whether
    /// it has sent an exception. `None`: another one is, and this one hears of its end when that returns.
    pub fn interrupt(
        &self,
        py: Attached<'_>,
        ticket: &Arc<Ticket>,
        body: impl FnOnce(&Target, &mut Option<Rest>) -> Sent,
    ) -> Option<Sent> {
        while_stopped(py, || {
            let mut jobs = lock(&self.jobs);
            let job = jobs.last_mut()?;
            if !Arc::ptr_eq(&job.ticket, ticket) {
                return None;
            }
            let sent = body(&job.target, &mut job.rest);
            job.sent |= sent != Sent::No;
            Some(sent)
        })
    }

    /// Takes back an exception that was sent to a job. `false`: it was raised, or the job has ended.
    pub fn take_back(&self, py: Attached<'_>, ticket: &Arc<Ticket>, class: &Obj<'_>) -> bool {
        while_stopped(py, || {
            let jobs = lock(&self.jobs);
            let job = jobs.iter().find(|job| Arc::ptr_eq(&job.ticket, ticket));
            job.is_some_and(|job| job.target.take_back(py, class))
        })
    }

    pub fn nest(&self, job: Box<Job>) {
        lock(&self.inbox).push_back(job);
        self.wake();
    }

    pub fn take_nested(&self) -> Option<Box<Job>> {
        lock(&self.inbox).pop_front()
    }

    pub fn has_nested(&self) -> bool {
        !lock(&self.inbox).is_empty()
    }

    /// Those of processes whose callbacks it does not wait for any more. The calling thread is this one.
    pub fn take_strays(self: &Arc<Self>) -> VecDeque<Box<Job>> {
        // Not under the lock: whoever nests a job has that of the slot, and takes this one then.
        let all = std::mem::take(&mut *lock(&self.inbox));
        let (mut stay, mut strays) = (VecDeque::new(), VecDeque::new());
        for job in all {
            let nest = job.slot.nest();
            match nest.is_some_and(|thread| Arc::ptr_eq(&thread, self)) {
                true => stay.push_back(job),
                false => strays.push_back(job),
            }
        }
        let mut inbox = lock(&self.inbox);
        stay.append(&mut inbox);
        *inbox = stay;
        strays
    }

    /// It should end after its job.
    pub fn retire(&self) {
        self.member.retire();
    }

    pub fn is_retired(&self) -> bool {
        self.member.is_retired()
    }

    /// Something was posted for it.
    pub fn wake(&self) {
        self.member.wake();
    }

    pub fn signal(&self) -> u32 {
        self.member.signal()
    }

    /// Waits (the calling thread is this one) until the count is no longer `seen`, or `limit` has
    /// passed.
    pub fn wait(&self, seen: u32, limit: Option<Duration>) {
        self.member.wait(seen, limit);
    }
}
