//! A loop with a thread of its own, and the life of it: post from any thread, stop from any
//! thread, destroyed from its own work.
//!
//! Accepted posts run; later ones are refused. `stop` off the loop's thread returns after the
//! thread has ended; on it at once, and the thread ends by itself. What is suspended when the loop
//! stops (timers, sources) is dropped. A panic in one piece of work ends that piece (I7).

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::{self, JoinHandle, ThreadId};

use crate::inbox::Refused;
use crate::sync::Mutex;
use crate::turn::{Host, Post, Reactor};

/// A loop whose host decides what a piece of work is.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::os::fd::{BorrowedFd, RawFd};
/// use std::sync::mpsc;
/// use reactor::{EventLoop, Host, Key, Reactor, Readiness, Refused};
/// # if reactor::MODELLED { return Ok(()); }
///
/// /// Adds up numbers and tells the sum so far.
/// struct Adder(u32, mpsc::Sender<u32>);
///
/// impl Host<u32, ()> for Adder {
///     fn run(&mut self, _: &mut Reactor<u32, ()>, number: u32) -> ControlFlow<()> {
///         self.0 += number;
///         let _ = self.1.send(self.0);
///         ControlFlow::Continue(())
///     }
///
///     fn ready(&mut self, _: &mut Reactor<u32, ()>, _: Key, _: Readiness) -> ControlFlow<()> {
///         ControlFlow::Continue(())
///     }
///
///     fn lend(&self, _: RawFd) -> BorrowedFd<'_> {
///         unreachable!("it watches no descriptor")
///     }
/// }
///
/// let (tell, told) = mpsc::channel();
/// let numbers = EventLoop::start("adder", 10, move |_| Adder(0, tell))?;
/// // From any thread; what was accepted runs, also when the loop is stopped right after it.
/// assert!(numbers.post(3).is_ok() && numbers.post(4).is_ok());
/// numbers.stop();
/// assert_eq!(told.iter().collect::<Vec<_>>(), [3, 7]);
/// assert!(matches!(numbers.post(5), Err(Refused::Stopped(5))));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct EventLoop<W> {
    poster: Post<W>,
    /// Locked by whoever joins: a second `stop` returns after the join, too.
    thread: Mutex<Option<JoinHandle<()>>>,
    id: ThreadId,
}

impl<W: Send + 'static> EventLoop<W> {
    /// Starts the thread; `make` makes its host there. At most `bound` posts wait at any time.
    pub fn start<S, H>(
        name: &str,
        bound: usize,
        make: impl FnOnce(&mut Reactor<W, S>) -> H + Send + 'static,
    ) -> io::Result<Self>
    where
        H: Host<W, S>,
        S: 'static,
    {
        // The reactor is made where it lives: it does not move between threads.
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let mut reactor = match Reactor::new(bound) {
                    Ok(reactor) => reactor,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                let poster = reactor.poster();
                if tell.send(Ok(reactor.poster())).is_err() {
                    return;
                }
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let mut host = make(&mut reactor);
                    run(&mut reactor, &mut host);
                }));
                // Whatever ended it, nobody may post into a loop that runs no more.
                poster.stop();
            })?;
        let gone = || io::Error::other("the thread of the loop ended at its start");
        let poster = told.recv().map_err(|_| gone())??;
        let id = thread.thread().id();
        Ok(EventLoop {
            poster,
            thread: Mutex::new(Some(thread)),
            id,
        })
    }

    pub fn poster(&self) -> Post<W> {
        self.poster.clone()
    }

    pub fn post(&self, work: W) -> Result<(), Refused<W>> {
        self.poster.post(work)
    }

    /// Whether the caller runs on the loop's own thread.
    pub fn is_here(&self) -> bool {
        thread::current().id() == self.id
    }

    /// Refuses posts, lets the accepted ones run, ends the thread. Off that thread it returns
    /// after the join; on it at once.
    pub fn stop(&self) {
        self.poster.stop();
        // On its own thread the lock is not taken: another thread may hold it while it joins.
        if self.is_here() {
            return;
        }
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            // The body contains its panics: there is nothing to hear from it.
            let _ = thread.join();
        }
    }
}

impl<W> Drop for EventLoop<W> {
    fn drop(&mut self) {
        self.poster.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread::current().id() != self.id
        {
            let _ = thread.join();
        }
    }
}

fn run<W, S, H: Host<W, S>>(reactor: &mut Reactor<W, S>, host: &mut H) {
    let poster = reactor.poster();
    loop {
        // The piece of work that panics is gone with it; the tables are whole at every step.
        match catch_unwind(AssertUnwindSafe(|| reactor.turn(host))) {
            Ok(Ok(_)) | Err(_) => {}
            // The epoll set is unusable: nothing can run here any more.
            Ok(Err(_)) => return,
        }
        if poster.is_stopped() && reactor.is_drained() {
            // Once more: the stop may have come after the host looked for it.
            let _ = catch_unwind(AssertUnwindSafe(|| host.turn_end(reactor)));
            return;
        }
    }
}
