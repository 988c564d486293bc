//! A loop as its host sees it: descriptors, timers, posts, and the end of it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use reactor::{EventLoop, Host, Key, Moment, Outcome, Reactor, Readiness, Refused, clock};

type Work = Box<dyn FnOnce(&mut Recorder, &mut Reactor<Job, &'static str>) + Send>;

/// A piece of work, as a function.
struct Job(Work);

/// Notes what it is told, and keeps the descriptors that it lends.
#[derive(Default)]
struct Recorder {
    seen: Vec<String>,
    waits: usize,
    held: Vec<OwnedFd>,
    /// Takes these sources out at the next event.
    drop_at_event: Vec<(Key, UnixStream)>,
}

impl Host<Job, &'static str> for Recorder {
    fn before_wait(&mut self) {
        self.waits += 1;
    }

    fn run(&mut self, reactor: &mut Reactor<Job, &'static str>, work: Job) -> ControlFlow<()> {
        (work.0)(self, reactor);
        ControlFlow::Continue(())
    }

    fn ready(
        &mut self,
        reactor: &mut Reactor<Job, &'static str>,
        key: Key,
        is: Readiness,
    ) -> ControlFlow<()> {
        let name = *reactor.source(key).unwrap();
        for (name, ready) in [("read", is.readable), ("write", is.writable)]
            .map(|(way, ready)| (format!("{name} {way}"), ready))
        {
            if ready {
                self.seen.push(name);
            }
        }
        for (key, stream) in self.drop_at_event.drain(..) {
            reactor.unregister(key, stream.as_fd());
        }
        ControlFlow::Continue(())
    }

    fn lend(&self, fd: RawFd) -> BorrowedFd<'_> {
        let found = self.held.iter().find(|held| held.as_raw_fd() == fd);
        found.unwrap().as_fd()
    }
}

fn note(text: &'static str) -> Job {
    Job(Box::new(move |host, _| host.seen.push(text.to_owned())))
}

fn parts() -> (Recorder, Reactor<Job, &'static str>) {
    (Recorder::default(), Reactor::new(usize::MAX).unwrap())
}

const BOTH: Readiness = Readiness {
    readable: true,
    writable: true,
};

#[test]
fn both_bits_of_a_descriptor_are_served_in_one_turn() {
    let (mut host, mut reactor) = parts();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let key = reactor.register(mine.as_fd(), BOTH, "pair").unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(reactor.turn(&mut host).unwrap(), Outcome::Done);
    assert_eq!(host.seen, ["pair read", "pair write"]);
    assert_eq!(reactor.unregister(key, mine.as_fd()), Some("pair"));
    assert_eq!(reactor.sources(), 0);
}

#[test]
fn readiness_is_level_triggered() {
    let (mut host, mut reactor) = parts();
    let (mut mine, mut theirs) = UnixStream::pair().unwrap();
    reactor
        .register(mine.as_fd(), Readiness::READ, "pair")
        .unwrap();
    theirs.write_all(b"xy").unwrap();
    for _ in 0..2 {
        reactor.turn(&mut host).unwrap();
        mine.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(host.seen, ["pair read", "pair read"]);
}

#[test]
fn a_source_watched_once_is_told_once_and_may_be_a_new_descriptor_then() {
    let (mut host, mut reactor) = parts();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let key = reactor
        .register(mine.as_fd(), Readiness::NONE, "x")
        .unwrap();
    reactor
        .watch_once(key, mine.as_fd(), Readiness::READ)
        .unwrap();
    theirs.write_all(b"x").unwrap();
    reactor.turn(&mut host).unwrap();
    reactor.push(note("turn"));
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen, ["x read", "turn"]);
    drop(mine);
    let (again, mut theirs) = UnixStream::pair().unwrap();
    reactor
        .watch_once(key, again.as_fd(), Readiness::READ)
        .unwrap();
    theirs.write_all(b"x").unwrap();
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen, ["x read", "turn", "x read"]);
}

#[test]
fn a_source_removed_earlier_in_the_same_batch_is_not_served() {
    let (mut host, mut reactor) = parts();
    let (a, mut to_a) = UnixStream::pair().unwrap();
    let (b, mut to_b) = UnixStream::pair().unwrap();
    let a_key = reactor.register(a.as_fd(), Readiness::READ, "x").unwrap();
    let b_key = reactor.register(b.as_fd(), Readiness::READ, "x").unwrap();
    to_a.write_all(b"x").unwrap();
    to_b.write_all(b"x").unwrap();
    host.drop_at_event = vec![(a_key, a), (b_key, b)];
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen.len(), 1);
}

#[test]
fn a_closed_descriptor_with_a_living_twin_does_not_spin_the_loop() {
    let (mut host, mut reactor) = parts();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let twin = mine.try_clone().unwrap();
    let key = reactor
        .register(mine.as_fd(), Readiness::READ, "x")
        .unwrap();
    // Closed behind the loop's back; the twin keeps it firing in the epoll set.
    drop(mine);
    theirs.write_all(b"x").unwrap();
    reactor.unregister(key, twin.as_fd());
    let (other, _end) = UnixStream::pair().unwrap();
    host.held.push(other.try_clone().unwrap().into());
    let lent = host.held[0].as_fd();
    reactor.register(lent, Readiness::READ, "other").unwrap();
    for _ in 0..3 {
        reactor.push(note("turn"));
        reactor.turn(&mut host).unwrap();
    }
    reactor.set_timer(Moment::at_nanos(clock::now() + 20_000_000), note("timer"));
    let waits = host.waits;
    while host.seen.last().map(String::as_str) != Some("timer") {
        reactor.turn(&mut host).unwrap();
    }
    // A ghost would end each wait at once.
    assert!(host.waits - waits <= 2, "{} waits", host.waits - waits);
}

