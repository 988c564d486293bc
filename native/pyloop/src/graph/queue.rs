//! What Python's threads have to do for graphs, in the order it came.
//!
//! Thread: filled by any, detached or not; emptied by threads that Python has started and that run
//! `work`. Never: waits while attached (I3). Its bound is that of the runs, each admitted whole.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyrt::{Attached, Kept, kept};

use super::nodes::Call;

pub enum Item {
    Node(Box<Call>),
    /// Something of Python's own to be called: who hears of an end, or a cancellation.
    Call(Kept),
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    /// Runs that have not ended.
    active: usize,
    threads: usize,
    closed: bool,
}

#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    bell: Condvar,
}

/// How long a thread stays without work when there is no run.
const STAY: Duration = Duration::from_secs(1);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, item: Item) {
        self.lock().items.push_back(item);
        self.bell.notify_one();
    }

    /// A run begins. Gives how many threads are to be started so that there are `wanted`.
    pub fn enter(&self, wanted: usize) -> usize {
        let mut state = self.lock();
        state.active += 1;
        state.closed = false;
        let more = wanted.saturating_sub(state.threads);
        state.threads += more;
        more
    }

    pub fn leave(&self) {
        let mut state = self.lock();
        state.active = state.active.saturating_sub(1);
    }

    /// A thread that was asked for could not be started.
    pub fn lost(&self) {
        let mut state = self.lock();
        state.threads = state.threads.saturating_sub(1);
    }

    /// Ends the threads after what they do.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_all();
    }

    /// In the child of a fork: the threads have stayed with the parent.
    pub fn forked(&self) {
        let left = std::mem::take(&mut *self.lock());
        drop(left);
    }

    /// The body of a thread: until there is nothing to do for a while, or the end.
    pub fn work(&self, py: Attached<'_>) {
        loop {
            kept::release_dropped(py);
            let next = self.lock().items.pop_front();
            let next = match next {
                Some(item) => Some(item),
                None => py.detach(|| self.wait()),
            };
            match next {
                Some(Item::Node(call)) => call.run(py),
                Some(Item::Call(callable)) => {
                    let called = callable.get(py).map(|callable| callable.call(&[]));
                    if let Some(Err(error)) = called {
                        error.unraisable(c"the end of a graph");
                    }
                }
                None => return,
            }
        }
    }

    /// The next item; `None`: the thread ends, and is not counted any more.
    fn wait(&self) -> Option<Item> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            if state.closed {
                break;
            }
            let waited = self.bell.wait_timeout(state, STAY);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() && state.active == 0 && state.items.is_empty() {
                break;
            }
        }
        state.threads = state.threads.saturating_sub(1);
        None
    }
}
