//! Nodes that run on threads of another side which has a queue of its own: that queue holds turns, and the
//! nodes wait here, where the most urgent one is found at the last moment.
//!
//! Thread: turns are handed over by whoever made a node ready, and taken by any. Never: waits for the other
//! side; leaves a node open: a `Done` that is dropped ends it, a turn that is dropped ends its run.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::contain::contain;
use crate::cpu_lane::Job;
use crate::error::{Error, Reason};
use crate::foreign::{Done, Pause, Stop, Way};
use crate::node::{Body, Given, Output};
use crate::oneshot::{Receiver, Sender, oneshot};
use crate::ready::{Entry, Line};
use crate::run::{Lane, Run};
use crate::since::Clock;
use crate::sync::{Mutex, lock};
use crate::ticket::Ticket;
use crate::value::Value;

/// The queue of another side.
#[derive(Clone, Copy)]
pub struct Queue {
    /// In a word, for the timeline.
    pub name: &'static str,
    /// How many nodes of one run may have a turn at once, those that run included. So a wide graph neither
    /// floods the other side nor keeps other runs from it.
    pub at_once: usize,
    /// Brings a turn to the other side, which takes it later, on a thread of its own.
    pub enter: fn(Turn) -> Result<(), NoTurn>,
}

/// The other side does not take the turn.
pub enum NoTurn {
    /// A node fails for this reason.
    Fails(Turn, Reason),
    /// There is no room now: it is handed over again after a moment.
    Busy(Turn),
}

/// The right to run one node.
pub struct Turn {
    run: Arc<Run>,
    line: Arc<Line>,
    queue: &'static Queue,
    /// The attempt that it is for, where it is none of the line's.
    own: Option<Arc<Attempt>>,
    is_open: bool,
}

/// A node that begins to run.
pub struct Taken {
    pub given: Given,
    pub done: Done,
    function: Value,
}

impl Taken {
    /// What the node was made of.
    pub fn function<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.function.share()
    }
}

impl Turn {
    /// The values of the run's inputs, in the order of its graph.
    pub fn inputs(&self) -> &[Value] {
        &self.run.inputs
    }

    /// The node that is to run now; nothing where nobody waits for one any more.
    pub fn take(mut self) -> Option<Taken> {
        self.end()
    }

    /// Fails a node in place of running it.
    pub fn refuse(mut self, reason: Reason) {
        if let Some(taken) = self.end() {
            taken.done.complete(Err(reason));
        }
    }

    fn end(&mut self) -> Option<Taken> {
        if !std::mem::take(&mut self.is_open) {
            return None;
        }
        let own = self.own.take();
        let run = &self.run;
        if let Some(own) = own {
            let way = own.start(run, self.queue.name)?;
            return Some(run.taken(own.index, Done::queued(way, self.queue.name, None)));
        }
        let mut next = self.line.take();
        while let Some(entry) = next {
            let (index, way) = match entry {
                Entry::Node(index) => (index, run.start(index, self.queue.name)),
                Entry::Attempt(attempt) => (attempt.index, attempt.start(run, self.queue.name)),
            };
            if let Some(way) = way {
                let held = Held {
                    run: run.clone(),
                    line: self.line.clone(),
                    queue: self.queue,
                };
                return Some(run.taken(index, Done::queued(way, self.queue.name, Some(held))));
            }
            next = self.line.take_next();
        }
        None
    }
}

/// Nobody will come for it, nor for those that wait behind it: its run ends as stopped.
impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        if let Some(own) = self.own.take() {
            return own.abandon();
        }
        let mut next = self.line.take();
        while let Some(entry) = next {
            let waits = match entry {
                Entry::Node(index) => !self.run.is_ended(index),
                Entry::Attempt(attempt) => attempt.waits(),
            };
            if waits {
                return self.run.cancel(Error::Stopped);
            }
            next = self.line.take_next();
        }
    }
}

/// A turn while its node runs; dropped, the next one has it.
pub(crate) struct Held {
    run: Arc<Run>,
    line: Arc<Line>,
    queue: &'static Queue,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.line.release();
        self.run.hand_out(&self.line, self.queue);
    }
}

impl Run {
    /// What is ready for a queue.
    pub fn line(&self, queue: &'static Queue) -> Arc<Line> {
        let mut lines = lock(&self.lines);
        if let Some((_, line)) = lines.iter().find(|(name, _)| *name == queue.name) {
            return line.clone();
        }
        let line = Arc::new(Line::new(queue.at_once));
        lines.push((queue.name, line.clone()));
        line
    }

    /// A plain node is ready.
    pub fn enqueue(self: &Arc<Self>, index: usize, queue: &'static Queue) {
        let line = self.line(queue);
        line.push(self.vertex(index).rank, Entry::Node(index));
        self.hand_out(&line, queue);
    }

