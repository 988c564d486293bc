//! Timers: a 4-ary heap of plain entries over a table of what they carry.
//!
//! Cancelling takes the load out of the table at once, in constant time; the heap's entry goes
//! stale and is dropped when it comes up, or when stale ones are more than half (`compact`). A load
//! that knows by itself that it was cancelled stays until it comes up or there are many (`sweep`).
//! Equal deadlines fire in the order they were set. Thread: the loop's own.

use crate::clock::Moment;
use crate::key::{Key, Table};

const ARITY: usize = 4;

/// Below this many stale entries the heap is not worth compacting.
const FEW: usize = 64;

/// Names a timer until it has fired or was cancelled.
pub type TimerKey = Key;

/// A plain entry: moved about by the heap, owning nothing.
#[derive(Clone, Copy)]
struct Entry {
    deadline: Moment,
    /// Keeps equal deadlines in order.
    order: u64,
    key: Key,
}

impl Entry {
    fn before(&self, other: &Entry) -> bool {
        (self.deadline, self.order) < (other.deadline, other.order)
    }
}

pub struct Timers<T> {
    heap: Vec<Entry>,
    loads: Table<T>,
    set: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers {
            heap: Vec::new(),
            loads: Table::default(),
            set: 0,
        }
    }
}

impl<T> Timers<T> {
    /// How many are set.
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    pub fn insert(&mut self, deadline: Moment, load: T) -> TimerKey {
        let key = self.loads.insert(load);
        self.set += 1;
        self.heap.push(Entry {
            deadline,
            order: self.set,
            key,
        });
        self.sift_up(self.heap.len() - 1);
        key
    }

