//! A thread that runs jobs or waits for Erlang: what others may do to it.
//!
//! Thread: `Thread` is shared; `here()` is the calling thread's own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crew::Member;
use crew::sync::lock;
use pyrt::seat::Seat;
use rustler::LocalPid;
use rustler::types::atom::Atom;

use crate::erts::Raw;
use crate::job::Job;
use crate::ticket::Ticket;
use crate::{atoms, log};

pub struct Thread {
    member: Arc<Member>,
    /// Python's number of it.
    ident: u64,
    /// The jobs it runs, innermost last.
    jobs: Mutex<Vec<Arc<Ticket>>>,
    /// How many imports it is in, one within the other.
    imports: Mutex<usize>,
    /// Jobs of the very process that runs this thread's callback: they nest here.
    inbox: Mutex<VecDeque<Box<Job>>>,
    seat: Seat,
    /// The Erlang process that stands for it.
    owner: OnceLock<LocalPid>,
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

/// The calling thread if it has ever run a job or waited for Erlang.
pub fn known() -> Option<Arc<Thread>> {
    HERE.with(|here| here.borrow().clone())
}

impl Thread {
    fn current() -> Self {
        Thread {
            member: Arc::new(Member::current()),
            ident: pyrt::thread::ident(),
            jobs: Mutex::new(Vec::new()),
            imports: Mutex::new(0),
            inbox: Mutex::new(VecDeque::new()),
            seat: Seat::take(),
            owner: OnceLock::new(),
        }
    }

    /// Where it runs.
    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    pub fn set_owner(&self, owner: LocalPid) {
        let _ = self.owner.set(owner);
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

    pub fn push_job(&self, ticket: Arc<Ticket>) {
        lock(&self.jobs).push(ticket);
    }

    pub fn pop_job(&self) {
        lock(&self.jobs).pop();
    }

    /// The job it runs at this moment, if any.
    pub fn innermost(&self) -> Option<Arc<Ticket>> {
        lock(&self.jobs).last().cloned()
    }

    pub fn has_job(&self, ticket: &Arc<Ticket>) -> bool {
        lock(&self.jobs).iter().any(|job| Arc::ptr_eq(job, ticket))
    }

    pub fn depth(&self) -> usize {
        lock(&self.jobs).len()
    }

    /// Runs `body` while no job of this thread can end, if `ticket` is the innermost one.
    pub fn while_innermost(&self, ticket: &Arc<Ticket>, body: impl FnOnce()) -> bool {
        let jobs = lock(&self.jobs);
        let innermost = jobs.last().is_some_and(|last| Arc::ptr_eq(last, ticket));
        if innermost {
            body();
        }
        innermost
    }

    /// Runs `body`, which imports, on the calling thread: this one.
    pub fn while_importing<T>(&self, body: impl FnOnce() -> T) -> T {
        struct Inside<'a>(&'a Thread);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                *lock(&self.0.imports) -= 1;
            }
        }
        *lock(&self.imports) += 1;
        let _inside = Inside(self);
        body()
    }

    /// Runs `body` unless this thread is in `while_importing`, and before it can begin with that.
    pub fn unless_importing(&self, body: impl FnOnce()) -> bool {
        let imports = lock(&self.imports);
        let free = *imports == 0;
        if free {
            body();
        }
        free
    }

    pub fn nest(&self, job: Box<Job>) {
        lock(&self.inbox).push_back(job);
        self.wake();
    }

    pub fn take_nested(&self) -> Option<Box<Job>> {
        lock(&self.inbox).pop_front()
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
