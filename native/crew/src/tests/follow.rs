//! Threads that don't lead.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::make;
use crate::crew::{SURPLUS_STAYS, Turn};
use crate::lead::State;

#[test]
fn whoever_comes_first_leads() {
    let made = make(2, 2, false);
    let member = made.joined();
    assert_eq!(made.crew.follow(&member), Turn::Lead);
    assert!(made.leads(&member) && !made.is_listed(&member));
}

#[test]
fn one_that_leads_already_goes_on() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    assert_eq!(made.crew.follow(&leads), Turn::Lead);
}

#[test]
fn a_retired_thread_and_those_of_a_closed_crew_end() {
    let made = make(2, 2, false);
    made.leader(State::Idle);
    let retired = made.joined();
    retired.retire();
    assert_eq!(made.crew.follow(&retired), Turn::End);
    let other = made.joined();
    made.crew.close();
    assert_eq!(made.crew.follow(&other), Turn::End);
    assert_eq!(made.crew.counts().1, 0);
}

#[test]
fn a_surplus_thread_without_work_ends_after_a_while() {
    let made = make(2, 2, false);
    made.leader(State::Idle);
    let surplus = made.joined();
    surplus.set_surplus();
    let begun = Instant::now();
    assert_eq!(made.crew.follow(&surplus), Turn::End);
    assert!(begun.elapsed() >= SURPLUS_STAYS);
    assert!(!made.is_listed(&surplus));
}

#[test]
fn a_vacancy_is_taken_by_one_that_is_listed() {
    let made = make(2, 2, false);
    let other = made.joined();
    assert!(!made.crew.take_vacancy(&other), "it is not listed");
    let [first, second] = [made.idle(), made.idle()];
    assert!(made.crew.take_vacancy(&first));
    assert!(made.leads(&first) && !made.is_listed(&first));
    made.put(1);
    for state in [State::Idle, State::Running, State::Sleeping] {
        made.crew.lead.say(&first, state);
        assert!(!made.crew.take_vacancy(&second));
    }
    made.crew.lead.say(&first, State::Blocked);
    assert!(!made.crew.take_vacancy(&other));
    assert!(made.crew.take_vacancy(&second));
    // Without work it may go on waiting.
    assert_eq!(made.crew.pop(), Some(1));
    made.crew.lead.say(&second, State::Blocked);
    assert!(!made.crew.take_vacancy(&made.idle()));
}

#[test]
fn a_standby_takes_over_from_a_leader_whose_job_takes_long() {
    let made = make(2, 2, false);
    made.leader(State::Running);
    made.put(1);
    let standby = made.joined();
    assert_eq!(made.crew.follow(&standby), Turn::Lead);
    assert!(made.leads(&standby) && !made.is_listed(&standby));
    assert!(!made.crew.armed.load(Ordering::SeqCst));
}

#[test]
fn a_standby_looks_for_a_while_before_it_takes_over() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Running);
    made.put(1);
    let standby = made.idle();
    // The leader starts one job after the other, until it is told to stop.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(20) {
                made.crew.started.fetch_add(1, Ordering::SeqCst);
            }
            stop.store(true, Ordering::SeqCst);
        });
        // On a busy machine the leader may rest for that long.
        while !stop.load(Ordering::SeqCst) {
            let before = made.crew.started.load(Ordering::SeqCst);
            let begun = Instant::now();
            assert!(made.crew.stand_by(&standby));
            let lasted = begun.elapsed();
            let started = made.crew.started.load(Ordering::SeqCst) - before;
            assert!(
                lasted >= Duration::from_micros(200),
                "{lasted:?}, {started}"
            );
            made.crew.lead.give(&leads);
            made.crew.lead.say(&leads, State::Running);
            crate::sync::lock(&made.crew.members)
                .idle
                .push(standby.clone());
        }
    });
}

#[test]
fn a_standby_stands_down_without_work_and_if_it_shall_end_or_leads() {
    let armed = |made: &super::Made| made.crew.armed.load(Ordering::SeqCst);
    let bored = make(2, 2, false);
    bored.leader(State::Running);
    bored.crew.armed.store(true, Ordering::SeqCst);
    assert!(!bored.crew.stand_by(&bored.idle()) && !armed(&bored));

    let made = make(2, 2, false);
    made.leader(State::Running);
    made.put(1);
    let standby = made.idle();
    standby.retire();
    made.crew.armed.store(true, Ordering::SeqCst);
    assert!(!made.crew.stand_by(&standby) && !armed(&made));

    let promoted = make(2, 2, false);
    promoted.put(1);
    let leads = promoted.leader(State::Running);
    promoted.crew.armed.store(true, Ordering::SeqCst);
    assert!(!promoted.crew.stand_by(&leads) && !armed(&promoted));

    let closed = make(2, 2, false);
    closed.leader(State::Running);
    let standby = closed.idle();
    closed.crew.close();
    closed.put(1);
    closed.crew.armed.store(true, Ordering::SeqCst);
    assert!(!closed.crew.stand_by(&standby) && !armed(&closed));
}

#[test]
fn the_lead_is_taken_over_from_one_in_a_job_only() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    let standby = made.idle();
    assert!(!made.crew.take_over(&standby));
    assert!(made.is_listed(&standby));
    made.crew.lead.say(&leads, State::Running);
    assert!(!made.crew.take_over(&made.joined()), "it is not listed");
    assert!(made.leads(&leads));
    assert!(made.crew.take_over(&standby));
    assert!(made.leads(&standby) && !made.is_listed(&standby));
}

#[test]
fn a_surplus_leader_steps_down_for_the_last_that_stays() {
    let made = make(4, 4, false);
    let leads = made.leader(State::Idle);
    let surplus = made.idle();
    surplus.set_surplus();
    assert!(!made.crew.step_down(&leads), "only one that goes itself");
    let [_, last] = [made.idle(), made.idle()];
    let another = made.idle();
    another.set_surplus();
    assert!(!made.crew.step_down(&made.joined()), "it does not lead");
    assert!(made.crew.step_down(&leads));
    assert!(made.leads(&last) && !made.is_listed(&last));
    assert_eq!((last.signal(), made.crew.counts().1), (1, 3));
}
