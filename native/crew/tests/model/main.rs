//! Every interleaving of a few threads, checked by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p crew --release`. Without the flag: real threads, many times.

mod jobs;
mod threads;
mod waiting;

use std::time::Duration;

use crew::sync::Arc;
use crew::sync::atomic::{AtomicUsize, Ordering};
use crew::{Crew, Member, Plan, Turn};

#[cfg(loom)]
fn check(body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    // A standby looks again and again: its yields count as branches.
    model.max_branches = 5_000;
    model.check(body);
}

#[cfg(not(loom))]
fn check(body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..300 {
        body();
    }
}

fn crew(size: usize, max_queue: usize) -> Arc<Crew<usize>> {
    crew_of(size, max_queue, false)
}

fn crew_of(size: usize, max_queue: usize, parallel: bool) -> Arc<Crew<usize>> {
    Arc::new(Crew::new(Plan {
        size,
        max_threads: size,
        max_queue,
        parallel,
        start: Box::new(|| {}),
    }))
}

/// A thread of the crew: adds up the jobs it takes until the crew is closed.
fn work(crew: &Crew<usize>, sum: &AtomicUsize) {
    take_part(crew, sum, false);
}

/// One that was asked for: until nobody needs it.
fn serve(crew: &Crew<usize>, sum: &AtomicUsize) {
    take_part(crew, sum, true);
}

fn take_part(crew: &Crew<usize>, sum: &AtomicUsize, surplus: bool) {
    let me = Arc::new(Member::current());
    crew.join(&me, surplus);
    while crew.follow(&me) == Turn::Lead {
        while crew.may_take(&me) {
            match crew.pop() {
                Some(job) => {
                    crew.starts(&me);
                    sum.fetch_add(job, Ordering::SeqCst);
                    crew.ends(&me);
                }
                None => {
                    crew.idle(&me, Duration::ZERO);
                }
            }
        }
    }
    crew.leave(&me);
}
