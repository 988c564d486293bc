//! The crew and its leader.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::make;
use crate::crew::{Admitted, Refused};
use crate::lead::State;
use crate::member::Member;
use crate::queue::Priority;
use crate::sync::lock;

#[test]
fn a_crew_tells_of_itself() {
    let made = make(2, 2, false);
    let crew = &made.crew;
    assert!(!crew.is_single());
    assert!(make(1, 1, false).crew.is_single());
    assert_eq!((crew.queued(), crew.is_empty()), (0, true));
    made.push(1);
    made.push(2);
    assert_eq!((crew.queued(), crew.is_empty()), (2, false));
    assert_eq!(
        (crew.pop(), crew.pop(), crew.pop()),
        (Some(1), Some(2), None)
    );
    assert_eq!(crew.resume(3), Admitted::InTime);
    assert_eq!((crew.queued(), crew.is_empty()), (0, false));
    assert_eq!(crew.counts(), (0, 0, 0));
    let first = made.joined();
    made.idle();
    made.idle();
    crew.blocks(&first);
    assert_eq!(crew.counts(), (3, 2, 1));
    crew.unblocks(&first);
    assert_eq!(crew.counts(), (3, 2, 0));
}

#[test]
fn a_leader_is_looking_while_it_is_awake_and_has_nothing_to_do() {
    let made = make(1, 1, false);
    assert!(!made.crew.is_looking());
    let leads = made.leader(State::Idle);
    assert!(made.crew.is_looking());
    made.push(1);
    assert!(!made.crew.is_looking());
    assert_eq!(made.crew.pop(), Some(1));
    made.crew.starts(&leads);
    assert!(!made.crew.is_looking());
    made.crew.ends(&leads);
    assert!(made.crew.is_looking());
}

#[test]
fn a_job_is_refused_by_a_full_and_by_a_closed_crew() {
    let made = make(1, 1, false);
    made.push(1);
    made.push(2);
    assert_eq!(
        made.crew.push(3, Priority::Normal),
        Err((3, Refused::Overload))
    );
    assert!(made.crew.is_open());
    assert_eq!(made.crew.close(), [1, 2]);
    assert!(!made.crew.is_open());
    assert_eq!(
        made.crew.push(4, Priority::Normal),
        Err((4, Refused::Closed))
    );
    assert_eq!(made.crew.resume(5), Admitted::Late);
    assert_eq!(made.crew.close(), [5]);
}

#[test]
fn a_crew_that_may_have_more_threads_or_has_only_one_takes_a_job_though_all_wait() {
    let single = make(1, 1, false);
    single.crew.blocks(&single.leader(State::Running));
    single.push(1);
    let growing = make(2, 2, false);
    growing.crew.blocks(&growing.leader(State::Running));
    growing.push(1);
}

#[test]
fn who_brings_a_job_wakes_a_sleeping_leader_once() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Sleeping);
    let idle = made.idle();
    made.push(1);
    assert_eq!((leads.signal(), made.state()), (1, State::Idle));
    made.push(2);
    assert_eq!((leads.signal(), idle.signal()), (1, 0));
}

#[test]
fn who_brings_a_job_calls_the_last_idle_thread_if_the_leader_is_in_a_job() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Running);
    let [first, last] = [made.idle(), made.idle()];
    made.push(1);
    let signals = [&leads, &first, &last].map(|member| member.signal());
    assert_eq!(signals, [0, 0, 1]);
    assert!(made.leads(&leads));
}

#[test]
fn who_brings_a_job_makes_an_idle_thread_lead_if_the_leader_waits() {
    let made = make(2, 3, false);
    let waits = made.leader(State::Running);
    let idle = made.idle();
    made.crew.blocks(&waits);
    // There was nothing to do.
    assert!(made.leads(&waits));
    made.push(1);
    assert!(made.leads(&idle));
    assert_eq!((idle.signal(), made.is_listed(&idle)), (1, false));
    // With a job there it is so at once, and without an idle thread another one is asked for.
    made.crew.blocks(&idle);
    assert_eq!((made.asked(), made.leads(&idle)), (1, true));
}

#[test]
fn the_only_thread_is_told_of_a_job_while_it_waits() {
    let made = make(1, 1, false);
    let waits = made.leader(State::Running);
    made.crew.blocks(&waits);
    made.push(1);
    assert_eq!((waits.signal(), made.asked()), (1, 0));
    assert!(made.leads(&waits));
    // It has the job already when it begins to wait: nobody is to be told.
    made.crew.unblocks(&waits);
    assert_eq!(made.state(), State::Running);
    made.crew.blocks(&waits);
    assert_eq!((waits.signal(), made.state()), (1, State::Blocked));
}

#[test]
fn nobody_is_promoted_while_the_leader_works() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Running);
    let idle = made.idle();
    made.put(1);
    let waits = made.joined();
    made.crew.blocks(&waits);
    assert!(made.leads(&leads));
    assert_eq!((idle.signal(), made.is_listed(&idle)), (0, true));
}

#[test]
fn a_thread_is_asked_for_if_those_that_are_there_wait() {
    let made = make(2, 4, false);
    let first = made.joined();
    made.crew.grow();
    assert_eq!(made.asked(), 0, "nobody waits");
    made.crew.blocks(&first);
    made.crew.grow();
    made.crew.grow();
    assert_eq!(made.asked(), 2);
    made.crew.grow();
    assert_eq!(made.asked(), 2, "two are coming, and two may work");
    made.crew.lost();
    made.crew.grow();
    assert_eq!(made.asked(), 3, "one of them did not come");
    let surplus = Arc::new(Member::current());
    made.crew.join(&surplus, true);
    assert!(surplus.is_surplus() && !first.is_surplus());
    made.crew.grow();
    assert_eq!(made.asked(), 3, "one works, one is coming");
    made.crew.blocks(&surplus);
    made.crew.grow();
    assert_eq!(made.asked(), 4);
    made.crew.grow();
    assert_eq!(made.asked(), 4, "two wait, two are coming");
}

