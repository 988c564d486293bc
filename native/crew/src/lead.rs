//! The lead: who has it and what it does, in one word, so that a thread that has lost it can't
//! speak for the one that has it.

use crate::member::Member;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What the leader does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Awake, about to look for a job.
    Idle = 0,
    /// In a job.
    Running = 1,
    Sleeping = 2,
    /// In a job that waits for somebody else: it will not come back for more before. Also: there
    /// is no leader.
    Blocked = 3,
}

/// One reading of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    fn new(leader: usize, state: State) -> Self {
        Seen((leader as u64) << 2 | state as u64)
    }

    pub fn leader(self) -> usize {
        (self.0 >> 2) as usize
    }

    pub fn state(self) -> State {
        match self.0 & 3 {
            0 => State::Idle,
            1 => State::Running,
            2 => State::Sleeping,
            _ => State::Blocked,
        }
    }

    /// Nobody leads: the next thread that comes by does.
    pub fn is_vacant(self) -> bool {
        self.leader() == 0
    }
}

#[derive(Debug)]
pub(crate) struct Lead(AtomicU64);

impl Lead {
    pub fn vacant() -> Self {
        Lead(AtomicU64::new(Seen::new(0, State::Blocked).0))
    }

    pub fn see(&self) -> Seen {
        // Acquire, pairs with the releases below.
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Only under the lock of the members: they know the leader by name.
    pub fn give(&self, member: &Member) {
        let now = Seen::new(member.id(), State::Idle);
        self.0.store(now.0, Ordering::Release);
    }

    /// Only under the lock of the members.
    pub fn vacate(&self) {
        let now = Seen::new(0, State::Blocked);
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub fn is_of(&self, member: &Member) -> bool {
        self.see().leader() == member.id()
    }

    /// Whoever has seen the leader asleep and changes it so must wake it.
    pub fn rouse(&self, seen: Seen) -> bool {
        let now = Seen::new(seen.leader(), State::Idle);
        self.change(seen, now)
    }

    /// The leader says what it does. `false`: it leads no more.
    pub fn say(&self, member: &Member, state: State) -> bool {
        let mut seen = self.see();
        while seen.leader() == member.id() {
            if self.change(seen, Seen::new(member.id(), state)) {
                return true;
            }
            seen = self.see();
        }
        false
    }

    fn change(&self, from: Seen, to: Seen) -> bool {
        self.0
            .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