#[test]
fn a_timer_set_for_now_runs_in_the_next_turn_after_what_was_made_ready() {
    let (mut host, mut reactor) = parts();
    reactor.push(Job(Box::new(|_, reactor| {
        reactor.set_timer(Moment::at_nanos(0), note("timer"));
        reactor.push(note("ready"));
    })));
    reactor.turn(&mut host).unwrap();
    assert!(host.seen.is_empty());
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen, ["ready", "timer"]);
}

/// Below and above the length from which waits are in whole milliseconds.
#[test]
fn timers_are_never_early_and_take_two_waits_at_most() {
    let (mut host, mut reactor) = parts();
    for delay in [250_000, 1_000_000, 3_300_000, 12_300_000] {
        let deadline = clock::now() + delay;
        reactor.set_timer(Moment::at_nanos(deadline), note("due"));
        host.seen.clear();
        let waits = host.waits;
        while host.seen.is_empty() {
            reactor.turn(&mut host).unwrap();
        }
        assert!(clock::now() >= deadline);
        assert_eq!(reactor.timers(), 0);
        // The whole milliseconds, then the rest.
        assert!(host.waits - waits <= 2, "{} waits", host.waits - waits);
    }
}

#[test]
fn a_post_ends_a_wait_of_any_length() {
    // Such a timer could not be waited for in one piece.
    let hundred_days = 100 * 86_400 * 1_000_000_000;
    for delay in [
        Some(9_000_000),
        Some(60_000_000_000),
        Some(hundred_days),
        None,
    ] {
        let (mut host, mut reactor) = parts();
        if let Some(delay) = delay {
            reactor.set_timer(Moment::at_nanos(clock::now() + delay), note("due"));
        }
        let poster = reactor.poster();
        let posting = std::thread::spawn(move || poster.post(note("posted")).is_ok());
        while host.seen.is_empty() {
            reactor.turn(&mut host).unwrap();
        }
        // The first may be over before the thread has begun.
        assert!(host.seen[0] == "posted" || delay == Some(9_000_000));
        assert!(posting.join().unwrap());
    }
}

#[test]
fn work_that_makes_work_leaves_room_for_descriptors() {
    let (mut host, mut reactor) = parts();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    reactor
        .register(mine.as_fd(), Readiness::READ, "x")
        .unwrap();
    theirs.write_all(b"x").unwrap();
    fn again(host: &mut Recorder, reactor: &mut Reactor<Job, &'static str>) {
        host.seen.push("again".to_owned());
        reactor.push(Job(Box::new(again)));
    }
    reactor.push(Job(Box::new(again)));
    reactor.turn(&mut host).unwrap();
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen, ["again", "x read", "again", "x read"]);
}

#[test]
fn a_million_timers_due_at_once_all_fire() {
    let (mut host, mut reactor) = parts();
    for _ in 0..1_000_000 {
        reactor.set_timer(Moment::at_nanos(1), note("t"));
    }
    reactor.turn(&mut host).unwrap();
    assert_eq!(host.seen.len(), 1_000_000);
}

/// A job that sends what happens over a channel.
fn tell(tx: &mpsc::Sender<&'static str>, text: &'static str) -> Job {
    let tx = tx.clone();
    Job(Box::new(move |_, _| tx.send(text).unwrap()))
}

fn start() -> EventLoop<Job> {
    EventLoop::start("test-loop", 1000, |_| Recorder::default()).unwrap()
}

#[test]
fn stop_runs_what_was_accepted_and_refuses_the_rest() {
    let (tx, rx) = mpsc::channel();
    let own = start();
    let poster = own.poster();
    for _ in 0..100 {
        own.post(tell(&tx, "ran")).ok().unwrap();
    }
    own.stop();
    assert_eq!(rx.try_iter().count(), 100);
    assert!(matches!(
        poster.post(note("late")),
        Err(Refused::Stopped(_))
    ));
}

#[test]
fn a_loop_destroyed_by_its_own_work_ends_by_itself() {
    let (tx, rx) = mpsc::channel();
    let own = start();
    let poster = own.poster();
    let last = tell(&tx, "after");
    poster
        .post(Job(Box::new(move |_, reactor| {
            reactor.push(last);
            drop(own);
        })))
        .ok()
        .unwrap();
    let timeout = Duration::from_secs(10);
    assert_eq!(rx.recv_timeout(timeout), Ok("after"));
    drop(tx);
    // The sender that the loop's work held is gone: so are the work and the thread's tables.
    assert!(rx.recv_timeout(timeout).is_err());
    assert!(matches!(
        poster.post(note("late")),
        Err(Refused::Stopped(_))
    ));
}

#[test]
fn a_panic_ends_one_piece_of_work() {
    let (tx, rx) = mpsc::channel();
    let own = start();
    own.post(Job(Box::new(|_, _| {
        std::panic::resume_unwind(Box::new(()))
    })))
    .ok()
    .unwrap();
    own.post(tell(&tx, "next")).ok().unwrap();
    assert_eq!(rx.recv_timeout(Duration::from_secs(10)), Ok("next"));
}

#[test]
fn what_is_suspended_is_dropped_when_the_loop_stops() {
    let (tx, rx) = mpsc::channel::<()>();
    let own = start();
    own.post(Job(Box::new(move |_, reactor| {
        let never = Job(Box::new(move |_, _| drop(tx)));
        reactor.set_timer(Moment::LAST, never);
    })))
    .ok()
    .unwrap();
    let began = Instant::now();
    own.stop();
    assert!(rx.recv().is_err());
    assert!(began.elapsed() < Duration::from_secs(5));
}
