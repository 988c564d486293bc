//! The life of a loop of tasks, row by row: its own thread, posting both ways, stopping from any
//! thread and from its own, destroyed by its own work; and what futures find on it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::future::pending;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use reactor::{Cancelled, Refused, Stopped, TaskLoop, Watch, block_on, clock};

const LONG: Duration = Duration::from_secs(20);

fn start() -> TaskLoop {
    TaskLoop::start("test-tasks", 1000).unwrap()
}

/// Counts the values that live.
struct Guard(Arc<AtomicUsize>);

impl Guard {
    fn new(living: &Arc<AtomicUsize>) -> Self {
        living.fetch_add(1, Ordering::SeqCst);
        Guard(living.clone())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn work_runs_on_a_thread_of_its_own() {
    let tasks = start();
    let (tx, rx) = mpsc::channel();
    tasks
        .handle()
        .post(move || tx.send(thread::current().id()).unwrap())
        .ok()
        .unwrap();
    assert_ne!(rx.recv_timeout(LONG).unwrap(), thread::current().id());
    assert!(!tasks.is_here());
}

#[test]
fn two_loops_post_to_each_other_and_no_post_is_lost() {
    let (a, b) = (start(), start());
    let (to_a, to_b) = (a.handle().clone(), b.handle().clone());
    let (tx, rx) = mpsc::channel();
    for n in 0..500 {
        let (to_a, tx) = (to_a.clone(), tx.clone());
        to_b.post(move || to_a.post(move || tx.send(n).unwrap()).ok().unwrap())
            .ok()
            .unwrap();
    }
    let came: Vec<i32> = (0..500).map(|_| rx.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(came, (0..500).collect::<Vec<_>>());
}

#[test]
fn a_post_above_the_bound_comes_back_and_one_after_the_stop_too() {
    let tasks = TaskLoop::start("test-tasks", 2).unwrap();
    let (hold, held) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (hold2, held2) = (hold.clone(), held.clone());
    let post = |call: Box<dyn FnOnce() + Send>| tasks.handle().post(call);
    post(Box::new(move || {
        held2.wait();
        hold2.wait();
    }))
    .ok()
    .unwrap();
    held.wait();
    assert!(post(Box::new(|| ())).is_ok());
    assert!(post(Box::new(|| ())).is_ok());
    assert!(matches!(post(Box::new(|| ())), Err(Refused::Full(_))));
    assert!(matches!(
        tasks.handle().spawn(async {}),
        Err(Refused::Full(()))
    ));
    assert!(tasks.handle().spawn_admitted(async {}).is_ok());
    hold.wait();
    tasks.stop();
    assert!(matches!(post(Box::new(|| ())), Err(Refused::Stopped(_))));
    let refused = tasks.handle().spawn(async {});
    assert!(matches!(refused, Err(Refused::Stopped(()))));
}

#[test]
fn tasks_that_the_loop_spawns_itself_take_no_room_from_posts() {
    let tasks = TaskLoop::start("test-tasks", 2).unwrap();
    let (spawned, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (tell, told) = mpsc::channel();
    let (own, here, wait) = (tasks.handle().clone(), spawned.clone(), go.clone());
    let call = move || {
        for n in 0..100 {
            let tell = tell.clone();
            let task = own.spawn_admitted(async move { tell.send(n).unwrap() });
            task.unwrap().detach();
        }
        here.wait();
        wait.wait();
    };
    tasks.handle().post(call).ok().unwrap();
    spawned.wait();
    assert!(tasks.handle().post(|| ()).is_ok());
    go.wait();
    assert_eq!(
        told.iter().collect::<Vec<_>>(),
        (0..100).collect::<Vec<_>>()
    );
    tasks.stop();
    assert!(tasks.handle().spawn_admitted(async {}).is_err());
}

#[test]
fn stop_from_several_threads_returns_when_the_loop_has_ended() {
    let living = Arc::new(AtomicUsize::new(0));
    let tasks = start();
    for _ in 0..50 {
        let guard = Guard::new(&living);
        let call = move || {
            thread::sleep(Duration::from_micros(100));
            drop(guard);
        };
        tasks.handle().post(call).ok().unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                tasks.stop();
                assert_eq!(living.load(Ordering::SeqCst), 0);
            });
        }
    });
}

#[test]
fn stop_on_the_loop_returns_at_once_and_what_was_accepted_still_runs() {
    let tasks = Arc::new(start());
    let (tx, rx) = mpsc::channel();
    let (begin, begun) = (Arc::new(Barrier::new(2)), tx.clone());
    let (own, ready) = (tasks.clone(), begin.clone());
    let call = move || {
        ready.wait();
        own.stop();
        begun.send("stopped").unwrap();
    };
    tasks.handle().post(call).ok().unwrap();
    tasks
        .handle()
        .post(move || tx.send("after").unwrap())
        .ok()
        .unwrap();
    begin.wait();
    assert_eq!(rx.recv_timeout(LONG), Ok("stopped"));
    assert_eq!(rx.recv_timeout(LONG), Ok("after"));
    tasks.stop();
    assert!(tasks.handle().post(|| ()).is_err());
}

