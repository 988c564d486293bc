//! One turn of a loop: wait, dispatch what is ready, run what is due.
//!
//! Thread: the loop's own. Never: has a borrow of its tables alive while the host runs (I3): the
//! host gets the reactor itself, so that whatever it runs may set timers, watch and post again.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use crate::clock;
use crate::inbox::{Inbox, Poster, Wake};
use crate::key::{Key, Table};
use crate::poller::{Poller, Readiness, Waited, Waker};
use crate::timer::{TimerKey, Timers};

/// Whoever runs the work of a loop: `W` is work that runs once, `S` what a descriptor stands for.
pub trait Host<W, S> {
    /// Just before the loop sleeps: gives up what others need meanwhile (the GIL).
    fn before_wait(&mut self) {}

    fn after_wait(&mut self) {}

    /// Runs one piece of work. `Break` ends the turn; what is left stays ready.
    fn run(&mut self, reactor: &mut Reactor<W, S>, work: W) -> ControlFlow<()>;

    /// A source is ready for what it is watched for; both bits may be set.
    fn ready(&mut self, reactor: &mut Reactor<W, S>, key: Key, is: Readiness) -> ControlFlow<()>;

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

struct Source<S> {
    fd: RawFd,
    interest: Readiness,
    /// Watched for one event at a time: it is out of sight after each.
    once: bool,
    load: S,
}

/// What wakes this loop, as a type that posters can share.
pub struct Alarm(Arc<Waker>);

impl Wake for Alarm {
    fn wake(&self) {
        self.0.wake();
    }
}

/// The posting end of a loop.
pub type Post<W> = Poster<W, Alarm>;

/// How often a key without a source may fire before the epoll set is made anew: once is an event
/// of this batch whose source has just gone, twice is a closed descriptor with a living twin.
const GHOSTS: u32 = 2;

pub struct Reactor<W, S> {
    poller: Poller,
    sources: Table<Source<S>>,
    /// How many sources are in the epoll set.
    watched: usize,
    timers: Timers<W>,
    ready: VecDeque<W>,
    inbox: Inbox<W, Alarm>,
    ghosts: u32,
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
            inbox,
            ghosts: 0,
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

    pub fn ready(&self) -> &VecDeque<W> {
        &self.ready
    }

    pub fn ready_mut(&mut self) -> &mut VecDeque<W> {
        &mut self.ready
    }

    /// The time this turn began to run its work, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn set_timer(&mut self, deadline: u64, work: W) -> TimerKey {
        self.timers.insert(deadline, work)
    }

    pub fn cancel_timer(&mut self, key: TimerKey) -> Option<W> {
        self.timers.cancel(key)
    }

    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Watches a descriptor until `unregister`, which must come before it is closed.
    pub fn register(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Readiness,
        load: S,
    ) -> io::Result<Key> {
        let key = self.sources.insert(Source {
            fd: fd.as_raw_fd(),
            interest: Readiness::NONE,
            once: false,
            load,
        });
        match self.watch(key, fd, interest) {
            Ok(()) => Ok(key),
            Err(error) => {
                self.sources.remove(key);
                Err(error)
            }
        }
    }

    /// What the source is watched for from now on. A source that is watched for nothing is out of
    /// the epoll set, else its hang-up would fire for ever.
    pub fn watch(&mut self, key: Key, fd: BorrowedFd<'_>, interest: Readiness) -> io::Result<()> {
        let Some(source) = self.sources.get_mut(key) else {
            return Ok(());
        };
        if source.interest == interest {
            return Ok(());
        }
        if source.interest.is_none() {
            self.poller.add(fd, key, interest)?;
            self.watched += 1;
        } else if interest.is_none() {
            self.poller.delete(fd)?;
            self.watched -= 1;
        } else {
            self.poller.modify(fd, key, interest)?;
        }
        source.interest = interest;
        Ok(())
    }

    /// Watches for one event. The descriptor may have been closed and opened anew since the last
    /// one: it is looked up again each time, by one system call. Whether it is a new one.
    pub fn watch_once(
        &mut self,
        key: Key,
        fd: BorrowedFd<'_>,
        interest: Readiness,
    ) -> io::Result<bool> {
        let Some(source) = self.sources.get_mut(key) else {
            return Ok(false);
        };
        let new = self.poller.arm(fd, key, interest)?;
        if source.interest.is_none() {
            self.watched += 1;
        }
        source.interest = interest;
        source.once = true;
        Ok(new)
    }

    /// The descriptor of this source has left the epoll set by itself: it was closed.
    pub fn forget_interest(&mut self, key: Key) {
        if let Some(source) = self.sources.get_mut(key)
            && !source.interest.is_none()
        {
            source.interest = Readiness::NONE;
            self.watched -= 1;
        }
    }

    pub fn interest(&self, key: Key) -> Readiness {
        self.sources
            .get(key)
            .map_or(Readiness::NONE, |source| source.interest)
    }

