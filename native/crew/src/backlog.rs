//! What was sent to one receiver and not taken yet, bounded by number and by size (I8), and who waits for room.
//!
//! A sender that may wait does so until half of the bound is taken. Nobody waits for a receiver that has been
//! silent for long, until it takes something. An event loop may not wait: its bound is higher, so that loops send
//! while threads wait.
//!
//! Thread: `enter` on the sender's own; the rest under the lock of whoever keeps the backlog, for an instant.

use std::time::{Duration, Instant};

use crate::member::Member;
use crate::sync::Arc;

/// So much is too much.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub items: usize,
    pub bytes: usize,
}

#[derive(Debug)]
pub struct Bounds {
    /// From here on senders wait.
    pub wait: Mark,
    /// From here on those are refused that may not.
    pub refuse: Mark,
    /// A receiver that takes nothing for this long is not waited for.
    pub silence: Duration,
}

/// Whether a sender may wait.
#[derive(Debug)]
pub enum MayWait {
    /// It has not said so yet.
    Unknown,
    /// The calling thread.
    Yes(Arc<Member>),
    /// It runs an event loop.
    Never,
}

/// One that wants to send.
#[derive(Debug)]
pub struct Sender {
    may_wait: MayWait,
    began: Instant,
}

/// What a sender is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Room,
    /// And it does not wait.
    Full,
    /// And the receiver has been silent for long.
    Silent,
    /// And it may wait: `enlist`.
    Behind,
}

#[derive(Debug)]
pub struct Backlog {
    bounds: &'static Bounds,
    size: Mark,
    /// When something was last taken.
    heard: Instant,
    silent: bool,
    waiting: Vec<Arc<Member>>,
}

/// Has the calling thread look until it gets an answer. Where a look gives a time instead, by `enlist`, the next one
/// comes when the backlog wakes it, somebody else does, or that time is over.
pub fn enter<T>(may_wait: MayWait, mut look: impl FnMut(&Sender) -> Result<T, Duration>) -> T {
    let sender = Sender {
        may_wait,
        began: Instant::now(),
    };
    loop {
        // Read before the look: what happens after it changes the count.
        let seen = sender.me().map(|me| me.signal());
        match look(&sender) {
            Ok(answer) => return answer,
            Err(time) => {
                if let (Some(me), Some(seen)) = (sender.me(), seen) {
                    me.wait(seen, Some(time));
                }
            }
        }
    }
}

impl Sender {
    fn me(&self) -> Option<&Arc<Member>> {
        match &self.may_wait {
            MayWait::Yes(me) => Some(me),
            MayWait::Unknown | MayWait::Never => None,
        }
    }
}

impl Backlog {
    pub fn new(bounds: &'static Bounds) -> Self {
        Backlog {
            bounds,
            size: Mark { items: 0, bytes: 0 },
            heard: Instant::now(),
            silent: false,
            waiting: Vec::new(),
        }
    }

    pub fn size(&self) -> Mark {
        self.size
    }

    /// Something was sent.
    pub fn add(&mut self, bytes: usize) {
        self.size.items += 1;
        self.size.bytes += bytes;
    }

