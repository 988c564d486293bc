//! What each call of an inbox does, on one thread. How threads meet is in the models beside it.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reactor::inbox::{Inbox, Refused, Wake};

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn inbox(bound: usize) -> (Inbox<u32, Count>, Count) {
    let count = Count::default();
    (Inbox::new(count.clone(), bound), count)
}

fn taken(inbox: &Inbox<u32, Count>) -> Vec<u32> {
    let mut ready = VecDeque::new();
    inbox.take(&mut ready);
    ready.into()
}

#[test]
fn what_belongs_to_admitted_work_is_refused_by_a_stopped_inbox_only() {
    let (inbox, wakes) = inbox(1);
    let poster = inbox.poster();
    assert_eq!(poster.post(1), Ok(()));
    assert_eq!(poster.post(2), Err(Refused::Full(2)));
    assert_eq!(poster.post_admitted(3), Ok(()));
    assert_eq!(taken(&inbox), [1, 3]);
    assert!(inbox.fall_asleep());
    assert_eq!(poster.post_admitted(4), Ok(()));
    assert_eq!(wakes.get(), 1);
    assert!(!poster.is_stopped());
    poster.stop();
    assert!(poster.is_stopped());
    assert_eq!(poster.post_admitted(5), Err(5));
    assert_eq!(taken(&inbox), [4]);
}

#[test]
fn a_stop_wakes_a_loop_that_sleeps_and_one_that_is_awake_is_left_alone() {
    let (inbox, wakes) = inbox(1);
    assert!(inbox.fall_asleep());
    inbox.awake();
    inbox.poster().wake();
    assert_eq!(wakes.get(), 0);
    assert!(inbox.fall_asleep());
    inbox.poster().stop();
    assert_eq!(wakes.get(), 1);
    assert!(!inbox.fall_asleep());
    // It has said itself that it does not sleep.
    inbox.poster().wake();
    assert_eq!(wakes.get(), 1);
}

#[test]
fn a_nudge_wakes_a_loop_and_ends_its_look() {
    let (inbox, wakes) = inbox(1);
    assert!(inbox.fall_asleep());
    inbox.poster().nudge();
    assert_eq!(wakes.get(), 1);
    assert!(inbox.look(0));
    assert_eq!(taken(&inbox), []);
    assert!(!inbox.look(0), "it was taken");
}

#[test]
fn a_look_lasts_as_long_as_it_may_and_ends_with_a_post() {
    let (inbox, _) = inbox(1);
    let begun = Instant::now();
    assert!(!inbox.look(5_000_000));
    assert!(begun.elapsed() >= Duration::from_millis(5));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let poster = inbox.poster();
    let posts = std::thread::spawn(move || poster.post(1));
    assert!(inbox.look(60_000_000_000));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(matches!(posts.join(), Ok(Ok(()))));
}
