//! Threads that work beside the leader.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Made, make};
use crate::crew::{Admitted, Turn};
use crate::lead::State;

fn is_armed(made: &Made) -> bool {
    made.crew.armed.load(Ordering::SeqCst)
}

#[test]
fn an_idle_thread_is_called_once_until_it_has_looked() {
    let made = make(3, 3, true);
    made.leader(State::Running);
    let [first, last] = [made.idle(), made.idle()];
    made.push(1);
    assert_eq!((first.signal(), last.signal()), (0, 1));
    assert!(is_armed(&made) && !made.is_listed(&last));
    made.push(2);
    assert_eq!((first.signal(), last.signal()), (0, 1));
    made.crew.answer_call(&last);
    assert!(!is_armed(&made) && made.is_listed(&last));
}

#[test]
fn nobody_is_called_while_one_looks_anyway() {
    let made = make(2, 2, true);
    made.leader(State::Running);
    let idle = made.idle();
    made.crew.lingering.store(1, Ordering::SeqCst);
    made.push(1);
    assert_eq!((idle.signal(), is_armed(&made)), (0, false));
}

#[test]
fn the_thread_beside_the_only_one_is_woken_and_stays_listed() {
    let made = make(1, 1, true);
    made.leader(State::Running);
    let idle = made.idle();
    made.push(1);
    assert_eq!((idle.signal(), made.is_listed(&idle)), (1, true));
    assert!(!is_armed(&made));
}

#[test]
fn without_an_idle_thread_another_one_is_asked_for() {
    let made = make(2, 3, true);
    made.leader(State::Running);
    made.crew.blocks(&made.joined());
    made.push(1);
    assert_eq!((made.asked(), is_armed(&made)), (1, false));
}

#[test]
fn one_that_was_not_called_answers_nothing() {
    let made = make(2, 2, true);
    let leads = made.leader(State::Running);
    let idle = made.idle();
    made.crew.armed.store(true, Ordering::SeqCst);
    made.crew.answer_call(&idle);
    assert!(is_armed(&made), "another one was called");
    assert_eq!(made.crew.counts().1, 1);
    made.crew.answer_call(&leads);
    assert!(is_armed(&made) && !made.is_listed(&leads));

    let one_by_one = make(2, 2, false);
    one_by_one.leader(State::Running);
    let other = one_by_one.joined();
    one_by_one.crew.armed.store(true, Ordering::SeqCst);
    one_by_one.crew.answer_call(&other);
    assert!(is_armed(&one_by_one) && !one_by_one.is_listed(&other));
}

#[test]
fn a_helper_works_and_leads_if_the_leader_is_in_a_job() {
    let made = make(3, 3, true);
    let leads = made.leader(State::Idle);
    let [first, second] = [made.idle(), made.idle()];
    assert!(!made.crew.help(&first), "there is no work");
    assert!(made.is_listed(&first));
    made.put(1);
    assert!(made.crew.help(&first));
    assert!(made.leads(&leads) && !made.is_listed(&first));
    made.crew.lead.say(&leads, State::Running);
    assert!(!made.crew.help(&first), "it is not listed any more");
    assert!(made.leads(&leads));
    assert!(made.crew.help(&second));
    assert!(made.leads(&second));
}

#[test]
fn a_follower_of_a_parallel_crew_helps() {
    let made = make(2, 2, true);
    let leads = made.leader(State::Idle);
    made.put(1);
    let helper = made.joined();
    assert_eq!(made.crew.follow(&helper), Turn::Lead);
    assert!(made.leads(&leads) && !made.is_listed(&helper));
}

#[test]
fn one_that_ran_out_of_work_looks_for_some() {
    let made = make(2, 2, true);
    let leads = made.leader(State::Running);
    let other = made.joined();
    let lingers = |member| made.crew.linger(member, Duration::ZERO);
    assert!(!lingers(&other));
    made.put(1);
    assert!(lingers(&other) && !lingers(&leads));
    assert_eq!(made.crew.pop(), Some(1));
    assert_eq!(made.crew.resume(2), Admitted::InTime);
    assert!(lingers(&other));
    assert_eq!(made.crew.lingering.load(Ordering::SeqCst), 0);
    other.retire();
    assert!(!lingers(&other));
    let another = made.joined();
    made.crew.close();
    made.put(3);
    assert!(!lingers(&another));

    let one_by_one = make(2, 2, false);
    one_by_one.leader(State::Running);
    one_by_one.put(1);
    let other = one_by_one.joined();
    assert!(!one_by_one.crew.linger(&other, Duration::ZERO));
}
