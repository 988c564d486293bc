//! Nodes that run elsewhere.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dag::{Done, Error, Expansion, Graph, Lane, Lanes, Node, Options};
use dag::{Outcome, Place, Reason, Refusal, Value};

const ELSEWHERE: Place = Place {
    name: "elsewhere",
    at_once: 4,
};
const WAIT: Duration = Duration::from_secs(20);

fn lanes() -> Lanes {
    Lanes::start(2, 100).unwrap()
}

/// A node that a thread of its own completes.
fn elsewhere(name: &str, value: u32) -> Node {
    Node::foreign(name, ELSEWHERE, move |given, done| {
        let before = given.get::<u32>(0).copied().unwrap_or(0);
        thread::spawn(move || {
            assert!(done.start());
            done.complete(Ok(Value::new(before + value).into()));
        });
        Ok(Box::new(|| {}))
    })
}

/// A node that waits for the test; `stopped` hears of its end.
fn kept(name: &str, place: &Arc<Mutex<Vec<Done>>>, stopped: &mpsc::Sender<()>) -> Node {
    let (place, stopped) = (place.clone(), stopped.clone());
    Node::foreign(name, ELSEWHERE, move |_, done| {
        place.lock().unwrap().push(done);
        let stopped = stopped.clone();
        Ok(Box::new(move || stopped.send(()).unwrap_or(())))
    })
}

#[test]
fn a_chain_of_foreign_nodes_gives_its_values_on_and_tells_where_they_ran() {
    let graph = Graph::builder()
        .node(elsewhere("a", 1))
        .node(elsewhere("b", 2).inputs(["a"]))
        .node(elsewhere("c", 4).inputs(["b"]).retries(1, Duration::ZERO))
        .build()
        .unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    let report = run.wait().unwrap();
    assert_eq!(report.get::<u32>("c"), Some(&7));
    for name in ["a", "b", "c"] {
        assert_eq!(report.node(name).unwrap().lane, Lane::Foreign("elsewhere"));
    }
}

