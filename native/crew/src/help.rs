//! Threads that work beside the leader, in a crew whose jobs run at the same time (`Plan::parallel`).
//!
//! A job that waits behind another one calls an idle thread at once: there is no GIL to hand around. Who
//! has helped goes on while there is work, looks a moment longer, and then waits to be called again.
//!
//! Thread: `back_up` by whoever brings a job; the rest by the crew's own.

use std::time::Duration;

use crate::crew::Crew;
use crate::lead::State;
use crate::member::{Member, spin};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{Arc, lock};

impl<J> Crew<J> {
    /// A job waits behind one that runs.
    pub(crate) fn back_up(&self) {
        if self.armed.load(Ordering::SeqCst) {
            return;
        }
        // The only thread of a crew may be stuck, and have another in its place.
        if !self.parallel || self.is_single() {
            return self.wake_standby();
        }
        // SeqCst, pairs with `linger`: who looks will see the job.
        if self.lingering.load(Ordering::SeqCst) == 0 {
            self.call_helper();
        }
    }

    fn call_helper(&self) {
        let helper = {
            let mut members = lock(&self.members);
            if self.armed.load(Ordering::SeqCst) {
                return;
            }
            let helper = members.idle.pop();
            if helper.is_some() {
                // Until it has looked nobody else is called.
                self.armed.store(true, Ordering::SeqCst);
            }
            helper
        };
        match helper {
            Some(member) => member.wake(),
            None => self.grow(),
        }
    }

    /// A thread that follows and may have been called says that it looks now.
    pub(crate) fn answer_call(&self, me: &Arc<Member>) {
        if !self.parallel {
            return;
        }
        let called = {
            let mut members = lock(&self.members);
            // Whoever follows is listed, unless it was promoted or called.
            let called = !self.lead.is_of(me) && !members.unlist(me);
            if !self.lead.is_of(me) {
                members.idle.push(me.clone());
            }
            called
        };
        if called {
            // SeqCst, pairs with the fence in `ring`: a job whose bringer called nobody because of
            // this call is seen after it.
            self.armed.store(false, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }

    /// Whether this idle thread shall work. It leads too, if the leader is in a job.
    pub(crate) fn help(&self, me: &Arc<Member>) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut members = lock(&self.members);
        // Not listed: somebody has promoted or called it just now.
        let free = members.unlist(me);
        if free && self.lead.see().state() == State::Running {
            self.set_leader(&mut members, me);
        }
        free
    }

    /// One that does not lead has run out of work: looks for `patience`. Whether there is some.
    pub fn linger(&self, me: &Member, patience: Duration) -> bool {
        if !self.parallel || self.lead.is_of(me) || me.is_retired() || !self.is_open() {
            return false;
        }
        self.lingering.fetch_add(1, Ordering::SeqCst);
        let found = spin(patience, || self.queue.has_fresh());
        self.lingering.fetch_sub(1, Ordering::SeqCst);
        // SeqCst, pairs with the fence in `ring`: whoever called nobody because of this thread is
        // seen here.
        fence(Ordering::SeqCst);
        found || !self.is_empty()
    }
}
