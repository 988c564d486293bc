//! The queue, the lead, a member, the life of a job, and places to meet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lead::{Lead, State};
use crate::life::{Life, Met};
use crate::lossy::LossySet;
use crate::meet::{Company, Meet};
use crate::member::{Member, spin};
use crate::queue::{Priority, Queue};

#[test]
fn fresh_jobs_go_before_slices_and_both_count_as_work() {
    let queue = Queue::new(0);
    assert!(queue.is_empty() && !queue.has_fresh());
    queue.resume(1);
    queue.resume(2);
    assert!(!queue.is_empty() && !queue.has_fresh());
    assert_eq!(queue.push(3, Priority::Normal), Ok(()));
    assert_eq!(
        queue.push(4, Priority::Normal),
        Err(4),
        "there is room for one at least"
    );
    assert_eq!((queue.len(), queue.has_fresh()), (1, true));
    // Should the machine rest for longer than slices have patience, one of them goes first.
    let taken: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert!([[3, 1, 2], [1, 3, 2]].contains(&[taken[0], taken[1], taken[2]]));
    assert_eq!(taken.len(), 3);
    assert!(queue.is_empty());
}

#[test]
fn only_the_leader_says_what_it_does() {
    let [leads, other] = [Member::current(), Member::current()];
    assert_ne!((leads.id(), leads.id() == other.id()), (0, true));
    let lead = Lead::vacant();
    assert!(lead.see().is_vacant() && lead.see().state() == State::Blocked);
    assert!(!lead.say(&leads, State::Idle));
    lead.give(&leads);
    assert!(!lead.see().is_vacant() && lead.is_of(&leads) && !lead.is_of(&other));
    assert_eq!(lead.see().leader(), leads.id());
    for state in [State::Running, State::Sleeping, State::Blocked, State::Idle] {
        assert!(lead.say(&leads, state));
        assert!(!lead.say(&other, State::Running));
        assert_eq!((lead.see().state(), lead.is_of(&leads)), (state, true));
    }
    assert!(lead.say(&leads, State::Sleeping));
    let seen = lead.see();
    assert!(lead.rouse(seen));
    assert_eq!(
        (lead.see().state(), lead.is_of(&leads)),
        (State::Idle, true)
    );
    assert!(!lead.rouse(seen), "somebody else was quicker");
    lead.vacate();
    assert!(lead.see().is_vacant() && lead.see().state() == State::Blocked);
}

#[test]
fn a_member_waits_until_it_is_woken_or_its_time_is_over() {
    let member = Member::current();
    assert!(!member.is_retired() && !member.is_surplus());
    let begun = Instant::now();
    member.wait(0, Some(Duration::from_millis(20)));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    member.wake();
    assert_eq!(member.signal(), 1);
    // Both would else wait for ever.
    member.wait(0, None);
    member.retire();
    assert_eq!((member.signal(), member.is_retired()), (2, true));
    member.wait(1, None);
    member.set_surplus();
    assert!(member.is_surplus());
}

#[test]
fn a_member_that_sleeps_is_woken() {
    let (sends, receives) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let member = Arc::new(Member::current());
        assert!(sends.send(member.clone()).is_ok());
        member.wait(0, None);
        member.signal()
    });
    let Ok(member) = receives.recv() else {
        panic!("the thread ended badly");
    };
    std::thread::sleep(Duration::from_millis(5));
    member.wake();
    assert!(matches!(thread.join(), Ok(1)));
}

#[test]
fn who_spins_looks_until_the_time_is_over() {
    let looks = std::cell::Cell::new(0);
    let ready_at = |n| {
        looks.set(0);
        let looks = &looks;
        move || {
            looks.set(looks.get() + 1);
            looks.get() == n
        }
    };
    assert!(spin(Duration::ZERO, ready_at(1)));
    assert!(!spin(Duration::ZERO, ready_at(2)));
    assert_eq!(looks.get(), 1);
    assert!(spin(Duration::from_secs(60), ready_at(100)));
    let begun = Instant::now();
    assert!(!spin(Duration::from_millis(10), ready_at(usize::MAX)));
    assert!(begun.elapsed() >= Duration::from_millis(10));
}

#[test]
fn a_job_lives_once() {
    let life = Life::default();
    assert!(!life.is_over() && !life.is_running() && !life.is_cancelled());
    assert!(!life.begin_reply() && !life.pause());
    assert!(life.start() && !life.start());
    assert!(life.is_running() && !life.is_over());
    assert!(life.pause());
    assert!(!life.is_running());
    assert!(life.start());
    assert!(life.begin_reply() && !life.begin_reply());
    assert!(life.is_running() && !life.is_over());
    life.continue_run();
    assert!(life.begin_reply());
    life.finish();
    assert!(life.is_over() && !life.is_running() && !life.is_cancelled());
    assert_eq!(life.cancel(), Met::Over);
    assert!(!life.is_cancelled());
}

#[test]
fn a_cancelled_job_neither_runs_nor_answers() {
    let queued = Life::default();
    assert_eq!(queued.cancel(), Met::Queued);
    assert!(!queued.start() && queued.is_cancelled() && queued.is_over());
    let running = Life::default();
    assert!(running.start());
    assert_eq!(running.cancel(), Met::Running);
    assert!(!running.begin_reply() && !running.pause() && !running.is_running());
    assert_eq!(running.cancel(), Met::Over);
}

#[test]
fn a_place_is_open_for_one_value() {
    let meet = Meet::default();
    assert_eq!(meet.give(1), Err(1), "nobody waits");
    meet.open();
    assert_eq!(meet.wait(Duration::ZERO), None);
    assert_eq!(meet.give(2), Err(2), "who waited has left");
    meet.open();
    assert_eq!((meet.give(3), meet.give(4)), (Ok(()), Err(4)));
    assert_eq!(meet.wait(Duration::ZERO), Some(3));
    meet.open();
    let begun = Instant::now();
    assert_eq!(meet.wait(Duration::from_millis(10)), None);
    assert!(begun.elapsed() >= Duration::from_millis(10));
}

#[test]
fn four_jobs_between_two_of_ours_are_few_and_five_are_not() {
    let company = Company::default();
    company.came(10);
    company.came(14);
    assert!(company.is_small());
    company.came(19);
    assert!(!company.is_small());
    company.came(20);
    assert!(company.is_small());
}

#[test]
fn a_lossy_set_has_what_was_put_in_last_and_forgets_the_rest() {
    let set = LossySet::default();
    assert!(!set.has(1, b"a"));
    set.insert(1, b"a");
    assert!(set.has(1, b"a") && !set.has(2, b"a") && !set.has(1, b"b"));
    set.remove(2, b"a");
    assert!(set.has(1, b"a"));
    set.remove(1, b"a");
    assert!(!set.has(1, b"a"));
    let names: Vec<_> = (0..10_000_u32).map(u32::to_be_bytes).collect();
    for name in &names {
        set.insert(1, name);
        assert!(set.has(1, name));
    }
    let kept = names.iter().filter(|name| set.has(1, *name)).count();
    assert!((100..=256).contains(&kept), "{kept} of 256 places");
}
