//! The system's readiness: epoll, level-triggered. It waits in milliseconds, `ppoll` for its descriptor in nanoseconds:
//! both are in every kernel.
//!
//! Thread: the loop's own; `Waker` is for all others. Never: knows what a source is for.

use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;

use crate::inbox::Wake;
use crate::key::Key;
use crate::own::Own;
use crate::sync::RwLock;

/// What a descriptor is ready for, or is watched for. Each bit stands for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    pub readable: bool,
    pub writable: bool,
}

impl Readiness {
    pub const NONE: Readiness = Readiness {
        readable: false,
        writable: false,
    };
    pub const READ: Readiness = Readiness {
        readable: true,
        writable: false,
    };
    pub const WRITE: Readiness = Readiness {
        readable: false,
        writable: true,
    };

    pub fn is_none(self) -> bool {
        self == Readiness::NONE
    }

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.readable);
        flags.set(epoll::EventFlags::OUT, self.writable);
        flags
    }

    /// An error or a hang-up is news for readers and for writers.
    fn from_flags(flags: epoll::EventFlags) -> Self {
        Readiness {
            readable: flags.intersects(!epoll::EventFlags::OUT),
            writable: flags.intersects(!epoll::EventFlags::IN),
        }
    }
}

impl BitOr for Readiness {
    type Output = Readiness;

