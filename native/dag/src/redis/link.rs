//! What the callers and the connection's task share: bytes to be written, and who waits.
//!
//! Thread: any. Never: answers a caller under the lock (I3).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use reactor::clock;
use reactor::signal::Signal;

use crate::redis::answer::Answer;
use crate::redis::config::Config;
use crate::redis::failure::Failure;
use crate::redis::resp::{self, Reply};
use crate::sync::{Mutex, lock};

struct Waiting {
    answer: Arc<Answer>,
    deadline: u64,
}

#[derive(Default)]
struct State {
    /// Encoded, not yet taken by the task.
    out: Vec<u8>,
    /// In the order they were encoded, which is the order of the replies.
    waiting: VecDeque<Waiting>,
    /// How many of the first are answered as timed out; their replies are still to come.
    expired: usize,
    /// The GETs of this turn, where equal ones are sent once.
    gets: HashMap<Vec<u8>, Arc<Answer>>,
    /// Callers that found no room, by the number of their place.
    blocked: BTreeMap<u64, Waker>,
    places: u64,
    closed: bool,
}

pub(crate) struct Link {
    state: Mutex<State>,
    /// There is something to write.
    pub work: Signal,
    pub config: Config,
}

/// A caller's place among those that wait for room; left when it is dropped.
pub(crate) struct Place<'a> {
    link: &'a Link,
    number: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let left = lock(&self.link.state).blocked.remove(&number);
            // Without the lock: it may be the last to hold its task.
            drop(left);
        }
    }
}

