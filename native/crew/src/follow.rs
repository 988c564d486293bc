//! Threads that don't lead: they wait to, stand by while a job takes long, and step back.
//!
//! Thread: the crew's own.

use std::time::Duration;

use crate::crew::{Crew, SURPLUS_STAYS, Turn};
use crate::lead::State;
use crate::member::Member;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{Arc, lock};

/// How long a job may run before a standby takes over, if others wait.
const STANDBY_LOOKS: Duration = Duration::from_micros(200);

impl<J> Crew<J> {
    /// What a thread without a job does: waits to lead, or stands by. A surplus one ends when there
    /// is nothing to do for a while. After `End` comes `leave`, which passes on a call that came meanwhile.
    pub fn follow(&self, me: &Arc<Member>) -> Turn {
        let surplus = me.is_surplus();
        lock(&self.members).idle.push(me.clone());
        loop {
            let seen = me.signal();
            self.answer_call(me);
            if me.is_retired() || !self.is_open() {
                lock(&self.members).unlist(me);
                return Turn::End;
            }
            if self.lead.is_of(me) || self.take_vacancy(me) {
                return Turn::Lead;
            }
            if self.parallel {
                if self.help(me) {
                    return Turn::Lead;
                }
            } else if !self.is_empty() && !self.armed.swap(true, Ordering::SeqCst) {
                if self.stand_by(me) {
                    return Turn::Lead;
                }
                continue;
            }
            if surplus && self.part(me, false) {
                return Turn::End;
            }
            me.wait(seen, surplus.then_some(SURPLUS_STAYS));
            if surplus && me.signal() == seen && self.part(me, true) {
                return Turn::End;
            }
        }
    }

    /// Takes the lead if nobody has it, or if work waits and the leader waits for somebody else.
    pub(crate) fn take_vacancy(&self, me: &Arc<Member>) -> bool {
        let mut members = lock(&self.members);
        let seen = self.lead.see();
        let vacant = seen.is_vacant() || (seen.state() == State::Blocked && !self.queue.is_empty());
        // Not listed: somebody has promoted it just now, and it leads already.
        let listed = vacant && members.unlist(me);
        if listed {
            self.set_leader(&mut members, me);
        }
        listed
    }

    /// Looks every 200 µs while work waits. `true`: took over from a leader stuck in one job.
    pub(crate) fn stand_by(&self, me: &Arc<Member>) -> bool {
        loop {
            let before = self.started.load(Ordering::Acquire);
            me.wait(me.signal(), Some(STANDBY_LOOKS));
            let stop = me.is_retired() || !self.is_open() || self.lead.is_of(me);
            if stop || self.is_empty() {
                // SeqCst, pairs with the fence in `ring`: a job that came in after `is_empty` is
                // seen by `follow`, which looks again.
                self.armed.store(false, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                return false;
            }
            if self.started.load(Ordering::Acquire) == before && self.take_over(me) {
                self.armed.store(false, Ordering::SeqCst);
                return true;
            }
        }
    }

    /// Leads from now on, unless the leader is free or this thread was promoted meanwhile.
    pub(crate) fn take_over(&self, me: &Arc<Member>) -> bool {
        let mut members = lock(&self.members);
        let stuck = self.lead.see().state() == State::Running;
        let over = stuck && members.unlist(me);
        if over {
            self.set_leader(&mut members, me);
        }
        over
    }

    /// A surplus thread gives the lead to one that stays, so that it can end. `false`: there is none.
    pub(crate) fn step_down(&self, me: &Member) -> bool {
        let next = {
            let mut members = lock(&self.members);
            let stays = members.idle.iter().rposition(|member| !member.is_surplus());
            match stays {
                Some(index) if self.lead.is_of(me) => {
                    let next = members.idle.remove(index);
                    self.set_leader(&mut members, &next);
                    next
                }
                _ => return false,
            }
        };
        next.wake();
        true
    }
}
