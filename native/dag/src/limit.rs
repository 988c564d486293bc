//! How many nodes of a kind run at once, across runs: the rest waits in order.
//!
//! Thread: any. Never: wakes a waiter under the lock (I3).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use reactor::signal::Signal;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};

/// A place in the line. Given up, it stays there until half of the line is, or its turn comes; it is passed over
/// then. Both marks are set and read under the lock of the line.
#[derive(Default)]
struct Waiter {
    called: AtomicBool,
    given_up: AtomicBool,
    signal: Signal,
}

struct State {
    free: usize,
    waiting: VecDeque<Arc<Waiter>>,
    /// How many of those were given up.
    left: usize,
}

impl State {
    /// Somebody in the line has given up. To leave at once would cost as much as the line is long.
    fn give_up(&mut self) {
        self.left += 1;
        if self.left * 2 > self.waiting.len() {
            self.waiting
                .retain(|place| !place.given_up.load(Ordering::Relaxed));
            self.left = 0;
        }
    }
}

/// A bound shared by its clones.
///
/// ```
/// use dag::{Graph, Lanes, Limit, Node, Options, Value};
/// # if dag::MODELLED { return Ok(()); }
///
/// let limit = Limit::new(2);
/// let mut graph = Graph::builder();
/// for n in 0..100 {
///     graph.add(Node::io(&n.to_string(), |_| async { Ok(Value::absent()) }).limit(&limit));
/// }
/// let lanes = Lanes::start(1, 10)?;
/// // Never more than two of them run, in this run and in all others.
/// lanes.run(&graph.build()?, [("", Value::absent()); 0], Options::default())?.wait()?;
/// # Ok::<(), dag::Error>(())
/// ```
#[derive(Clone)]
pub struct Limit(Arc<Mutex<State>>);

impl Limit {
    pub fn new(at_once: usize) -> Self {
        Limit(Arc::new(Mutex::new(State {
            free: at_once.max(1),
            waiting: VecDeque::new(),
            left: 0,
        })))
    }

    /// A permit, if there is one at once.
    pub(crate) fn take(&self) -> Option<Permit> {
        let mut state = lock(&self.0);
        state.free = state.free.checked_sub(1)?;
        Some(Permit(self.clone()))
    }

    pub(crate) async fn acquire(&self) -> Permit {
        let place = {
            let mut state = lock(&self.0);
            if state.free > 0 {
                state.free -= 1;
                return Permit(self.clone());
            }
            let place = Arc::new(Waiter::default());
            state.waiting.push_back(place.clone());
            place
        };
        let mut queued = Queued {
            limit: self,
            place,
            taken: false,
        };
        poll_fn(|context| queued.place.signal.poll(context)).await;
        queued.taken = true;
        Permit(self.clone())
    }

    fn release(&self) {
        let next = {
            let mut state = lock(&self.0);
            loop {
                match state.waiting.pop_front() {
                    Some(place) if place.given_up.load(Ordering::Relaxed) => state.left -= 1,
                    Some(place) => {
                        place.called.store(true, Ordering::Relaxed);
                        break Some(place);
                    }
                    None => {
                        state.free += 1;
                        break None;
                    }
                }
            }
        };
        if let Some(next) = next {
            next.signal.fire();
        }
    }
}

/// Somebody in the line; given up, he leaves it or passes on what he was just given.
struct Queued<'a> {
    limit: &'a Limit,
    place: Arc<Waiter>,
    taken: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let called = {
            let mut state = lock(&self.limit.0);
            self.place.given_up.store(true, Ordering::Relaxed);
            let called = self.place.called.load(Ordering::Relaxed);
            if !called {
                state.give_up();
            }
            called
        };
        if called {
            self.limit.release();
        }
    }
}

pub(crate) struct Permit(Limit);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::models::Count;
    use loom::thread;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn a_permit_is_never_lost_though_a_waiter_gives_up() {
        loom::model(|| {
            let limit = Limit::new(1);
            let (_, waker) = Count::waker();
            let mut context = Context::from_waker(&waker);
            let held = match pin!(limit.acquire()).poll(&mut context) {
                std::task::Poll::Ready(permit) => permit,
                std::task::Poll::Pending => panic!("a free limit"),
            };
            let releasing = thread::spawn(move || drop(held));
            {
                let mut waiting = pin!(limit.acquire());
                let _ = waiting.as_mut().poll(&mut context);
                // Given up here, perhaps just when the permit came.
            }
            assert!(releasing.join().is_ok());
            assert!(pin!(limit.acquire()).poll(&mut context).is_ready());
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn those_who_give_up_leave_the_line() {
        let limit = Limit::new(1);
        let held = limit.take();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = pin!(limit.acquire());
        assert!(first.as_mut().poll(&mut context).is_pending());
        for _ in 0..10_000 {
            assert!(pin!(limit.acquire()).poll(&mut context).is_pending());
        }
        assert!(lock(&limit.0).waiting.len() < 10);
        drop(held);
        assert!(first.poll(&mut context).is_ready());
    }
}
