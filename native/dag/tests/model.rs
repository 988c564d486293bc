//! Random graphs against a model: whatever happens, every node ends exactly once as done, failed,
//! skipped or cancelled, and as its inputs and its function say.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dag::{Error, Graph, Lanes, Limit, NoTurn, Node, Options, Outcome, Place};
use dag::{Queue, Reason, Refusal, Turn, Value};
use proptest::prelude::*;

const NO_INPUTS: [(&str, Value); 0] = [];
const LONG: Duration = Duration::from_secs(30);
const ELSEWHERE: Place = Place {
    name: "elsewhere",
    at_once: 2,
};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Works,
    Fails,
    FailsWithDefault,
    FailsOnce,
    Panics,
    Skips,
    Waits,
    TimesOut,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    Cpu,
    Io,
    Elsewhere,
    Queued,
}

/// How a run is ended before its time, and after how many microseconds.
#[derive(Clone, Copy, Debug)]
enum Early {
    Never,
    Cancelled(u64),
    Dropped(u64),
    Deadline(u64),
    LanesStop(u64),
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        8 => Just(Way::Works),
        1 => Just(Way::Fails),
        1 => Just(Way::FailsWithDefault),
        1 => Just(Way::FailsOnce),
        1 => Just(Way::Panics),
        1 => Just(Way::Skips),
        2 => Just(Way::Waits),
        1 => Just(Way::TimesOut),
    ]
}

fn on() -> impl Strategy<Value = On> {
    prop_oneof![
        Just(On::Cpu),
        Just(On::Io),
        Just(On::Elsewhere),
        Just(On::Queued)
    ]
}

fn early() -> impl Strategy<Value = Early> {
    prop_oneof![
        2 => Just(Early::Never),
        2 => (0_u64..600).prop_map(Early::Cancelled),
        1 => (0_u64..600).prop_map(Early::Dropped),
        1 => (0_u64..600).prop_map(Early::Deadline),
        2 => (0_u64..600).prop_map(Early::LanesStop),
    ]
}

/// The function of a node, by what it does.
fn answer(way: Way, ran: &AtomicUsize) -> Result<Value, Reason> {
    match (way, ran.fetch_add(1, Ordering::SeqCst)) {
        (Way::Fails | Way::FailsWithDefault, _) | (Way::FailsOnce, 0) => Err(Reason::new("no")),
        (Way::Panics, _) => std::panic::resume_unwind(Box::new("bang")),
        _ => Ok(Value::absent()),
    }
}

fn body(lanes: &Lanes, name: &str, way: Way, on: On, ran: Arc<AtomicUsize>) -> Node {
    let waits = matches!(way, Way::Waits | Way::TimesOut);
    match on {
        On::Cpu if !waits => Node::cpu(name, move |_| answer(way, &ran)),
        // A panic is caught on our own lanes; what runs elsewhere says itself how it ended.
        On::Elsewhere if !waits && way != Way::Panics => {
            Node::foreign(name, ELSEWHERE, move |_, done| {
                if is_full() {
                    return Err(Refusal::Busy(done));
                }
                let ran = ran.clone();
                thread::spawn(move || {
                    if done.start() {
                        done.complete(answer(way, &ran).map(Into::into));
                    }
                });
                Ok(Box::new(|| {}))
            })
        }
        On::Queued if !waits && way != Way::Panics => Node::queued(name, &QUEUE, Work { way, ran }),
        _ => {
            let clock = lanes.io().clone();
            Node::io(name, move |_| {
                let (clock, ran) = (clock.clone(), ran.clone());
                async move {
                    match way {
                        Way::Waits => clock.sleep(Duration::from_micros(300)).await?,
                        Way::TimesOut => pending::<()>().await,
                        _ => {}
                    }
                    answer(way, &ran)
                }
            })
        }
    }
}

/// The function of a node of the queue.
struct Work {
    way: Way,
    ran: Arc<AtomicUsize>,
}

static QUEUE: Queue = Queue {
    name: "queue",
    at_once: 2,
    enter,
};

/// Each turn has a thread, which may come to it when all is over.
fn enter(turn: Turn) -> Result<(), NoTurn> {
    if is_full() {
        return Err(NoTurn::Busy(turn));
    }
    thread::spawn(move || {
        if let Some(taken) = turn.take() {
            let work = taken.function::<Work>().unwrap();
            let answered = answer(work.way, &work.ran);
            taken.done.complete(answered.map(Into::into));
        }
    });
    Ok(())
}

