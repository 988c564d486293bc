//! Nodes that run elsewhere: on threads or in processes that belong to others, who say when they
//! start and how they end.
//!
//! Thread: started by whoever ended the last input, completed by any. Never: waits for the other
//! side; leaves a node open: a `Done` that is dropped ends it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reactor::Handle;

use crate::contain::contain;
use crate::error::Reason;
use crate::limit::Permit;
use crate::node::{Given, Output};
use crate::oneshot::{Receiver, Sender, oneshot};
use crate::queued::{self, Held};
use crate::run::{Lane, Run, Running};
use crate::sync::lock;
use crate::ticket::Ticket;

/// Tells the other side that nobody waits any more; called at most once, also after the end.
pub type Stop = Box<dyn FnOnce() + Send>;

/// Where foreign nodes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// In a word, for the timeline.
    pub name: &'static str,
    /// How many nodes of one run may be there at once; the others wait for their turn. So a wide
    /// graph neither floods the other side nor keeps other runs from it.
    pub at_once: usize,
}

/// The other side does not take the node.
pub enum Refusal {
    /// It fails for this reason.
    Fails(Done, Reason),
    /// There is no room now: it is handed over again after a moment.
    Busy(Done),
}

pub(crate) type ForeignFn = Arc<dyn Fn(Given, Done) -> Result<Stop, Refusal> + Send + Sync>;

/// The other side's end of a node.
pub struct Done {
    way: Option<Way>,
    place: &'static str,
    /// Its turn at the other side.
    turn: Option<Permit>,
    /// Its turn in the line of a queue.
    held: Option<Held>,
}

pub(crate) enum Way {
    /// Nothing around the node: it ends on the thread that completes it.
    Node(Ticket),
    /// One attempt at a node that is watched over from the loop.
    Attempt {
        sender: Sender<Result<Output, Reason>>,
        run: Arc<Run>,
        index: usize,
        /// Where it is one of a queue: who is told how it is stopped.
        queued: Option<Arc<queued::Attempt>>,
    },
}

impl Done {
    pub(crate) fn node(ticket: Ticket, place: Place, turn: Permit) -> Self {
        Done {
            way: Some(Way::Node(ticket)),
            place: place.name,
            turn: Some(turn),
            held: None,
        }
    }

    pub(crate) fn queued(way: Way, place: &'static str, held: Option<Held>) -> Self {
        Done {
            way: Some(way),
            place,
            turn: None,
            held,
        }
    }

    /// How a node of a queue is stopped when nobody waits for it any more; at once, if that is so already.
    pub fn stops_by(&self, stop: Stop) {
        match &self.way {
            Some(Way::Node(ticket)) => ticket.run().keep(ticket.index(), Running::Foreign(stop)),
            Some(Way::Attempt {
                queued: Some(attempt),
                ..
            }) => attempt.stops_by(stop),
            _ => stop(),
        }
    }

    /// What it was made of, where it was refused.
    pub(crate) fn into_node(mut self) -> Option<(Ticket, Permit)> {
        match (self.way.take(), self.turn.take()) {
            (Some(Way::Node(ticket)), Some(turn)) => Some((ticket, turn)),
            _ => None,
        }
    }

    /// The node goes on without a thread of the other side: the next one may come.
    pub fn waits(&mut self) {
        self.turn = None;
        self.held = None;
    }

    /// The node begins to run. `false`: nobody waits for it any more.
    pub fn start(&self) -> bool {
        match &self.way {
            Some(Way::Node(ticket)) => ticket.start(Lane::Foreign(self.place)),
            Some(Way::Attempt {
                sender, run, index, ..
            }) => {
                lock(&run.nodes[*index].slot).times.lane = Lane::Foreign(self.place);
                !sender.is_abandoned() && !run.is_over()
            }
            None => false,
        }
    }

    /// Ends the node; its children may start on this very thread.
    pub fn complete(mut self, result: Result<Output, Reason>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<Output, Reason>) {
        self.turn = None;
        match self.way.take() {
            Some(Way::Node(ticket)) => ticket.complete(result),
            Some(Way::Attempt { sender, .. }) => sender.send(result),
            None => {}
        }
        // After its children are ready: one of them may be the most urgent now.
        self.held = None;
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let reason = match std::thread::panicking() {
            true => Reason::Panicked(format!("on the way to {}", self.place)),
            false => Reason::Stopped,
        };
        self.end(Err(reason));
    }
}

/// How long a node waits before it is handed over again; twice that the next time.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The wait for room at the other side.
pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(PAUSE)
    }
}

impl Pause {
    /// `false`: the loop has stopped.
    pub async fn wait(&mut self, io: &Handle) -> bool {
        let time = self.0;
        self.0 = (time * 2).min(LONGEST_PAUSE);
        io.sleep(time).await.is_ok()
    }
}

/// One attempt at a node that is watched over. Dropped before its end it stops the other side.
pub(crate) async fn attempt(
    start: ForeignFn,
    place: Place,
    (run, index): (Arc<Run>, usize),
    given: Given,
    mut turn: Option<Permit>,
) -> Result<Output, Reason> {
    let mut pause = Pause::default();
    loop {
        let (sender, receiver) = oneshot();
        let way = Way::Attempt {
            sender,
            run: run.clone(),
            index,
            queued: None,
        };
        let done = Done {
            way: Some(way),
            place: place.name,
            turn,
            held: None,
        };
        match contain(|| start(given.clone(), done))? {
            Ok(stop) => return Attempt::new(receiver, stop).await,
            Err(Refusal::Fails(_, reason)) => return Err(reason),
            Err(Refusal::Busy(mut done)) => turn = done.turn.take(),
        }
        if !pause.wait(&run.core.io).await {
            return Err(Reason::Stopped);
        }
    }
}

struct Attempt {
    receiver: Receiver<Result<Output, Reason>>,
    stop: Option<Stop>,
}

impl Attempt {
    fn new(receiver: Receiver<Result<Output, Reason>>, stop: Stop) -> Self {
        let stop = Some(stop);
        Attempt { receiver, stop }
    }
}

impl Future for Attempt {
    type Output = Result<Output, Reason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.receiver).poll(context);
        ended.map(|result| {
            self.stop = None;
            result.unwrap_or(Err(Reason::Stopped))
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}
