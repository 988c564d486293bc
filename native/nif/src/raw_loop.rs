//! A loop that Erlang drives itself: descriptors and timers in, `{Id, read | write | timer}` out.
//!
//! No Python in it and no thread of its own. Its epoll descriptor stands for all that it watches: a
//! process waits for that one in `poll_events`, or is sent one message a wake (`resource`).
//!
//! Thread: schedulers. Never: waits with the lock held.

pub mod nifs;
pub mod resource;
pub mod sockets;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use reactor::inbox::Wake;
use reactor::own::Own;
use reactor::poller::Waker;
use reactor::{Host, Key, Moment, Reactor, Readiness, TimerKey, clock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What a user calls an event.
pub type Id = u64;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Read,
    Write,
    Timer,
}

/// Something that happened and was not fetched yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    pub id: Id,
    pub kind: Kind,
}

/// Work of the reactor.
enum Work {
    Due(Id),
    /// Nothing: it keeps a turn from waiting.
    Look,
}

/// What a descriptor stands for.
enum Load {
    User {
        fd: RawFd,
        reader: Option<Id>,
        writer: Option<Id>,
    },
    /// The timer descriptor, readable when the next timer is due.
    Clock,
}

pub struct RawLoop {
    reactor: Reactor<Work, Load>,
    by_fd: HashMap<RawFd, Key>,
    pending: Pending,
    clock: Own,
    /// What the timer descriptor is set to.
    alarm: Option<u64>,
}

// SAFETY: used by one thread at a time, whoever has the lock. What is not `Send` in it are the events
// of the system's last answer, whose data may be pointers by their type; here they are numbers.
unsafe impl Send for RawLoop {}

/// Each event once, in the order of their coming.
#[derive(Default)]
struct Pending {
    events: VecDeque<Event>,
    known: HashSet<Event>,
    /// Descriptors that are out of sight until their events are fetched: a loop whose events
    /// nobody takes must not wake for them again and again.
    told: Vec<Key>,
}

impl Pending {
    fn push(&mut self, event: Event) {
        if self.known.insert(event) {
            self.events.push_back(event);
        }
    }

    fn forget(&mut self, event: Event) {
        if self.known.remove(&event) {
            self.events.retain(|other| *other != event);
        }
    }
}

/// So many rounds of events are taken in one step before the descriptor is armed again.
const ROUNDS: usize = 4;

impl RawLoop {
    pub fn new() -> io::Result<Self> {
        let mut reactor = Reactor::new(1)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = Own::from(timerfd_create(TimerfdClockId::Monotonic, flags)?);
        reactor.register(clock.as_fd(), Readiness::READ, Load::Clock)?;
        Ok(RawLoop {
            reactor,
            by_fd: HashMap::new(),
            pending: Pending::default(),
            clock,
            alarm: None,
        })
    }

