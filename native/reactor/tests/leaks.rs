//! Loops that have ended leave nothing in the process. A test binary of its own: it counts.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::future::pending;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use reactor::TaskLoop;

fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}"))
        .unwrap()
        .count()
}

#[test]
fn loops_stopped_or_destroyed_by_their_own_work_leave_no_thread_and_no_descriptor() {
    let before = (count("fd"), count("task"));
    for n in 0..200 {
        let tasks = TaskLoop::start("test-leak", 10).unwrap();
        let handle = tasks.handle().clone();
        let sleeping = handle.sleep(Duration::from_secs(1000));
        handle.spawn(sleeping).ok().unwrap().detach();
        handle.spawn(pending::<()>()).ok().unwrap().detach();
        if n % 2 == 0 {
            tasks.stop();
            continue;
        }
        let (tx, rx) = mpsc::channel::<()>();
        let call = move || {
            drop(tasks);
            drop(tx);
        };
        handle.post(call).ok().unwrap();
        assert!(rx.recv().is_err());
    }
    // A thread that ends by itself has told so a little before it is gone.
    let began = Instant::now();
    while (count("fd"), count("task")) != before {
        assert!(began.elapsed() < Duration::from_secs(20), "{before:?}");
        std::thread::yield_now();
    }
}
