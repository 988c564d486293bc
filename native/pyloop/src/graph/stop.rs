//! The end of a node that nobody waits for any more: its coroutine is cancelled, its function gets
//! `erlang.Cancelled` where it runs.
//!
//! Thread: asked for by any; carried out attached, on a thread for errands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyrt::{Attached, Kept, PyResult, call, thread};

use super::queue::{Item, Queue};

#[derive(Default)]
enum State {
    /// Nobody has begun, or the function has ended.
    #[default]
    Idle,
    /// Nobody waits.
    Over,
    /// A function runs on the thread of that number.
    Runs(u64),
    /// An exception is on its way into that thread.
    Raised,
    /// A coroutine that ends by calling this.
    Awaited(Kept),
}

/// Shared by the node and by what stops it.
#[derive(Clone, Default)]
pub struct Stopping(Arc<Mutex<State>>);

impl Stopping {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            running @ State::Runs(_) => {
                *state = running;
                drop(state);
                queue.push(Item::Stop(self.clone()));
            }
            State::Idle | State::Over => *state = State::Over,
            State::Raised => *state = State::Raised,
        }
    }

    /// Runs a function that `stop` may interrupt; nothing if it came before.
    pub fn watch<T>(&self, py: Attached<'_>, body: impl FnOnce() -> T) -> Option<T> {
        let ident = thread::ident();
        {
            let mut state = self.lock();
            if matches!(*state, State::Over) {
                return None;
            }
            *state = State::Runs(ident);
        }
        let value = body();
        let raised = matches!(std::mem::take(&mut *self.lock()), State::Raised);
        if raised {
            // It may have come too late: it must not meet what the thread does next.
            thread::raise_in(py, ident, None);
        }
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

    /// Raises `erlang.Cancelled` in the thread that runs the function, if it still does.
    pub fn interrupt(&self, py: Attached<'_>) {
        if let Err(error) = self.raise(py) {
            error.unraisable(c"the end of a graph");
        }
    }

    fn raise<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let class = call::import_c(py, c"erlang._errors")?.getattr_c(c"Cancelled")?;
        // Locked meanwhile, so that the function can't end in between; nothing of Python's runs.
        let mut state = self.lock();
        if let State::Runs(ident) = *state {
            *state = State::Raised;
            thread::raise_in(py, ident, Some(&class));
        }
        Ok(())
    }
}
