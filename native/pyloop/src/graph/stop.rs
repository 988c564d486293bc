//! The end of a node that nobody waits for any more: its coroutine is cancelled, its function gets
//! `erlang.Cancelled` where it runs, as soon as that does no harm.
//!
//! Thread: asked for by any; carried out attached, on a thread for errands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyrt::interrupt::{Manner, Sent, Spot, pace};
use pyrt::{Attached, Kept, PyResult, call};

use super::queue::{Item, Queue};

#[derive(Default)]
enum State {
    /// Nobody has begun, or the function has ended.
    #[default]
    Idle,
    /// Nobody waits.
    Over,
    /// A function runs.
    Runs,
    /// A coroutine that ends by calling this.
    Awaited(Kept),
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The function, while it runs.
    spot: Spot,
}

/// Shared by the node and by what stops it.
#[derive(Clone, Default)]
pub struct Stopping(Arc<Shared>);

impl Stopping {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits any more.
    pub fn stop(&self, queue: &Queue) {
        let mut state = self.lock();
        match std::mem::take(&mut *state) {
            State::Awaited(cancel) => {
                *state = State::Over;
                drop(state);
                queue.push(Item::Call(cancel));
            }
            State::Runs => {
                *state = State::Runs;
                drop(state);
                queue.push(Item::Stop(self.clone(), Instant::now()));
            }
            State::Idle | State::Over => *state = State::Over,
        }
    }

    /// Runs a function that `stop` may interrupt; nothing if it came before.
    pub fn watch<T>(&self, py: Attached<'_>, body: impl FnOnce() -> T) -> Option<T> {
        {
            let mut state = self.lock();
            if matches!(*state, State::Over) {
                return None;
            }
            *state = State::Runs;
        }
        let value = self.0.spot.run(py, body);
        *self.lock() = State::Idle;
        Some(value)
    }

    /// The coroutine ends by `cancel`, which is called at once where nobody waits.
    pub fn awaits(&self, cancel: Kept, queue: &Queue) {
        let mut state = self.lock();
        if !matches!(*state, State::Over) {
            *state = State::Awaited(cancel);
            return;
        }
        drop(state);
        queue.push(Item::Call(cancel));
    }

    /// Raises `erlang.Cancelled` in the thread that runs the function, if it still does. How long to wait
    /// before the next try, where it would have done harm now.
    pub fn interrupt(&self, py: Attached<'_>, since: Instant) -> Option<Duration> {
        let age = since.elapsed();
        match self.raise(py, age) {
            Ok(true) => None,
            Ok(false) => (!pace::is_given_up(age)).then(|| pace::next_try(age)),
            Err(error) => {
                error.unraisable(c"the end of a graph");
                None
            }
        }
    }

    /// Whether there is nothing left to do.
    fn raise<'py>(&self, py: Attached<'py>, age: Duration) -> PyResult<'py, bool> {
        let class = call::import_c(py, c"erlang._errors")?.getattr_c(c"Cancelled")?;
        let manner = Manner::at(age);
        Ok(match self.0.spot.interrupt(py, &class, manner, || true) {
            None | Some(Sent::Yes) => true,
            Some(Sent::No) => false,
            Some(Sent::Briefly) => {
                py.detach(|| std::thread::sleep(pace::take_back_after(age)));
                !self.0.spot.take_back(py, &class)
            }
        })
    }
}
