//! The nodes of one run that are ready for a queue, and the turns there. A turn is no particular node: who
//! takes it gets the most urgent one of that moment.
//!
//! Thread: any. Never: hands a turn over, or ends a node, under its lock (I3).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::queued::Attempt;
use crate::sync::{Mutex, lock};

/// The length of the longest path that begins with a node: lengths are above zero, and of those the bits are in
/// the order of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Rank(u64);

impl Rank {
    pub fn new(length: f64) -> Self {
        Rank(length.max(0.0).to_bits())
    }

    pub fn length(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// What waits for a turn: a node, by its place in the graph, or one attempt at a node that is watched over.
pub(crate) enum Entry {
    Node(usize),
    Attempt(Arc<Attempt>),
}

#[derive(Default)]
struct State {
    /// First in, first out among equals.
    ready: BTreeMap<Rank, VecDeque<Entry>>,
    len: usize,
    /// Turns that nobody has.
    free: usize,
    /// Turns that were handed over, and have not been taken.
    out: usize,
    /// How often one was taken.
    taken: u64,
}

pub(crate) struct Line(Mutex<State>);

impl Line {
    pub fn new(at_once: usize) -> Self {
        Line(Mutex::new(State {
            free: at_once.max(1),
            ..State::default()
        }))
    }

    pub fn push(&self, rank: Rank, entry: Entry) {
        let mut state = lock(&self.0);
        state.ready.entry(rank).or_default().push_back(entry);
        state.len += 1;
    }

    /// Whether a turn is to be handed over now: there is one, and a node that none of those on their way is
    /// for. `give_back`, `take` or `release` makes up for it.
    pub fn begin_turn(&self) -> bool {
        let mut state = lock(&self.0);
        let due = state.free > 0 && state.out < state.len;
        if due {
            state.free -= 1;
            state.out += 1;
        }
        due
    }

    /// The other side takes a turn: the first of those that are ready. With nothing to take, the turn is free.
    pub fn take(&self) -> Option<Entry> {
        let mut state = lock(&self.0);
        state.out -= 1;
        state.taken += 1;
        let entry = state.pop();
        if entry.is_none() {
            state.free += 1;
        }
        entry
    }

    /// As `take`, where what was taken before has ended meanwhile.
    pub fn take_next(&self) -> Option<Entry> {
        let mut state = lock(&self.0);
        let entry = state.pop();
        if entry.is_none() {
            state.free += 1;
        }
        entry
    }

    /// A node that had a turn has ended, or goes on without.
    pub fn release(&self) {
        lock(&self.0).free += 1;
    }

    /// How many turns were taken so far: whether the line moves.
    pub fn taken(&self) -> u64 {
        lock(&self.0).taken
    }
}

impl State {
    fn pop(&mut self) -> Option<Entry> {
        let mut first = self.ready.last_entry()?;
        let entry = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        self.len -= usize::from(entry.is_some());
        entry
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn take(line: &Line) -> Option<usize> {
        match line.take()? {
            Entry::Node(index) => Some(index),
            Entry::Attempt(_) => None,
        }
    }

    #[test]
    fn the_longest_path_goes_first_and_equals_in_the_order_they_came() {
        let line = Line::new(10);
        let ranks = [1.0, 2.5, 1e-9, 2.5, 1e9];
        for (index, rank) in ranks.into_iter().enumerate() {
            line.push(Rank::new(rank), Entry::Node(index));
        }
        let turns = (0..ranks.len()).filter(|_| line.begin_turn()).count();
        assert_eq!(turns, ranks.len());
        assert!(!line.begin_turn(), "nobody waits for another one");
        let order: Vec<_> = (0..turns).map(|_| take(&line)).collect();
        assert_eq!(order, [4, 1, 3, 0, 2].map(Some));
    }

    #[test]
    fn a_turn_is_for_whoever_is_first_when_it_is_taken() {
        let line = Line::new(1);
        line.push(Rank::new(1.0), Entry::Node(0));
        assert!(line.begin_turn());
        line.push(Rank::new(2.0), Entry::Node(1));
        assert!(!line.begin_turn(), "the only turn is out");
        assert_eq!(take(&line), Some(1));
        line.release();
        assert!(line.begin_turn());
        assert_eq!(take(&line), Some(0));
    }

    #[test]
    fn a_turn_without_a_node_is_free_again() {
        let line = Line::new(1);
        line.push(Rank::default(), Entry::Node(0));
        assert!(line.begin_turn());
        assert_eq!(take(&line), Some(0));
        // What was taken had ended.
        assert!(line.take_next().is_none());
        line.push(Rank::default(), Entry::Node(1));
        assert!(line.begin_turn());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// The other side: takes a turn, and those that its end makes due.
    fn work(line: &Line) -> usize {
        let mut ran = 0;
        loop {
            if line.take().is_some() {
                ran += 1;
                line.release();
            }
            if !line.begin_turn() {
                return ran;
            }
        }
    }

    #[test]
    fn no_node_is_left_without_a_turn() {
        loom::model(|| {
            let line = Arc::new(Line::new(1));
            line.push(Rank::default(), Entry::Node(0));
            assert!(line.begin_turn());
            let other = {
                let line = line.clone();
                thread::spawn(move || {
                    line.push(Rank::default(), Entry::Node(1));
                    match line.begin_turn() {
                        true => work(&line),
                        false => 0,
                    }
                })
            };
            let ran = work(&line) + other.join().unwrap_or_default();
            assert_eq!(ran, 2);
        });
    }
}
