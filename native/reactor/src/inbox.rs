//! Posting from any thread, and the only two things a loop's sleep depends on: an empty inbox and
//! the mark `asleep`. A post wakes the loop only when it sleeps.
//!
//! Thread: `Poster` any; `Inbox` the loop's own. Never: waits; runs foreign code under the lock (I3).

use std::collections::VecDeque;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};

/// Ends the sleep of a loop.
pub trait Wake: Send + Sync {
    fn wake(&self);
}

/// A post that was not accepted; the work comes back to whoever posted it.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<W> {
    /// As many posts wait as the bound allows (I8).
    Full(W),
    /// The loop is stopping or gone.
    Stopped(W),
}

struct Queue<W> {
    work: VecDeque<W>,
    stopped: bool,
    bound: usize,
}

struct Shared<W, K: ?Sized> {
    queue: Mutex<Queue<W>>,
    /// Something was posted that the loop has not taken.
    posted: AtomicBool,
    /// The loop sleeps, or is about to: whoever posts must wake it.
    asleep: AtomicBool,
    waker: K,
}

/// The posting end: may be cloned and sent to any thread.
pub struct Poster<W, K: Wake + ?Sized>(Arc<Shared<W, K>>);

impl<W, K: Wake + ?Sized> Clone for Poster<W, K> {
    fn clone(&self) -> Self {
        Poster(Arc::clone(&self.0))
    }
}

impl<W, K: Wake + ?Sized> Poster<W, K> {
    pub fn post(&self, work: W) -> Result<(), Refused<W>> {
        {
            let mut queue = self.0.queue.lock();
            if queue.stopped {
                return Err(Refused::Stopped(work));
            }
            if queue.work.len() >= queue.bound {
                return Err(Refused::Full(work));
            }
            queue.work.push_back(work);
            // Release, pairs with the load in `take`: who sees it finds the work in the queue.
            self.0.posted.store(true, Ordering::Release);
        }
        self.wake();
        Ok(())
    }

    /// Posts what belongs to work that was admitted before (the wake of a task, its timer): the
    /// bound held at its admission, so only the end of the loop refuses it.
    pub fn post_admitted(&self, work: W) -> Result<(), W> {
        {
            let mut queue = self.0.queue.lock();
            if queue.stopped {
                return Err(work);
            }
            queue.work.push_back(work);
            // Release, pairs with the load in `take`, as in `post`.
            self.0.posted.store(true, Ordering::Release);
        }
        self.wake();
        Ok(())
    }

    /// Says that there is work which the loop's host has by itself (`Host::collect`): a look for
    /// posts ends, and so does a sleep.
    #[inline]
    pub fn nudge(&self) {
        // Relaxed: what orders the work itself is the host's own.
        self.0.posted.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes the loop if it sleeps.
    #[inline]
    pub fn wake(&self) {
        // Relaxed load first: a loop that is awake costs no write. The lock of `post` and of
        // `fall_asleep` orders it: whoever found the queue empty had set the mark before.
        if self.0.asleep.load(Ordering::Relaxed) && self.0.asleep.swap(false, Ordering::AcqRel) {
            self.0.waker.wake();
        }
    }

    /// Refuses posts from now on; what was accepted still runs.
    pub fn stop(&self) {
        self.0.queue.lock().stopped = true;
        self.wake();
    }

    pub fn is_stopped(&self) -> bool {
        self.0.queue.lock().stopped
    }
}

/// The loop's end.
pub struct Inbox<W, K: Wake>(Poster<W, K>);

impl<W, K: Wake> Inbox<W, K> {
    /// At most `bound` posts wait at any time.
    pub fn new(waker: K, bound: usize) -> Self {
        Inbox(Poster(Arc::new(Shared {
            queue: Mutex::new(Queue {
                work: VecDeque::new(),
                stopped: false,
                bound,
            }),
            posted: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            waker,
        })))
    }

    pub fn poster(&self) -> Poster<W, K> {
        self.0.clone()
    }

    /// Moves everything posted so far to the end of `ready`.
    pub fn take(&self, ready: &mut VecDeque<W>) {
        let shared = &*self.0.0;
        // Acquire, pairs with the store in `post`.
        if !shared.posted.load(Ordering::Acquire) {
            return;
        }
        let mut queue = shared.queue.lock();
        // Under the lock: a post after this one sets it again.
        shared.posted.store(false, Ordering::Relaxed);
        if ready.is_empty() {
            std::mem::swap(ready, &mut queue.work);
        } else {
            ready.append(&mut queue.work);
        }
    }