    fn bitor(self, other: Readiness) -> Readiness {
        Readiness {
            readable: self.readable || other.readable,
            writable: self.writable || other.writable,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// Events or the time came.
    Done,
    /// A signal came first.
    Interrupted,
}

/// Ends the wait of its loop, from any thread.
///
/// The lock is for the end: a loop that is closed takes its descriptor with it. It is shared until then:
/// a loop that is woken must not wait for the thread that is still about to come back from waking it.
pub struct Waker(RwLock<Option<Own>>);

impl Wake for Waker {
    fn wake(&self) {
        // A full counter is awake already; nothing else can fail on an open eventfd.
        if let Some(fd) = &*self.0.read() {
            let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
        }
    }
}

/// The key of the waker in the epoll set; no table gives it out.
const WAKER: u64 = u64::MAX;

/// Events taken per wait: more are ready again at the next one, which comes at once.
const BATCH: usize = 1024;

const MILLISECOND: u64 = 1_000_000;
/// Shorter waits are likely to end by their time, which is kept to the nanosecond. In longer ones events come first:
/// those cost one system call.
const SHORT: u64 = 10 * MILLISECOND;
/// No wait is longer: epoll counts milliseconds in an `int`.
const LONGEST: u64 = i32::MAX as u64 * MILLISECOND;

pub struct Poller {
    /// `None` once it is closed.
    epoll: Option<Own>,
    waker: Arc<Waker>,
    events: Vec<epoll::Event>,
    resets: u32,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let poller = Poller {
            epoll: Some(epoll.into()),
            waker: Arc::new(Waker(RwLock::new(Some(waker.into())))),
            events: Vec::with_capacity(BATCH),
            resets: 0,
        };
        poller.watch_waker()?;
        Ok(poller)
    }

    fn watch_waker(&self) -> io::Result<()> {
        let data = epoll::EventData::new_u64(WAKER);
        if let Some(waker) = &*self.waker.0.read() {
            epoll::add(self.set()?, waker, data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    fn set(&self) -> io::Result<&Own> {
        self.epoll.as_ref().ok_or_else(|| Errno::BADF.into())
    }

    /// Gives the descriptors back; nothing can be watched any more.
    pub fn close(&mut self) {
        self.epoll = None;
        self.events.clear();
        drop(self.waker.0.write().take());
    }

    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    pub fn add(&self, fd: BorrowedFd<'_>, key: Key, interest: Readiness) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key.to_u64());
        Ok(epoll::add(self.set()?, fd, data, interest.flags())?)
    }

    pub fn modify(&self, fd: BorrowedFd<'_>, key: Key, interest: Readiness) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key.to_u64());
        Ok(epoll::modify(self.set()?, fd, data, interest.flags())?)
    }

    /// Watches for one event; a descriptor that is not in the set, or no longer, is added.
    /// Whether it was.
    pub fn arm(&self, fd: BorrowedFd<'_>, key: Key, interest: Readiness) -> io::Result<bool> {
        match self.rearm(fd, key, interest) {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
                let data = epoll::EventData::new_u64(key.to_u64());
                let flags = interest.flags() | epoll::EventFlags::ONESHOT;
                epoll::add(self.set()?, fd, data, flags)?;
                Ok(true)
            }
            other => other.map(|()| false),
        }
    }

    /// Watches for one event a descriptor that is in the set.
    pub fn rearm(&self, fd: BorrowedFd<'_>, key: Key, interest: Readiness) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key.to_u64());
        let flags = interest.flags() | epoll::EventFlags::ONESHOT;
        Ok(epoll::modify(self.set()?, fd, data, flags)?)
    }

    pub fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(self.set()?, fd)?)
    }

    /// Starts again with an empty set: what a closed descriptor left behind in the old one is gone.
    pub fn reset(&mut self) -> io::Result<()> {
        self.epoll = Some(epoll::create(epoll::CreateFlags::CLOEXEC)?.into());
        self.resets = self.resets.wrapping_add(1);
        self.watch_waker()
    }

    /// In the child of a fork, where nothing is watched any more.
    pub(crate) fn part_from_parent(&mut self) {
        self.epoll = None;
        self.events.clear();
    }

    /// How often the set was replaced: each time it has another descriptor.
    pub fn resets(&self) -> u32 {
        self.resets
    }

    /// Waits until something is ready or `timeout` nanoseconds have passed; `None` waits for ever. A long wait may end
    /// up to a millisecond before its time.
    pub fn wait(&mut self, timeout: Option<u64>) -> io::Result<Waited> {
        self.events.clear();
        let Some(set) = &self.epoll else {
            return Err(Errno::BADF.into());
        };
        let waited = match timeout {
            Some(nanos @ 1..SHORT) => wait_exactly(set, &mut self.events, nanos),
            _ => wait_whole(set, &mut self.events, timeout),
        };
        match waited {
            Ok(()) => Ok(Waited::Done),
            Err(Errno::INTR) => Ok(Waited::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether events of the last wait were not taken.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The events of the last wait, one after the other; the waker's own is served here.
    pub fn next_event(&mut self) -> Option<(Key, Readiness)> {
        loop {
            let event = self.events.pop()?;
            let data = event.data.u64();
            if data != WAKER {
                return Some((Key::from_u64(data), Readiness::from_flags(event.flags)));
            }
            self.take_wake();
        }
    }

    /// Takes back a wake: the descriptor is no longer readable for it.
    pub fn take_wake(&self) {
        let mut count = [0; 8];
        if let Some(waker) = &*self.waker.0.read() {
            // Nothing to read means that it was read already.
            let _ = rustix::io::read(waker, &mut count);
        }
    }

    /// Readable while something is ready: for a driver that watches the loop from outside.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.epoll.as_ref().map(AsFd::as_fd)
    }
}

/// Waits for the descriptor of the set, then fetches the events.
#[inline(never)]
fn wait_exactly(set: &Own, events: &mut Vec<epoll::Event>, nanos: u64) -> Result<(), Errno> {
    let mut fds = [PollFd::new(set, PollFlags::IN)];
    match poll(&mut fds, Some(&timespec(nanos)))? {
        0 => Ok(()),
        _ => wait_whole(set, events, Some(0)),
    }
}

/// Waits for as many whole milliseconds as the time has.
#[inline]
fn wait_whole(
    set: &Own,
    events: &mut Vec<epoll::Event>,
    timeout: Option<u64>,
) -> Result<(), Errno> {
    let whole = |nanos: u64| timespec(nanos.min(LONGEST) / MILLISECOND * MILLISECOND);
    epoll::wait(set, spare_capacity(events), timeout.map(whole).as_ref())?;
    Ok(())
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as _,
    }
}
