//! The I/O lane, and whatever a node asks for around its function: timeout, retries, hedging, a
//! limit. CPU nodes that ask for it are watched over from here, too.
//!
//! Thread: the loop's. Never: blocks it; outlives the node: dropping the future cancels the
//! attempt.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use reactor::Handle;

use crate::contain::{Contained, contain};
use crate::cpu_lane::{Job, index_here};
use crate::error::Reason;
use crate::foreign;
use crate::limit::Permit;
use crate::node::{Body, Doing, Given, Output, Policy};
use crate::oneshot::oneshot;
use crate::queued;
use crate::run::Lane;
use crate::since::{Clock, Since};
use crate::sync::lock;
use crate::ticket::Ticket;

/// Runs a node to its end.
pub(crate) async fn watch_over(ticket: Ticket) {
    let run = ticket.run().clone();
    let node = &run.vertex(ticket.index()).node;
    let io = &run.core.io;
    let _permit = match &node.policy.limit {
        Some(limit) => Some(limit.acquire().await),
        None => None,
    };
    if !ticket.start(Lane::Io) {
        return;
    }
    let given = run.given(ticket.index());
    let result = if node.policy.is_plain() {
        attempt(&ticket, &given, Turns::First(None), Arc::default()).await
    } else {
        persist(&ticket, &given, &node.policy, io).await
    };
    drop(given);
    drop(_permit);
    ticket.complete(result);
}

async fn persist(
    ticket: &Ticket,
    given: &Given,
    policy: &Policy,
    io: &Handle,
) -> Result<Output, Reason> {
    let mut backoff = policy.backoff;
    let mut left = policy.retries;
    loop {
        // The wait for its turn is no part of the attempt's time.
        let turn = match &ticket.run().vertex(ticket.index()).node.body {
            Body::Foreign(place, _) => Some(ticket.run().turns_at(*place).acquire().await),
            _ => None,
        };
        let clock = Arc::new(Clock::default());
        let trying = hedged(ticket, given, (policy.hedge, turn, clock.clone()), io);
        let result = match policy.timeout {
            Some(time) => {
                let since = match &ticket.run().vertex(ticket.index()).node.body {
                    Body::Queued(queue, _) => Some(Since::new(ticket.run().line(queue), clock)),
                    _ => None,
                };
                within(io, (time, since), trying).await
            }
            None => trying.await,
        };
        let Err(reason) = result else { return result };
        if left == 0 {
            return Err(reason);
        }
        left -= 1;
        if io.sleep(backoff).await.is_err() {
            return Err(Reason::Stopped);
        }
        backoff = backoff.saturating_mul(2);
    }
}

async fn within<T>(
    io: &Handle,
    (time, mut since): (Duration, Option<Since>),
    doing: impl Future<Output = Result<T, Reason>>,
) -> Result<T, Reason> {
    let mut doing = pin!(doing);
    let mut sleep = pin!(io.sleep(time));
    poll_fn(|context| {
        if let Poll::Ready(result) = doing.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        loop {
            match sleep.as_mut().poll(context) {
                Poll::Ready(Ok(())) => match since.as_mut().and_then(|since| since.left(time)) {
                    Some(left) => sleep.set(io.sleep(left)),
                    None => return Poll::Ready(Err(Reason::TimedOut)),
                },
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Reason::Stopped)),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// One attempt, and a second one if the first takes long: the first success, or the last failure.
async fn hedged(
    ticket: &Ticket,
    given: &Given,
    (after, turn, clock): (Option<Duration>, Option<Permit>, Arc<Clock>),
    io: &Handle,
) -> Result<Output, Reason> {
    let mut first = Some(attempt(ticket, given, Turns::First(turn), clock.clone()));
    let Some(after) = after else {
        return match first {
            Some(only) => only.await,
            None => Err(Reason::Stopped),
        };
    };
    let mut sleep = pin!(io.sleep(after));
    let mut second: Option<Doing> = None;
    let mut waiting = true;
    poll_fn(|context| {
        if waiting && sleep.as_mut().poll(context).is_ready() {
            waiting = false;
            second = Some(attempt(ticket, given, Turns::Second, clock.clone()));
        }
        let mut failed = None;
        for place in [&mut first, &mut second] {
            let Some(doing) = place else { continue };
            match Pin::new(doing).poll(context) {
                Poll::Ready(Ok(output)) => return Poll::Ready(Ok(output)),
                Poll::Ready(Err(reason)) => {
                    *place = None;
                    failed = Some(reason);
                }
                Poll::Pending => {}
            }
        }
        match failed {
            // A failure before the second began is the answer; later, the other may still succeed.
            Some(reason) if first.is_none() && second.is_none() => Poll::Ready(Err(reason)),
            _ => Poll::Pending,
        }
    })
    .await
}

/// Whose turn an attempt has: the second one runs beside the first, with none.
enum Turns {
    First(Option<Permit>),
    Second,
}

impl Turns {
    fn permit(self) -> Option<Permit> {
        match self {
            Turns::First(permit) => permit,
            Turns::Second => None,
        }
    }
}

fn attempt(ticket: &Ticket, given: &Given, turns: Turns, clock: Arc<Clock>) -> Doing {
    match &ticket.run().vertex(ticket.index()).node.body {
        Body::Io(body) => match contain(|| body(given.clone())) {
            Ok(doing) => Box::pin(Contained(doing)),
            Err(reason) => Box::pin(async { Err(reason) }),
        },
        Body::Foreign(place, start) => {
            let node = (ticket.run().clone(), ticket.index());
            let given = given.clone();
            let turn = turns.permit();
            Box::pin(foreign::attempt(start.clone(), *place, node, given, turn))
        }
        Body::Queued(queue, _) => {
            let node = (ticket.run().clone(), ticket.index());
            let beside = matches!(turns, Turns::Second);
            Box::pin(queued::attempt(node, queue, clock, beside))
        }
        Body::Cpu(body) => {
            let (sender, receiver) = oneshot();
            let (body, given) = (body.clone(), given.clone());
            let run = ticket.run().clone();
            let index = ticket.index();
            let job = move || {
                if sender.is_abandoned() || run.is_over() {
                    return;
                }
                lock(&run.nodes[index].slot).times.lane =
                    index_here().map_or(Lane::None, Lane::Cpu);
                sender.send(contain(|| body(&given)).unwrap_or_else(Err));
            };
            ticket.run().core.cpu.push(Job::Attempt(Box::new(job)));
            Box::pin(async { receiver.await.unwrap_or(Err(Reason::Stopped)) })
        }
    }
}
