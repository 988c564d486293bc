//! Threads that are started by those who bring work.

use std::sync::Arc;
use std::time::Duration;

use super::{Made, make};
use crate::crew::{Admitted, Turn};
use crate::lead::State;
use crate::member::Member;
use crate::sync::lock;

impl Made {
    /// A thread that was asked for, idle.
    fn guest(&self) -> Arc<Member> {
        let member = Arc::new(Member::current());
        self.crew.join(&member, true);
        lock(&self.crew.members).idle.push(member.clone());
        member
    }

    /// The same as the leader, about to look for a job.
    fn leading_guest(&self) -> Arc<Member> {
        let member = Arc::new(Member::current());
        self.crew.join(&member, true);
        self.crew.set_leader(&mut lock(&self.crew.members), &member);
        self.crew.lead.say(&member, State::Idle);
        member
    }
}

#[test]
fn as_many_threads_are_asked_for_as_there_are_too_few() {
    let made = make(4, 4, false);
    assert_eq!(made.crew.hold(3), 3);
    assert_eq!(made.crew.hold(3), 0, "they are on their way");
    made.guest();
    assert_eq!(made.crew.hold(3), 0);
    made.crew.lost();
    assert_eq!(made.crew.hold(3), 1);
}

#[test]
fn a_thread_that_rested_ends_when_nobody_holds_the_crew() {
    let made = make(2, 2, false);
    made.crew.hold(1);
    let guest = made.guest();
    assert!(!made.crew.part(&guest, true));
    made.crew.release();
    assert!(!made.crew.part(&guest, false), "it has not rested");
    assert!(made.crew.part(&guest, true));
    assert!(!made.is_listed(&guest));
    assert_eq!(made.crew.counts().0, 0);
    assert_eq!(made.crew.hold(1), 1, "it is counted no more");
}

#[test]
fn dismissed_threads_end_when_nothing_waits_until_the_crew_is_held_anew() {
    let made = make(2, 2, false);
    made.crew.hold(2);
    let [first, second] = [made.guest(), made.guest()];
    made.put(1);
    made.crew.dismiss();
    assert_eq!((first.signal(), second.signal()), (1, 1));
    assert!(!made.crew.part(&first, false), "a job waits");
    assert_eq!(made.crew.pop(), Some(1));
    assert!(made.crew.part(&first, false));
    assert_eq!(made.crew.hold(2), 1);
    assert!(!made.crew.part(&second, false));
}

#[test]
fn the_last_leader_gives_up_the_lead_and_ends() {
    let made = make(2, 2, false);
    made.crew.hold(1);
    let leads = made.leading_guest();
    made.crew.part_leading(&leads, true);
    assert!(made.leads(&leads), "held");
    made.crew.release();
    made.crew.part_leading(&leads, false);
    assert!(made.leads(&leads), "not rested");
    made.put(1);
    made.crew.part_leading(&leads, true);
    assert!(made.leads(&leads), "a job waits");
    assert_eq!(made.crew.pop(), Some(1));
    made.crew.part_leading(&leads, true);
    assert!(!made.leads(&leads) && leads.is_retired());
    assert_eq!((made.crew.counts().0, made.state()), (0, State::Blocked));
    assert_eq!(made.crew.follow(&leads), Turn::End);
}

#[test]
fn threads_come_with_work_and_go_without() {
    let made = make(4, 4, false);
    assert_eq!(made.crew.hold(2), 2);
    let ran = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| {
            scope.spawn(|| {
                let me = Arc::new(Member::current());
                made.crew.join(&me, true);
                let mut ran = 0;
                while made.crew.follow(&me) == Turn::Lead {
                    while made.crew.may_take(&me) {
                        match made.crew.pop() {
                            Some(job) => {
                                made.crew.starts(&me);
                                ran += job;
                                made.crew.ends(&me);
                            }
                            None => {
                                made.crew.idle(&me, Duration::ZERO);
                            }
                        }
                    }
                }
                made.crew.leave(&me);
                ran
            })
        });
        for job in [1, 2, 4] {
            assert_eq!(made.crew.resume(job), Admitted::InTime);
        }
        made.crew.release();
        // They end by themselves: else this waits for ever.
        threads.map(|thread| thread.join().unwrap_or_default())
    });
    assert_eq!(ran.iter().sum::<usize>(), 7);
    assert_eq!(made.crew.counts().0, 0);
}
