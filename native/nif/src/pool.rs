//! Hop 2 of a call: the bounded queue, and which thread takes from it.
//!
//! One thread leads: it takes jobs one after another under one attachment, so short calls never pay
//! for handing the GIL around. While a job runs and others wait, a standby looks every 200 µs; if
//! it is still the same job, the standby leads from then on and the old leader steps back when its
//! job ends. So a blocking call never blocks the others.
//!
//! Thread: `push` is called by schedulers; the rest by the pool's own threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;

use crate::here::Thread;
use crate::interp::Interp;
use crate::job::Job;
use crate::slot::Namespace;
use crate::ticket::lock;
use crate::watch;

/// How long a job may run before a standby takes over, if others wait.
const STANDBY_LOOKS: Duration = Duration::from_micros(200);
/// A thread beyond the pool's size that found nothing to do for this long ends.
const SURPLUS_STAYS: Duration = Duration::from_secs(2);

/// What the leader does.
const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const SLEEPING: u32 = 2;
/// In a callback: it will not come back for more before Erlang has answered.
const BLOCKED: u32 = 3;

pub struct Pool {
    pub interp: Arc<Interp>,
    /// Names of a context; a pool without one uses those of the calling process.
    pub namespace: Option<Namespace>,
    queue: ArrayQueue<Box<Job>>,
    /// Accepted work that goes on in slices; it was admitted once and is never refused.
    resumed: Mutex<Vec<Box<Job>>>,
    size: usize,
    max_threads: usize,
    open: AtomicBool,
    /// The leader's id and what it does, in one word: a thread that has lost the lead can't speak
    /// for the one that has it.
    lead: AtomicU64,
    /// Grows with every job the leader starts.
    started: AtomicU64,
    /// A standby is looking.
    armed: AtomicBool,
    members: Mutex<Members>,
}

const STATE_BITS: u32 = 2;
/// No leader: the next thread that comes by leads.
const NOBODY: u64 = BLOCKED as u64;

fn state(lead: u64) -> u32 {
    (lead & 3) as u32
}

fn leader(lead: u64) -> usize {
    (lead >> STATE_BITS) as usize
}

fn with_state(lead: u64, now: u32) -> u64 {
    (lead & !3) | u64::from(now)
}

#[derive(Default)]
struct Members {
    leader: Option<Arc<Thread>>,
    all: Vec<Arc<Thread>>,
    /// Parked, the one that parked last is last.
    idle: Vec<Arc<Thread>>,
    /// Of `all`, how many wait for Erlang.
    waiting: usize,
    /// Asked for, not yet started.
    coming: usize,
}

/// What a pool is made of.
pub struct Plan {
    pub interp: Arc<Interp>,
    pub namespace: Option<Namespace>,
    pub size: usize,
    pub max_threads: usize,
    pub max_queue: usize,
}

/// What a thread of a pool shall do next.
pub enum Turn {
    Lead,
    End,
}

/// Why `push` gave a job back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Overload,
    Closed,
}

impl Pool {
    pub fn new(plan: Plan) -> Arc<Self> {
        Arc::new(Pool {
            interp: plan.interp,
            namespace: plan.namespace,
            queue: ArrayQueue::new(plan.max_queue.max(1)),
            resumed: Mutex::new(Vec::new()),
            size: plan.size,
            max_threads: plan.max_threads,
            open: AtomicBool::new(true),
            lead: AtomicU64::new(NOBODY),
            started: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            members: Mutex::new(Members::default()),
        })
    }

