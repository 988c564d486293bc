//! One turn of a loop: wait, dispatch what is ready, run what is due.
//!
//! Thread: the loop's own. Never: has a borrow of its tables alive while the host runs (I3): the
//! host gets the reactor itself, so that whatever it runs may set timers, watch and post again.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use crate::clock::{self, Moment};
use crate::inbox::{Inbox, Poster, Wake};
use crate::key::{Key, Table};
use crate::poller::{Poller, Readiness, Waited, Waker};
use crate::source::Source;
use crate::timer::{TimerKey, Timers};

/// Whoever runs the work of a loop: `W` is work that runs once, `S` what a descriptor stands for.
pub trait Host<W, S> {
    /// Just before the loop sleeps: gives up what others need meanwhile (the GIL).
    fn before_wait(&mut self) {}

    fn after_wait(&mut self) {}

    /// Whether this turn looks at the descriptors without waiting: the loop is told to stop.
    fn hurries(&self) -> bool {
        false
    }

    /// Moves work that others have left with the host itself to the end of `ready`. They leave some
    /// only where the host has given up what they need for it, and then `Poster::nudge`.
    fn collect(&mut self, _ready: &mut VecDeque<W>) {}

    /// How many nanoseconds to look for posts, with what others need given up, before it sleeps.
    fn linger(&mut self) -> u64 {
        0
    }

    /// Whether a post came while it looked.
    fn lingered(&mut self, _came: bool) {}

    /// Runs one piece of work. `Break` ends the turn; what is left stays ready.
    fn run(&mut self, reactor: &mut Reactor<W, S>, work: W) -> ControlFlow<()>;

    /// A source is ready for what it is watched for; both bits may be set.
    fn ready(&mut self, reactor: &mut Reactor<W, S>, key: Key, is: Readiness) -> ControlFlow<()>;

    /// Whether a timer's work knows that it was cancelled.
    fn is_stale(&self, _work: &W) -> bool {
        false
    }

    /// How many such timers there are, more or less.
    fn stale_timers(&self) -> usize {
        0
    }

    /// Drops the work of such timers; `all`: no other is left.
    fn discard(&mut self, _reactor: &mut Reactor<W, S>, stale: Vec<W>, _all: bool) {
        drop(stale);
    }

    /// All that was ready has run.
    fn turn_end(&mut self, _reactor: &mut Reactor<W, S>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Lends an open descriptor whose source is registered.
    fn lend(&self, fd: RawFd) -> BorrowedFd<'_>;
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    /// A signal ended the wait; nothing was run.
    Interrupted,
    /// The host broke it off.
    Broken,
}

/// What was ready, set and watched.
pub type Left<W, S> = (VecDeque<W>, Vec<W>, Vec<S>);

/// What wakes this loop, as a type that posters can share.
pub struct Alarm(Arc<Waker>);

impl Wake for Alarm {
    fn wake(&self) {
        self.0.wake();
    }
}

/// The posting end of a loop.
pub type Post<W> = Poster<W, Alarm>;

pub struct Reactor<W, S> {
    pub(crate) poller: Poller,
    pub(crate) sources: Table<Source<S>>,
    /// How many sources are in the epoll set.
    pub(crate) watched: usize,
    timers: Timers<W>,
    ready: VecDeque<W>,
    /// What the sources of this turn have made ready, and then its timers.
    urgent: VecDeque<W>,
    /// The timers that were due when this turn began to run its work.
    due: VecDeque<W>,
    inbox: Inbox<W, Alarm>,
    /// A key that fired without a source. Once is an event of this batch whose source has just
    /// gone, twice is a closed descriptor with a living twin.
    ghost: Option<Key>,
    now: u64,
}

impl<W, S> Reactor<W, S> {
    /// At most `bound` posts wait at any time (I8).
    pub fn new(bound: usize) -> io::Result<Self> {
        let poller = Poller::new()?;
        let inbox = Inbox::new(Alarm(poller.waker()), bound);
        Ok(Reactor {
            poller,
            sources: Table::default(),
            watched: 0,
            timers: Timers::default(),
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            due: VecDeque::new(),
            inbox,
            ghost: None,
            now: clock::now(),
        })
    }

