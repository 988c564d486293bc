//! A run that Python has started: waited for detached, told of when it has ended.
//!
//! Thread: any; the end comes on whatever thread ended the last node.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dag::{Error, Options, Report, RunHandle, Value};
use pyrt::Kept;
use pyrt::fork::generation;

use super::build::Built;
use super::lanes::lanes;
use super::queue::{Item, Queue};

#[derive(Default)]
struct State {
    result: Option<Result<Report, Error>>,
    /// Callables of Python that want to hear of it.
    hearers: Vec<Kept>,
}

struct End {
    state: Mutex<State>,
    bell: Condvar,
    queue: Arc<Queue>,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Run {
    end: Arc<End>,
    /// Whose threads run it: see `is_here`.
    generation: u32,
    handle: RunHandle,
    pub wanted: Vec<usize>,
}

impl Run {
    pub fn start(
        built: &Arc<Built>,
        inputs: Vec<(String, Value)>,
        options: Options,
        wanted: Vec<usize>,
        queue: &Arc<Queue>,
    ) -> Result<Self, Error> {
        let end = Arc::new(End {
            state: Mutex::default(),
            bell: Condvar::new(),
            queue: queue.clone(),
        });
        let told = end.clone();
        let then = move |result| {
            let hearers = {
                let mut state = told.lock();
                state.result = Some(result);
                std::mem::take(&mut state.hearers)
            };
            told.bell.notify_all();
            for hearer in hearers {
                told.queue.push(Item::Call(hearer));
            }
            told.queue.leave();
        };
        let handle = lanes()?.run_then(&built.graph, inputs, options, then)?;
        Ok(Run {
            end,
            generation: generation(),
            handle,
            wanted,
        })
    }

    /// The child of a fork has the runs of its parent, and none of the threads that would end them.
    fn is_here(&self) -> bool {
        self.generation == generation()
    }

    /// Whether it has ended within that time.
    pub fn wait(&self, time: Option<Duration>) -> bool {
        if !self.is_here() {
            return true;
        }
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let mut state = self.end.lock();
        while state.result.is_none() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    let waited = self.end.bell.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.end.bell.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        true
    }

    /// Calls it after the end, on a thread that runs nodes.
    pub fn notify(&self, hearer: Kept) {
        if !self.is_here() {
            return self.end.queue.push(Item::Call(hearer));
        }
        let mut state = self.end.lock();
        if state.result.is_none() {
            state.hearers.push(hearer);
            return;
        }
        drop(state);
        self.end.queue.push(Item::Call(hearer));
    }

    pub fn cancel(&self) {
        if self.is_here() {
            self.handle.cancel();
        }
    }

    pub fn result(&self) -> Option<Result<Report, Error>> {
        if !self.is_here() {
            return Some(Err(Error::Stopped));
        }
        self.end.lock().result.clone()
    }
}