    /// The descriptor of a source.
    pub fn fd(&self, key: Key) -> Option<RawFd> {
        self.sources.get(key).map(|source| source.fd)
    }

    pub fn source(&self, key: Key) -> Option<&S> {
        self.sources.get(key).map(|source| &source.load)
    }

    pub fn source_mut(&mut self, key: Key) -> Option<&mut S> {
        self.sources.get_mut(key).map(|source| &mut source.load)
    }

    /// Forgets a source. A descriptor that was closed too early is out of the set already.
    pub fn unregister(&mut self, key: Key, fd: BorrowedFd<'_>) -> Option<S> {
        let source = self.sources.remove(key)?;
        if !source.interest.is_none() {
            self.watched -= 1;
        }
        if source.once || !source.interest.is_none() {
            let _ = self.poller.delete(fd);
        }
        Some(source.load)
    }

    /// Gives up everything that is ready, set or watched, for the caller to drop.
    pub fn clear(&mut self) -> (VecDeque<W>, Vec<W>, Vec<S>) {
        self.inbox.take(&mut self.ready);
        let mut timers = Vec::with_capacity(self.timers.len());
        while let Some(work) = self.timers.pop_due(u64::MAX) {
            timers.push(work);
        }
        let keys: Vec<_> = self.sources.iter_mut().map(|(key, _)| key).collect();
        let sources = keys.into_iter().filter_map(|key| self.sources.remove(key));
        let sources = sources.map(|source| source.load).collect();
        self.watched = 0;
        (std::mem::take(&mut self.ready), timers, sources)
    }

    /// Waits for work and runs what there is.
    pub fn turn<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<Outcome> {
        if self.wait(host)? == Waited::Interrupted {
            return Ok(Outcome::Interrupted);
        }
        self.inbox.take(&mut self.ready);
        if self.dispatch(host)?.is_break() {
            return Ok(Outcome::Broken);
        }
        if !self.timers.is_empty() {
            self.now = clock::now();
            while let Some(work) = self.timers.pop_due(self.now) {
                self.ready.push_back(work);
            }
        }
        // Only what is ready now: work that makes work must not starve the descriptors.
        for _ in 0..self.ready.len() {
            let Some(work) = self.ready.pop_front() else {
                break;
            };
            if host.run(self, work).is_break() {
                return Ok(Outcome::Broken);
            }
        }
        match host.turn_end(self) {
            ControlFlow::Continue(()) => Ok(Outcome::Done),
            ControlFlow::Break(()) => Ok(Outcome::Broken),
        }
    }

    /// Descriptors are looked at in every turn; the loop sleeps only when nothing is ready.
    fn wait<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<Waited> {
        let timeout = self.timeout();
        if timeout == Some(0) {
            if self.watched == 0 {
                return Ok(Waited::Done);
            }
            return self.poller.wait(timeout);
        }
        if !self.inbox.fall_asleep() {
            return self.poller.wait(Some(0));
        }
        host.before_wait();
        let waited = self.poller.wait(timeout);
        self.inbox.awake();
        host.after_wait();
        waited
    }

    fn timeout(&mut self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let deadline = self.timers.next_deadline()?;
        Some(deadline.saturating_sub(clock::now()))
    }

    fn dispatch<H: Host<W, S>>(&mut self, host: &mut H) -> io::Result<ControlFlow<()>> {
        let mut ghosts = false;
        while let Some((key, event)) = self.poller.next_event() {
            // A stale key finds nothing: its source went earlier in this same batch.
            let Some(source) = self.sources.get_mut(key) else {
                ghosts = true;
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
        self.ghosts = if ghosts { self.ghosts + 1 } else { 0 };
        if self.ghosts >= GHOSTS {
            self.ghosts = 0;
            self.rebuild(host)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A descriptor that was closed while a twin of it lives goes on firing and can't be removed:
    /// only a new set is free of it.
    fn rebuild<H: Host<W, S>>(&mut self, host: &H) -> io::Result<()> {
        self.poller.reset()?;
        self.watched = 0;
        for (key, source) in self.sources.iter_mut() {
            if source.interest.is_none() {
                continue;
            }
            let fd = host.lend(source.fd);
            let added = if source.once {
                self.poller.arm(fd, key, source.interest).map(drop)
            } else {
                self.poller.add(fd, key, source.interest)
            };
            match added {
                Ok(()) => self.watched += 1,
                // Closed behind our back: it can't become ready any more.
                Err(_) => source.interest = Readiness::NONE,
            }
        }
        Ok(())
    }

    /// Whether everything that was posted or pushed so far has run.
    pub fn is_drained(&mut self) -> bool {
        self.inbox.take(&mut self.ready);
        self.ready.is_empty()
    }

    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Waits as on Linux before 5.11.
    #[doc(hidden)]
    pub fn pretend_old_kernel(&mut self) -> io::Result<()> {
        self.poller.pretend_old_kernel()
    }
}
