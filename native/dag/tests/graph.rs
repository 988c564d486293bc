//! What a graph refuses, what a run gives, and how nodes are skipped, defaulted and expanded.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use dag::{
    Error, Expansion, Graph, Lane, Lanes, Node, Options, Outcome, Output, Reason, Typed, Value,
    picture,
};

const NO_INPUTS: [(&str, Value); 0] = [];

fn lanes() -> Lanes {
    Lanes::start(2, 1000).unwrap()
}

fn constant(name: &str, value: u32) -> Node {
    Node::cpu(name, move |_| Ok(Value::new(value)))
}

fn sum(name: &str) -> Node {
    Node::cpu(name, |given| {
        let parts = given.values().iter().filter_map(Value::get::<u32>);
        Ok(Value::new(parts.sum::<u32>()))
    })
}

fn failing(name: &str) -> Node {
    Node::cpu(name, |_| Err::<Value, _>(Reason::new("no")))
}

#[test]
fn a_name_used_twice_is_refused() {
    let twice = Graph::builder().input("a").node(constant("a", 1)).build();
    assert_eq!(twice.err(), Some(Error::Duplicate("a".to_owned())));
}

#[test]
fn an_unknown_input_is_refused_with_the_node_that_asks_for_it() {
    let unknown = Graph::builder().node(sum("s").inputs(["x"])).build();
    let (node, input) = ("s".to_owned(), "x".to_owned());
    assert_eq!(unknown.err(), Some(Error::UnknownInput { node, input }));
}

#[test]
fn a_cycle_is_refused_with_the_path_that_shows_it() {
    let cyclic = Graph::builder()
        .node(constant("start", 1))
        .node(sum("a").inputs(["start", "c"]))
        .node(sum("b").inputs(["a"]))
        .node(sum("c").inputs(["b"]))
        .node(sum("after").inputs(["c"]))
        .build();
    let path = ["a", "b", "c", "a"].map(str::to_owned).to_vec();
    let found = match cyclic.err() {
        Some(Error::Cycle(found)) => found,
        other => panic!("{other:?}"),
    };
    let start = found.iter().position(|name| name == "a").unwrap();
    let mut turned = found[..3].to_vec();
    turned.rotate_left(start % 3);
    assert_eq!(turned, path[..3]);
    assert_eq!(found.first(), found.last());
    let own = Graph::builder().node(sum("a").inputs(["a"])).build();
    let path = ["a", "a"].map(str::to_owned).to_vec();
    assert_eq!(own.err(), Some(Error::Cycle(path)));
}

#[test]
fn inputs_that_are_missing_or_unknown_are_refused() {
    let graph = Graph::builder().input("a").build().unwrap();
    let lanes = lanes();
    let missing = lanes.run(&graph, NO_INPUTS, Options::default());
    assert_eq!(missing.err(), Some(Error::MissingInput("a".to_owned())));
    let inputs = [("a", Value::absent()), ("b", Value::absent())];
    let unknown = lanes.run(&graph, inputs, Options::default());
    assert_eq!(unknown.err(), Some(Error::UnusedInput("b".to_owned())));
    let inputs = [("a", Value::absent())];
    assert!(lanes.run(&graph, inputs, Options::default()).is_ok());
}

#[test]
fn values_flow_from_inputs_through_both_lanes() {
    let lanes = lanes();
    let io = lanes.io().clone();
    let graph = Graph::builder()
        .input("a")
        .node(sum("left").inputs(["a"]))
        .node(
            Node::io("right", move |given| {
                let io = io.clone();
                async move {
                    io.sleep(Duration::from_millis(1)).await?;
                    Ok(Value::new(given.get::<u32>(0)? * 10))
                }
            })
            .inputs(["a"]),
        )
        .node(sum("both").inputs(["left", "right"]))
        .build()
        .unwrap();
    let run = lanes.run(&graph, [("a", Value::new(4_u32))], Options::default());
    let report = run.unwrap().wait().unwrap();
    assert_eq!(report.get::<u32>("both"), Some(&44));
    assert_eq!(report.node("right").unwrap().lane, Lane::Io);
    assert!(matches!(report.node("both").unwrap().lane, Lane::Cpu(_)));
    let path: Vec<_> = report
        .critical_path()
        .iter()
        .map(|n| n.name.to_string())
        .collect();
    let ended = |name: &str| report.node(name).unwrap().ended;
    let last = ["left", "right"].into_iter().max_by_key(|name| ended(name));
    assert_eq!(path, [last.unwrap(), "both"]);
    for node in &report.nodes {
        assert!(
            node.queued <= node.started && node.started <= node.ended,
            "{node:?}"
        );
    }
}