    /// Looks for a post for so many nanoseconds, awake. Never by giving the processor up: whoever
    /// posts is woken on another one.
    #[cfg(not(loom))]
    pub fn look(&self, nanoseconds: u64) -> bool {
        let end = crate::clock::now() + nanoseconds;
        loop {
            for _ in 0..16 {
                // Relaxed: `take` looks again, with the order it needs.
                if self.0.0.posted.load(Ordering::Relaxed) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if crate::clock::now() >= end {
                return false;
            }
        }
    }

    /// The model has no time.
    #[cfg(loom)]
    pub fn look(&self, _nanoseconds: u64) -> bool {
        false
    }

    /// Says that the loop is about to sleep. `false`: there is work, or the end of it; don't.
    pub fn fall_asleep(&self) -> bool {
        let shared = &*self.0.0;
        // Release by the lock below: a `post` that comes after it sees the mark.
        shared.asleep.store(true, Ordering::Release);
        let queue = shared.queue.lock();
        if queue.work.is_empty() && !queue.stopped {
            return true;
        }
        drop(queue);
        self.awake();
        false
    }

    /// Says that the loop does not sleep any more.
    pub fn awake(&self) {
        // Relaxed: a poster that still sees the mark wakes once too often, never too seldom.
        self.0.0.asleep.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl<W> Inbox<W, Count> {
        fn wakes(&self) -> usize {
            self.0.0.waker.0.load(Ordering::Relaxed)
        }
    }

    fn inbox(bound: usize) -> Inbox<u32, Count> {
        Inbox::new(Count(AtomicUsize::new(0)), bound)
    }

    #[test]
    fn posting_wakes_a_loop_that_sleeps_and_only_once() {
        let inbox = inbox(usize::MAX);
        let poster = inbox.poster();
        assert_eq!(poster.post(1), Ok(()));
        assert_eq!(inbox.wakes(), 0);
        assert!(!inbox.fall_asleep());
        let mut ready = VecDeque::new();
        inbox.take(&mut ready);
        assert!(inbox.fall_asleep());
        assert_eq!(poster.post(2), Ok(()));
        assert_eq!(poster.post(3), Ok(()));
        assert_eq!(inbox.wakes(), 1);
        inbox.take(&mut ready);
        assert_eq!(ready, [1, 2, 3]);
    }

    #[test]
    fn a_full_inbox_gives_the_work_back() {
        let inbox = inbox(2);
        let poster = inbox.poster();
        assert_eq!(poster.post(1), Ok(()));
        assert_eq!(poster.post(2), Ok(()));
        assert_eq!(poster.post(3), Err(Refused::Full(3)));
        inbox.take(&mut VecDeque::new());
        assert_eq!(poster.post(4), Ok(()));
    }

    #[test]
    fn after_stop_posts_are_refused_and_accepted_ones_are_still_there() {
        let inbox = inbox(8);
        let poster = inbox.poster();
        assert_eq!(poster.post(1), Ok(()));
        poster.stop();
        assert_eq!(poster.post(2), Err(Refused::Stopped(2)));
        let mut ready = VecDeque::new();
        inbox.take(&mut ready);
        assert_eq!(ready, [1]);
        assert!(!inbox.fall_asleep());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Condvar;
    use loom::thread;

    /// Stands for the eventfd: a wake before the wait is not lost.
    struct Bell {
        rung: loom::sync::Mutex<bool>,
        heard: Condvar,
    }

    impl Wake for std::sync::Arc<Bell> {
        fn wake(&self) {
            *self.rung.lock().unwrap_or_else(|e| e.into_inner()) = true;
            self.heard.notify_one();
        }
    }

    impl Bell {
        fn new() -> std::sync::Arc<Self> {
            std::sync::Arc::new(Bell {
                rung: loom::sync::Mutex::new(false),
                heard: Condvar::new(),
            })
        }

        fn wait(&self) {
            let mut rung = self.rung.lock().unwrap_or_else(|e| e.into_inner());
            while !*rung {
                rung = self.heard.wait(rung).unwrap_or_else(|e| e.into_inner());
            }
            *rung = false;
        }
    }

    /// Sleeps as `turn` does, until `wanted` pieces of work have come.
    fn collect(
        inbox: &Inbox<u32, std::sync::Arc<Bell>>,
        bell: &Bell,
        wanted: usize,
    ) -> VecDeque<u32> {
        let mut ready = VecDeque::new();
        while ready.len() < wanted {
            if inbox.fall_asleep() {
                bell.wait();
                inbox.awake();
            }
            inbox.take(&mut ready);
        }
        ready
    }

    #[test]
    fn no_post_is_lost_and_no_sleeper_forgotten() {
        loom::model(|| {
            let bell = Bell::new();
            let inbox = Inbox::new(bell.clone(), usize::MAX);
            let posters: Vec<_> = (1..=2)
                .map(|n| {
                    let poster = inbox.poster();
                    thread::spawn(move || poster.post(n).is_ok())
                })
                .collect();
            let ready = collect(&inbox, &bell, 2);
            assert_eq!(ready.iter().sum::<u32>(), 3);
            for poster in posters {
                assert!(poster.join().is_ok_and(|accepted| accepted));
            }
        });
    }

    #[test]
    fn one_poster_stays_in_order() {
        loom::model(|| {
            let bell = Bell::new();
            let inbox = Inbox::new(bell.clone(), usize::MAX);
            let poster = inbox.poster();
            let posting = thread::spawn(move || {
                assert!(poster.post(1).is_ok());
                assert!(poster.post(2).is_ok());
            });
            assert_eq!(collect(&inbox, &bell, 2), [1, 2]);
            assert!(posting.join().is_ok());
        });
    }

    #[test]
    fn a_post_is_run_or_refused_when_the_loop_stops() {
        loom::model(|| {
            let bell = Bell::new();
            let inbox = Inbox::new(bell.clone(), usize::MAX);
            let (poster, stopper) = (inbox.poster(), inbox.poster());
            let posting = thread::spawn(move || poster.post(1).is_ok());
            let stopping = thread::spawn(move || stopper.stop());
            let mut ready = VecDeque::new();
            // As the loop of a thread ends: no sleep once it is stopped, then one last look.
            while !inbox.poster().is_stopped() {
                if inbox.fall_asleep() {
                    bell.wait();
                    inbox.awake();
                }
                inbox.take(&mut ready);
            }
            inbox.take(&mut ready);
            assert!(stopping.join().is_ok());
            let accepted = posting.join().is_ok_and(|accepted| accepted);
            assert_eq!(accepted, ready.len() == 1);
        });
    }
}
