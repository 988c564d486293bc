//! One event and the task that waits for it: fired by the loop, awaited by a task anywhere.
//!
//! Thread: any. Never: wakes a task under the lock (I3).

use std::task::{Context, Poll, Waker};

use crate::sync::Mutex;

#[derive(Default)]
struct State {
    fired: bool,
    waiter: Option<Waker>,
}

/// Remembers one firing until it is taken.
pub struct Signal(Mutex<State>);

impl Default for Signal {
    fn default() -> Self {
        Signal(Mutex::new(State::default()))
    }
}

impl Signal {
    /// Wakes the waiter; `false` if there was none. The firing is kept in both cases.
    pub fn fire(&self) -> bool {
        let waiter = {
            let mut state = self.0.lock();
            state.fired = true;
            state.waiter.take()
        };
        match waiter {
            Some(waiter) => {
                waiter.wake();
                true
            }
            None => false,
        }
    }

    /// Takes the firing, or leaves the waker for it.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.fired {
            state.fired = false;
            return Poll::Ready(());
        }
        match &mut state.waiter {
            Some(waiter) if waiter.will_wake(context.waker()) => {}
            waiter => {
                let old = waiter.replace(context.waker().clone());
                drop(state);
                // The waker of another task: dropping it may drop that task.
                drop(old);
            }
        }
        Poll::Pending
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;
    use std::task::Wake;

    struct Count(std::sync::atomic::AtomicUsize);

    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    #[test]
    fn a_waiter_sees_the_firing_or_is_woken() {
        loom::model(|| {
            let count = std::sync::Arc::new(Count(Default::default()));
            let waker = Waker::from(count.clone());
            let signal = Arc::new(Signal::default());
            let firing = {
                let signal = signal.clone();
                thread::spawn(move || signal.fire())
            };
            let seen = signal.poll(&mut Context::from_waker(&waker)).is_ready();
            let had_waiter = firing.join().unwrap_or_default();
            let woken = count.0.load(std::sync::atomic::Ordering::SeqCst) == 1;
            assert_eq!(had_waiter, woken);
            assert!(seen != woken, "seen {seen}, woken {woken}");
            if woken {
                assert!(signal.poll(&mut Context::from_waker(&waker)).is_ready());
            }
        });
    }
}
