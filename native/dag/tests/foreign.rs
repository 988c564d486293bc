//! Nodes that run elsewhere.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dag::{Done, Error, Graph, Lane, Lanes, Node, Options, Outcome, Reason, Refusal, Value};

fn lanes() -> Lanes {
    Lanes::start(2, 100).unwrap()
}

/// A node that a thread of its own completes.
fn elsewhere(name: &str, value: u32) -> Node {
    Node::foreign(name, "elsewhere", move |given, done| {
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
    Node::foreign(name, "elsewhere", move |_, done| {
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
    hears.recv_timeout(Duration::from_secs(20)).unwrap();
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
        hears.recv_timeout(Duration::from_secs(20)).unwrap();
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
    let refused = Node::foreign("n", "x", |_, done| Err(Refusal(done, Reason::new("full"))));
    assert_eq!(reason_of(refused), Reason::new("full"));
    let dropped = Node::foreign("n", "x", |_, done| {
        drop(done);
        Ok(Box::new(|| {}))
    });
    assert_eq!(reason_of(dropped), Reason::Stopped);
    let own = Node::foreign("n", "x", |_, done| {
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
        let node = Node::foreign(&name, "x", |_, done| {
            Err(Refusal(done, Reason::new("full")))
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
    let wait = Duration::from_secs(20);
    assert_eq!(told.recv_timeout(wait).unwrap(), Some(1));
    assert!(run.unwrap().has_ended());
    assert!(told.recv().is_err());
}
