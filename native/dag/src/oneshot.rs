//! One value from a thread of the pool to a future on the loop.
//!
//! Thread: any. Never: loses the end of the sender: a dropped one is an answer, too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reactor::signal::Signal;

use crate::sync::{Mutex, lock};

struct Shared<T> {
    value: Mutex<State<T>>,
    signal: Signal,
}

enum State<T> {
    Waiting,
    Sent(T),
    /// The sender or the receiver is gone.
    Closed,
}

pub(crate) struct Sender<T>(Arc<Shared<T>>);
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        value: Mutex::new(State::Waiting),
        signal: Signal::default(),
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Whether nobody waits for the value any more.
    pub fn is_abandoned(&self) -> bool {
        matches!(*lock(&self.0.value), State::Closed)
    }

    pub fn send(self, value: T) {
        let mut value = Some(value);
        {
            let mut state = lock(&self.0.value);
            if matches!(*state, State::Waiting)
                && let Some(value) = value.take()
            {
                *state = State::Sent(value);
            }
        }
        // An abandoned value is dropped here, outside of the lock.
        drop(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.0.value);
            if matches!(*state, State::Waiting) {
                *state = State::Closed;
            }
        }
        self.0.signal.fire();
    }
}

impl<T> Future for Receiver<T> {
    /// Nothing if the sender was dropped.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.0.signal.poll(context).is_pending() {
            return Poll::Pending;
        }
        match std::mem::replace(&mut *lock(&self.0.value), State::Closed) {
            State::Sent(value) => Poll::Ready(Some(value)),
            _ => Poll::Ready(None),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *lock(&self.0.value), State::Closed);
        drop(state);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::models::Count;
    use loom::thread;

    fn check(sends: bool) {
        loom::model(move || {
            let (woken, waker) = Count::waker();
            let (sender, mut receiver) = oneshot();
            let sending = thread::spawn(move || if sends { sender.send(1) } else { drop(sender) });
            let mut context = Context::from_waker(&waker);
            let mut found = Pin::new(&mut receiver).poll(&mut context);
            assert!(sending.join().is_ok());
            if found.is_pending() {
                assert_eq!(woken.get(), 1);
                found = Pin::new(&mut receiver).poll(&mut context);
            }
            assert_eq!(found, Poll::Ready(sends.then_some(1)));
        });
    }

    #[test]
    fn the_value_or_the_end_of_the_sender_is_never_missed() {
        check(true);
        check(false);
    }
}
