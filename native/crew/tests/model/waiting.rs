//! What waits for a loop, and what waits for a reader.

use crew::sync::{Arc, thread};
use crew::{Credits, Intake, Refused, Ticket};

use super::check;

/// Looks once, as the thread of a loop does when it was told: begins all that is there.
fn look(intake: &Intake<usize>) -> usize {
    intake.seen();
    std::iter::from_fn(|| intake.next_job()).sum()
}

fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(_) => panic!("it panicked"),
    }
}

#[test]
fn a_thread_is_told_of_every_job_that_it_would_not_see() {
    check(|| {
        let intake = Arc::new(Intake::new(2));
        let posters = [1, 10].map(|job| {
            let intake = intake.clone();
            thread::spawn(move || intake.push(job, |_, _| {}).unwrap_or_default())
        });
        let mut begun = look(&intake);
        // A thread that sleeps from here on is woken if one of them says so.
        let told = posters.map(joined).contains(&true);
        if told {
            begun += look(&intake);
        }
        assert_eq!(begun, 11);
        assert!(intake.is_empty() && !intake.comes_again());
    });
}

#[test]
fn a_posted_job_is_begun_or_given_to_who_closes_and_later_ones_are_refused() {
    check(|| {
        let intake = Arc::new(Intake::new(2));
        let poster = {
            let intake = intake.clone();
            thread::spawn(move || match intake.push(3, |_, _| {}) {
                Ok(_) => 3,
                Err((job, why)) => {
                    assert_eq!((job, why), (3, Refused::Closed));
                    0
                }
            })
        };
        let looker = {
            let intake = intake.clone();
            thread::spawn(move || look(&intake))
        };
        intake.close();
        let given_back: usize = intake.take_all().sum();
        assert_eq!(joined(poster), joined(looker) + given_back);
        assert_eq!(intake.resume(5), Err(5));
    });
}

/// A stream without credit waits: its reader acknowledges, or somebody cancels it, at the same time.
fn wait_while(
    meanwhile: impl Fn(&Ticket<Arc<()>>, &Credits) -> bool + Copy + Send + Sync + 'static,
) {
    check(move || {
        let (ticket, credits) = (Arc::new(Ticket::default()), Arc::new(Credits::new(Some(1))));
        let job = Arc::new(());
        assert!(ticket.life().start());
        credits.take();
        let other = {
            let (ticket, credits) = (ticket.clone(), credits.clone());
            thread::spawn(move || meanwhile(&ticket, &credits))
        };
        // `false`: cancelled, the job is over.
        let paused = ticket.life().pause();
        let here = paused && ticket.park(job.clone(), || credits.has()).is_some();
        let there = joined(other);
        assert!(!(here && there), "it goes on twice");
        assert!(
            ticket.unpark().is_none(),
            "nobody would look for it any more"
        );
        if ticket.life().is_cancelled() {
            assert!(!there);
        } else {
            assert!(here || there, "it waits though its reader wants more");
        }
        assert_eq!(Arc::strong_count(&job), 1);
    });
}

#[test]
fn a_stream_that_waits_goes_on_once_when_its_reader_acknowledges() {
    wait_while(|ticket, credits| {
        credits.add(1);
        ticket.unpark().is_some()
    });
}

#[test]
fn a_stream_that_waits_is_let_go_when_it_is_cancelled() {
    wait_while(|ticket, _credits| {
        let _ = ticket.cancel();
        false
    });
}
