//! How many nodes of a kind run at once, across runs: the rest waits in order.
//!
//! Thread: any. Never: wakes a waiter under the lock (I3).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use reactor::signal::Signal;

use crate::sync::{Mutex, lock};

struct State {
    free: usize,
    waiting: VecDeque<Arc<Signal>>,
}

/// A bound shared by its clones.
#[derive(Clone)]
pub struct Limit(Arc<Mutex<State>>);

impl Limit {
    pub fn new(at_once: usize) -> Self {
        Limit(Arc::new(Mutex::new(State {
            free: at_once.max(1),
            waiting: VecDeque::new(),
        })))
    }

    pub(crate) async fn acquire(&self) -> Permit {
        let place = {
            let mut state = lock(&self.0);
            if state.free > 0 {
                state.free -= 1;
                return Permit(self.clone());
            }
            let place = Arc::new(Signal::default());
            state.waiting.push_back(place.clone());
            place
        };
        let mut queued = Queued {
            limit: self,
            place,
            taken: false,
        };
        poll_fn(|context| queued.place.poll(context)).await;
        queued.taken = true;
        Permit(self.clone())
    }

    fn release(&self) {
        let next = {
            let mut state = lock(&self.0);
            let next = state.waiting.pop_front();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            next.fire();
        }
    }
}

/// A place in the line; given up, it leaves the line or passes on what it was just given.
struct Queued<'a> {
    limit: &'a Limit,
    place: Arc<Signal>,
    taken: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let left = {
            let mut state = lock(&self.limit.0);
            let before = state.waiting.len();
            state
                .waiting
                .retain(|place| !Arc::ptr_eq(place, &self.place));
            state.waiting.len() < before
        };
        if !left {
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