#[test]
fn typed_nodes_are_wired_by_their_ports() {
    let mut graph = Typed::new();
    let word = graph.input::<String>("word");
    let length = graph.cpu("length", (&word,), |(word,)| Ok(word.len()));
    let odd = graph.cpu_with(
        "odd",
        (&length,),
        |(length,)| Ok(*length),
        |node| node.when(|values| values[0].get::<usize>().is_some_and(|n| n % 2 == 1)),
    );
    let last = graph.io("last", (&length, odd.maybe()), |(length, odd)| async move {
        Ok((*length, odd.is_some()))
    });
    let graph = graph.build().unwrap();
    let lanes = lanes();
    for (given, expected) in [("four", (4, false)), ("seven", (5, true))] {
        let inputs = [("word", Value::new(given.to_owned()))];
        let report = lanes
            .run(&graph, inputs, Options::default())
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(report.of_port(&last).as_deref(), Some(&expected));
    }
}

#[test]
fn a_skipped_node_skips_who_needs_it_and_is_absent_to_who_may_do_without() {
    let graph = Graph::builder()
        .node(constant("never", 1).when(|_| false))
        .node(sum("needs").inputs(["never"]))
        .node(sum("may").maybe(["never", "needs"]))
        .build()
        .unwrap();
    let lanes = lanes();
    let report = lanes
        .run(&graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(
        report.node("needs").unwrap().outcome,
        Some(Outcome::Skipped)
    );
    assert_eq!(report.get::<u32>("may"), Some(&0));
}

#[test]
fn a_long_chain_of_skipped_nodes_does_not_overflow_the_stack() {
    let mut builder = Graph::builder().node(constant("n0", 1).when(|_| false));
    for n in 1..100_000 {
        builder.add(sum(&format!("n{n}")).inputs([format!("n{}", n - 1)]));
    }
    let graph = builder.build().unwrap();
    let lanes = lanes();
    let report = lanes
        .run(&graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
        .unwrap();
    let skipped = |node: &dag::NodeReport| node.outcome == Some(Outcome::Skipped);
    assert!(report.nodes.iter().all(skipped));
}

#[test]
fn a_failure_ends_the_run_unless_the_node_has_a_default() {
    let lanes = lanes();
    let strict = Graph::builder()
        .node(failing("f"))
        .node(sum("s").inputs(["f"]));
    let run = lanes.run(&strict.build().unwrap(), NO_INPUTS, Options::default());
    let (node, reason) = ("f".to_owned(), Reason::new("no"));
    assert_eq!(
        run.unwrap().wait().err(),
        Some(Error::Node { node, reason })
    );
    let mild = Graph::builder()
        .node(failing("f").default(Value::new(5_u32)))
        .node(failing("o").optional())
        .node(sum("s").inputs(["f", "o"]));
    let run = lanes.run(&mild.build().unwrap(), NO_INPUTS, Options::default());
    let report = run.unwrap().wait().unwrap();
    assert_eq!(report.get::<u32>("s"), Some(&5));
    assert_eq!(report.node("f").unwrap().fell_back, Some(Reason::new("no")));
}

#[test]
fn a_panic_is_the_failure_of_its_node_on_either_lane() {
    let lanes = lanes();
    let broken = || -> Result<Value, Reason> { std::panic::resume_unwind(Box::new("bang")) };
    let nodes = [
        Node::cpu("p", move |_| broken()),
        Node::io("p", move |_| async move { broken() }),
        Node::io("p", move |_| std::future::ready(broken())),
    ];
    for node in nodes {
        let graph = Graph::builder().node(node).build().unwrap();
        let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
        let (node, reason) = ("p".to_owned(), Reason::Panicked("bang".to_owned()));
        assert_eq!(run.wait().err(), Some(Error::Node { node, reason }));
    }
}

#[test]
fn a_partial_run_gives_what_a_failure_does_not_concern() {
    let graph = Graph::builder()
        .node(failing("f"))
        .node(sum("lost").inputs(["f"]))
        .node(constant("a", 2))
        .node(sum("kept").inputs(["a"]).maybe(["f"]))
        .build()
        .unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, NO_INPUTS, Options::default().partial());
    let report = run.unwrap().wait().unwrap();
    assert_eq!(report.get::<u32>("kept"), Some(&2));
    assert_eq!(report.node("lost").unwrap().outcome, Some(Outcome::Skipped));
    assert!(matches!(report.error, Some(Error::Node { .. })));
}

#[test]
fn what_no_one_wants_does_not_run() {
    let graph = Graph::builder()
        .node(constant("a", 2))
        .node(failing("unwanted").inputs(["a"]))
        .node(sum("b").inputs(["a"]))
        .build()
        .unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, NO_INPUTS, Options::default().want(["b"]));
    let report = run.unwrap().wait().unwrap();
    assert_eq!(report.get::<u32>("b"), Some(&2));
    assert_eq!(
        report.node("unwanted").unwrap().outcome,
        Some(Outcome::Skipped)
    );
}