    /// The descriptor that is readable while something is to be done.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reactor.poller().as_fd()
    }

    pub fn waker(&self) -> Arc<Waker> {
        self.reactor.poller().waker()
    }

    /// Watches a descriptor for `kind`, in the name of `id`. A second time: under the new name.
    pub fn add(
        &mut self,
        fd: BorrowedFd<'_>,
        number: RawFd,
        kind: Kind,
        id: Id,
    ) -> io::Result<Key> {
        let key = match self.by_fd.get(&number) {
            Some(&key) => key,
            None => {
                let load = Load::User {
                    fd: number,
                    reader: None,
                    writer: None,
                };
                let key = self.reactor.register(fd, Readiness::NONE, load)?;
                self.by_fd.insert(number, key);
                key
            }
        };
        let old = self.set(key, kind, Some(id));
        if let Err(error) = self.watch(key, fd) {
            self.set(key, kind, old);
            self.drop_if_unused(key, fd);
            return Err(error);
        }
        Ok(key)
    }

    /// Watches it no more for `kind`; what it had to tell is forgotten.
    pub fn remove(&mut self, key: Key, kind: Kind) {
        let Some(Load::User { fd, .. }) = self.reactor.source(key) else {
            return;
        };
        let fd = resource::lend(*fd);
        if let Some(id) = self.set(key, kind, None) {
            self.pending.forget(Event { id, kind });
        }
        if !self.drop_if_unused(key, fd) {
            // One that was closed behind our back is out of the set already.
            let _ = self.watch(key, fd);
        }
    }

    /// Names who is told of `kind`; who was before.
    fn set(&mut self, key: Key, kind: Kind, id: Option<Id>) -> Option<Id> {
        match (self.reactor.source_mut(key), kind) {
            (Some(Load::User { reader, .. }), Kind::Read) => std::mem::replace(reader, id),
            (Some(Load::User { writer, .. }), Kind::Write) => std::mem::replace(writer, id),
            _ => None,
        }
    }

    fn drop_if_unused(&mut self, key: Key, fd: BorrowedFd<'_>) -> bool {
        let Some(Load::User {
            fd: number,
            reader: None,
            writer: None,
        }) = self.reactor.source(key)
        else {
            return false;
        };
        self.by_fd.remove(number);
        self.reactor.unregister(key, fd);
        true
    }

    /// For one event at a time: it is out of sight until that is fetched.
    fn watch(&mut self, key: Key, fd: BorrowedFd<'_>) -> io::Result<()> {
        let Some(Load::User { reader, writer, .. }) = self.reactor.source(key) else {
            return Ok(());
        };
        let untold = |id: &Option<Id>, kind| {
            id.is_some_and(|id| !self.pending.known.contains(&Event { id, kind }))
        };
        let interest = Readiness {
            readable: untold(reader, Kind::Read),
            writable: untold(writer, Kind::Write),
        };
        if interest.is_none() {
            return Ok(());
        }
        self.reactor.watch_once(key, fd, interest).map(drop)
    }

    pub fn call_later(&mut self, delay: Duration, id: Id) -> TimerKey {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.call_at(clock::now().saturating_add(nanos), id)
    }

    /// At a nanosecond of the monotonic clock.
    pub fn call_at(&mut self, deadline: u64, id: Id) -> TimerKey {
        let key = self
            .reactor
            .set_timer(Moment::at_nanos(deadline), Work::Due(id));
        self.arm();
        key
    }

    pub fn cancel_timer(&mut self, key: TimerKey) {
        self.reactor.cancel_timer(key);
        self.arm();
    }

    /// Sets the timer descriptor to the next deadline, if that has changed.
    fn arm(&mut self) {
        let next = self.reactor.next_deadline();
        if next == self.alarm {
            return;
        }
        // A moment, not zero: zero would unset it.
        let left = next.map_or(0, |deadline| deadline.saturating_sub(clock::now()).max(1));
        let spec = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(left),
        };
        if timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &spec).is_ok() {
            self.alarm = next;
        }
    }

    /// Takes what is ready into the list; how many events came to it.
    pub fn step(&mut self) -> io::Result<usize> {
        let before = self.pending.events.len();
        let told = self.pending.told.len();
        for _ in 0..ROUNDS {
            self.reactor.push(Work::Look);
            let mut taker = Taker {
                pending: std::mem::take(&mut self.pending),
                clock: &self.clock,
                news: false,
            };
            let turned = self.reactor.turn(&mut taker);
            let news = taker.news;
            self.pending = taker.pending;
            turned?;
            if !news {
                break;
            }
        }
        // One that was read may still be watched for writing.
        let news: Vec<Key> = self.pending.told[told..].to_vec();
        for key in news {
            self.watch_again(key);
        }
        // The descriptor has told, so it counts as unset.
        self.alarm = None;
        self.arm();
        Ok(self.pending.events.len() - before)
    }

    /// The list, emptied; what it told of is watched again.
    pub fn take_pending(&mut self) -> Vec<Event> {
        self.pending.known.clear();
        let events = self.pending.events.drain(..).collect();
        for key in std::mem::take(&mut self.pending.told) {
            self.watch_again(key);
        }
        events
    }

    fn watch_again(&mut self, key: Key) {
        if let Some(Load::User { fd, .. }) = self.reactor.source(key) {
            let fd = resource::lend(*fd);
            // One that was closed behind our back can't become ready any more.
            let _ = self.watch(key, fd);
        }
    }
}

/// Takes the events of a turn into the list.
struct Taker<'a> {
    pending: Pending,
    clock: &'a Own,
    news: bool,
}

impl Host<Work, Load> for Taker<'_> {
    fn run(&mut self, _reactor: &mut Reactor<Work, Load>, work: Work) -> ControlFlow<()> {
        if let Work::Due(id) = work {
            self.news = true;
            self.pending.push(Event {
                id,
                kind: Kind::Timer,
            });
        }
        ControlFlow::Continue(())
    }

    fn ready(
        &mut self,
        reactor: &mut Reactor<Work, Load>,
        key: Key,
        is: Readiness,
    ) -> ControlFlow<()> {
        match reactor.source(key) {
            Some(Load::User { reader, writer, .. }) => {
                self.news = true;
                self.pending.told.push(key);
                let read = reader.filter(|_| is.readable).map(|id| (id, Kind::Read));
                let write = writer.filter(|_| is.writable).map(|id| (id, Kind::Write));
                for (id, kind) in read.into_iter().chain(write) {
                    self.pending.push(Event { id, kind });
                }
            }
            Some(Load::Clock) => {
                let mut count = [0; 8];
                // Set anew meanwhile: then there is nothing to read.
                let _ = rustix::io::read(self.clock, &mut count);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn lend(&self, fd: RawFd) -> BorrowedFd<'_> {
        resource::lend(fd)
    }
}

/// Waits until `fd` is readable or the time is over.
pub fn wait_readable(fd: &OwnedFd, limit: Duration) -> io::Result<()> {
    let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    match poll(&mut fds, Some(&timespec(nanos))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends a wait of `poll_events`.
pub fn wake(waker: &Waker) {
    waker.wake();
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as _,
    }
}
