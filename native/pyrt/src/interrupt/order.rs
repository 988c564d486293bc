//! Interrupts that were asked for: each is tried until its code has heard of it or has ended, or it is given up.
//!
//! Thread: one at a time, attached to the interpreter of the code.

use std::mem;
use std::time::{Duration, Instant};

use super::{Manner, Sent, pace};

/// What is to be interrupted. `With`: what that takes.
pub trait Aim<With: ?Sized> {
    /// Tries. `None`: there is nothing left to do, as when it was sent for good.
    fn interrupt(&mut self, with: &With, manner: Manner) -> Option<Sent>;

    /// Takes back what was sent briefly. `false`: that was heard, or the code has ended.
    fn take_back(&mut self, with: &With) -> bool;
}

pub struct Order<A> {
    pub aim: A,
    since: Instant,
    /// An exception was sent that has to be taken back.
    briefly: bool,
}

impl<A> Order<A> {
    pub fn new(aim: A) -> Self {
        Order {
            aim,
            since: Instant::now(),
            briefly: false,
        }
    }

    /// Another one for the same: the older one counts.
    pub fn absorb(&mut self, other: &Self) {
        self.since = self.since.min(other.since);
    }

    fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it remains to be seen what comes of it.
    fn is_open_after_try<With: ?Sized>(&mut self, with: &With) -> bool
    where
        A: Aim<With>,
    {
        let age = self.age();
        match self.aim.interrupt(with, Manner::at(age)) {
            None | Some(Sent::Yes) => false,
            Some(Sent::Briefly) => {
                self.briefly = true;
                true
            }
            Some(Sent::No) => !pace::is_given_up(age),
        }
    }

    fn is_open_after_taking_back<With: ?Sized>(&mut self, with: &With) -> bool
    where
        A: Aim<With>,
    {
        if !mem::take(&mut self.briefly) {
            return true;
        }
        self.aim.take_back(with) && !pace::is_given_up(self.age())
    }
}

/// Tries each of them once, and leaves those that are to be tried again. `rest` waits, detached, while what was sent
/// briefly may be heard.
pub fn carry_out<A, With>(orders: &mut Vec<Order<A>>, with: &With, rest: impl FnOnce(Duration))
where
    A: Aim<With>,
    With: ?Sized,
{
    orders.retain_mut(|order| order.is_open_after_try(with));
    let briefly = orders.iter().filter(|order| order.briefly);
    if let Some(oldest) = briefly.map(Order::age).max() {
        rest(pace::take_back_after(oldest));
        orders.retain_mut(|order| order.is_open_after_taking_back(with));
    }
}

/// The time until the next try; `None`: nothing is left.
pub fn pause<A>(orders: &[Order<A>]) -> Option<Duration> {
    orders.iter().map(Order::age).min().map(pace::next_try)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const MINUTES: Duration = Duration::from_secs(120);

    /// Does as it is told, and writes down what it was asked.
    struct Code {
        name: char,
        hears: Vec<Option<Sent>>,
        gives_back: bool,
    }

    type Log = RefCell<Vec<String>>;

    impl Aim<Log> for Code {
        fn interrupt(&mut self, log: &Log, manner: Manner) -> Option<Sent> {
            let how = if manner.patient { "patiently" } else { "again" };
            log.borrow_mut().push(format!("{} {how}", self.name));
            self.hears.remove(0)
        }

        fn take_back(&mut self, log: &Log) -> bool {
            log.borrow_mut().push(format!("{} back", self.name));
            self.gives_back
        }
    }

    fn code(name: char, hears: &[Option<Sent>]) -> Order<Code> {
        Order::new(Code {
            name,
            hears: hears.to_vec(),
            gives_back: true,
        })
    }

    fn aged(mut order: Order<Code>, age: Duration) -> Order<Code> {
        order.since = order.since.checked_sub(age).unwrap_or(order.since);
        order
    }

    fn names(orders: &[Order<Code>]) -> String {
        orders.iter().map(|order| order.aim.name).collect()
    }

    #[test]
    fn what_was_sent_for_good_or_has_ended_is_not_tried_again() {
        let (log, no, yes) = (Log::default(), Some(Sent::No), Some(Sent::Yes));
        let mut orders = vec![code('a', &[yes]), code('b', &[None]), code('c', &[no, yes])];
        carry_out(&mut orders, &log, |_| panic!("nothing was sent briefly"));
        assert_eq!(names(&orders), "c");
        assert!(pause(&orders).is_some());
        carry_out(&mut orders, &log, |_| panic!("nothing was sent briefly"));
        assert!(orders.is_empty() && pause(&orders).is_none());
    }

    #[test]
    fn what_was_sent_briefly_is_taken_back_after_one_rest_for_all() {
        let (log, briefly) = (Log::default(), Some(Sent::Briefly));
        let mut heard = code('b', &[briefly]);
        heard.aim.gives_back = false;
        let mut orders = vec![code('a', &[briefly, None]), heard, code('c', &[briefly])];
        carry_out(&mut orders, &log, |_| {
            log.borrow_mut().push("rest".to_owned())
        });
        let tries = ["a patiently", "b patiently", "c patiently"];
        let seen = log.take();
        assert_eq!(seen[..3], tries);
        assert_eq!(seen[3..], ["rest", "a back", "b back", "c back"]);
        assert_eq!(names(&orders), "ac");
        // A try that sends nothing takes nothing back.
        orders.truncate(1);
        carry_out(&mut orders, &log, |_| panic!("nothing was sent briefly"));
        assert_eq!(log.take(), ["a patiently"]);
    }

    #[test]
    fn code_that_is_never_stopped_is_left_to_itself_without_an_exception() {
        let log = Log::default();
        let never = aged(code('a', &[Some(Sent::No)]), MINUTES);
        let briefly = aged(code('b', &[Some(Sent::Briefly)]), MINUTES);
        let mut orders = vec![never, briefly];
        carry_out(&mut orders, &log, |_| ());
        assert_eq!(log.take(), ["a again", "b again", "b back"]);
        assert!(orders.is_empty());
    }

    #[test]
    fn the_pause_is_that_of_the_youngest_and_the_older_of_two_counts() {
        let old = aged(code('a', &[]), MINUTES);
        let mut young = code('a', &[]);
        let both = pause(&[old, code('b', &[])]);
        assert!(both.is_some_and(|pause| pause < Duration::from_millis(10)));
        young.absorb(&aged(code('a', &[]), MINUTES));
        assert_eq!(pause(&[young]), Some(Duration::from_millis(10)));
    }
}