    pub fn poster(&self) -> Post<W> {
        self.inbox.poster()
    }

    /// Runs at the next turn, after what is ready already.
    pub fn push(&mut self, work: W) {
        self.ready.push_back(work);
    }

    /// Runs in this turn: for what a source has made ready.
    pub fn push_now(&mut self, work: W) {
        self.urgent.push_back(work);
    }

    pub fn ready(&self) -> &VecDeque<W> {
        &self.ready
    }

    /// The time this turn began to run its work, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn set_timer(&mut self, deadline: Moment, work: W) -> TimerKey {
        self.timers.insert(deadline, work)
    }

    pub fn cancel_timer(&mut self, key: TimerKey) -> Option<W> {
        self.timers.cancel(key)
    }

    /// The nanosecond at which the next timer is due; for a driver that waits in its own way, and that cancels by key:
    /// none of its timers is stale.
    pub fn next_deadline(&mut self) -> Option<u64> {
        let next = self.timers.next_deadline(|_| false, &mut Vec::new());
        next.map(Moment::nanos)
    }

    /// For a driver that waits in its own way: the loop sleeps from now on, and posts make its
    /// descriptor readable. `false`: there is something to do already.
    pub fn rest(&mut self) -> bool {
        self.ready.is_empty() && !self.poller.has_events() && self.inbox.fall_asleep()
    }

    /// Whether nothing is ready at this moment; descriptors and timers are not looked at.
    pub fn is_idle(&mut self) -> bool {
        self.is_drained() && !self.poller.has_events()
    }

    /// It sleeps no more.
    pub fn rise(&mut self) {
        self.inbox.awake();
        self.poller.take_wake();
    }

    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Gives up everything that is ready, set or watched, for the caller to drop.
    pub fn clear(&mut self) -> Left<W, S> {
        self.inbox.take(&mut self.ready);
        self.take_all()
    }

    fn take_all(&mut self) -> Left<W, S> {
        self.ready.append(&mut self.urgent);
        self.ready.append(&mut self.due);
        let mut timers = Vec::with_capacity(self.timers.len());
        while let Some(work) = self.timers.pop_due(Moment::LAST) {
            timers.push(work);
        }
        let keys: Vec<_> = self.sources.iter_mut().map(|(key, _)| key).collect();
        let sources = keys.into_iter().filter_map(|key| self.sources.remove(key));
        let sources = sources.map(|source| source.load).collect();
        self.watched = 0;
        (std::mem::take(&mut self.ready), timers, sources)
    }

    /// Waits for work and runs what there is: first what was ready before the wait, then the
    /// sources that have become ready, then timers. What these make ready runs at the next turn.
    pub fn turn<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<Outcome> {
        if self.wait(host)? == Waited::Interrupted {
            return Ok(Outcome::Interrupted);
        }
        self.inbox.take(&mut self.ready);
        host.collect(&mut self.ready);
        self.take_due();
        // Only what is ready now: work that makes work must not starve the descriptors.
        for left in (0..self.ready.len()).rev() {
            let Some(work) = self.ready.pop_front() else {
                break;
            };
            if host.run(self, work).is_break() {
                self.keep_for_next_turn(left);
                return Ok(Outcome::Broken);
            }
        }
        if self.dispatch(host)?.is_break() || self.run_urgent(host).is_break() {
            self.keep_for_next_turn(0);
            return Ok(Outcome::Broken);
        }
        match host.turn_end(self) {
            ControlFlow::Continue(()) => Ok(Outcome::Done),
            ControlFlow::Break(()) => Ok(Outcome::Broken),
        }
    }

    /// Takes the timers that are due. Before the work runs: a timer that this sets for now is for
    /// the next turn, after what is made ready with it.
    fn take_due(&mut self) {
        if !self.timers.is_empty() {
            self.now = clock::now();
            let now = Moment::at_nanos(self.now);
            while let Some(work) = self.timers.pop_due(now) {
                self.due.push_back(work);
            }
        }
    }

    /// The turn was broken off: what is left of it, first `left` of what was ready, comes before
    /// all that it has made ready.
    fn keep_for_next_turn(&mut self, left: usize) {
        let mut made = self.ready.split_off(left.min(self.ready.len()));
        self.ready.append(&mut self.urgent);
        self.ready.append(&mut self.due);
        self.ready.append(&mut made);
    }