/// Asks for a smaller one of itself and adds one, down to zero.
fn counting(depth: u32) -> Node {
    Node::cpu("count", move |_| -> Result<Output, Reason> {
        if depth == 0 {
            return Ok(Value::new(0_u32).into());
        }
        let graph = Graph::builder()
            .node(counting(depth - 1))
            .node(constant("one", 1))
            .node(sum("sum").inputs(["count", "one"]))
            .build()?;
        Ok(Output::More(Expansion {
            graph,
            inputs: Vec::new(),
            result: "sum".to_owned(),
        }))
    })
}

#[test]
fn a_node_may_return_more_nodes_and_their_result_is_its_value() {
    let graph = Graph::builder()
        .node(counting(20))
        .node(sum("s").inputs(["count"]));
    let lanes = lanes();
    let run = lanes.run(&graph.build().unwrap(), NO_INPUTS, Options::default());
    let report = run.unwrap().wait().unwrap();
    assert_eq!(report.get::<u32>("s"), Some(&20));
    assert_eq!(report.get::<u32>("count/count/sum"), Some(&19));
    assert_eq!(report.nodes.len(), 2 + 20 * 3);
}

/// Asks for one that asks, and so on.
fn deep(levels: u32) -> Node {
    Node::cpu("n", move |_| match levels {
        0 => Ok(Value::new(7u32).into()),
        _ => Ok(Output::More(Expansion {
            graph: Graph::builder().node(deep(levels - 1)).build()?,
            inputs: Vec::new(),
            result: "n".to_owned(),
        })),
    })
}

#[test]
fn nodes_may_ask_a_thousand_levels_deep_and_no_deeper() {
    let lanes = lanes();
    let run = |levels| {
        let graph = Graph::builder().node(deep(levels)).build().unwrap();
        let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
        run.wait()
    };
    let report = run(1_000).unwrap();
    assert_eq!(report.get::<u32>("n"), Some(&7));
    for levels in [1_001, 100_000] {
        let error = run(levels).err().unwrap().to_string();
        assert!(
            error.ends_with("nodes ask for more nodes over 1000 levels deep"),
            "{error}"
        );
        // Who has asked, once.
        assert!(error.len() < 200, "{}", error.len());
    }
}

/// Whoever cancels it may have a small stack.
#[test]
fn a_run_with_a_thousand_levels_is_cancelled_and_dropped_on_a_small_stack() {
    let lanes = lanes();
    let (asked, asks) = std::sync::mpsc::channel();
    fn waits(levels: u32, asked: std::sync::mpsc::Sender<()>) -> Node {
        Node::io("n", move |_| {
            let asked = asked.clone();
            async move {
                if levels == 0 {
                    asked.send(()).unwrap_or(());
                    return std::future::pending().await;
                }
                Ok(Output::More(Expansion {
                    graph: Graph::builder().node(waits(levels - 1, asked)).build()?,
                    inputs: Vec::new(),
                    result: "n".to_owned(),
                }))
            }
        })
    }
    let graph = Graph::builder().node(waits(1_000, asked)).build().unwrap();
    let run = lanes
        .run(&graph, NO_INPUTS, Options::default().partial())
        .unwrap();
    asks.recv().unwrap();
    let cancels = move || {
        run.cancel();
        drop(run.wait());
    };
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(cancels).unwrap().join().unwrap();
}

#[test]
fn a_failure_among_the_asked_nodes_fails_the_asking_one() {
    let asking = Node::cpu("ask", |_| {
        Ok(Expansion {
            graph: Graph::builder().node(failing("inner")).build()?,
            inputs: Vec::new(),
            result: "inner".to_owned(),
        })
    });
    let graph = Graph::builder().node(asking).build().unwrap();
    let lanes = lanes();
    let run = lanes.run(&graph, NO_INPUTS, Options::default()).unwrap();
    let reason = Reason::new("node inner: no");
    assert_eq!(
        run.wait().err(),
        Some(Error::Node {
            node: "ask".to_owned(),
            reason
        })
    );
}

#[test]
fn the_pictures_name_every_node() {
    let graph = Graph::builder()
        .node(constant("a \"quoted\" <name>", 1))
        .node(sum("b").inputs(["a \"quoted\" <name>"]))
        .build()
        .unwrap();
    let lanes = lanes();
    let report = lanes
        .run(&graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
        .unwrap();
    let dot = picture::dot(&report);
    assert!(dot.contains("a \\\"quoted\\\" <name>") && dot.contains("n0 -> n1"));
    let svg = picture::svg(&report);
    assert!(svg.contains("&lt;name>") && svg.matches("<rect").count() == 4);
    let trace = picture::chrome_trace(&report);
    assert!(trace.contains("a \\\"quoted\\\" <name>"));
    assert_eq!(trace.matches("\"ph\":\"X\"").count(), 2);
}
