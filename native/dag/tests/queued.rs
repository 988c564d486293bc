//! Nodes that wait for the threads of another side: in what order they run, and how they end.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dag::{Done, Error, Graph, Lane, Lanes, NoTurn, Node, Options, Outcome};
use dag::{Queue, Reason, Report, RunHandle, Taken, Turn, Value};

const WAIT: Duration = Duration::from_secs(60);

/// The other side: the test itself takes the turns that come.
struct Side {
    turns: Mutex<Sender<Turn>>,
    /// How many turns it has no room for.
    busy: AtomicUsize,
}

static ELSEWHERE: Queue = Queue {
    name: "elsewhere",
    at_once: 3,
    enter,
};

static ALONE: Queue = Queue {
    name: "alone",
    at_once: 1,
    enter,
};

fn enter(turn: Turn) -> Result<(), NoTurn> {
    let side: Arc<Side> = turn.inputs()[0].share().unwrap();
    let refused = side
        .busy
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if refused.is_ok() {
        return Err(NoTurn::Busy(turn));
    }
    side.turns.lock().unwrap().send(turn).unwrap();
    Ok(())
}

fn lanes() -> Lanes {
    Lanes::start(2, 100).unwrap()
}

fn node(name: &str, queue: &'static Queue) -> Node {
    Node::queued(name, queue, name.to_owned())
}

/// Each needs the one before it.
fn chain(length: usize, queue: &'static Queue) -> Vec<Node> {
    let link = |n: usize| match n {
        0 => node("link 0", queue),
        n => node(&format!("link {n}"), queue).inputs([format!("link {}", n - 1)]),
    };
    (0..length).map(link).collect()
}

#[test]
fn a_run_whose_turn_panics_on_its_way_is_stopped() {
    static PANICS: Queue = Queue {
        name: "panics",
        at_once: 1,
        enter: |_| panic!("bang"),
    };
    let lanes = lanes();
    let tried = node("n", &PANICS).retries(1, Duration::ZERO);
    for node in [node("n", &PANICS), tried] {
        let report = run(&lanes, [node], 0).run.wait().unwrap();
        assert_eq!(report.error, Some(Error::Stopped));
    }
}

struct Running {
    turns: Receiver<Turn>,
    run: RunHandle,
}

fn run(lanes: &Lanes, nodes: impl IntoIterator<Item = Node>, busy: usize) -> Running {
    let graph = nodes
        .into_iter()
        .fold(Graph::builder().input("side"), |graph, node| {
            graph.node(node)
        });
    let (send, turns) = channel();
    let side = Side {
        turns: Mutex::new(send),
        busy: AtomicUsize::new(busy),
    };
    let inputs = [("side", Value::new(side))];
    let options = Options::default().partial();
    let run = lanes.run(&graph.build().unwrap(), inputs, options).unwrap();
    Running { turns, run }
}

impl Running {
    fn turn(&self) -> Turn {
        self.turns.recv_timeout(WAIT).unwrap()
    }

    fn taken(&self) -> Taken {
        self.turn().take().unwrap()
    }

    /// One node after the other: their names in the order they ran.
    fn work(&self, count: usize) -> Vec<String> {
        let mut order = Vec::new();
        while order.len() < count {
            // A turn may come for nothing, where what it was for has ended.
            if let Some(taken) = self.turn().take() {
                order.push(name(&taken));
                complete(taken.done);
            }
        }
        order
    }

    fn outcome(self, name: &str) -> Option<Outcome> {
        let report: Report = self.run.wait().unwrap();
        report.node(name).unwrap().outcome.clone()
    }
}

fn name(taken: &Taken) -> String {
    taken.function::<String>().unwrap().to_string()
}

fn complete(done: Done) {
    done.complete(Ok(Value::absent().into()));
}

fn failed(reason: &str) -> Option<Outcome> {
    Some(Outcome::Failed(Reason::new(reason)))
}

#[test]
fn what_begins_the_longest_path_runs_first_though_others_came_before() {
    let leaves = (0..50).map(|n| node(&format!("leaf {n}"), &ELSEWHERE));
    let lanes = lanes();
    let order = run(&lanes, leaves.chain(chain(10, &ELSEWHERE)), 0).work(60);
    let links: Vec<String> = (0..10).map(|n| format!("link {n}")).collect();
    // The last link is as short a path as a leaf, and comes after those that were there before.
    assert_eq!(order[..9], links[..9]);
    let rest: Vec<String> = (0..50).map(|n| format!("leaf {n}")).collect();
    assert_eq!(order[9..59], rest);
    assert_eq!(order[59], links[9]);
}

#[test]
fn a_heavy_node_is_a_long_path() {
    let leaves = (0..5).map(|n| node(&format!("leaf {n}"), &ELSEWHERE));
    let heavy = node("heavy", &ELSEWHERE).weight(4.5);
    let behind = node("before the heavy one", &ELSEWHERE).weight(0.25);
    let slow = node("slow", &ELSEWHERE)
        .inputs(["before the heavy one"])
        .weight(100.0);
    let all = leaves
        .chain(chain(4, &ELSEWHERE))
        .chain([heavy, behind, slow]);
    let lanes = lanes();
    let order = run(&lanes, all, 0).work(12);
    assert_eq!(
        order[..4],
        ["before the heavy one", "slow", "heavy", "link 0"]
    );
}

