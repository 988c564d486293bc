//! What Python's threads have to do for graphs: a crew for nodes, and one for what ends them.
//!
//! Thread: filled by any, detached or not; emptied by threads that Python has started and that run
//! `work`. Never: waits while attached (I3). Its bound is that of the runs, each admitted whole.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crew::{Crew, Member, Plan};
use dag::Turn;
use pyrt::fork::{PerProcess, generation};
use pyrt::interrupt::{self, Order};
use pyrt::{Attached, Kept, Parks, kept};

use super::nodes;
use super::stop::{self, Stopping};

pub enum Item {
    Node(Turn),
    /// Something of Python's own to be called: who hears of an end, or a cancellation.
    Call(Kept),
    /// A function that runs, and nobody waits for.
    Stop(Order<Stopping>),
}

/// What a thread does. Nodes may block; what ends them must not wait behind them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    Nodes = 0,
    Errands = 1,
}

/// The crew of each duty.
struct Crews([Arc<Crew<Item>>; 2]);

impl Default for Crews {
    fn default() -> Self {
        Crews([usize::MAX, 1].map(|threads| {
            Arc::new(Crew::new(Plan {
                size: threads,
                max_threads: threads,
                // All of it was admitted with its run.
                max_queue: 0,
                parallel: pyrt::FREE_THREADED,
                // Python starts the threads, before there is anything to do.
                start: Box::new(|| ()),
            }))
        }))
    }
}

#[derive(Default)]
pub struct Queue {
    /// The child of a fork begins with empty ones: the threads have stayed with the parent.
    crews: PerProcess<Crews>,
    /// The class of what functions give that ask for more nodes.
    pub more: OnceLock<Kept>,
}

impl Queue {
    fn crew(&self, duty: Duty) -> Arc<Crew<Item>> {
        self.crews.lock().0[duty as usize].clone()
    }

    fn crews(&self) -> [Arc<Crew<Item>>; 2] {
        self.crews.lock().0.clone()
    }

    pub fn push(&self, item: Item) {
        let duty = match item {
            Item::Node(_) => Duty::Nodes,
            Item::Call(_) | Item::Stop(_) => Duty::Errands,
        };
        // No crew of this process is ever closed.
        let _ = self.crew(duty).resume(item);
    }

    /// A run begins. Gives how many threads are to be started for each duty, so that there are
    /// `wanted` for nodes and one for errands.
    pub fn enter(&self, wanted: usize) -> [usize; 2] {
        let [nodes, errands] = self.crews();
        [nodes.hold(wanted), errands.hold(1)]
    }

    pub fn leave(&self) {
        self.crews().iter().for_each(|crew| crew.release());
    }

    /// A thread that was asked for could not be started.
    pub fn lost(&self, duty: Duty) {
        self.crew(duty).lost();
    }

    /// Ends the threads when nothing waits.
    pub fn close(&self) {
        self.crews().iter().for_each(|crew| crew.dismiss());
    }

    /// The body of a thread: until there is nothing to do for a while, or the end.
    pub fn work(&self, py: Attached<'_>, duty: Duty) {
        let _parks = Parks::here();
        if duty == Duty::Errands
            && let Err(error) = interrupt::prepare(py)
        {
            error.unraisable(c"the end of a graph");
        }
        let (crew, process) = (self.crew(duty), generation());
        // What is to be tried again, all at once: what comes meanwhile waits for one pause, however many they are.
        let mut orders = Vec::new();
        let me = Arc::new(Member::current());
        crew.join(&me, true);
        while py.detach(|| crew.follow(&me)) == crew::Turn::Lead {
            while crew.may_take(&me) || crew.linger(&me, Duration::ZERO) {
                kept::release_dropped(py);
                let Some(item) = crew.pop() else {
                    match stop::carry_out(py, &mut orders) {
                        Some(pause) => py.detach(|| std::thread::sleep(pause)),
                        None => _ = py.detach(|| crew.idle(&me, Duration::ZERO)),
                    }
                    continue;
                };
                crew.starts(&me);
                match item {
                    Item::Node(turn) => nodes::run(py, turn),
                    Item::Call(callable) => call(py, &callable),
                    Item::Stop(order) => orders.push(order),
                }
                if generation() != process {
                    // A child of a fork, whose only thread this is: the crew has stayed with the parent.
                    return;
                }
                crew.ends(&me);
            }
        }
        orders
            .into_iter()
            .for_each(|order| self.push(Item::Stop(order)));
        py.detach(|| crew.leave(&me));
    }
}

fn call(py: Attached<'_>, callable: &Kept) {
    let called = callable.get(py).map(|callable| callable.call(&[]));
    if let Some(Err(error)) = called {
        error.unraisable(c"the end of a graph");
    }
}