/// Every third hand-over finds no room.
fn is_full() -> bool {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    COUNT.fetch_add(1, Ordering::SeqCst) % 3 == 2
}

fn shaped(node: Node, way: Way, limit: Option<&Limit>) -> Node {
    let node = match limit {
        Some(limit) => node.limit(limit),
        None => node,
    };
    match way {
        Way::Skips => node.when(|_| false),
        Way::TimesOut => node.timeout(Duration::from_micros(500)),
        Way::FailsOnce => node.retries(1, Duration::ZERO),
        Way::FailsWithDefault => node.optional(),
        _ => node,
    }
}

fn spin(micros: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_node_ends_exactly_once_and_as_the_model_says(
        nodes in proptest::collection::vec(
            (way(), on(), any::<u32>(), any::<bool>(), any::<bool>()), 1..24),
        partial: bool,
        early in early(),
    ) {
        let lanes = Lanes::start(2, 10).unwrap();
        let limit = Limit::new(2);
        let mut builder = Graph::builder();
        let mut counts = Vec::new();
        for (n, (way, on, edges, maybe, limited)) in nodes.iter().enumerate() {
            let ran = Arc::new(AtomicUsize::new(0));
            let parents = (0..n).filter(|p| p < &32 && edges >> p & 1 == 1 && edges >> (p / 2) & 1 == 0);
            let parents: Vec<_> = parents.map(|p| format!("n{p}")).collect();
            let node = body(&lanes, &format!("n{n}"), *way, *on, ran.clone());
            let node = shaped(node, *way, limited.then_some(&limit));
            let node = node.weight(f64::from(edges % 4 + 1));
            builder.add(if *maybe { node.maybe(parents) } else { node.inputs(parents) });
            counts.push(ran);
        }
        let graph = builder.build().unwrap();
        let mut options = match early {
            Early::Deadline(micros) => Options::default().deadline(Duration::from_micros(micros)),
            _ => Options::default().deadline(LONG),
        };
        if partial {
            options = options.partial();
        }
        let (tell, told) = std::sync::mpsc::channel();
        let run = lanes.run_then(&graph, NO_INPUTS, options, move |result| tell.send(result).unwrap()).unwrap();
        match early {
            Early::Never | Early::Deadline(_) => {}
            Early::Cancelled(micros) => {
                spin(micros);
                run.cancel();
            }
            Early::LanesStop(micros) => {
                spin(micros);
                lanes.stop();
            }
            Early::Dropped(micros) => {
                spin(micros);
                drop(run);
                prop_assert!(told.recv_timeout(LONG).is_ok());
                prop_assert!(told.recv().is_err(), "told twice");
                return Ok(());
            }
        }
        reactor::block_on(run.ended());
        prop_assert!(told.recv_timeout(LONG).is_ok());
        prop_assert!(told.recv().is_err(), "told twice");
        let report = run.report();
        let outcome = |n: usize| report.nodes[n].outcome.clone().unwrap();
        for (n, (way, _, _, maybe, _)) in nodes.iter().enumerate() {
            let most = if *way == Way::FailsOnce { 2 } else { 1 };
            prop_assert!(counts[n].load(Ordering::SeqCst) <= most);
            let lost = report.nodes[n].parents.iter().any(|p| outcome(*p) != Outcome::Done);
            let expected = match way {
                _ if lost && !maybe => Outcome::Skipped,
                Way::Skips => Outcome::Skipped,
                Way::Fails => Outcome::Failed(Reason::new("no")),
                Way::Panics => Outcome::Failed(Reason::Panicked("bang".to_owned())),
                Way::TimesOut => Outcome::Failed(Reason::TimedOut),
                Way::Works | Way::Waits | Way::FailsOnce | Way::FailsWithDefault => Outcome::Done,
            };
            let ended = outcome(n);
            let early = ended == Outcome::Cancelled && report.error.is_some();
            // A lane that stops under an attempt fails it, or gives it its default.
            let stopped = report.error == Some(Error::Stopped)
                || matches!(&report.error, Some(Error::Node { reason: Reason::Stopped, .. }));
            let stopped = stopped && matches!(ended, Outcome::Failed(_) | Outcome::Done);
            prop_assert!(ended == expected || early || stopped, "n{} {:?} {:?} {:?}", n, ended, expected, report.error);
        }
    }
}
