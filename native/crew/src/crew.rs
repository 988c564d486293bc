//! The crew itself: the queue, its threads, and what the leader does. Those who don't lead: `follow`.
//!
//! Thread: `push` and `resume` are called by anyone; the rest by the crew's own threads.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use crate::lead::{Lead, State};
use crate::member::{Member, spin};
use crate::queue::{Priority, Queue};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, Mutex, lock};

/// A surplus thread that found nothing to do for this long ends. Tests need not wait so long.
pub(crate) const SURPLUS_STAYS: Duration =
    Duration::from_millis(if cfg!(test) { 50 } else { 2000 });

/// Asks for one more thread.
pub type Starter = Box<dyn Fn() + Send + Sync + UnwindSafe + RefUnwindSafe>;

pub struct Crew<J> {
    pub(crate) queue: Queue<J>,
    size: usize,
    max_threads: usize,
    pub(crate) parallel: bool,
    pub(crate) open: AtomicBool,
    pub(crate) lead: Lead,
    /// Grows with every job the leader starts.
    pub(crate) started: AtomicU64,
    /// A standby is looking, or a helper was called and has not looked yet.
    pub(crate) armed: AtomicBool,
    /// Threads that look for work and don't lead.
    pub(crate) lingering: AtomicUsize,
    pub(crate) members: Mutex<Members>,
    /// Asks for one more thread, which will `join` as a surplus one or be `lost`.
    start: Starter,
}

#[derive(Default)]
pub(crate) struct Members {
    pub(crate) leader: Option<Arc<Member>>,
    pub(crate) all: Vec<Arc<Member>>,
    /// Parked, the one that parked last is last.
    pub(crate) idle: Vec<Arc<Member>>,
    /// Of `all`, how many wait for somebody else in the middle of a job.
    waiting: usize,
    /// Asked for, not yet started.
    pub(crate) coming: usize,
    /// How many bring work that no thread can be started for later: surplus threads stay.
    pub(crate) held: usize,
    /// All threads come for those: there was one.
    pub(crate) guests_only: bool,
    /// Surplus threads end as soon as nothing waits.
    pub(crate) dismissed: bool,
}

impl Members {
    /// `false`: it was not there, somebody has promoted it.
    pub(crate) fn unlist(&mut self, me: &Member) -> bool {
        let before = self.idle.len();
        self.idle.retain(|member| member.id() != me.id());
        self.idle.len() < before
    }

    /// It is counted no more.
    pub(crate) fn strike(&mut self, me: &Member) {
        self.all.retain(|member| member.id() != me.id());
    }
}

/// What a crew is made of.
pub struct Plan {
    /// How many threads may be in jobs at once, those that wait for somebody else not counted.
    pub size: usize,
    pub max_threads: usize,
    pub max_queue: usize,
    /// Jobs run at the same time; else they share something, and one thread leads.
    pub parallel: bool,
    pub start: Starter,
}

/// What a thread of a crew shall do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Lead,
    End,
}

/// Whether an admitted job has somebody to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admitted {
    InTime,
    /// The crew was closed meanwhile: `close` must be called once more, for this job too has to be
    /// answered.
    Late,
}

/// Why `push` gave a job back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Overload,
    Closed,
}

impl<J> Crew<J> {
    pub fn new(plan: Plan) -> Self {
        Crew {
            queue: Queue::new(plan.max_queue),
            size: plan.size,
            max_threads: plan.max_threads,
            parallel: plan.parallel,
            open: AtomicBool::new(true),
            lead: Lead::vacant(),
            started: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            lingering: AtomicUsize::new(0),
            members: Mutex::new(Members::default()),
            start: plan.start,
        }
    }

    /// One thread, always the same.
    pub fn is_single(&self) -> bool {
        self.max_threads == 1
    }