    /// A context: one thread, always the same.
    pub fn is_single(&self) -> bool {
        self.max_threads == 1
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn threads(&self) -> (usize, usize, usize) {
        let members = lock(&self.members);
        (members.all.len(), members.idle.len(), members.waiting)
    }

    /// Admits a job, or says why not and gives it back. Never waits.
    pub fn push(self: &Arc<Self>, job: Box<Job>) -> Result<(), (Box<Job>, Refused)> {
        if !self.is_open() {
            return Err((job, Refused::Closed));
        }
        if let Err(job) = self.queue.push(job) {
            return Err((job, Refused::Overload));
        }
        self.ring();
        Ok(())
    }

    /// Puts back work that goes on in slices.
    pub fn resume(self: &Arc<Self>, job: Box<Job>) {
        lock(&self.resumed).push(job);
        self.ring();
    }

    /// The next job, if there is one. Resumed slices come after fresh jobs: they have had a turn.
    pub fn pop(&self) -> Option<Box<Job>> {
        self.queue.pop().or_else(|| lock(&self.resumed).pop())
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && lock(&self.resumed).is_empty()
    }

    /// After a job came in: makes sure that somebody will take it.
    fn ring(self: &Arc<Self>) {
        // SeqCst, pairs with the fences in `idle`, `blocks` and `stand_by`: either the leader sees
        // the job before it sleeps, or it is seen sleeping here.
        fence(Ordering::SeqCst);
        let lead = self.lead.load(Ordering::Relaxed);
        match state(lead) {
            SLEEPING => {
                if self.change(lead, with_state(lead, IDLE)) {
                    self.wake_leader();
                }
            }
            RUNNING if !self.is_single() => {
                if !self.armed.load(Ordering::Relaxed) {
                    self.wake_standby();
                }
            }
            BLOCKED => self.promote(),
            _ => {}
        }
    }

    fn change(&self, from: u64, to: u64) -> bool {
        self.lead
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The leader says what it does. `false`: it leads no more.
    fn say(&self, me: &Thread, now: u32) -> bool {
        let mut lead = self.lead.load(Ordering::Acquire);
        while leader(lead) == me.id() {
            if self.change(lead, with_state(lead, now)) {
                return true;
            }
            lead = self.lead.load(Ordering::Acquire);
        }
        false
    }

    fn wake_leader(&self) {
        let leader = lock(&self.members).leader.clone();
        if let Some(leader) = leader {
            leader.wake();
        }
    }

    fn wake_standby(self: &Arc<Self>) {
        let standby = lock(&self.members).idle.last().cloned();
        match standby {
            Some(thread) => thread.wake(),
            None => self.grow(),
        }
    }

    /// The leader waits for Erlang: somebody else leads now.
    fn promote(self: &Arc<Self>) {
        if self.is_single() {
            // Its only thread takes the job while it waits (`callback`).
            return self.wake_leader();
        }
        let next = {
            let mut members = lock(&self.members);
            if state(self.lead.load(Ordering::Acquire)) != BLOCKED {
                return;
            }
            let next = members.idle.pop();
            if let Some(thread) = &next {
                self.set_leader(&mut members, thread);
            }
            next
        };
        match next {
            Some(thread) => thread.wake(),
            None => self.grow(),
        }
    }

    /// Another thread, if fewer than `size` of them can take a job now.
    fn grow(self: &Arc<Self>) {
        let mut members = lock(&self.members);
        let busy = members.all.len() - members.waiting - members.idle.len();
        let wanted = members.waiting > 0
            && members.idle.is_empty()
            && busy + members.coming < self.size
            && members.all.len() + members.coming < self.max_threads;
        if wanted {
            members.coming += 1;
            drop(members);
            watch::start_thread(self.clone());
        }
    }

    fn set_leader(&self, members: &mut Members, thread: &Arc<Thread>) {
        members.leader = Some(thread.clone());
        let lead = (thread.id() as u64) << STATE_BITS | u64::from(IDLE);
        self.lead.store(lead, Ordering::Release);
    }

    fn leads(&self, me: &Thread) -> bool {
        leader(self.lead.load(Ordering::Acquire)) == me.id()
    }

    /// A new thread of this pool says so. `surplus`: one that `grow` asked for.
    pub fn join(&self, me: &Arc<Thread>, surplus: bool) {
        let mut members = lock(&self.members);
        if surplus {
            members.coming -= 1;
        }
        members.all.push(me.clone());
    }

    /// A thread that could not be started after all.
    pub fn lost(&self) {
        lock(&self.members).coming -= 1;
    }

    pub fn leave(self: &Arc<Self>, me: &Arc<Thread>) {
        let vacant = {
            let mut members = lock(&self.members);
            members.all.retain(|thread| thread.id() != me.id());
            members.idle.retain(|thread| thread.id() != me.id());
            let vacant = self.leads(me);
            if vacant {
                members.leader = None;
                self.lead.store(NOBODY, Ordering::SeqCst);
            }
            vacant
        };
        if vacant && !self.is_empty() {
            self.promote();
        }
    }

    /// What a thread without a job does: waits to lead, or stands by.
    /// `surplus`: it ends when there is nothing to do for a while.
    pub fn follow(self: &Arc<Self>, me: &Arc<Thread>, surplus: bool) -> Turn {
        lock(&self.members).idle.push(me.clone());
        loop {
            let seen = me.signal();
            if me.is_retired() || !self.is_open() {
                self.unlist(me);
                return Turn::End;
            }
            if self.leads(me) {
                self.unlist(me);
                return Turn::Lead;
            }
            if self.take_vacancy(me) {
                return Turn::Lead;
            }
            if !self.is_empty() && !self.armed.swap(true, Ordering::SeqCst) {
                if self.stand_by(me) {
                    return Turn::Lead;
                }
                continue;
            }
            me.wait(seen, Duration::ZERO, surplus.then_some(SURPLUS_STAYS));
            if surplus && me.signal() == seen && self.unlist(me) {
                return Turn::End;
            }
        }
    }

    /// Takes the lead if nobody has it, or if work waits and the leader is in a callback.
    fn take_vacancy(&self, me: &Arc<Thread>) -> bool {
        let mut members = lock(&self.members);
        let lead = self.lead.load(Ordering::Acquire);
        let vacant = leader(lead) == 0 || (state(lead) == BLOCKED && !self.is_empty());
        if vacant {
            members.idle.retain(|thread| thread.id() != me.id());
            self.set_leader(&mut members, me);
        }
        vacant
    }

    /// Takes this thread off the idle list. `false`: it was not there, somebody has promoted it.
    fn unlist(&self, me: &Arc<Thread>) -> bool {
        let mut members = lock(&self.members);
        let before = members.idle.len();
        members.idle.retain(|thread| thread.id() != me.id());
        members.idle.len() < before
    }

    /// Looks every 200 µs while work waits. `true`: took over from a leader stuck in one job.
    fn stand_by(self: &Arc<Self>, me: &Arc<Thread>) -> bool {
        loop {
            let before = self.started.load(Ordering::Acquire);
            let seen = me.signal();
            me.wait(seen, Duration::ZERO, Some(STANDBY_LOOKS));
            let stop = me.is_retired() || !self.is_open() || self.leads(me);
            if stop || self.is_empty() {
                // SeqCst, pairs with the fence in `ring`: a job that came in after `is_empty` is
                // seen by `follow`, which looks again.
                self.armed.store(false, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                return false;
            }
            if self.started.load(Ordering::Acquire) == before && self.take_over(me) {
                self.armed.store(false, Ordering::SeqCst);
                return true;
            }
        }
    }

    /// Leads from now on, unless the leader is free or this thread was promoted meanwhile.
    fn take_over(&self, me: &Arc<Thread>) -> bool {
        let mut members = lock(&self.members);
        let stuck = state(self.lead.load(Ordering::Acquire)) == RUNNING;
        let before = members.idle.len();
        if stuck {
            members.idle.retain(|thread| thread.id() != me.id());
        }
        let over = stuck && members.idle.len() < before;
        if over {
            self.set_leader(&mut members, me);
        }
        over
    }

    /// May this thread take a job? `false`: it leads no more.
    pub fn may_take(&self, me: &Thread) -> bool {
        self.leads(me) && !me.is_retired() && self.is_open()
    }

    /// The leader starts a job.
    pub fn starts(self: &Arc<Self>, me: &Thread) {
        self.started.fetch_add(1, Ordering::AcqRel);
        self.say(me, RUNNING);
        // SeqCst, pairs with the fence in `ring`: a job that came before this one ran has woken
        // nobody, so whoever starts one with others behind it makes sure that a standby looks.
        fence(Ordering::SeqCst);
        if !self.queue.is_empty() && !self.is_single() && !self.armed.load(Ordering::Relaxed) {
            self.wake_standby();
        }
    }

    /// It has finished it.
    pub fn ends(&self, me: &Thread) {
        self.say(me, IDLE);
    }

    /// The leader has nothing to do: awake for `spin`, then asleep. Returns whether work came while
    /// it was still awake.
    pub fn idle(&self, me: &Arc<Thread>, spin: Duration, surplus: bool) -> bool {
        if me.spin(spin, || !self.queue.is_empty()) {
            return true;
        }
        let seen = me.signal();
        if !self.say(me, SLEEPING) {
            return false;
        }
        // SeqCst, pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if self.is_empty() && self.may_take(me) {
            me.wait(seen, Duration::ZERO, surplus.then_some(SURPLUS_STAYS));
        }
        self.say(me, IDLE);
        if surplus && me.signal() == seen {
            self.step_down(me);
        }
        false
    }

    /// A surplus thread gives the lead to one that stays, so that it can end.
    fn step_down(&self, me: &Thread) {
        let next = {
            let mut members = lock(&self.members);
            if !self.leads(me) {
                return;
            }
            let next = members.idle.pop();
            if let Some(thread) = &next {
                self.set_leader(&mut members, thread);
            }
            next
        };
        if let Some(thread) = next {
            thread.wake();
        }
    }

    /// A thread of this pool begins to wait for Erlang: if it leads, somebody else shall.
    pub fn blocks(self: &Arc<Self>, me: &Thread) {
        lock(&self.members).waiting += 1;
        let led = self.say(me, BLOCKED);
        // SeqCst, pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if self.is_single() || self.is_empty() {
            return;
        }
        if led { self.promote() } else { self.grow() }
    }

    pub fn unblocks(&self, me: &Thread) {
        lock(&self.members).waiting -= 1;
        self.say(me, RUNNING);
    }

    /// Refuses new work, gives back what was queued, and lets the threads end after their jobs.
    pub fn close(&self) -> Vec<Box<Job>> {
        self.open.store(false, Ordering::Release);
        let mut left = std::mem::take(&mut *lock(&self.resumed));
        while let Some(job) = self.queue.pop() {
            left.push(job);
        }
        let all = lock(&self.members).all.clone();
        all.iter().for_each(|thread| thread.wake());
        left
    }

    pub fn members(&self) -> Vec<Arc<Thread>> {
        lock(&self.members).all.clone()
    }
}