#[test]
fn a_node_that_panics_as_it_starts_fails_and_the_others_run() {
    let bang = |name| Node::foreign(name, ELSEWHERE, |_, _| panic!("bang"));
    let graph = Graph::builder()
        .node(bang("plain"))
        .node(bang("tried").retries(1, Duration::ZERO))
        .node(elsewhere("fine", 1))
        .node(elsewhere("after", 1).maybe(["plain"]))
        .build()
        .unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default().partial());
    let report = run.unwrap().wait().unwrap();
    let reason = |name| match &report.node(name).unwrap().outcome {
        Some(Outcome::Failed(reason)) => reason.to_string(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(reason("plain"), "panicked: on the way to elsewhere");
    assert_eq!(reason("tried"), "panicked: bang");
    assert_eq!(report.get::<u32>("fine"), Some(&1));
    assert_eq!(report.get::<u32>("after"), Some(&1));
}

fn nothing() -> [(&'static str, Value); 0] {
    []
}

#[test]
fn cancelling_a_run_stops_the_other_side_and_its_late_end_changes_nothing() {
    let (stopped, hears) = mpsc::channel();
    let place = Arc::new(Mutex::new(Vec::new()));
    let graph = Graph::builder()
        .node(kept("slow", &place, &stopped))
        .build()
        .unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    run.cancel();
    hears.recv_timeout(WAIT).unwrap();
    let done = place.lock().unwrap().pop().unwrap();
    assert!(!done.start());
    done.complete(Ok(Value::new(1_u32).into()));
    assert_eq!(
        run.report().node("slow").unwrap().outcome,
        Some(Outcome::Cancelled)
    );
    assert_eq!(run.wait().err(), Some(Error::Cancelled));
}

#[test]
fn cancelling_a_run_stops_the_nodes_that_its_nodes_asked_for() {
    let (stopped, hears) = mpsc::channel();
    let place = Arc::new(Mutex::new(Vec::new()));
    let asked = place.clone();
    let asks = Node::foreign("asks", ELSEWHERE, move |_, done| {
        let inner = Graph::builder().node(kept("inner", &asked, &stopped));
        let more = Expansion {
            graph: inner.build().unwrap(),
            inputs: Vec::new(),
            result: "inner".to_owned(),
        };
        done.complete(Ok(more.into()));
        Ok(Box::new(|| {}))
    });
    let graph = Graph::builder().node(asks).build().unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    // Handed over by whoever completes the asking node: it is there.
    assert_eq!(place.lock().unwrap().len(), 1);
    run.cancel();
    hears.recv_timeout(WAIT).unwrap();
    assert_eq!(
        run.report().node("asks/inner").unwrap().outcome,
        Some(Outcome::Cancelled)
    );
}

#[test]
fn an_attempt_that_timed_out_is_stopped_before_the_next_one() {
    let (stopped, hears) = mpsc::channel();
    let place = Arc::new(Mutex::new(Vec::new()));
    let node = kept("silent", &place, &stopped)
        .timeout(Duration::from_millis(5))
        .retries(2, Duration::ZERO);
    let graph = Graph::builder().node(node).build().unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    let error = run.wait().err();
    let node = "silent".to_owned();
    let reason = Reason::TimedOut;
    assert_eq!(error, Some(Error::Node { node, reason }));
    for _ in 0..3 {
        hears.recv_timeout(WAIT).unwrap();
    }
    assert_eq!(place.lock().unwrap().len(), 3);
}

#[test]
fn a_refused_node_fails_for_that_reason_and_a_dropped_one_as_stopped() {
    let lanes = lanes();
    let reason_of = |node: Node| {
        let graph = Graph::builder().node(node).build().unwrap();
        let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
        match run.wait().err() {
            Some(Error::Node { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let refused = Node::foreign("n", ELSEWHERE, |_, done| {
        Err(Refusal::Fails(done, Reason::new("full")))
    });
    assert_eq!(reason_of(refused), Reason::new("full"));
    let dropped = Node::foreign("n", ELSEWHERE, |_, done| {
        drop(done);
        Ok(Box::new(|| {}))
    });
    assert_eq!(reason_of(dropped), Reason::Stopped);
    let own = Node::foreign("n", ELSEWHERE, |_, done| {
        done.complete(Err(Reason::foreign(42_u8)));
        Ok(Box::new(|| {}))
    });
    let Reason::Foreign(cause) = reason_of(own) else {
        panic!("not its own reason")
    };
    assert_eq!(cause.get::<u8>(), Some(&42));
}

#[test]
fn a_long_chain_of_refusals_with_defaults_does_not_recurse() {
    let mut builder = Graph::builder();
    for n in 0..100_000 {
        let name = n.to_string();
        let node = Node::foreign(&name, ELSEWHERE, |_, done| {
            Err(Refusal::Fails(done, Reason::new("full")))
        });
        let node = node.default(Value::new(n));
        builder.add(match n {
            0 => node,
            _ => node.inputs([(n - 1).to_string()]),
        });
    }
    let graph = builder.build().unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    assert_eq!(run.wait().unwrap().get::<i32>("99999"), Some(&99_999));
}

#[test]
fn what_comes_after_a_run_is_told_once_what_it_gave() {
    let graph = Graph::builder().node(elsewhere("a", 1)).build().unwrap();
    let lanes = lanes();
    let (tell, told) = mpsc::channel();
    let run = lanes.run_then(&graph, nothing(), Options::default(), move |result| {
        tell.send(result.unwrap().get::<u32>("a").copied()).unwrap();
    });
    assert_eq!(told.recv_timeout(WAIT).unwrap(), Some(1));
    assert!(run.unwrap().has_ended());
    assert!(told.recv().is_err());
}

/// `count` nodes that are kept by the test, each of which sends its `Done`.
fn wide(count: usize, shape: impl Fn(Node) -> Node) -> (Graph, mpsc::Receiver<Done>) {
    let (send, here) = mpsc::channel();
    let mut builder = Graph::builder();
    for n in 0..count {
        let send = send.clone();
        let node = Node::foreign(&n.to_string(), ELSEWHERE, move |_, done| {
            send.send(done).unwrap();
            Ok(Box::new(|| {}))
        });
        builder.add(shape(node));
    }
    (builder.build().unwrap(), here)
}

#[test]
fn of_a_wide_graph_only_so_many_nodes_are_at_a_place_and_all_have_their_turn() {
    let with_policy = |node: Node| node.retries(1, Duration::ZERO);
    let plain = |node: Node| node;
    for (graph, here) in [wide(1000, plain), wide(1000, with_policy)] {
        let lanes = lanes();
        let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
        let mut inside: Vec<Done> = (0..4).map(|_| here.recv_timeout(WAIT).unwrap()).collect();
        for _ in 4..1000 {
            // Nobody comes as long as nobody leaves.
            assert!(here.try_recv().is_err());
            inside.remove(0).complete(Ok(Value::absent().into()));
            inside.push(here.recv_timeout(WAIT).unwrap());
        }
        for done in inside {
            done.complete(Ok(Value::absent().into()));
        }
        let report = run.wait().unwrap();
        let is_done = |node: &dag::NodeReport| node.outcome == Some(Outcome::Done);
        assert!(report.nodes.iter().all(is_done));
    }
}

#[test]
fn a_node_that_only_waits_gives_its_turn_to_the_next() {
    let (graph, here) = wide(100, |node| node);
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut done = here.recv_timeout(WAIT).unwrap();
        done.waits();
        waiting.push(done);
    }
    for done in waiting {
        done.complete(Ok(Value::absent().into()));
    }
    assert!(run.wait().is_ok());
}

#[test]
fn cancelling_a_wide_run_hands_nothing_over_any_more() {
    let (graph, here) = wide(1000, |node| node);
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default().partial());
    let run = run.unwrap();
    let inside: Vec<Done> = (0..4).map(|_| here.recv_timeout(WAIT).unwrap()).collect();
    run.cancel();
    let report = run.wait().unwrap();
    let cancelled = |node: &dag::NodeReport| node.outcome == Some(Outcome::Cancelled);
    assert!(report.nodes.iter().all(cancelled));
    drop(inside);
    // Whoever was to come would come on the loop, before this.
    let marker = lanes.io().spawn(async {}).ok().unwrap();
    assert!(reactor::block_on(marker).is_ok());
    assert!(here.try_recv().is_err());
}

#[test]
fn the_way_to_stop_a_node_is_used_once_though_it_came_to_its_turn_by_waiting() {
    // Nodes end while others are still admitted: a turn may be free before its waiter is kept.
    let (send, here) = mpsc::channel::<Done>();
    thread::spawn(move || {
        for done in here {
            done.complete(Ok(Value::absent().into()));
        }
    });
    let stops: Arc<Vec<AtomicUsize>> = Arc::new((0..20_000).map(|_| AtomicUsize::new(0)).collect());
    let mut builder = Graph::builder();
    for n in 0..stops.len() {
        let (send, stops) = (send.clone(), stops.clone());
        builder.add(Node::foreign(&n.to_string(), ELSEWHERE, move |_, done| {
            send.send(done).unwrap();
            let stops = stops.clone();
            Ok(Box::new(move || {
                stops[n].fetch_add(1, Ordering::SeqCst);
            }))
        }));
    }
    let graph = builder.build().unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
    run.wait().unwrap();
    // The last of them may still be on its way.
    lanes.stop();
    let wrong = |stops: &AtomicUsize| stops.load(Ordering::SeqCst) != 1;
    assert_eq!(stops.iter().position(wrong), None);
}

#[test]
fn a_place_without_room_is_asked_again_until_it_has_some() {
    for retries in [0, 1] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let node = Node::foreign("n", ELSEWHERE, move |_, done| {
            if count.fetch_add(1, Ordering::SeqCst) < 5 {
                return Err(Refusal::Busy(done));
            }
            done.start();
            done.complete(Ok(Value::new(7_u32).into()));
            Ok(Box::new(|| {}))
        });
        let node = node.retries(retries, Duration::ZERO);
        let graph = Graph::builder().node(node).build().unwrap();
        let lanes = lanes();
        let run = lanes.run(&graph, nothing(), Options::default()).unwrap();
        assert_eq!(run.wait().unwrap().get::<u32>("n"), Some(&7));
        assert_eq!(asked.load(Ordering::SeqCst), 6);
    }
}