#[test]
fn a_loop_destroyed_by_its_own_work_leaks_nothing() {
    let living = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = mpsc::channel::<()>();
    let tasks = start();
    let handle = tasks.handle().clone();
    for _ in 0..10 {
        let (guard, tx) = (Guard::new(&living), tx.clone());
        let never = async move {
            let _kept = (guard, tx);
            pending::<()>().await;
        };
        handle.spawn(never).ok().unwrap().detach();
    }
    handle.post(move || drop(tasks)).ok().unwrap();
    drop(tx);
    // Ends when the last future is gone.
    assert!(rx.recv_timeout(LONG).is_err());
    assert_eq!(living.load(Ordering::SeqCst), 0);
    assert!(matches!(handle.post(|| ()), Err(Refused::Stopped(_))));
}

#[test]
fn suspended_futures_are_dropped_as_cancelled_on_stop() {
    let living = Arc::new(AtomicUsize::new(0));
    let tasks = start();
    let handle = tasks.handle().clone();
    let (idle, _other) = UnixStream::pair().unwrap();
    idle.set_nonblocking(true).unwrap();
    let (guard, clock) = (Guard::new(&living), handle.clone());
    let sleeping = handle.spawn(async move {
        let _kept = guard;
        clock.sleep(LONG).await
    });
    let (guard, watch) = (Guard::new(&living), Watch::new(&handle, idle));
    let reading = handle.spawn(async move {
        let _kept = guard;
        watch.readable().await.is_ok()
    });
    let guard = Guard::new(&living);
    // Wakes itself for ever: it must not keep the loop from ending.
    let spinning = handle.spawn(async move {
        let _kept = guard;
        loop {
            let mut first = true;
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::take(&mut first) {
                    return std::task::Poll::Pending;
                }
                std::task::Poll::Ready(())
            })
            .await;
        }
    });
    tasks.stop();
    assert_eq!(living.load(Ordering::SeqCst), 0);
    assert_eq!(block_on(sleeping.ok().unwrap()), Err(Cancelled));
    assert_eq!(block_on(reading.ok().unwrap()), Err(Cancelled));
    assert!(matches!(block_on(spinning.ok().unwrap()), Err(Cancelled)));
    assert_eq!(block_on(handle.sleep(LONG)), Err(Stopped));
}

#[test]
fn a_sleeper_on_another_thread_hears_that_the_loop_has_stopped() {
    let tasks = start();
    let sleep = tasks.handle().sleep(LONG);
    let waiting = thread::spawn(move || block_on(sleep));
    let marker = tasks.handle().spawn(async {}).ok().unwrap();
    assert_eq!(block_on(marker), Ok(()));
    tasks.stop();
    assert_eq!(waiting.join().unwrap(), Err(Stopped));
}

#[test]
fn a_future_gives_its_value_to_another_thread_and_a_panic_ends_only_its_own() {
    let tasks = start();
    let broken = tasks.handle().spawn(async {
        std::panic::resume_unwind(Box::new(()));
    });
    assert_eq!(block_on(broken.ok().unwrap()), Err(Cancelled));
    let fine = tasks.handle().spawn(async { 7 });
    assert_eq!(block_on(fine.ok().unwrap()), Ok(7));
}

#[test]
fn sleeps_end_in_order_and_never_early() {
    let tasks = start();
    let (tx, rx) = mpsc::channel();
    for millis in [6_u64, 2, 4] {
        let (handle, tx) = (tasks.handle().clone(), tx.clone());
        let task = tasks.handle().spawn(async move {
            let began = clock::now();
            handle.sleep(Duration::from_millis(millis)).await.unwrap();
            assert!(clock::now() - began >= millis * 1_000_000);
            tx.send(millis).unwrap();
        });
        task.ok().unwrap().detach();
    }
    let came: Vec<u64> = (0..3).map(|_| rx.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(came, [2, 4, 6]);
}

#[test]
fn a_dropped_task_takes_its_future_and_its_timer_with_it() {
    let living = Arc::new(AtomicUsize::new(0));
    let tasks = start();
    let (guard, handle) = (Guard::new(&living), tasks.handle().clone());
    let task = tasks.handle().spawn(async move {
        let _kept = guard;
        handle.sleep(LONG).await
    });
    drop(task);
    let began = Instant::now();
    let marker = tasks.handle().spawn(async {}).ok().unwrap();
    assert_eq!(block_on(marker), Ok(()));
    while living.load(Ordering::SeqCst) != 0 {
        assert!(began.elapsed() < LONG);
        thread::yield_now();
    }
}

#[test]
fn a_socket_is_awaited_both_ways() {
    let tasks = start();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    mine.set_nonblocking(true).unwrap();
    let watch = Watch::new(tasks.handle(), mine);
    let echo = tasks.handle().spawn(async move {
        let mut seen = 0;
        let mut buffer = [0; 4096];
        loop {
            watch.readable().await.unwrap();
            let count = match (&mut watch.get_ref()).read(&mut buffer) {
                Ok(0) => return seen,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => return seen,
            };
            seen += count;
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                match (&mut watch.get_ref()).write(rest) {
                    Ok(sent) => rest = &rest[sent..],
                    Err(_) => watch.writable().await.unwrap(),
                }
            }
        }
    });
    let sender = theirs.try_clone().unwrap();
    let sending = thread::spawn(move || {
        let data = vec![7_u8; 1 << 20];
        (&mut &sender).write_all(&data).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    theirs.read_to_end(&mut back).unwrap();
    sending.join().unwrap();
    assert_eq!(back.len(), 1 << 20);
    assert_eq!(block_on(echo.ok().unwrap()), Ok(1 << 20));
}
