//! Time, failure and the end: timeouts, retries, hedges, limits, deadlines, cancelling, stopping.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use dag::{Error, Graph, Lanes, Limit, Node, Options, Outcome, Reason, Value};

const NO_INPUTS: [(&str, Value); 0] = [];
const SHORT: Duration = Duration::from_millis(5);

fn lanes() -> Lanes {
    Lanes::start(2, 2000).unwrap()
}

fn never(name: &str) -> Node {
    Node::io(name, |_| pending::<Result<Value, Reason>>())
}

fn one(lanes: &Lanes, node: Node) -> Result<dag::Report, Error> {
    let graph = Graph::builder().node(node).build().unwrap();
    lanes
        .run(&graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
}

fn timed_out(node: &str) -> Option<Error> {
    let reason = Reason::TimedOut;
    Some(Error::Node {
        node: node.to_owned(),
        reason,
    })
}

#[test]
fn a_node_that_never_ends_times_out_on_either_lane() {
    let lanes = lanes();
    assert_eq!(one(&lanes, never("n").timeout(SHORT)).err(), timed_out("n"));
    // Whether it was running or still queued when its time was over.
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let left = std::sync::Mutex::new(left);
    let slow = Node::cpu("n", move |_| {
        let _ = left.lock().unwrap().recv();
        Ok(Value::absent())
    });
    assert_eq!(one(&lanes, slow.timeout(SHORT)).err(), timed_out("n"));
    drop(leave);
}

#[test]
fn a_failing_node_is_tried_again_as_often_as_it_asks() {
    for (retries, works) in [(2, true), (1, false)] {
        let lanes = lanes();
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = tries.clone();
        let node = Node::cpu("n", move |_| match counted.fetch_add(1, Ordering::SeqCst) {
            2 => Ok(Value::new(7_u32)),
            _ => Err(Reason::new("not yet")),
        });
        let began = Instant::now();
        let result = one(&lanes, node.retries(retries, SHORT));
        assert_eq!(result.is_ok(), works);
        assert_eq!(tries.load(Ordering::SeqCst), retries as usize + 1);
        // SHORT, then twice that.
        let least = SHORT * if retries == 2 { 3 } else { 1 };
        assert!(began.elapsed() >= least);
    }
}

#[test]
fn a_slow_read_is_hedged_and_the_first_answer_counts() {
    let lanes = lanes();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let node = Node::io("n", move |_| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number == 0 {
                pending::<()>().await;
            }
            Ok(Value::new(number))
        }
    });
    let report = one(&lanes, node.hedge(SHORT)).unwrap();
    assert_eq!(report.get::<usize>("n"), Some(&1));
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[test]
fn no_more_than_the_limit_run_at_once_and_all_run() {
    let lanes = lanes();
    let limit = Limit::new(3);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut builder = Graph::builder();
    for n in 0..60 {
        let (io, now, most) = (lanes.io().clone(), now.clone(), most.clone());
        let node = Node::io(&format!("n{n}"), move |_| {
            let (io, now, most) = (io.clone(), now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                io.sleep(Duration::from_micros(200)).await?;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(Value::absent())
            }
        });
        builder.add(node.limit(&limit));
    }
    let graph = builder.build().unwrap();
    lanes
        .run(&graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[test]
fn a_run_past_its_deadline_gives_what_there_is_if_asked() {
    let lanes = lanes();
    let done = Node::cpu("done", |_| Ok(Value::new(1_u32)));
    let graph = Graph::builder()
        .node(done)
        .node(never("n"))
        .build()
        .unwrap();
    let late = Options::default().deadline(SHORT);
    let run = lanes.run(&graph, NO_INPUTS, late).unwrap();
    assert_eq!(run.wait().err(), Some(Error::Deadline));
    // On a busy machine the short node needs longer, too.
    let mut time = SHORT;
    loop {
        let options = Options::default().deadline(time).partial();
        let report = lanes
            .run(&graph, NO_INPUTS, options)
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(report.error, Some(Error::Deadline));
        assert_eq!(report.node("n").unwrap().outcome, Some(Outcome::Cancelled));
        if report.get::<u32>("done") == Some(&1) {
            break;
        }
        time *= 2;
    }
}

#[test]
fn cancelling_reaches_a_thousand_pending_reads_and_every_queued_node() {
    let lanes = Lanes::start(1, 10).unwrap();
    let (held, hold) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (inside, release) = (held.clone(), hold.clone());
    let ran = Arc::new(AtomicUsize::new(0));
    let living = Arc::new(());
    let mut builder = Graph::builder().node(Node::cpu("holds", move |_| {
        inside.wait();
        release.wait();
        Ok(Value::absent())
    }));
    for n in 0..1000 {
        let kept = living.clone();
        builder.add(Node::io(&format!("read {n}"), move |_| {
            let kept = kept.clone();
            async move {
                let _kept = kept;
                pending::<Result<Value, Reason>>().await
            }
        }));
        let ran = ran.clone();
        builder.add(Node::cpu(&format!("queued {n}"), move |_| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(Value::absent())
        }));
    }
    let graph = builder.build().unwrap();
    let run = lanes
        .run(&graph, NO_INPUTS, Options::default().partial())
        .unwrap();
    held.wait();
    let before = ran.load(Ordering::SeqCst);
    run.cancel();
    let report = run.wait().unwrap();
    assert_eq!(report.error, Some(Error::Cancelled));
    assert!(report.nodes.iter().all(|node| node.outcome.is_some()));
    hold.wait();
    lanes.stop();
    assert_eq!(ran.load(Ordering::SeqCst), before);
    // One for each node's function; none is left of the futures.
    assert_eq!(Arc::strong_count(&living), 1001);
}

#[test]
fn a_run_whose_lanes_stop_ends_as_stopped() {
    let lanes = lanes();
    let graph = Graph::builder().node(never("n")).build().unwrap();
    let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
    lanes.stop();
    assert_eq!(run.wait().err(), Some(Error::Stopped));
    let late = lanes.run(&graph, NO_INPUTS, Options::default());
    assert_eq!(late.err(), Some(Error::Stopped));
}

#[test]
fn nodes_that_are_queued_when_the_lanes_stop_end_without_running() {
    let lanes = Lanes::start(1, 10).unwrap();
    let (held, hold) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (inside, release) = (held.clone(), hold.clone());
    let mut builder = Graph::builder().node(Node::cpu("holds", move |given| {
        inside.wait();
        release.wait();
        // The loop has ended by now, and with it the run of the waiting node.
        while !given.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(Value::absent())
    }));
    builder.add(never("waits"));
    for n in 0..100 {
        builder.add(Node::cpu(&format!("queued {n}"), |_| Ok(Value::absent())));
    }
    let graph = builder.build().unwrap();
    let run = lanes
        .run(&graph, NO_INPUTS, Options::default().partial())
        .unwrap();
    held.wait();
    std::thread::scope(|scope| {
        scope.spawn(|| lanes.stop());
        hold.wait();
    });
    let report = run.wait().unwrap();
    assert_eq!(report.error, Some(Error::Stopped));
    let cancelled = |node: &dag::NodeReport| node.outcome == Some(Outcome::Cancelled);
    assert!(report.nodes.iter().skip(1).all(cancelled));
}

#[test]
fn a_run_above_the_bound_is_refused_and_admitted_again_later() {
    let lanes = Lanes::start(1, 1).unwrap();
    let graph = Graph::builder().node(never("n")).build().unwrap();
    let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
    let full = lanes.run(&graph, NO_INPUTS, Options::default());
    assert_eq!(full.err(), Some(Error::Full));
    drop(run);
    assert!(lanes.run(&graph, NO_INPUTS, Options::default()).is_ok());
}

#[test]
fn a_thousand_runs_share_the_lanes() {
    let lanes = lanes();
    let mut builder = Graph::builder().input("a");
    let mut before = "a".to_owned();
    for n in 0..20 {
        let name = format!("n{n}");
        let node = match n % 4 {
            3 => Node::io(&name, |given| async move {
                Ok(Value::new(given.get::<usize>(0)? + 1))
            }),
            _ => Node::cpu(&name, |given| Ok(Value::new(given.get::<usize>(0)? + 1))),
        };
        builder.add(node.inputs([before]));
        before = name;
    }
    let graph = builder.build().unwrap();
    let runs: Vec<_> = (0..1000_usize)
        .map(|n| {
            lanes
                .run(&graph, [("a", Value::new(n))], Options::default())
                .unwrap()
        })
        .collect();
    for (n, run) in runs.into_iter().enumerate() {
        assert_eq!(run.wait().unwrap().get::<usize>("n19"), Some(&(n + 20)));
    }
}