    /// What the timer carried; `None` if it has fired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let load = self.loads.remove(key)?;
        let stale = self.heap.len() - self.loads.len();
        if stale > FEW && stale > self.loads.len() {
            self.compact();
        }
        Some(load)
    }

    /// Whether as many stale loads are worth a `sweep`.
    #[inline]
    pub fn is_worth_sweeping(&self, stale: usize) -> bool {
        stale > FEW && stale > self.loads.len() / 2
    }

    /// Takes the stale loads out, for the caller to drop.
    pub fn sweep(&mut self, is_stale: impl Fn(&T) -> bool) -> Vec<T> {
        let mut stale = Vec::new();
        let loads = &mut self.loads;
        self.heap.retain(|entry| match loads.get(entry.key) {
            Some(load) if is_stale(load) => {
                stale.extend(loads.remove(entry.key));
                false
            }
            Some(_) => true,
            None => false,
        });
        self.heapify();
        stale
    }

    /// The deadline of the next timer. Stale ones before it go to the `bin`.
    pub fn next_deadline(
        &mut self,
        is_stale: impl Fn(&T) -> bool,
        bin: &mut Vec<T>,
    ) -> Option<Moment> {
        while let Some(&first) = self.heap.first() {
            match self.loads.get(first.key) {
                Some(load) if !is_stale(load) => return Some(first.deadline),
                Some(_) => bin.extend(self.loads.remove(first.key)),
                None => {}
            }
            self.pop_first();
        }
        None
    }

    /// Takes the next timer that is due at `now`.
    pub fn pop_due(&mut self, now: Moment) -> Option<T> {
        while let Some(&first) = self.heap.first() {
            if first.deadline > now {
                return None;
            }
            self.pop_first();
            if let Some(load) = self.loads.remove(first.key) {
                return Some(load);
            }
        }
        None
    }

    fn pop_first(&mut self) {
        if !self.heap.is_empty() {
            self.heap.swap_remove(0);
            self.sift_down(0);
        }
    }

    fn compact(&mut self) {
        let loads = &self.loads;
        self.heap.retain(|entry| loads.get(entry.key).is_some());
        self.heapify();
    }

    fn heapify(&mut self) {
        for place in (0..self.heap.len().div_ceil(ARITY)).rev() {
            self.sift_down(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        let Some(&entry) = self.heap.get(place) else {
            return;
        };
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }

    fn sift_down(&mut self, mut place: usize) {
        let Some(&entry) = self.heap.get(place) else {
            return;
        };
        loop {
            let first = place * ARITY + 1;
            let last = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..last).reduce(|a, b| {
                if self.heap[b].before(&self.heap[a]) {
                    b
                } else {
                    a
                }
            }) else {
                break;
            };
            if !self.heap[least].before(&entry) {
                break;
            }
            self.heap[place] = self.heap[least];
            place = least;
        }
        self.heap[place] = entry;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A small generator: the tests need many numbers, not good ones.
    fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment::at_seconds(seconds as f64)
    }

    fn next_of<T>(timers: &mut Timers<T>) -> Option<Moment> {
        timers.next_deadline(|_| false, &mut Vec::new())
    }

    #[test]
    fn loads_that_know_they_are_stale_are_swept_when_they_are_many() {
        use std::cell::Cell;
        let flags: Vec<_> = (0..1000).map(|_| Cell::new(false)).collect();
        let mut timers = Timers::default();
        for (n, flag) in flags.iter().enumerate() {
            timers.insert(at(n as u64), flag);
        }
        let (mut swept, mut stale) = (0, 0);
        for flag in flags.iter().take(900) {
            flag.set(true);
            stale += 1;
            if timers.is_worth_sweeping(stale) {
                swept += timers.sweep(|flag| flag.get()).len();
                stale = 0;
            }
        }
        assert!(swept > 500);
        assert_eq!(timers.len(), 1000 - swept);
        assert!(timers.heap.len() <= 2 * 100 + FEW);
        let mut bin = Vec::new();
        assert_eq!(
            timers.next_deadline(|flag| flag.get(), &mut bin),
            Some(at(900))
        );
        assert_eq!(bin.len(), 900 - swept);
        assert_eq!(std::iter::from_fn(|| timers.pop_due(at(1000))).count(), 100);
    }

    #[test]
    fn timers_fire_by_deadline_and_equal_ones_in_the_order_they_were_set() {
        let mut next = numbers(7);
        let mut timers = Timers::default();
        let mut model = Vec::new();
        for order in 0..5000_u64 {
            let deadline = next() % 500;
            timers.insert(at(deadline), order);
            model.push((deadline, order));
        }
        model.sort_unstable();
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(at(500))).collect();
        let expected: Vec<_> = model.into_iter().map(|(_, order)| order).collect();
        assert_eq!(fired, expected);
    }

    #[test]
    fn a_timer_is_not_due_before_its_deadline() {
        let mut timers = Timers::default();
        timers.insert(at(10), ());
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(next_of(&mut timers), Some(at(10)));
        assert_eq!(timers.pop_due(at(10)), Some(()));
        assert_eq!(next_of(&mut timers), None);
    }

    #[test]
    fn cancelled_timers_never_fire_and_leave_a_small_heap() {
        let mut next = numbers(3);
        let mut timers = Timers::default();
        let keys: Vec<_> = (0..10_000_u64)
            .map(|n| (timers.insert(at(next() % 1000), n), n))
            .collect();
        for (key, n) in &keys {
            if n % 10 != 0 {
                assert_eq!(timers.cancel(*key), Some(*n));
                assert_eq!(timers.cancel(*key), None);
            }
        }
        assert!(timers.heap.len() <= 2 * timers.len() + FEW);
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(at(1000))).collect();
        assert_eq!(fired.len(), 1000);
        assert!(fired.iter().all(|n| n % 10 == 0));
        assert!(timers.is_empty());
    }

    #[test]
    fn random_setting_cancelling_and_firing_agrees_with_a_sorted_list() {
        let mut next = numbers(11);
        let mut timers = Timers::default();
        let mut model: Vec<(u64, u64, TimerKey)> = Vec::new();
        for step in 0..20_000_u64 {
            match next() % 3 {
                0 | 1 => {
                    let deadline = step + next() % 100;
                    model.push((deadline, step, timers.insert(at(deadline), step)));
                }
                _ if !model.is_empty() => {
                    let (_, load, key) = model.swap_remove((next() % model.len() as u64) as usize);
                    assert_eq!(timers.cancel(key), Some(load));
                }
                _ => {}
            }
            model.sort_unstable_by_key(|(deadline, order, _)| (*deadline, *order));
            while model
                .first()
                .is_some_and(|(deadline, ..)| *deadline <= step)
            {
                assert_eq!(timers.pop_due(at(step)), Some(model.remove(0).1));
            }
            assert_eq!(timers.pop_due(at(step)), None);
            assert_eq!(
                next_of(&mut timers),
                model.first().map(|(deadline, ..)| at(*deadline))
            );
        }
    }

    #[test]
    fn the_number_of_timers_is_that_of_those_that_are_set() {
        let mut timers = Timers::default();
        assert_eq!((timers.len(), timers.is_empty()), (0, true));
        let key = timers.insert(at(1), ());
        timers.insert(at(2), ());
        assert_eq!((timers.len(), timers.is_empty()), (2, false));
        timers.cancel(key);
        assert_eq!((timers.len(), timers.is_empty()), (1, false));
    }

    #[test]
    fn the_heap_is_compacted_when_more_than_a_few_and_more_than_half_are_stale() {
        for (set, cancelled) in [(100, 65), (129, 65), (130, 66), (140, 71)] {
            let mut timers = Timers::default();
            let keys: Vec<_> = (0..set).map(|n| timers.insert(at(n), n)).collect();
            for key in &keys[1..cancelled] {
                timers.cancel(*key);
            }
            assert_eq!(timers.heap.len(), keys.len(), "{set}");
            timers.cancel(keys[cancelled]);
            assert_eq!(timers.heap.len(), keys.len() - cancelled, "{set}");
            assert_eq!(next_of(&mut timers), Some(at(0)));
        }
    }

    #[test]
    fn stale_loads_are_worth_a_sweep_when_they_are_more_than_a_few_and_more_than_half() {
        let mut timers = Timers::default();
        for (set, most) in [(100, 64), (128, 64), (131, 65), (200, 100)] {
            while timers.len() < set {
                timers.insert(at(0), ());
            }
            assert!(!timers.is_worth_sweeping(most), "{set}");
            assert!(timers.is_worth_sweeping(most + 1), "{set}");
        }
    }

    #[test]
    fn a_sweep_leaves_a_heap_in_order() {
        let mut next = numbers(5);
        let mut timers = Timers::default();
        let mut expected = Vec::new();
        for n in 0..1000_u64 {
            let deadline = next() % 300;
            let key = timers.insert(at(deadline), n);
            match n % 4 {
                0 => assert_eq!(timers.cancel(key), Some(n)),
                1 => {}
                _ => expected.push((deadline, n)),
            }
        }
        let swept = timers.sweep(|n| n % 4 == 1);
        assert_eq!(swept.len(), 250);
        assert_eq!((timers.len(), timers.heap.len()), (500, 500));
        expected.sort_unstable();
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(at(300))).collect();
        let expected: Vec<_> = expected.into_iter().map(|(_, n)| n).collect();
        assert_eq!(fired, expected);
    }
}
