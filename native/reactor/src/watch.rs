//! Waiting for a descriptor to be readable or writable, as futures.
//!
//! A direction stays in the epoll set as long as each event finds a waiter, so a task that reads
//! again and again costs no system call for it; an event without one takes it out.
//!
//! Thread: any; the epoll set belongs to the loop (I5), which follows what is wanted.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::desk::Order;
use crate::key::Key;
use crate::poller::Readiness;
use crate::signal::Signal;
use crate::sleep::Stopped;
use crate::sync::Mutex;
use crate::task_loop::Handle;

#[derive(Default)]
pub(crate) struct Wanted {
    pub interest: Readiness,
    pub key: Option<Key>,
    /// The owner is gone: the loop forgets the source.
    pub closed: bool,
    pub failed: Option<io::Error>,
}

/// What the loop and the waiting tasks share; keeps the descriptor open while it is watched.
pub(crate) struct Source {
    io: Arc<dyn AsFd + Send + Sync>,
    pub(crate) read: Signal,
    pub(crate) write: Signal,
    pub(crate) wanted: Mutex<Wanted>,
}

impl Source {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.io.as_fd().as_raw_fd()
    }

    /// Nobody will fire it again: waiters get the error.
    pub(crate) fn fail(&self, error: io::Error) {
        self.wanted.lock().failed = Some(error);
        self.read.fire();
        self.write.fire();
    }

    /// Serves an event. Answers the new interest if an event found no waiter.
    pub(crate) fn ready(&self, is: Readiness) -> Option<Readiness> {
        let idle = Readiness {
            readable: is.readable && !self.read.fire(),
            writable: is.writable && !self.write.fire(),
        };
        if idle.is_none() {
            return None;
        }
        let mut wanted = self.wanted.lock();
        wanted.interest.readable &= !idle.readable;
        wanted.interest.writable &= !idle.writable;
        Some(wanted.interest)
    }
}

#[derive(Clone, Copy)]
enum Way {
    Read,
    Write,
}

/// A descriptor on a loop. Non-blocking mode is the owner's business. One task waits per
/// direction; of several the last one is woken.
///
/// ```
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use reactor::{TaskLoop, Watch, block_on};
/// # if reactor::MODELLED { return Ok(()); }
///
/// let tasks = TaskLoop::start("example", 100)?;
/// let (mine, mut theirs) = UnixStream::pair()?;
/// mine.set_nonblocking(true)?;
/// let mine = Watch::new(tasks.handle(), mine);
/// let reading = tasks.handle().spawn_admitted(async move {
///     mine.readable().await?;
///     let mut text = [0; 5];
///     (&mut mine.get_ref()).read_exact(&mut text)?;
///     Ok::<_, std::io::Error>(text)
/// })?;
/// theirs.write_all(b"hello")?;
/// assert_eq!(&block_on(reading)??, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Watch<T> {
    io: Arc<T>,
    source: Arc<Source>,
    handle: Handle,
}

impl<T: AsFd + Send + Sync + 'static> Watch<T> {
    pub fn new(handle: &Handle, io: T) -> Self {
        let io = Arc::new(io);
        let source = Arc::new(Source {
            io: io.clone(),
            read: Signal::default(),
            write: Signal::default(),
            wanted: Mutex::new(Wanted::default()),
        });
        let handle = handle.clone();
        Watch { io, source, handle }
    }
}

impl<T> Watch<T> {
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Readable since the last time it was awaited. It may be so no more: try, and await again.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_readable(context)).await
    }

    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_writable(context)).await
    }

    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Way::Read, context)
    }

    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Way::Write, context)
    }

    fn poll(&self, way: Way, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let signal = match way {
            Way::Read => &self.source.read,
            Way::Write => &self.source.write,
        };
        let fired = signal.poll(context).is_ready();
        let mut wanted = self.source.wanted.lock();
        if let Some(error) = &wanted.failed {
            return Poll::Ready(Err(copy(error)));
        }
        if fired {
            return Poll::Ready(Ok(()));
        }
        let bit = match way {
            Way::Read => &mut wanted.interest.readable,
            Way::Write => &mut wanted.interest.writable,
        };
        if std::mem::replace(bit, true) {
            return Poll::Pending;
        }
        drop(wanted);
        match self.handle.order(Order::Watch(self.source.clone())) {
            Ok(()) => Poll::Pending,
            Err(Stopped) => Poll::Ready(Err(io::Error::other(Stopped))),
        }
    }
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        let known = {
            let mut wanted = self.source.wanted.lock();
            wanted.closed = true;
            wanted.key.is_some() || !wanted.interest.is_none()
        };
        if known {
            // Refused by a loop that has ended: its sources went with it.
            let _ = self.handle.order(Order::Watch(self.source.clone()));
        }
    }
}

fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(Stopped),
    }
}
