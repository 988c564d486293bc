//! The end of a node that nobody waits for any more: its coroutine is cancelled, its function gets
//! `erlang.Cancelled` where it runs, as soon as that does no harm.
//!
//! Thread: asked for by any; carried out attached, on a thread for errands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyrt::interrupt::{self, Aim, Manner, Order, Sent, Spot};
use pyrt::{Attached, Kept, Obj, call};

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
                queue.push(Item::Stop(Order::new(self.clone())));
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
}

impl Aim<Obj<'_>> for Stopping {
    fn interrupt(&mut self, class: &Obj<'_>, manner: Manner) -> Option<Sent> {
        self.0.spot.interrupt(class.py(), class, manner, || true)
    }

    fn take_back(&mut self, class: &Obj<'_>) -> bool {
        self.0.spot.take_back(class.py(), class)
    }
}

/// Raises `erlang.Cancelled` in the threads that run functions, if they still do. Leaves those for which it would do
/// harm now, and the time until the next try.
pub fn carry_out(py: Attached<'_>, orders: &mut Vec<Order<Stopping>>) -> Option<Duration> {
    if orders.is_empty() {
        return None;
    }
    let errors = call::import_c(py, c"erlang._errors");
    let class = match errors.and_then(|errors| errors.getattr_c(c"Cancelled")) {
        Ok(class) => class,
        Err(error) => {
            error.unraisable(c"the end of a graph");
            orders.clear();
            return None;
        }
    };
    interrupt::carry_out(orders, &class, |time| {
        py.detach(|| std::thread::sleep(time));
    });
    interrupt::pause(orders)
}
