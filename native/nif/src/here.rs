//! A thread that runs jobs or waits for Erlang: what others may do to it.
//!
//! Thread: `Thread` is shared; `here()` is the calling thread's own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustler::LocalPid;
use rustler::types::atom::Atom;

use crate::erts::Raw;
use crate::job::Job;
use crate::ticket::{Ticket, lock};
use crate::{atoms, log};

pub struct Thread {
    id: usize,
    /// Python's number of it.
    ident: u64,
    handle: std::thread::Thread,
    /// The jobs it runs, innermost last.
    jobs: Mutex<Vec<Arc<Ticket>>>,
    /// Jobs of the very process that runs this thread's callback: they nest here.
    inbox: Mutex<VecDeque<Box<Job>>>,
    /// Counts what was posted to it; a change means: look again.
    signal: AtomicU32,
    /// Set when it should end after its job.
    retired: AtomicBool,
    /// Lowest address of its stack.
    stack_end: usize,
    /// The Erlang process that stands for it.
    owner: OnceLock<LocalPid>,
}

/// How long a thread may look without ever offering its core.
const IMPOLITE: Duration = Duration::from_micros(4);

static NEXT: AtomicUsize = AtomicUsize::new(1);

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

impl Thread {
    fn current() -> Self {
        Thread {
            // Relaxed: only uniqueness counts.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            ident: pyrt::thread::ident(),
            handle: std::thread::current(),
            jobs: Mutex::new(Vec::new()),
            inbox: Mutex::new(VecDeque::new()),
            signal: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            stack_end: pyrt::thread::stack_end(),
            owner: OnceLock::new(),
        }
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

    pub fn id(&self) -> usize {
        self.id
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

    pub fn nest(&self, job: Box<Job>) {
        lock(&self.inbox).push_back(job);
        self.wake();
    }

    pub fn take_nested(&self) -> Option<Box<Job>> {
        lock(&self.inbox).pop_front()
    }

    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Bytes of stack left, for the calling thread.
    pub fn stack_left(&self) -> usize {
        let here = 0u8;
        (&raw const here as usize).saturating_sub(self.stack_end)
    }

    /// Something was posted for it.
    pub fn wake(&self) {
        // Release, pairs with the acquire in `signal`: who sees the count sees what was posted.
        self.signal.fetch_add(1, Ordering::Release);
        self.handle.unpark();
    }

    pub fn signal(&self) -> u32 {
        self.signal.load(Ordering::Acquire)
    }

    /// Waits (the calling thread is this one) until the count is no longer `seen`, or `limit` has
    /// passed; first awake for `spin`, since most answers come within microseconds.
    pub fn wait(&self, seen: u32, spin: Duration, limit: Option<Duration>) {
        if self.spin(spin, || self.signal() != seen) {
            return;
        }
        let start = Instant::now();
        while self.signal() == seen {
            match limit {
                None => std::thread::park(),
                Some(limit) => match limit.checked_sub(start.elapsed()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => return,
                },
            }
        }
    }

    /// Looks at `ready` for at most `limit` without going to sleep.
    pub fn spin(&self, limit: Duration, ready: impl Fn() -> bool) -> bool {
        if ready() {
            return true;
        }
        if limit.is_zero() {
            return false;
        }
        let start = Instant::now();
        let mut polite = false;
        loop {
            if polite {
                // Whoever shall answer may be waiting for this very core.
                std::thread::yield_now();
            } else {
                for _ in 0..32 {
                    std::hint::spin_loop();
                }
            }
            if ready() {
                return true;
            }
            let spent = start.elapsed();
            if spent >= limit {
                return false;
            }
            polite = spent > IMPOLITE;
        }
    }
}
