//! Crews whose threads are started by those who bring work, and go when nobody has any.
//!
//! All their threads are surplus. One that finds nothing to do for a while ends, unless somebody holds the crew:
//! then more work may come from where no thread can be started.
//!
//! Thread: `hold`, `release` and `dismiss` by anyone; the rest by the crew's own.

use crate::crew::Crew;
use crate::member::Member;
use crate::sync::lock;

impl<J> Crew<J> {
    /// Work will come. Gives the number of threads that the caller shall start, so that there are `wanted`; each
    /// will `join` as a surplus one or be `lost`.
    pub fn hold(&self, wanted: usize) -> usize {
        let mut members = lock(&self.members);
        members.held += 1;
        members.guests_only = true;
        members.dismissed = false;
        let more = wanted.saturating_sub(members.all.len() + members.coming);
        members.coming += more;
        more
    }

    /// No more comes from this one.
    pub fn release(&self) {
        let mut members = lock(&self.members);
        members.held = members.held.saturating_sub(1);
    }

    /// The threads end when nothing waits, whoever holds the crew, until it is held anew.
    pub fn dismiss(&self) {
        let all = {
            let mut members = lock(&self.members);
            members.dismissed = true;
            members.all.clone()
        };
        all.iter().for_each(|member| member.wake());
    }

    /// A surplus thread that follows and has nothing to do ends, and is counted no more. `rested`: it has waited.
    pub(crate) fn part(&self, me: &Member, rested: bool) -> bool {
        let mut members = lock(&self.members);
        let may = members.dismissed && self.is_empty() || rested && members.held == 0;
        let parts = may && members.unlist(me);
        if parts {
            members.strike(me);
        }
        parts
    }

    /// The same for the one that leads, where threads come for those who hold the crew: it leads no more.
    pub(crate) fn part_leading(&self, me: &Member, rested: bool) {
        let mut members = lock(&self.members);
        let may = members.dismissed || rested && members.held == 0;
        if may && members.guests_only && self.is_empty() && self.lead.is_of(me) {
            members.leader = None;
            members.strike(me);
            self.lead.vacate();
            drop(members);
            me.retire();
        }
    }
}
