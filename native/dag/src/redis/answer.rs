//! The place where one command's reply is put, and where it is awaited.
//!
//! Thread: any. Never: wakes under the lock (I3). It is filled once: the first answer stays.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::redis::failure::Failure;
use crate::redis::resp::Reply;
use crate::sync::{Mutex, lock};

pub(crate) type Answered = Result<Reply, Failure>;

enum State {
    Waiting(Option<Waker>),
    Here(Answered),
    Taken,
}

pub(crate) struct Answer {
    state: Mutex<State>,
    /// Equal commands of the same turn, answered by the same reply.
    followers: Mutex<Vec<Arc<Answer>>>,
}

impl Answer {
    pub fn new() -> Arc<Self> {
        Arc::new(Answer {
            state: Mutex::new(State::Waiting(None)),
            followers: Mutex::new(Vec::new()),
        })
    }

    pub fn follow(self: &Arc<Self>) -> Arc<Self> {
        let follower = Answer::new();
        lock(&self.followers).push(follower.clone());
        follower
    }

    pub fn fill(&self, answer: Answered) {
        let followers = std::mem::take(&mut *lock(&self.followers));
        for follower in followers {
            follower.fill(answer.clone());
        }
        let waker = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Waiting(waker) => {
                    let waker = waker.take();
                    *state = State::Here(answer);
                    waker
                }
                _ => None,
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Answered> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Waiting(waker) => {
                let old = waker.replace(context.waker().clone());
                drop(state);
                drop(old);
                Poll::Pending
            }
            State::Taken => Poll::Ready(Err(Failure::Closed)),
            state => match std::mem::replace(state, State::Taken) {
                State::Here(answer) => Poll::Ready(answer),
                _ => Poll::Pending,
            },
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::models::Count;
    use loom::thread;

    #[test]
    fn a_waiter_finds_the_answer_or_is_woken_and_the_first_answer_stays() {
        loom::model(|| {
            let (woken, waker) = Count::waker();
            let answer = Answer::new();
            let filling = {
                let answer = answer.clone();
                thread::spawn(move || answer.fill(Ok(Reply::Int(1))))
            };
            let seen = answer.poll(&mut Context::from_waker(&waker));
            assert!(filling.join().is_ok());
            answer.fill(Err(Failure::TimedOut));
            match seen {
                Poll::Ready(found) => assert_eq!(found, Ok(Reply::Int(1))),
                Poll::Pending => {
                    assert_eq!(woken.get(), 1);
                    let found = answer.poll(&mut Context::from_waker(&waker));
                    assert_eq!(found, Poll::Ready(Ok(Reply::Int(1))));
                }
            }
        });
    }
}
