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
const SPINS: u32 = 1000;
const ROUNDS: usize = 9;

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

/// Work, not time: two threads on one core must not look like two cores.
fn spin() -> u64 {
    let mut sum = 0_u64;
    for n in 0..100_000_u64 {
        sum = std::hint::black_box(sum ^ n);
    }
    sum
}

/// CPU nodes on one thread and on two; and, what the machine can do, two plain threads that share
/// the same work. The best of several rounds each: others may be at work here, too.
fn scaling() {
    let mut builder = Graph::builder();
    for n in 0..SPINS {
        builder.add(Node::cpu(&n.to_string(), |_| Ok(Value::new(spin()))));
    }
    let graph = builder.build().unwrap();
    let pools = [1, 2].map(|threads| Lanes::start(threads, 10).unwrap());
    let mut best = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        let [one, two] = [&pools[0], &pools[1]].map(|lanes| seconds(|| drop(run(lanes, &graph))));
        for (best, time) in best.iter_mut().zip([one, two, seconds(plain_threads)]) {
            *best = best.min(time);
        }
    }
    println!(
        "2 threads against 1, CPU nodes: {:.2} times",
        best[0] / best[1]
    );
    println!("2 plain threads against 1: {:.2} times", best[0] / best[2]);
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn plain_threads() {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..SPINS / 2).map(|_| spin()).fold(0, |all, one| all ^ one));
        }
    });
}

/// The times of the runs, shortest first.
fn fairness() {
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
    let lanes = Lanes::start(2, 1000).unwrap();
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| thousand(&lanes, &graph)).collect();
    rounds.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (p50, p90) = rounds[ROUNDS / 2];
    println!("1000 runs of 20 nodes at once: p50 {p50:.1} ms, p90 {p90:.1} ms");
}

fn thousand(lanes: &Lanes, graph: &Graph) -> (f64, f64) {
    let runs: Vec<_> = (0..1000)
        .map(|_| lanes.run(graph, NO_INPUTS, Options::default()).unwrap())
        .collect();
    let ended = |report: dag::Report| report.nodes.iter().filter_map(|node| node.ended).max();
    let mut times: Vec<_> = runs
        .into_iter()
        .filter_map(|run| ended(run.wait().unwrap()))
        .collect();
    times.sort_unstable();
    let millis = |place: usize| times[place] as f64 / 1e6;
    (millis(500), millis(900))
}