    pub fn is_open(&self) -> bool {
        // Acquire, pairs with `close`.
        self.open.load(Ordering::Acquire)
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many threads there are, how many of them idle, how many waiting.
    pub fn counts(&self) -> (usize, usize, usize) {
        let members = lock(&self.members);
        (members.all.len(), members.idle.len(), members.waiting)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The leader is awake and has nothing to do: a job that comes now runs at once.
    pub fn is_looking(&self) -> bool {
        self.lead.see().state() == State::Idle && self.is_empty()
    }

    /// Admits a job, or says why not and gives it back. Never waits.
    pub fn push(&self, job: J, priority: Priority) -> Result<Admitted, (J, Refused)> {
        if !self.is_open() {
            return Err((job, Refused::Closed));
        }
        if self.lead.see().state() == State::Blocked && self.is_exhausted() {
            return Err((job, Refused::Overload));
        }
        if let Err(job) = self.queue.push(job, priority) {
            return Err((job, Refused::Overload));
        }
        Ok(self.ring())
    }

    /// All threads it may have wait for somebody else, perhaps for this very job: nobody would take
    /// it.
    fn is_exhausted(&self) -> bool {
        let members = lock(&self.members);
        !self.is_single()
            && members.all.len() >= self.max_threads
            && members.waiting >= members.all.len()
    }

    /// Puts back work that goes on in slices.
    pub fn resume(&self, job: J) -> Admitted {
        self.queue.resume(job);
        self.ring()
    }

    /// For the leader, and for the one thread of a single crew while it waits.
    pub fn pop(&self) -> Option<J> {
        self.queue.pop()
    }

    /// After a job came in: makes sure that somebody will take it.
    fn ring(&self) -> Admitted {
        // SeqCst, pairs with the fences in `idle`, `blocks`, `stand_by` and `close`: either the
        // leader sees the job before it sleeps, or it is seen sleeping here.
        fence(Ordering::SeqCst);
        if !self.is_open() {
            return Admitted::Late;
        }
        let seen = self.lead.see();
        match seen.state() {
            State::Sleeping if self.lead.rouse(seen) => self.wake_leader(),
            // Somebody else has just roused it, or it woke by itself.
            State::Sleeping | State::Idle => {}
            State::Running => self.back_up(),
            State::Blocked => self.promote(),
        }
        Admitted::InTime
    }

    fn wake_leader(&self) {
        let leader = lock(&self.members).leader.clone();
        if let Some(leader) = leader {
            leader.wake();
        }
    }

    pub(crate) fn wake_standby(&self) {
        let standby = lock(&self.members).idle.last().cloned();
        match standby {
            Some(member) => member.wake(),
            None => self.grow(),
        }
    }

    /// The leader waits for somebody else: another one leads now.
    fn promote(&self) {
        if self.is_single() {
            // Its only thread takes the job while it waits.
            return self.wake_leader();
        }
        let next = {
            let mut members = lock(&self.members);
            if self.lead.see().state() != State::Blocked {
                return;
            }
            let next = members.idle.pop();
            if let Some(member) = &next {
                self.set_leader(&mut members, member);
            }
            next
        };
        match next {
            Some(member) => member.wake(),
            None => self.grow(),
        }
    }

    /// Another thread, if all that are there wait for somebody else.
    pub(crate) fn grow(&self) {
        let mut members = lock(&self.members);
        let busy = members.all.len() - members.waiting - members.idle.len();
        let wanted = members.waiting > 0
            && members.idle.is_empty()
            && busy + members.coming < self.size
            && members.all.len() + members.coming < self.max_threads;
        if wanted {
            members.coming += 1;
            drop(members);
            (self.start)();
        }
    }

    pub(crate) fn set_leader(&self, members: &mut Members, member: &Arc<Member>) {
        members.leader = Some(member.clone());
        self.lead.give(member);
    }

    /// A new thread says so. `surplus`: one that `start` was asked for.
    pub fn join(&self, me: &Arc<Member>, surplus: bool) {
        let mut members = lock(&self.members);
        if surplus {
            members.coming -= 1;
            me.set_surplus();
        }
        members.all.push(me.clone());
    }

    /// A thread that could not be started after all.
    pub fn lost(&self) {
        lock(&self.members).coming -= 1;
    }

    pub fn leave(&self, me: &Arc<Member>) {
        let vacant = {
            let mut members = lock(&self.members);
            members.strike(me);
            members.unlist(me);
            let vacant = self.lead.is_of(me);
            if vacant {
                members.leader = None;
                self.lead.vacate();
            }
            vacant
        };
        if !self.is_open() || self.is_empty() {
            return;
        }
        // Somebody may have been told that this thread would see to the work.
        if vacant {
            self.promote()
        } else {
            self.back_up()
        }
    }

    /// May this thread take a job? `false`: it leads no more, or there is nothing to help with.
    pub fn may_take(&self, me: &Member) -> bool {
        let takes = self.lead.is_of(me) || (self.parallel && !self.is_empty());
        takes && !me.is_retired() && self.is_open()
    }

    /// The leader starts a job.
    pub fn starts(&self, me: &Member) {
        self.started.fetch_add(1, Ordering::AcqRel);
        self.lead.say(me, State::Running);
        // SeqCst, pairs with the fence in `ring`: a job that came before this one ran found the
        // leader awake and told nobody. Should this one take long, a standby must be looking.
        fence(Ordering::SeqCst);
        if !self.is_empty() {
            self.back_up();
        }
    }

    /// It has finished it.
    pub fn ends(&self, me: &Member) {
        self.lead.say(me, State::Idle);
    }

    /// The leader has nothing to do: awake for `patience`, then asleep. Returns whether work came while
    /// it was still awake.
    pub fn idle(&self, me: &Member, patience: Duration) -> bool {
        if spin(patience, || self.queue.has_fresh()) {
            return true;
        }
        let surplus = me.is_surplus();
        if surplus && self.step_down(me) {
            return false;
        }
        let seen = me.signal();
        if surplus {
            self.part_leading(me, false);
        }
        if !self.lead.say(me, State::Sleeping) {
            return false;
        }
        // SeqCst, pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if self.is_empty() && self.may_take(me) {
            me.wait(seen, surplus.then_some(SURPLUS_STAYS));
        }
        self.lead.say(me, State::Idle);
        if surplus && me.signal() == seen {
            self.part_leading(me, true);
        }
        false
    }

    /// A thread begins to wait for somebody else in its job: if it leads, another one shall.
    pub fn blocks(&self, me: &Member) {
        lock(&self.members).waiting += 1;
        let led = self.lead.say(me, State::Blocked);
        // SeqCst, pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if self.is_single() || self.is_empty() {
            return;
        }
        if led { self.promote() } else { self.grow() }
    }

    /// It goes on with its job.
    pub fn unblocks(&self, me: &Member) {
        lock(&self.members).waiting -= 1;
        self.lead.say(me, State::Running);
    }

    /// Refuses new work, gives back what was queued, and lets the threads end after their jobs.
    pub fn close(&self) -> Vec<J> {
        self.open.store(false, Ordering::SeqCst);
        // SeqCst, pairs with the fence in `ring`: a job that is not found here was admitted late,
        // and its submitter knows.
        fence(Ordering::SeqCst);
        let left = std::iter::from_fn(|| self.queue.pop()).collect();
        let all = lock(&self.members).all.clone();
        all.iter().for_each(|member| member.wake());
        left
    }
}