    fn hand_out(self: &Arc<Self>, line: &Arc<Line>, queue: &'static Queue) {
        while !self.is_over() && line.begin_turn() {
            self.hand_over_turn(Turn {
                run: self.clone(),
                line: line.clone(),
                queue,
                own: None,
                is_open: true,
            });
        }
    }

    /// A refusal ends its node on the pool, not here: a chain of refusals must not recurse.
    fn hand_over_turn(self: &Arc<Self>, turn: Turn) {
        let enter = turn.queue.enter;
        // A panic has dropped the turn, which has ended what it was for.
        match contain(|| enter(turn)).unwrap_or(Ok(())) {
            Ok(()) => {}
            Err(NoTurn::Fails(turn, reason)) => {
                let end = move || turn.refuse(reason);
                self.core.cpu.push(Job::Attempt(Box::new(end)));
            }
            Err(NoTurn::Busy(turn)) => {
                if let Ok(task) = self.core.io.spawn_admitted(insist(turn)) {
                    task.detach();
                }
            }
        }
    }

    fn start(self: &Arc<Self>, index: usize, place: &'static str) -> Option<Way> {
        let ticket = Ticket::new(self, index);
        let started = ticket.start(Lane::Foreign(place));
        started.then_some(Way::Node(ticket))
    }

    fn taken(self: &Arc<Self>, index: usize, done: Done) -> Taken {
        let function = match &self.vertex(index).node.body {
            Body::Queued(_, function) => function.clone(),
            _ => Value::absent(),
        };
        Taken {
            given: self.given(index),
            done,
            function,
        }
    }
}

/// Hands a turn over again and again, until there is room.
async fn insist(mut turn: Turn) {
    let run = turn.run.clone();
    let mut pause = Pause::default();
    while pause.wait(&run.core.io).await && !run.is_over() {
        match (turn.queue.enter)(turn) {
            Ok(()) => return,
            Err(NoTurn::Fails(turn, reason)) => return turn.refuse(reason),
            Err(NoTurn::Busy(again)) => turn = again,
        }
    }
}

/// One attempt at a node that is watched over.
pub(crate) struct Attempt {
    index: usize,
    clock: Arc<Clock>,
    state: Mutex<State>,
}

enum State {
    Waits(Sender<Result<Output, Reason>>),
    Runs(Option<Stop>),
    Over,
}

impl Attempt {
    fn start(self: &Arc<Self>, run: &Arc<Run>, place: &'static str) -> Option<Way> {
        let sender = {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Over) {
                State::Waits(sender) if !run.is_over() => {
                    *state = State::Runs(None);
                    sender
                }
                _ => return None,
            }
        };
        self.clock.start();
        lock(&run.nodes[self.index].slot).times.lane = Lane::Foreign(place);
        Some(Way::Attempt {
            sender,
            run: run.clone(),
            index: self.index,
            queued: Some(self.clone()),
        })
    }

    /// Where nobody waits any more it is called at once.
    pub fn stops_by(&self, stop: Stop) {
        let mut late = Some(stop);
        if let State::Runs(place) = &mut *lock(&self.state) {
            *place = late.take();
        }
        if let Some(stop) = late {
            stop();
        }
    }

    fn waits(&self) -> bool {
        matches!(*lock(&self.state), State::Waits(_))
    }

    /// Nobody will run it.
    fn abandon(&self) {
        let before = {
            let mut state = lock(&self.state);
            match &*state {
                State::Waits(_) => std::mem::replace(&mut *state, State::Over),
                _ => return,
            }
        };
        // Its end is an answer.
        drop(before);
    }

    /// Nobody waits any more.
    fn stop(&self) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Over);
        if let State::Runs(Some(stop)) = before {
            stop();
        }
    }
}

/// Waits for one attempt. Dropped before its end it stops the other side. `beside` the line: at once, with
/// a turn of its own.
pub(crate) async fn attempt(
    (run, index): (Arc<Run>, usize),
    queue: &'static Queue,
    clock: Arc<Clock>,
    beside: bool,
) -> Result<Output, Reason> {
    let (sender, receiver) = oneshot();
    let attempt = Arc::new(Attempt {
        index,
        clock,
        state: Mutex::new(State::Waits(sender)),
    });
    let line = run.line(queue);
    let waiting = Waiting {
        receiver,
        attempt: attempt.clone(),
    };
    if beside {
        run.hand_over_turn(Turn {
            run: run.clone(),
            line,
            queue,
            own: Some(attempt),
            is_open: true,
        });
    } else {
        line.push(run.vertex(index).rank, Entry::Attempt(attempt));
        run.hand_out(&line, queue);
    }
    drop(run);
    waiting.await
}

struct Waiting {
    receiver: Receiver<Result<Output, Reason>>,
    attempt: Arc<Attempt>,
}

impl Future for Waiting {
    type Output = Result<Output, Reason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.receiver).poll(context);
        ended.map(|result| {
            *lock(&self.attempt.state) = State::Over;
            result.unwrap_or(Err(Reason::Stopped))
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.attempt.stop();
    }
}
