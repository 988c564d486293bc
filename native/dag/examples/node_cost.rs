//! What the scheduler costs: CPU per empty node in wide and deep graphs, next to a hand-over by a
//! channel; how CPU nodes scale; and whether one of a thousand runs starves.
//!
//! `cargo run --release -p dag --example node_cost`
#![allow(clippy::unwrap_used)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use dag::{Graph, Lanes, Node, Options, Value};
use rustix::time::{ClockId, clock_gettime};

const NO_INPUTS: [(&str, Value); 0] = [];
const NODES: u32 = 100_000;

fn main() {
    println!("{:<44} {:>10}", "", "CPU µs");
    let wide = graph(|n| (n > 0).then_some(0));
    let deep = graph(|n| n.checked_sub(1));
    for (name, graph) in [
        ("wide graph, per node", &wide),
        ("deep graph, per node", &deep),
    ] {
        let lanes = Lanes::start(2, 10).unwrap();
        show(name, cpu_of(|| drop(run(&lanes, graph))) / NODES);
    }
    show(
        "channel to a thread and back, per message",
        hand_over() / NODES,
    );
    scaling();
    fairness();
}

fn show(name: &str, cpu: Duration) {
    println!("{name:<44} {:>10.2}", cpu.as_secs_f64() * 1e6);
}

fn cpu_of(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let began = now();
    work();
    now() - began
}

fn run(lanes: &Lanes, graph: &Graph) -> dag::Report {
    lanes
        .run(graph, NO_INPUTS, Options::default())
        .unwrap()
        .wait()
        .unwrap()
}

fn graph(parent: impl Fn(u32) -> Option<u32>) -> Graph {
    let mut builder = Graph::builder();
    for n in 0..NODES {
        let node = Node::cpu(&n.to_string(), |_| Ok(Value::absent()));
        builder.add(node.inputs(parent(n).map(|n| n.to_string())));
    }
    builder.build().unwrap()
}

fn hand_over() -> Duration {
    let (to, from_here) = mpsc::channel::<u32>();
    let (back, from_there) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for n in from_here {
            back.send(n).unwrap();
        }
    });
    let cpu = cpu_of(|| {
        for n in 0..NODES {
            to.send(n).unwrap();
            from_there.recv().unwrap();
        }
    });
    drop(to);
    thread.join().unwrap();
    cpu
}

fn scaling() {
    let spin = |_: &dag::Given| {
        // Work, not time: two threads on one core must not look like two cores.
        let mut sum = 0_u64;
        for n in 0..100_000_u64 {
            sum = std::hint::black_box(sum ^ n);
        }
        Ok(Value::new(sum))
    };
    let mut builder = Graph::builder();
    for n in 0..2000 {
        builder.add(Node::cpu(&n.to_string(), spin));
    }
    let graph = builder.build().unwrap();
    let times = [1, 2].map(|threads| {
        let lanes = Lanes::start(threads, 10).unwrap();
        let began = Instant::now();
        run(&lanes, &graph);
        began.elapsed().as_secs_f64()
    });
    println!(
        "2 threads against 1, CPU nodes: {:.2} times",
        times[0] / times[1]
    );
}

fn fairness() {
    let lanes = Lanes::start(2, 1000).unwrap();
    let mut builder = Graph::builder();
    for n in 0..20_u32 {
        let work = |_: &dag::Given| {
            Ok(Value::new(
                (0..2000_u64).map(std::hint::black_box).sum::<u64>(),
            ))
        };
        let node = Node::cpu(&n.to_string(), work);
        builder.add(node.inputs(n.checked_sub(4).map(|n| n.to_string())));
    }
    let graph = builder.build().unwrap();
    let runs: Vec<_> = (0..1000)
        .map(|_| lanes.run(&graph, NO_INPUTS, Options::default()).unwrap())
        .collect();
    let ended = |report: dag::Report| report.nodes.iter().filter_map(|node| node.ended).max();
    let mut times: Vec<_> = runs
        .into_iter()
        .filter_map(|run| ended(run.wait().unwrap()))
        .collect();
    times.sort_unstable();
    let millis = |place: usize| times[place] as f64 / 1e6;
    let (p50, p90) = (millis(500), millis(900));
    println!("1000 runs of 20 nodes at once: p50 {p50:.1} ms, p90 {p90:.1} ms");
}