impl Link {
    /// A place for one caller, who may have to wait.
    pub fn place(&self) -> Place<'_> {
        Place {
            link: self,
            number: None,
        }
    }

    pub fn new(config: Config) -> Self {
        Link {
            state: Mutex::new(State::default()),
            work: Signal::default(),
            config,
        }
    }

    /// Encodes a command behind those before it. Without room the caller is woken when there is.
    pub fn send<A: AsRef<[u8]>>(
        &self,
        args: &[A],
        place: &mut Place<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Arc<Answer>, Failure>> {
        let (answer, first) = {
            let mut state = lock(&self.state);
            if state.closed {
                return Poll::Ready(Err(Failure::Closed));
            }
            if let Some(answer) = self.same_get(&mut state, args) {
                return Poll::Ready(Ok(answer));
            }
            if !self.has_room(&mut state, place, context) {
                return Poll::Pending;
            }
            let first = state.out.is_empty();
            let answer = self.append(&mut state, args);
            if self.config.coalesce && is_get(args) {
                state.gets.insert(args[1].as_ref().to_vec(), answer.clone());
            }
            (answer, first)
        };
        // Once per turn: the task takes all there is.
        if first {
            self.work.fire();
        }
        Poll::Ready(Ok(answer))
    }

    /// Encodes commands so that no other comes between them. Once there is room for one of them
    /// there is for all: they are one piece, and their caller has them in memory already.
    pub fn send_whole<A: AsRef<[u8]>>(
        &self,
        commands: &[Vec<A>],
        place: &mut Place<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Arc<Answer>>, Failure>> {
        let (answers, first) = {
            let mut state = lock(&self.state);
            if state.closed {
                return Poll::Ready(Err(Failure::Closed));
            }
            if !self.has_room(&mut state, place, context) {
                return Poll::Pending;
            }
            // It may write, and what it reads is read later: see `same_get`.
            state.gets.clear();
            let first = state.out.is_empty();
            let answers = commands.iter().map(|args| self.append(&mut state, args));
            (answers.collect(), first)
        };
        if first {
            self.work.fire();
        }
        Poll::Ready(Ok(answers))
    }

    fn has_room(&self, state: &mut State, place: &mut Place<'_>, context: &Context<'_>) -> bool {
        let has_room = state.waiting.len() < self.config.in_flight;
        if !has_room {
            let number = *place.number.get_or_insert_with(|| {
                state.places += 1;
                state.places
            });
            state.blocked.insert(number, context.waker().clone());
        }
        has_room
    }

    fn append<A: AsRef<[u8]>>(&self, state: &mut State, args: &[A]) -> Arc<Answer> {
        resp::encode(&mut state.out, args);
        let answer = Answer::new();
        let timeout = self.config.timeout.as_nanos() as u64;
        state.waiting.push_back(Waiting {
            answer: answer.clone(),
            deadline: clock::now().saturating_add(timeout),
        });
        answer
    }

    fn same_get<A: AsRef<[u8]>>(&self, state: &mut State, args: &[A]) -> Option<Arc<Answer>> {
        if !self.config.coalesce {
            return None;
        }
        if !is_get(args) {
            // It may write: a GET after it must not be answered by one before it.
            state.gets.clear();
            return None;
        }
        state.gets.get(args[1].as_ref()).map(Answer::follow)
    }

    /// Swaps what is to be written with an empty buffer.
    pub fn take(&self, buffer: &mut Vec<u8>) {
        let mut state = lock(&self.state);
        state.gets.clear();
        std::mem::swap(&mut state.out, buffer);
    }

    /// Gives replies to those who wait longest, in order. One that nobody asked for is an error:
    /// from there on it is not known whose reply is whose.
    pub fn answer(&self, replies: &mut Vec<Reply>) -> Result<(), Failure> {
        let mut pairs = Vec::with_capacity(replies.len());
        let mut result = Ok(());
        let blocked = {
            let mut state = lock(&self.state);
            for reply in replies.drain(..) {
                if matches!(reply, Reply::Push(_)) {
                    continue;
                }
                let Some(waiting) = state.waiting.pop_front() else {
                    result = Err(Failure::Protocol("a reply that nobody asked for"));
                    break;
                };
                state.expired = state.expired.saturating_sub(1);
                pairs.push((waiting.answer, reply));
            }
            // Half of the room at once: to wake all for each place would cost their square.
            match state.waiting.len() > self.config.in_flight / 2 {
                true => BTreeMap::new(),
                false => std::mem::take(&mut state.blocked),
            }
        };
        for (answer, reply) in pairs {
            answer.fill(match reply {
                Reply::Error(text) => Err(Failure::Server(text)),
                reply => Ok(reply),
            });
        }
        blocked.into_values().for_each(Waker::wake);
        result
    }

    /// Answers those who have waited too long; gives the time to look again.
    pub fn expire(&self) -> Option<u64> {
        let now = clock::now();
        let mut late = Vec::new();
        let next = {
            let mut state = lock(&self.state);
            loop {
                let Some(waiting) = state.waiting.get(state.expired) else {
                    break None;
                };
                if waiting.deadline > now {
                    break Some(waiting.deadline);
                }
                late.push(waiting.answer.clone());
                state.expired += 1;
                // One that has timed out answers no other.
                state.gets.clear();
            }
        };
        for answer in late {
            answer.fill(Err(Failure::TimedOut));
        }
        next
    }

    /// Whether a reply is still to come for a command that has timed out.
    pub fn is_overdue(&self) -> bool {
        lock(&self.state).expired > 0
    }

    /// The connection is gone: everyone who waits is told, in order, once.
    pub fn fail(&self, why: &Failure, close: bool) {
        let (waiting, blocked) = {
            let mut state = lock(&self.state);
            state.closed |= close;
            state.out.clear();
            state.gets.clear();
            state.expired = 0;
            let blocked = std::mem::take(&mut state.blocked);
            (std::mem::take(&mut state.waiting), blocked)
        };
        for waiting in waiting {
            waiting.answer.fill(Err(why.clone()));
        }
        blocked.into_values().for_each(Waker::wake);
    }
}

fn is_get<A: AsRef<[u8]>>(args: &[A]) -> bool {
    args.len() == 2 && args[0].as_ref().eq_ignore_ascii_case(b"GET")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::redis::config::Address;

    fn full() -> Link {
        let mut config = Config::new(Address::Unix("nowhere".into()));
        config.in_flight = 1;
        let link = Link::new(config);
        assert!(poll(&link, &mut link.place()).is_ready());
        link
    }

    fn poll(link: &Link, place: &mut Place<'_>) -> Poll<Result<Arc<Answer>, Failure>> {
        link.send(&["PING"], place, &mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_command_that_is_cancelled_while_it_waits_for_room_leaves_nothing() {
        let link = full();
        for _ in 0..100 {
            let mut place = link.place();
            assert!(poll(&link, &mut place).is_pending());
            // Asked again, it waits once.
            assert!(poll(&link, &mut place).is_pending());
            assert_eq!(lock(&link.state).blocked.len(), 1);
        }
        assert!(lock(&link.state).blocked.is_empty());
    }

    #[test]
    fn a_list_that_waited_for_room_is_one_piece() {
        let link = full();
        let mut context = Context::from_waker(Waker::noop());
        let list = [vec!["MULTI"], vec!["INCR", "a"], vec!["EXEC"]];
        let mut place = link.place();
        assert!(
            link.send_whole(&list, &mut place, &mut context)
                .is_pending()
        );
        let mut sent = Vec::new();
        link.take(&mut sent);
        assert!(link.answer(&mut vec![Reply::Int(1)]).is_ok());
        assert!(link.send_whole(&list, &mut place, &mut context).is_ready());
        // Now there is no room, and nothing comes between them.
        assert!(poll(&link, &mut link.place()).is_pending());
        sent.clear();
        link.take(&mut sent);
        let mut whole = Vec::new();
        list.iter().for_each(|args| resp::encode(&mut whole, args));
        assert_eq!(sent, whole);
    }
}
