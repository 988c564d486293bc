//! Nodes that run elsewhere: on threads or in processes that belong to others, who say when they
//! start and how they end.
//!
//! Thread: started by whoever ended the last input, completed by any. Never: waits for the other
//! side; leaves a node open: a `Done` that is dropped ends it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Reason;
use crate::node::{Given, Output};
use crate::oneshot::{Receiver, Sender, oneshot};
use crate::run::{Lane, Run};
use crate::sync::lock;
use crate::ticket::Ticket;

/// Tells the other side that nobody waits any more; called at most once, also after the end.
pub type Stop = Box<dyn FnOnce() + Send>;

/// The other side has no room: the node fails for this reason.
pub struct Refusal(pub Done, pub Reason);

pub(crate) type ForeignFn = Arc<dyn Fn(Given, Done) -> Result<Stop, Refusal> + Send + Sync>;

/// The other side's end of a node.
pub struct Done {
    way: Option<Way>,
    place: &'static str,
}

enum Way {
    /// Nothing around the node: it ends on the thread that completes it.
    Node(Ticket),
    /// One attempt at a node that is watched over from the loop.
    Attempt {
        sender: Sender<Result<Output, Reason>>,
        run: Arc<Run>,
        index: usize,
    },
}

impl Done {
    pub(crate) fn node(ticket: Ticket, place: &'static str) -> Self {
        let way = Some(Way::Node(ticket));
        Done { way, place }
    }

    /// The node begins to run. `false`: nobody waits for it any more.
    pub fn start(&self) -> bool {
        match &self.way {
            Some(Way::Node(ticket)) => ticket.start(Lane::Foreign(self.place)),
            Some(Way::Attempt { sender, run, index }) => {
                lock(&run.nodes[*index].slot).times.lane = Lane::Foreign(self.place);
                !sender.is_abandoned()
            }
            None => false,
        }
    }

    /// Ends the node; its children may start on this very thread.
    pub fn complete(mut self, result: Result<Output, Reason>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<Output, Reason>) {
        match self.way.take() {
            Some(Way::Node(ticket)) => ticket.complete(result),
            Some(Way::Attempt { sender, .. }) => sender.send(result),
            None => {}
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.end(Err(Reason::Stopped));
    }
}

/// One attempt, as a future; dropped before its end it stops the other side.
pub(crate) struct Attempt {
    receiver: Receiver<Result<Output, Reason>>,
    stop: Option<Stop>,
}

impl Attempt {
    pub fn begin(
        start: &ForeignFn,
        place: &'static str,
        run: &Arc<Run>,
        index: usize,
        given: Given,
    ) -> Self {
        let (sender, receiver) = oneshot();
        let way = Way::Attempt {
            sender,
            run: run.clone(),
            index,
        };
        let done = Done {
            way: Some(way),
            place,
        };
        let stop = match start(given, done) {
            Ok(stop) => Some(stop),
            Err(Refusal(done, reason)) => {
                done.complete(Err(reason));
                None
            }
        };
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