    /// Runs what the sources of this turn have made ready, then the timers.
    fn run_urgent<H: Host<W, S>>(&mut self, host: &mut H) -> ControlFlow<()> {
        if !self.due.is_empty() {
            self.urgent.append(&mut self.due);
        }
        while let Some(work) = self.urgent.pop_front() {
            host.run(self, work)?;
        }
        ControlFlow::Continue(())
    }

    /// Descriptors are looked at in every turn; the loop sleeps only when nothing is ready.
    #[inline]
    fn wait<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<Waited> {
        // A turn that was broken off has left events: one-time watches tell them only once.
        if self.poller.has_events() {
            return Ok(Waited::Done);
        }
        if self.timers.is_worth_sweeping(host.stale_timers()) {
            let stale = self.timers.sweep(|work| host.is_stale(work));
            host.discard(self, stale, true);
        }
        if !self.ready.is_empty() || host.hurries() {
            return self.peek();
        }
        self.sleep(host)
    }

    #[inline(never)]
    fn sleep<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<Waited> {
        let timeout = self.timeout(host);
        if timeout == Some(0) {
            return self.peek();
        }
        let linger = host.linger();
        if linger > 0 && timeout.is_none_or(|timeout| timeout > linger) {
            host.before_wait();
            let came = self.inbox.look(linger);
            host.after_wait();
            host.lingered(came);
            if came {
                return self.peek();
            }
        }
        // Last: from here to `before_wait` nobody can leave anything with the host.
        host.collect(&mut self.ready);
        if !self.ready.is_empty() || !self.inbox.fall_asleep() {
            return self.poller.wait(Some(0));
        }
        host.before_wait();
        let waited = self.poller.wait(timeout);
        self.inbox.awake();
        host.after_wait();
        waited
    }

    /// Looks at the descriptors, if there are any, without a wait.
    #[inline]
    fn peek(&mut self) -> io::Result<Waited> {
        if self.watched == 0 {
            return Ok(Waited::Done);
        }
        self.poller.wait(Some(0))
    }

    fn timeout<H: Host<W, S>>(&mut self, host: &mut H) -> Option<u64> {
        loop {
            if !self.ready.is_empty() {
                return Some(0);
            }
            let mut bin = Vec::new();
            let deadline = self
                .timers
                .next_deadline(|work| host.is_stale(work), &mut bin);
            if bin.is_empty() {
                return deadline.map(|deadline| deadline.nanos().saturating_sub(clock::now()));
            }
            // What is dropped may make work.
            host.discard(self, bin, false);
        }
    }

    fn dispatch<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<ControlFlow<()>> {
        let (mut ghost, mut again) = (None, false);
        while let Some((key, event)) = self.poller.next_event() {
            // A stale key finds nothing: its source went earlier in this same batch.
            let Some(source) = self.sources.get_mut(key) else {
                again |= self.ghost == Some(key);
                ghost = ghost.or(Some(key));
                continue;
            };
            let is = Readiness {
                readable: event.readable && source.interest.readable,
                writable: event.writable && source.interest.writable,
            };
            if source.once && !source.interest.is_none() {
                source.interest = Readiness::NONE;
                self.watched -= 1;
            }
            if !is.is_none() && host.ready(self, key, is).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.ghost = ghost;
        if again {
            self.ghost = None;
            self.rebuild(host)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The end: posts are refused, the descriptors are given back. `clear` comes before it.
    pub fn close(&mut self) {
        self.inbox.poster().stop();
        self.poller.close();
    }

    /// After a fork: the epoll set is the parent's. A turn that is on its way finds nothing more to do:
    /// its work comes back, for the caller to keep. The inbox stays as it is: a thread that the child
    /// does not have may hold its lock.
    pub fn part_from_parent(&mut self) -> Left<W, S> {
        self.poller.part_from_parent();
        self.take_all()
    }

    /// Whether everything that was posted or pushed so far has run.
    pub fn is_drained(&mut self) -> bool {
        self.inbox.take(&mut self.ready);
        self.ready.is_empty()
    }

    pub fn poller(&self) -> &Poller {
        &self.poller
    }
}
