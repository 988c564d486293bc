//! The crew itself: the queue, its threads, and how the lead goes from one to another.
//!
//! Thread: `push` and `resume` are called by anyone; the rest by the crew's own threads.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use crate::lead::{Lead, State};
use crate::member::Member;
use crate::queue::Queue;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Arc, Mutex, lock};

/// How long a job may run before a standby takes over, if others wait.
const STANDBY_LOOKS: Duration = Duration::from_micros(200);
/// A surplus thread that found nothing to do for this long ends.
const SURPLUS_STAYS: Duration = Duration::from_secs(2);

/// Asks for one more thread.
pub type Starter = Box<dyn Fn() + Send + Sync + UnwindSafe + RefUnwindSafe>;

pub struct Crew<J> {
    queue: Queue<J>,
    size: usize,
    max_threads: usize,
    open: AtomicBool,
    lead: Lead,
    /// Grows with every job the leader starts.
    started: AtomicU64,
    /// A standby is looking.
    armed: AtomicBool,
    members: Mutex<Members>,
    /// Asks for one more thread, which will `join` as a surplus one or be `lost`.
    start: Starter,
}

#[derive(Default)]
struct Members {
    leader: Option<Arc<Member>>,
    all: Vec<Arc<Member>>,
    /// Parked, the one that parked last is last.
    idle: Vec<Arc<Member>>,
    /// Of `all`, how many wait for somebody else in the middle of a job.
    waiting: usize,
    /// Asked for, not yet started.
    coming: usize,
}

impl Members {
    /// `false`: it was not there, somebody has promoted it.
    fn unlist(&mut self, me: &Member) -> bool {
        let before = self.idle.len();
        self.idle.retain(|member| member.id() != me.id());
        self.idle.len() < before
    }
}

/// What a crew is made of.
pub struct Plan {
    /// How many threads may be in jobs at once, those that wait for somebody else not counted.
    pub size: usize,
    pub max_threads: usize,
    pub max_queue: usize,
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
            open: AtomicBool::new(true),
            lead: Lead::vacant(),
            started: AtomicU64::new(0),
            armed: AtomicBool::new(false),
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

    /// Admits a job, or says why not and gives it back. Never waits.
    pub fn push(&self, job: J) -> Result<Admitted, (J, Refused)> {
        if !self.is_open() {
            return Err((job, Refused::Closed));
        }
        if self.lead.see().state() == State::Blocked && self.is_exhausted() {
            return Err((job, Refused::Overload));
        }
        if let Err(job) = self.queue.push(job) {
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
            State::Running => {
                if !self.is_single() && !self.armed.load(Ordering::SeqCst) {
                    self.wake_standby();
                }
            }
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

    fn wake_standby(&self) {
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
    fn grow(&self) {
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

    fn set_leader(&self, members: &mut Members, member: &Arc<Member>) {
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
            members.all.retain(|member| member.id() != me.id());
            members.unlist(me);
            let vacant = self.lead.is_of(me);
            if vacant {
                members.leader = None;
                self.lead.vacate();
            }
            vacant
        };
        if vacant && !self.is_empty() {
            self.promote();
        }
    }

    /// What a thread without a job does: waits to lead, or stands by. A surplus one ends when there
    /// is nothing to do for a while.
    pub fn follow(&self, me: &Arc<Member>) -> Turn {
        let surplus = me.is_surplus();
        lock(&self.members).idle.push(me.clone());
        loop {
            let seen = me.signal();
            if me.is_retired() || !self.is_open() {
                lock(&self.members).unlist(me);
                return Turn::End;
            }
            if self.lead.is_of(me) || self.take_vacancy(me) {
                return Turn::Lead;
            }
            if !self.is_empty() && !self.armed.swap(true, Ordering::SeqCst) {
                if self.stand_by(me) {
                    return Turn::Lead;
                }
                continue;
            }
            me.wait(seen, surplus.then_some(SURPLUS_STAYS));
            if surplus && me.signal() == seen && lock(&self.members).unlist(me) {
                return Turn::End;
            }
        }
    }

    /// Takes the lead if nobody has it, or if work waits and the leader waits for somebody else.
    fn take_vacancy(&self, me: &Arc<Member>) -> bool {
        let mut members = lock(&self.members);
        let seen = self.lead.see();
        let vacant = seen.is_vacant() || (seen.state() == State::Blocked && !self.queue.is_empty());
        // Not listed: somebody has promoted it just now, and it leads already.
        let listed = vacant && members.unlist(me);
        if listed {
            self.set_leader(&mut members, me);
        }
        listed
    }

    /// Looks every 200 µs while work waits. `true`: took over from a leader stuck in one job.
    fn stand_by(&self, me: &Arc<Member>) -> bool {
        loop {
            let before = self.started.load(Ordering::Acquire);
            me.wait(me.signal(), Some(STANDBY_LOOKS));
            let stop = me.is_retired() || !self.is_open() || self.lead.is_of(me);
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
    fn take_over(&self, me: &Arc<Member>) -> bool {
        let mut members = lock(&self.members);
        let stuck = self.lead.see().state() == State::Running;
        let over = stuck && members.unlist(me);
        if over {
            self.set_leader(&mut members, me);
        }
        over
    }

    /// May this thread take a job? `false`: it leads no more.
    pub fn may_take(&self, me: &Member) -> bool {
        self.lead.is_of(me) && !me.is_retired() && self.is_open()
    }

    /// The leader starts a job.
    pub fn starts(&self, me: &Member) {
        self.started.fetch_add(1, Ordering::AcqRel);
        self.lead.say(me, State::Running);
        // SeqCst, pairs with the fence in `ring`: a job that came before this one ran found the
        // leader awake and told nobody. Should this one take long, a standby must be looking.
        fence(Ordering::SeqCst);
        if self.queue.has_fresh() && !self.is_single() && !self.armed.load(Ordering::SeqCst) {
            self.wake_standby();
        }
    }

    /// It has finished it.
    pub fn ends(&self, me: &Member) {
        self.lead.say(me, State::Idle);
    }

    /// The leader has nothing to do: awake for `spin`, then asleep. Returns whether work came while
    /// it was still awake.
    pub fn idle(&self, me: &Member, spin: Duration) -> bool {
        if me.spin(spin, || self.queue.has_fresh()) {
            return true;
        }
        if me.is_surplus() && self.step_down(me) {
            return false;
        }
        let seen = me.signal();
        if !self.lead.say(me, State::Sleeping) {
            return false;
        }
        // SeqCst, pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if self.is_empty() && self.may_take(me) {
            me.wait(seen, me.is_surplus().then_some(SURPLUS_STAYS));
        }
        self.lead.say(me, State::Idle);
        false
    }

    /// A surplus thread gives the lead to one that stays, so that it can end. `false`: there is none.
    fn step_down(&self, me: &Member) -> bool {
        let next = {
            let mut members = lock(&self.members);
            let stays = members.idle.iter().rposition(|member| !member.is_surplus());
            match stays {
                Some(index) if self.lead.is_of(me) => {
                    let next = members.idle.remove(index);
                    self.set_leader(&mut members, &next);
                    next
                }
                _ => return false,
            }
        };
        next.wake();
        true
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