    /// The receiver has taken something. Whether it has caught up: then those that wait are to be woken.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.size.items = self.size.items.saturating_sub(1);
        self.size.bytes = self.size.bytes.saturating_sub(bytes);
        self.heard = Instant::now();
        self.silent = false;
        let Mark { items, bytes } = self.bounds.wait;
        // Else every second sender would wait.
        !self.reaches(Mark {
            items: items / 2,
            bytes: bytes / 2,
        })
    }

    /// Those that wait look again.
    pub fn wake(&mut self) {
        for member in self.waiting.drain(..) {
            member.wake();
        }
    }

    /// Whether there is room. `closed`: nobody is let in before it has caught up.
    pub fn look(&mut self, sender: &Sender, closed: bool) -> Look {
        let mark = match &sender.may_wait {
            MayWait::Never => self.bounds.refuse,
            MayWait::Unknown => self.bounds.wait,
            MayWait::Yes(me) => {
                self.waiting.retain(|other| other.id() != me.id());
                self.bounds.wait
            }
        };
        if !closed && !self.reaches(mark) {
            return Look::Room;
        }
        if sender.me().is_none() {
            return Look::Full;
        }
        self.silent |= self.quiet(sender) >= self.bounds.silence;
        if self.silent {
            Look::Silent
        } else {
            Look::Behind
        }
    }

    /// The sender is woken when the receiver has caught up. Gives how long it shall wait for that.
    pub fn enlist(&mut self, sender: &Sender) -> Duration {
        self.waiting.extend(sender.me().cloned());
        let silence = self.bounds.silence;
        let left = silence.checked_sub(self.quiet(sender));
        left.filter(|left| !left.is_zero()).unwrap_or(silence)
    }

    /// For how long nothing was taken while this one wanted to send.
    fn quiet(&self, sender: &Sender) -> Duration {
        self.heard.max(sender.began).elapsed()
    }

    fn reaches(&self, mark: Mark) -> bool {
        self.size.items >= mark.items || self.size.bytes >= mark.bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::sync::lock;

    static BOUNDS: Bounds = Bounds {
        wait: Mark {
            items: 4,
            bytes: 100,
        },
        refuse: Mark {
            items: 8,
            bytes: 200,
        },
        silence: Duration::from_secs(600),
    };
    static HASTY: Bounds = Bounds {
        silence: Duration::from_millis(10),
        ..BOUNDS
    };

    fn sender(may_wait: MayWait) -> Sender {
        Sender {
            may_wait,
            began: Instant::now(),
        }
    }

    fn waiting() -> Sender {
        sender(MayWait::Yes(Arc::new(Member::current())))
    }

    fn signal(sender: &Sender) -> Option<u32> {
        sender.me().map(|me| me.signal())
    }

    /// With that many items of a byte.
    fn backlog(bounds: &'static Bounds, items: usize) -> Backlog {
        let mut backlog = Backlog::new(bounds);
        (0..items).for_each(|_| backlog.add(1));
        backlog
    }

    #[test]
    fn who_may_wait_waits_before_who_may_not_is_refused() {
        let looks = |items| {
            let mut backlog = backlog(&BOUNDS, items);
            [sender(MayWait::Unknown), waiting(), sender(MayWait::Never)]
                .map(|sender| backlog.look(&sender, false))
        };
        assert_eq!(looks(3), [Look::Room; 3]);
        assert_eq!(looks(4), [Look::Full, Look::Behind, Look::Room]);
        assert_eq!(looks(8), [Look::Full, Look::Behind, Look::Full]);
    }

    #[test]
    fn bytes_count_as_items_do() {
        let mut backlog = Backlog::new(&BOUNDS);
        backlog.add(99);
        assert_eq!(backlog.look(&waiting(), false), Look::Room);
        backlog.add(1);
        assert_eq!(backlog.look(&waiting(), false), Look::Behind);
        let Mark { items, bytes } = backlog.size();
        assert_eq!((items, bytes), (2, 100));
        assert!(!backlog.take(50), "half is left");
        assert!(backlog.take(1));
        assert!(backlog.take(1000), "never below nothing");
        assert_eq!(backlog.size().bytes, 0);
    }

    #[test]
    fn those_that_wait_are_woken_once_when_half_is_taken() {
        let mut backlog = backlog(&BOUNDS, 4);
        let waits = waiting();
        assert_eq!(backlog.look(&waits, false), Look::Behind);
        assert!(backlog.enlist(&waits) <= BOUNDS.silence);
        assert!(!backlog.take(1) && !backlog.take(1) && backlog.take(1));
        backlog.wake();
        backlog.wake();
        assert_eq!(signal(&waits), Some(1));
        assert_eq!(backlog.look(&waits, false), Look::Room);
        assert_eq!(backlog.look(&waits, true), Look::Behind, "closed");
    }

    #[test]
    fn who_looks_again_is_on_the_list_no_more() {
        let mut backlog = backlog(&BOUNDS, 4);
        let [waits, leaves] = [waiting(), waiting()];
        for sender in [&waits, &leaves] {
            backlog.enlist(sender);
        }
        assert_eq!(backlog.look(&leaves, false), Look::Behind);
        assert_eq!(backlog.waiting.len(), 1);
        backlog.wake();
        assert_eq!((signal(&waits), signal(&leaves)), (Some(1), Some(0)));
    }

    #[test]
    fn a_silent_receiver_is_not_waited_for_until_it_takes_something() {
        let mut backlog = backlog(&HASTY, 6);
        let first = waiting();
        assert_eq!(backlog.look(&first, false), Look::Behind);
        while first.began.elapsed() < HASTY.silence {
            std::thread::yield_now();
        }
        assert_eq!(backlog.look(&first, false), Look::Silent);
        assert_eq!(backlog.look(&waiting(), false), Look::Silent);
        // Who waits all the same waits for as long again.
        assert_eq!(backlog.enlist(&first), HASTY.silence);
        assert!(!backlog.take(1));
        assert_eq!(backlog.look(&waiting(), false), Look::Behind);
    }

    #[test]
    fn a_sender_waits_until_there_is_room() {
        let backlog = Mutex::new(backlog(&BOUNDS, 4));
        std::thread::scope(|scope| {
            let sends = scope.spawn(|| {
                let mut looks = 0;
                let may_wait = MayWait::Yes(Arc::new(Member::current()));
                enter(may_wait, |sender| {
                    looks += 1;
                    let mut backlog = lock(&backlog);
                    match backlog.look(sender, false) {
                        Look::Room => Ok(looks),
                        _ => Err(backlog.enlist(sender)),
                    }
                })
            });
            while lock(&backlog).waiting.is_empty() {
                std::thread::yield_now();
            }
            while !lock(&backlog).take(1) {}
            lock(&backlog).wake();
            assert!(matches!(sends.join(), Ok(2)));
        });
    }
}