#[test]
fn a_crew_has_no_more_threads_than_it_may_have() {
    let made = make(4, 3, false);
    made.crew.blocks(&made.joined());
    made.joined();
    made.crew.grow();
    assert_eq!(made.asked(), 1);
    made.crew.grow();
    assert_eq!(made.asked(), 1);
}

#[test]
fn no_thread_is_asked_for_while_one_is_idle() {
    let made = make(2, 4, false);
    made.crew.blocks(&made.joined());
    made.idle();
    made.crew.grow();
    assert_eq!(made.asked(), 0);
}

#[test]
fn a_leader_that_leaves_hands_the_work_over() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    let idle = made.idle();
    made.push(1);
    made.crew.leave(&leads);
    assert!(made.leads(&idle));
    assert_eq!((idle.signal(), made.crew.counts()), (1, (1, 0, 0)));
}

#[test]
fn without_work_or_in_a_closed_crew_nobody_is_called_by_who_leaves() {
    let [bored, closed] = [make(2, 2, false), make(2, 2, false)];
    for made in [&bored, &closed] {
        let leads = made.leader(State::Idle);
        let idle = made.idle();
        if std::ptr::eq(made, &closed) {
            made.crew.close();
            made.put(1);
        }
        let before = idle.signal();
        made.crew.leave(&leads);
        assert!(made.crew.lead.see().is_vacant());
        assert!(lock(&made.crew.members).leader.is_none());
        assert_eq!((idle.signal() - before, made.crew.counts()), (0, (1, 1, 0)));
    }
}

#[test]
fn one_that_leaves_and_does_not_lead_passes_its_call_on() {
    let made = make(3, 3, false);
    let leads = made.leader(State::Running);
    let [next, called] = [made.idle(), made.idle()];
    made.put(1);
    made.crew.leave(&called);
    assert_eq!((next.signal(), called.signal()), (1, 0));
    assert!(made.leads(&leads) && !made.is_listed(&called));
    assert_eq!(made.crew.counts(), (2, 1, 0));
}

#[test]
fn a_job_is_taken_by_the_leader_only_unless_jobs_run_at_the_same_time() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    let other = made.joined();
    made.push(1);
    assert!(made.crew.may_take(&leads) && !made.crew.may_take(&other));
    leads.retire();
    assert!(!made.crew.may_take(&leads));

    let made = make(2, 2, true);
    let leads = made.leader(State::Idle);
    let other = made.joined();
    assert!(made.crew.may_take(&leads) && !made.crew.may_take(&other));
    made.push(1);
    assert!(made.crew.may_take(&other));
    other.retire();
    assert!(!made.crew.may_take(&other));
    made.crew.close();
    made.put(1);
    assert!(!made.crew.may_take(&leads));
}

#[test]
fn a_job_that_starts_calls_a_thread_for_those_behind_it() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    let idle = made.idle();
    made.crew.starts(&leads);
    assert_eq!((made.state(), idle.signal()), (State::Running, 0));
    made.crew.ends(&leads);
    assert_eq!(made.state(), State::Idle);
    made.put(1);
    made.crew.starts(&leads);
    assert_eq!(idle.signal(), 1);
    let started = made.crew.started.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(started, 2);
}

#[test]
fn a_leader_does_not_sleep_over_work() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    made.push(1);
    assert!(made.crew.idle(&leads, Duration::ZERO));
    assert_eq!(made.crew.pop(), Some(1));
    // A slice is no fresh job.
    assert_eq!(made.crew.resume(2), Admitted::InTime);
    assert!(!made.crew.idle(&leads, Duration::ZERO));
    assert_eq!(made.state(), State::Idle);
    // Nor one that leads no more, or shall end.
    let other = made.joined();
    assert_eq!(made.crew.pop(), Some(2));
    assert!(!made.crew.idle(&other, Duration::ZERO));
    assert_eq!((made.leads(&leads), made.state()), (true, State::Idle));
    leads.retire();
    assert!(!made.crew.idle(&leads, Duration::ZERO));
}

#[test]
fn a_surplus_leader_steps_down_or_sleeps_for_a_while_only() {
    let made = make(2, 2, false);
    let leads = made.leader(State::Idle);
    leads.set_surplus();
    let begun = Instant::now();
    assert!(!made.crew.idle(&leads, Duration::ZERO));
    assert!(begun.elapsed() >= crate::crew::SURPLUS_STAYS);
    assert_eq!((made.leads(&leads), made.state()), (true, State::Idle));
    let idle = made.idle();
    assert!(!made.crew.idle(&leads, Duration::ZERO));
    assert_eq!((made.leads(&idle), idle.signal()), (true, 1));
}

#[test]
fn one_that_waits_and_does_not_lead_asks_for_another() {
    let made = make(2, 3, false);
    let leads = made.leader(State::Running);
    let other = made.joined();
    made.crew.blocks(&other);
    assert_eq!(made.asked(), 0, "there is no work");
    made.crew.unblocks(&other);
    assert_eq!(made.state(), State::Running);
    made.put(1);
    made.crew.blocks(&other);
    assert_eq!((made.asked(), made.leads(&leads)), (1, true));
}

#[test]
fn a_closed_crew_wakes_everybody() {
    let made = make(2, 2, false);
    let members = [made.leader(State::Running), made.idle(), made.joined()];
    made.crew.close();
    assert!(members.iter().all(|member| member.signal() == 1));
}
