//! Who leads, helps, comes and goes.

use std::time::Duration;

use crew::sync::atomic::{AtomicUsize, Ordering};
use crew::sync::{Arc, Mutex, lock, thread};
use crew::{Admitted, Crew, Member, Plan, Priority, Turn};

use super::{check, crew, crew_of, serve};

#[test]
fn a_leader_that_blocks_gives_the_lead_to_an_idle_thread() {
    check(|| {
        let crew = crew(2, 2);
        let blocked: Arc<Mutex<Option<Arc<Member>>>> = Arc::new(Mutex::new(None));
        // If it leads, it blocks in a job until the other thread has run the one that is pushed.
        let first = {
            let (crew, blocked) = (crew.clone(), blocked.clone());
            thread::spawn(move || {
                let me = Arc::new(Member::current());
                crew.join(&me, false);
                if crew.follow(&me) == Turn::Lead {
                    crew.starts(&me);
                    let seen = me.signal();
                    *lock(&blocked) = Some(me.clone());
                    crew.blocks(&me);
                    if crew.is_open() {
                        me.wait(seen, None);
                    }
                    crew.unblocks(&me);
                    crew.ends(&me);
                }
                crew.leave(&me);
            })
        };
        let second = thread::spawn({
            let crew = crew.clone();
            move || {
                let me = Arc::new(Member::current());
                crew.join(&me, false);
                let mut ran = None;
                while ran.is_none() && crew.follow(&me) == Turn::Lead {
                    while ran.is_none() && crew.may_take(&me) {
                        ran = crew.pop();
                        if ran.is_none() {
                            crew.idle(&me, Duration::ZERO);
                        }
                    }
                }
                crew.leave(&me);
                ran
            }
        });
        assert!(crew.push(5, Priority::Normal).is_ok());
        // Without the hand-over this never ends: the model would report a deadlock.
        assert!(matches!(second.join(), Ok(Some(5))));
        assert!(crew.close().is_empty());
        if let Some(member) = lock(&blocked).take() {
            member.wake();
        }
        assert!(first.join().is_ok());
    });
}

// Not under loom: the jobs look for each other in a loop, which has no end in a model.
#[cfg(not(loom))]
#[test]
fn jobs_that_block_run_side_by_side() {
    check(|| {
        let crew = crew(2, 2);
        let here = Arc::new(AtomicUsize::new(0));
        let work = |crew: Arc<Crew<usize>>, here: Arc<AtomicUsize>| {
            move || {
                let me = Arc::new(Member::current());
                crew.join(&me, false);
                while crew.follow(&me) == Turn::Lead {
                    while crew.may_take(&me) {
                        let Some(_job) = crew.pop() else {
                            crew.idle(&me, Duration::ZERO);
                            continue;
                        };
                        crew.starts(&me);
                        // Each job waits for the other one to be running too.
                        here.fetch_add(1, Ordering::SeqCst);
                        while here.load(Ordering::SeqCst) < 2 {
                            thread::yield_now();
                        }
                        crew.ends(&me);
                    }
                }
                crew.leave(&me);
            }
        };
        // Both are there before anybody leads.
        assert!(crew.push(1, Priority::Normal).is_ok());
        assert!(crew.push(2, Priority::Normal).is_ok());
        let first = thread::spawn(work(crew.clone(), here.clone()));
        let second = thread::spawn(work(crew.clone(), here.clone()));
        while here.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
        assert!(crew.close().is_empty());
        assert!(first.join().is_ok());
        assert!(second.join().is_ok());
    });
}

/// A thread of a crew that runs one job; job 1 runs until job 2 was run.
fn run_one(crew: &Crew<usize>, ran: &AtomicUsize, bell: &Mutex<Option<Arc<Member>>>) {
    let me = Arc::new(Member::current());
    crew.join(&me, false);
    let mut job = None;
    while job.is_none() && crew.follow(&me) == Turn::Lead {
        while job.is_none() && (crew.may_take(&me) || crew.linger(&me, Duration::ZERO)) {
            job = crew.pop();
            if job.is_none() {
                crew.idle(&me, Duration::ZERO);
            }
        }
    }
    crew.starts(&me);
    if job == Some(1) {
        *lock(bell) = Some(me.clone());
        loop {
            let seen = me.signal();
            if ran.load(Ordering::SeqCst) == 1 {
                break;
            }
            me.wait(seen, None);
        }
    } else {
        ran.fetch_add(1, Ordering::SeqCst);
        if let Some(waits) = lock(bell).take() {
            waits.wake();
        }
    }
    crew.ends(&me);
    crew.leave(&me);
}