#[test]
fn attempts_at_nodes_that_are_watched_over_run_in_the_same_order() {
    let watched = |n: u32| node(&n.to_string(), &ALONE).timeout(WAIT).weight(n.into());
    let lanes = lanes();
    let running = run(&lanes, (1..=5).map(watched), 0);
    let first = running.taken();
    // Those that were brought on their way before it wait by now.
    let (told, hears) = channel();
    let task = lanes
        .io()
        .spawn(async move { told.send(()).unwrap() })
        .ok()
        .unwrap();
    hears.recv_timeout(WAIT).unwrap();
    drop(task);
    let mut order = vec![name(&first)];
    complete(first.done);
    order.extend(running.work(4));
    let mut sorted = order.clone();
    sorted[1..].sort_by(|a, b| b.cmp(a));
    assert_eq!(order.len(), 5);
    assert_eq!(order, sorted);
}

#[test]
fn no_more_have_a_turn_than_may() {
    let lanes = lanes();
    let running = run(&lanes, (0..10).map(|n| node(&n.to_string(), &ELSEWHERE)), 0);
    let mut open: Vec<Taken> = (0..3).map(|_| running.taken()).collect();
    assert!(running.turns.try_recv().is_err());
    complete(open.remove(0).done);
    open.push(running.taken());
    // It goes on without its thread.
    open[0].done.waits();
    open.push(running.taken());
    assert!(running.turns.try_recv().is_err());
    open.into_iter().for_each(|taken| complete(taken.done));
    assert_eq!(running.work(5).len(), 5);
}

#[test]
fn a_turn_is_handed_over_again_where_there_was_no_room() {
    let lanes = lanes();
    let running = run(&lanes, chain(3, &ALONE), 2);
    assert_eq!(running.work(3), ["link 0", "link 1", "link 2"]);
    assert_eq!(running.outcome("link 2"), Some(Outcome::Done));
}

#[test]
fn a_refused_turn_fails_a_node_and_a_dropped_one_ends_the_run_as_stopped() {
    let lanes = lanes();
    let running = run(&lanes, [node("a", &ALONE)], 0);
    running.turn().refuse(Reason::new("no threads"));
    assert_eq!(running.outcome("a"), failed("no threads"));
    let running = run(&lanes, [node("a", &ALONE)], 0);
    drop(running.turn());
    let report = running.run.wait().unwrap();
    assert_eq!(report.error, Some(Error::Stopped));
}

#[test]
fn a_node_that_is_dropped_while_it_runs_fails_as_stopped() {
    let lanes = lanes();
    let running = run(&lanes, [node("a", &ALONE)], 0);
    drop(running.taken());
    assert_eq!(running.outcome("a"), Some(Outcome::Failed(Reason::Stopped)));
}

/// Each would be handed over where the turn before it has ended.
#[test]
fn turns_that_find_no_room_on_lanes_that_have_stopped_do_not_recurse() {
    let lanes = lanes();
    let nodes = (0..100_000).map(|n| node(&n.to_string(), &ALONE));
    let running = run(&lanes, nodes, usize::MAX);
    lanes.stop();
    let report = running.run.wait().unwrap();
    assert_eq!(report.error, Some(Error::Stopped));
}

#[test]
fn a_turn_of_a_cancelled_run_is_for_nobody_and_what_runs_is_stopped() {
    let lanes = lanes();
    let running = run(&lanes, (0..3).map(|n| node(&n.to_string(), &ELSEWHERE)), 0);
    let (stopped, hears) = channel();
    let taken = running.taken();
    let tell = stopped.clone();
    taken
        .done
        .stops_by(Box::new(move || tell.send("it ran").unwrap()));
    running.run.cancel();
    assert_eq!(hears.recv_timeout(WAIT), Ok("it ran"));
    taken
        .done
        .stops_by(Box::new(move || stopped.send("too late").unwrap()));
    assert_eq!(hears.recv_timeout(WAIT), Ok("too late"));
    assert!(running.turn().take().is_none());
    assert_eq!(running.run.report().error, Some(Error::Cancelled));
}

#[test]
fn an_attempt_that_timed_out_is_stopped_and_its_node_tried_again() {
    let lanes = lanes();
    let time = Duration::from_millis(20);
    let running = run(
        &lanes,
        [node("a", &ALONE).timeout(time).retries(1, Duration::ZERO)],
        0,
    );
    let (stopped, hears) = channel();
    let first = running.taken();
    first
        .done
        .stops_by(Box::new(move || stopped.send(()).unwrap()));
    assert_eq!(hears.recv_timeout(WAIT), Ok(()));
    drop(first);
    drop(running.taken());
    assert_eq!(running.outcome("a"), Some(Outcome::Failed(Reason::Stopped)));
}

#[test]
fn a_node_that_no_thread_takes_times_out() {
    let lanes = lanes();
    let running = run(
        &lanes,
        [node("a", &ALONE).timeout(Duration::from_millis(20))],
        0,
    );
    let turn = running.turn();
    assert_eq!(
        running.outcome("a"),
        Some(Outcome::Failed(Reason::TimedOut))
    );
    assert!(turn.take().is_none());
}

#[test]
fn a_second_attempt_has_a_turn_of_its_own() {
    let lanes = lanes();
    let running = run(
        &lanes,
        [node("a", &ALONE).hedge(Duration::from_millis(1))],
        0,
    );
    let first = running.taken();
    let second = running.taken();
    complete(second.done);
    let lane = running.run.wait().unwrap().node("a").unwrap().lane;
    assert_eq!(lane, Lane::Foreign("alone"));
    complete(first.done);
}
