//! No job is lost, and none is answered twice.

use std::time::Duration;

use crew::sync::atomic::{AtomicUsize, Ordering};
use crew::sync::{Arc, thread};
use crew::{Admitted, Life, Meet, Met, Priority};
#[cfg(not(loom))]
use crew::{Member, Refused};

use super::{check, crew, work};

#[test]
fn every_admitted_job_is_run_or_given_back_by_close() {
    check(|| {
        let crew = crew(1, 2);
        let sum = Arc::new(AtomicUsize::new(0));
        let worker = {
            let (crew, sum) = (crew.clone(), sum.clone());
            thread::spawn(move || work(&crew, &sum))
        };
        let pusher = {
            let crew = crew.clone();
            thread::spawn(move || match crew.push(3, Priority::Normal) {
                Ok(Admitted::InTime) => (3, 0),
                // Told so: whoever is late closes once more.
                Ok(Admitted::Late) => (3, crew.close().iter().sum()),
                Err(_) => (0, 0),
            })
        };
        let given_back: usize = crew.close().iter().sum();
        let Ok((admitted, late)) = pusher.join() else {
            panic!("the pusher ended badly");
        };
        assert!(worker.join().is_ok());
        assert_eq!(admitted, sum.load(Ordering::SeqCst) + given_back + late);
    });
}

#[test]
fn a_sleeping_leader_hears_of_every_job() {
    check(|| {
        let crew = crew(1, 2);
        let sum = Arc::new(AtomicUsize::new(0));
        let worker = {
            let (crew, sum) = (crew.clone(), sum.clone());
            thread::spawn(move || work(&crew, &sum))
        };
        assert!(crew.push(1, Priority::Normal).is_ok());
        assert!(crew.push(2, Priority::Normal).is_ok());
        // Without a lost wake-up this ends: the model would find a deadlock otherwise.
        while sum.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        assert!(crew.close().is_empty());
        assert!(worker.join().is_ok());
    });
}

#[test]
fn a_leader_hears_of_an_urgent_job_while_others_come() {
    check(|| {
        let crew = crew(1, 1);
        let sum = Arc::new(AtomicUsize::new(0));
        let worker = {
            let (crew, sum) = (crew.clone(), sum.clone());
            thread::spawn(move || work(&crew, &sum))
        };
        let hurried = {
            let crew = crew.clone();
            thread::spawn(move || crew.push(2, Priority::High).is_ok())
        };
        assert!(crew.push(1, Priority::Normal).is_ok());
        assert!(matches!(hurried.join(), Ok(true)));
        // Without a lost wake-up this ends: the model would find a deadlock otherwise.
        while sum.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        assert!(crew.close().is_empty());
        assert!(worker.join().is_ok());
    });
}

#[test]
fn a_job_is_answered_or_cancelled_and_nothing_is_sent_after_cancel() {
    check(|| {
        let life = Arc::new(Life::default());
        let sent = Arc::new(AtomicUsize::new(0));
        let runner = {
            let (life, sent) = (life.clone(), sent.clone());
            thread::spawn(move || {
                if life.start() && life.begin_reply() {
                    sent.fetch_add(1, Ordering::SeqCst);
                    life.finish();
                    return true;
                }
                false
            })
        };
        let met = life.cancel();
        let at_cancel = sent.load(Ordering::SeqCst);
        let Ok(answered) = runner.join() else {
            panic!("the runner ended badly");
        };
        assert_eq!(sent.load(Ordering::SeqCst), at_cancel);
        assert_eq!(answered, met == Met::Over);
    });
}

#[cfg(not(loom))]
#[test]
fn a_crew_whose_threads_all_wait_refuses_more() {
    let crew = crew(2, 2);
    let members = [Member::current(), Member::current()].map(Arc::new);
    for member in &members {
        crew.join(member, false);
        crew.blocks(member);
    }
    assert!(matches!(
        crew.push(1, Priority::Normal),
        Err((1, Refused::Overload))
    ));
    crew.unblocks(&members[0]);
    assert!(crew.push(1, Priority::Normal).is_ok());
}

#[test]
fn what_is_given_is_met_or_comes_back() {
    check(|| {
        let meet = Arc::new(Meet::default());
        meet.open();
        let giver = {
            let meet = meet.clone();
            thread::spawn(move || meet.give(7).err())
        };
        let met = meet.wait(Duration::from_nanos(200));
        let back = giver.join().unwrap_or(Some(0));
        assert_eq!(met.is_some(), back.is_none(), "met {met:?}, back {back:?}");
        assert_eq!(met.or(back), Some(7));
        // The place may be used again, and nobody who comes unasked is kept.
        assert_eq!(meet.give(8), Err(8));
        meet.open();
        assert_eq!(meet.give(9), Ok(()));
        assert_eq!(meet.wait(Duration::ZERO), Some(9));
    });
}