#[test]
fn a_job_that_does_not_end_keeps_no_other_from_a_parallel_crew() {
    check(|| {
        let crew = crew_of(2, 2, true);
        let ran = Arc::new(AtomicUsize::new(0));
        let bell = Arc::new(Mutex::new(None));
        let workers = [(); 2].map(|()| {
            let (crew, ran, bell) = (crew.clone(), ran.clone(), bell.clone());
            thread::spawn(move || run_one(&crew, &ran, &bell))
        });
        assert!(crew.push(1, Priority::Normal).is_ok());
        assert!(crew.push(2, Priority::Normal).is_ok());
        // Without a helper this never ends: the model would report a deadlock.
        for worker in workers {
            assert!(worker.join().is_ok());
        }
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    });
}

/// A second thread of a crew whose leader, the calling thread, is in a job: it sends what it takes.
#[cfg(not(loom))]
fn beside(crew: &Arc<Crew<usize>>) -> std::sync::mpsc::Receiver<Option<usize>> {
    let (sends, taken) = std::sync::mpsc::channel();
    let behind = crew.clone();
    thread::spawn(move || {
        let me = Arc::new(Member::current());
        behind.join(&me, false);
        if behind.follow(&me) == Turn::Lead {
            let _ = sends.send(behind.pop());
        }
        behind.leave(&me);
    });
    while crew.counts().1 == 0 {
        thread::yield_now();
    }
    taken
}

#[cfg(not(loom))]
const SOON: Duration = Duration::from_secs(20);

#[cfg(not(loom))]
#[test]
fn a_slice_does_not_wait_for_a_fresh_job_that_blocks() {
    let crew = crew(2, 2);
    let leads = Arc::new(Member::current());
    crew.join(&leads, false);
    assert_eq!(crew.follow(&leads), Turn::Lead);
    let beside = beside(&crew);
    assert_eq!(crew.resume(1), Admitted::InTime);
    assert!(crew.push(2, Priority::Normal).is_ok());
    let first = crew.pop();
    crew.starts(&leads);
    // The leader's job does not end; the other thread takes what is left.
    let second = beside.recv_timeout(SOON).ok().flatten();
    assert_eq!(first.unwrap_or(0) + second.unwrap_or(0), 3);
}

#[cfg(not(loom))]
#[test]
fn a_thread_that_replaces_the_only_one_is_called() {
    let crew = crew(1, 2);
    let stuck = Arc::new(Member::current());
    crew.join(&stuck, false);
    assert_eq!(crew.follow(&stuck), Turn::Lead);
    crew.starts(&stuck);
    let beside = beside(&crew);
    assert!(crew.push(1, Priority::Normal).is_ok());
    assert_eq!(beside.recv_timeout(SOON), Ok(Some(1)));
}

#[test]
fn a_job_is_not_lost_with_the_surplus_thread_that_was_called_for_it() {
    check(|| {
        let asked = Arc::new(AtomicUsize::new(0));
        let asks = asked.clone();
        let crew = Arc::new(Crew::new(Plan {
            size: 2,
            max_threads: 4,
            max_queue: 2,
            parallel: false,
            start: Box::new(move || {
                asks.fetch_add(1, Ordering::SeqCst);
            }),
        }));
        let [waits, leads] = [Member::current(), Member::current()].map(Arc::new);
        crew.join(&waits, false);
        crew.blocks(&waits);
        crew.join(&leads, false);
        assert_eq!(crew.follow(&leads), Turn::Lead);
        crew.starts(&leads);
        // Asks for the surplus thread.
        assert!(crew.push(1, Priority::Normal).is_ok());
        assert_eq!(crew.pop(), Some(1));
        let surplus = {
            let crew = crew.clone();
            thread::spawn(move || {
                let me = Arc::new(Member::current());
                crew.join(&me, true);
                let taken = match crew.follow(&me) {
                    Turn::Lead => crew.pop(),
                    Turn::End => None,
                };
                crew.leave(&me);
                taken
            })
        };
        assert!(crew.push(2, Priority::Normal).is_ok());
        let taken = surplus.join().unwrap_or_default();
        assert!(taken == Some(2) || asked.load(Ordering::SeqCst) == 2);
    });
}

#[test]
fn work_that_comes_as_the_last_thread_goes_has_a_thread() {
    check(|| {
        let crew = crew(2, 1);
        let sum = Arc::new(AtomicUsize::new(0));
        let come = |crew: &Arc<Crew<usize>>| {
            let (crew, sum) = (crew.clone(), sum.clone());
            thread::spawn(move || serve(&crew, &sum))
        };
        assert_eq!(crew.hold(1), 1);
        let first = come(&crew);
        crew.release();
        let second = (crew.hold(1) == 1).then(|| come(&crew));
        assert_eq!(crew.resume(5), Admitted::InTime);
        crew.dismiss();
        // Both end by themselves, the last one when it has run the job.
        assert!(first.join().is_ok());
        assert!(second.is_none_or(|second| second.join().is_ok()));
        assert_eq!(sum.load(Ordering::SeqCst), 5);
    });
}
