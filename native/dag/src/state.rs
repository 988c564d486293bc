//! How far a node has come, and whether its run is over. Every change is one atomic step, so a node
//! starts at most once, ends exactly once, and never starts after somebody has seen that its run is
//! over.
//!
//! Thread: any.

use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The states of a node, in the order they come; `ENDED` may follow each.
const WAITING: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const ENDED: u8 = 3;

/// Whether a run's results are no longer wanted, or all there.
#[derive(Default)]
pub(crate) struct Over(AtomicBool);

impl Over {
    /// `true` for the first to say so, who ends the nodes.
    pub fn set(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Relaxed: what follows needs no other data, and a thread that has seen it, or was told by one
    /// that has, sees it again.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The state of one node.
#[derive(Default)]
pub(crate) struct State(AtomicU8);

impl State {
    /// Its inputs have ended. `false`: it has ended itself.
    pub fn queue(&self) -> bool {
        self.step(WAITING, QUEUED)
    }

    /// It runs from now on. `false`: it has ended, or its run is over. Whoever ends a run ends its
    /// nodes one after another; those he has not come to yet must not start meanwhile.
    pub fn start(&self, over: &Over) -> bool {
        !over.is_set() && self.step(QUEUED, RUNNING)
    }

    /// `false`: it has ended before.
    pub fn end(&self) -> bool {
        // AcqRel, pairs with `step`: who ends the node sees how far it came.
        self.0.swap(ENDED, Ordering::AcqRel) != ENDED
    }

    pub fn has_ended(&self) -> bool {
        // Acquire, pairs with `end`.
        self.0.load(Ordering::Acquire) == ENDED
    }

    fn step(&self, from: u8, to: u8) -> bool {
        let stepped = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        stepped.is_ok()
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[derive(Default)]
    struct Model {
        over: Over,
        nodes: [State; 2],
    }

    impl Model {
        fn queued() -> Arc<Self> {
            let model = Model::default();
            assert!(model.nodes.iter().all(State::queue));
            Arc::new(model)
        }

        /// What `Run::cancel` does.
        fn cancel(&self) -> usize {
            match self.over.set() {
                true => self.nodes.iter().filter(|node| node.end()).count(),
                false => 0,
            }
        }
    }

    /// One thread of the pool: a node that runs until its run is over, and the one behind it.
    #[test]
    fn no_node_starts_on_a_thread_that_has_seen_its_run_over() {
        loom::model(|| {
            let model = Model::queued();
            let cancels = {
                let model = model.clone();
                thread::spawn(move || model.cancel())
            };
            let [holds, behind] = &model.nodes;
            let mut ended = 0;
            if holds.start(&model.over) {
                while !model.over.is_set() {
                    thread::yield_now();
                }
                ended += usize::from(holds.end());
                assert!(!behind.start(&model.over));
            }
            ended += cancels.join().unwrap_or_default();
            assert_eq!(ended, 2, "each node ends once");
        });
    }

    #[test]
    fn two_threads_do_not_start_one_node_and_two_do_not_end_it() {
        loom::model(|| {
            let model = Model::queued();
            let other = {
                let model = model.clone();
                thread::spawn(move || {
                    let started = model.nodes[0].start(&model.over);
                    (started, started && model.nodes[0].end())
                })
            };
            let started = model.nodes[0].start(&model.over);
            let ended = model.cancel();
            let (other_started, other_ended) = other.join().unwrap_or_default();
            assert!(!(started && other_started));
            assert_eq!(ended + usize::from(other_ended), 2);
        });
    }
}
