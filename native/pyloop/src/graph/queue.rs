//! What Python's threads have to do for graphs, in the order it came.
//!
//! Thread: filled by any, detached or not; emptied by threads that Python has started and that run
//! `work`. Never: waits while attached (I3). Its bound is that of the runs, each admitted whole.

use std::collections::VecDeque;
use std::sync::{Condvar, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dag::Turn;
use pyrt::fork::PerProcess;
use pyrt::{Attached, Kept, Parks, interrupt, kept};

use super::nodes;
use super::stop::Stopping;

pub enum Item {
    Node(Turn),
    /// Something of Python's own to be called: who hears of an end, or a cancellation.
    Call(Kept),
    /// A function that runs, and nobody waits for, since when.
    Stop(Stopping, Instant),
}

/// What a thread does. Nodes may block; what ends them must not wait behind them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    Nodes = 0,
    Errands = 1,
}

#[derive(Default)]
struct Line {
    items: VecDeque<Item>,
    threads: usize,
}

#[derive(Default)]
struct State {
    lines: [Line; 2],
    /// Runs that have not ended.
    active: usize,
    closed: bool,
}

#[derive(Default)]
pub struct Queue {
    /// The child of a fork begins with an empty one: the threads have stayed with the parent.
    state: PerProcess<State>,
    bells: [Condvar; 2],
    /// The class of what functions give that ask for more nodes.
    pub more: OnceLock<Kept>,
}

/// How long a thread stays without work when there is no run.
const STAY: Duration = Duration::from_secs(1);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub fn push(&self, item: Item) {
        let duty = match item {
            Item::Node(_) => Duty::Nodes,
            Item::Call(_) | Item::Stop(..) => Duty::Errands,
        };
        self.lock().lines[duty as usize].items.push_back(item);
        self.bells[duty as usize].notify_one();
    }

    /// A run begins. Gives how many threads are to be started for each duty, so that there are
    /// `wanted` for nodes and one for errands.
    pub fn enter(&self, wanted: usize) -> [usize; 2] {
        let mut state = self.lock();
        state.active += 1;
        state.closed = false;
        let mut more = [wanted, 1];
        for (line, more) in state.lines.iter_mut().zip(&mut more) {
            *more = more.saturating_sub(line.threads);
            line.threads += *more;
        }
        more
    }

    pub fn leave(&self) {
        let mut state = self.lock();
        state.active = state.active.saturating_sub(1);
    }

    /// A thread that was asked for could not be started.
    pub fn lost(&self, duty: Duty) {
        let line = &mut self.lock().lines[duty as usize];
        line.threads = line.threads.saturating_sub(1);
    }

    /// Ends the threads after what they do.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bells.iter().for_each(Condvar::notify_all);
    }

    /// The body of a thread: until there is nothing to do for a while, or the end.
    pub fn work(&self, py: Attached<'_>, duty: Duty) {
        let _parks = Parks::here();
        if duty == Duty::Errands
            && let Err(error) = interrupt::prepare(py)
        {
            error.unraisable(c"the end of a graph");
        }
        loop {
            kept::release_dropped(py);
            let next = self.lock().lines[duty as usize].items.pop_front();
            let next = match next {
                Some(item) => Some(item),
                None => py.detach(|| self.wait(duty)),
            };
            match next {
                Some(Item::Node(turn)) => nodes::run(py, turn),
                Some(Item::Call(callable)) => {
                    let called = callable.get(py).map(|callable| callable.call(&[]));
                    if let Some(Err(error)) = called {
                        error.unraisable(c"the end of a graph");
                    }
                }
                Some(Item::Stop(stopping, since)) => {
                    if let Some(pause) = stopping.interrupt(py, since) {
                        py.detach(|| std::thread::sleep(pause));
                        self.push(Item::Stop(stopping, since));
                    }
                }
                None => return,
            }
        }
    }

    /// The next item; `None`: the thread ends, and is not counted any more.
    fn wait(&self, duty: Duty) -> Option<Item> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.lines[duty as usize].items.pop_front() {
                return Some(item);
            }
            if state.closed {
                break;
            }
            let waited = self.bells[duty as usize].wait_timeout(state, STAY);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            let idle = state.lines[duty as usize].items.is_empty();
            if timeout.timed_out() && state.active == 0 && idle {
                break;
            }
        }
        let line = &mut state.lines[duty as usize];
        line.threads = line.threads.saturating_sub(1);
        None
    }
}
