//! What waits for a loop, a job's ticket, and the credits of a stream.

use std::collections::VecDeque;

use crate::crew::Refused;
use crate::intake::Intake;
use crate::life::Met;
use crate::ticket::{Ticket, Why};
use crate::window::{Credits, Parked};

fn push(intake: &Intake<usize>, job: usize) -> Result<bool, (usize, Refused)> {
    intake.push(job, |_, _| {})
}

#[test]
fn jobs_come_in_their_order_and_their_number_is_bounded() {
    let intake = Intake::new(2);
    assert_eq!(intake.max_queue(), 2);
    let mut numbers = Vec::new();
    for job in [5, 6] {
        let pushed = intake.push(job, |job, number| numbers.push((*job, number)));
        assert_eq!(
            pushed,
            Ok(false),
            "the thread looks by itself when it is up"
        );
    }
    assert_eq!(numbers, [(5, 1), (6, 2)]);
    assert_eq!(push(&intake, 7), Err((7, Refused::Overload)));
    // One that the thread has taken out and not begun counts.
    assert_eq!(intake.next_job(), Some(5));
    assert_eq!(push(&intake, 7), Ok(false));
    assert_eq!(push(&intake, 8), Err((8, Refused::Overload)));
    assert_eq!(
        (
            intake.len(),
            intake.next_job(),
            intake.next_job(),
            intake.next_job()
        ),
        (2, Some(6), Some(7), None)
    );
}

#[test]
fn a_job_that_was_begun_makes_room() {
    let intake = Intake::new(3);
    (1..=3).for_each(|job| assert_eq!(push(&intake, job), Ok(false)));
    // The thread has the others in its hand by now, and begins the next of them without a look at the inbox.
    assert_eq!((intake.next_job(), intake.next_job()), (Some(1), Some(2)));
    assert_eq!((push(&intake, 4), push(&intake, 5)), (Ok(false), Ok(false)));
    assert_eq!(push(&intake, 6), Err((6, Refused::Overload)));
    let left: Vec<_> = std::iter::from_fn(|| intake.next_job()).collect();
    assert_eq!(left, [3, 4, 5]);
}

#[test]
fn of_many_jobs_those_stay_that_have_no_room() {
    let intake = Intake::new(3);
    intake.seen();
    let mut jobs = VecDeque::from([1, 2, 3, 4, 5]);
    assert_eq!(intake.push_all(&mut jobs), (true, Refused::Overload));
    assert_eq!(jobs, [4, 5]);
    intake.seen();
    assert_eq!(intake.push_all(&mut jobs), (false, Refused::Overload));
    assert!(!intake.is_told(), "nothing came");
    intake.close();
    assert_eq!(intake.push_all(&mut jobs), (false, Refused::Closed));
    assert_eq!(intake.take_all().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_thread_is_told_once_until_it_has_looked() {
    let intake = Intake::new(9);
    assert!(intake.is_told());
    assert_eq!(intake.seen(), []);
    assert!(!intake.is_told());
    assert_eq!(push(&intake, 1), Ok(true));
    assert_eq!(
        (push(&intake, 2), intake.cancel(17), intake.resume(3)),
        (Ok(false), false, Ok(false))
    );
    assert!(intake.is_told() && intake.has_cancels());
    assert_eq!(intake.seen(), [17]);
    assert!(!intake.has_cancels());
    assert_eq!(intake.next_job(), Some(1));
    assert!(
        intake.comes_again(),
        "there are two more, for the next turn"
    );
    assert!(!intake.comes_again(), "it was told of them");
    assert!(intake.is_open());
    intake.close();
    assert!(!intake.is_open() && intake.is_told());
    assert_eq!(intake.take_all().collect::<Vec<_>>(), [2, 3]);
    assert!(intake.is_empty());
}

#[test]
fn a_job_is_told_to_stop_only_while_it_runs() {
    let (ticket, other) = (Ticket::<()>::default(), Ticket::<()>::default());
    assert_ne!(ticket.id(), other.id());
    assert!(!ticket.stop(Why::Died));
    assert!(ticket.life().start() && !ticket.must_stop());
    assert!(ticket.stop(Why::Died) && ticket.must_stop());
    assert_eq!(ticket.why(), Some(Why::Died));
    assert!(ticket.stop(Why::Interrupted));
    assert_eq!(ticket.why(), Some(Why::Interrupted));
    assert!(other.life().start());
    assert_eq!((other.cancel(), other.cancel()), (Met::Running, Met::Over));
    assert!(other.must_stop() && other.why().is_none() && !other.stop(Why::Died));
}

#[test]
fn a_job_that_waits_is_let_go_with_its_cancellation() {
    let ticket = Ticket::default();
    assert_eq!(ticket.park(7, || false), None);
    assert_eq!(ticket.unpark(), Some(7));
    assert_eq!(ticket.park(7, || true), Some(7));
    assert_eq!(ticket.park(8, || false), None);
    assert_eq!(ticket.cancel(), Met::Queued);
    assert_eq!(ticket.unpark(), None);
    assert_eq!(
        ticket.park(9, || false),
        Some(9),
        "cancelled before it was parked"
    );
}

#[test]
fn a_window_is_used_up_and_opened_again() {
    let credits = Credits::new(Some(2));
    credits.take();
    assert!(credits.has());
    credits.take();
    assert!(!credits.has());
    // A task may send one more before it looks.
    credits.take();
    credits.add(1);
    assert!(!credits.has());
    credits.add(1);
    assert!(credits.has());
    let no_bound = Credits::new(None);
    (0..1000).for_each(|_| no_bound.take());
    assert!(no_bound.has());
    no_bound.add(u32::MAX);
    assert!(no_bound.has());
    let parked = Parked::default();
    assert_eq!(
        (parked.park(1, || false), parked.take(), parked.take()),
        (None, Some(1), None)
    );
}
