//! What each call does to a crew, step by step and on one thread: the members are only names here.
//! How threads meet is in `tests/model`.

mod crew;
mod follow;
mod help;
mod hold;
mod jobs;
mod parts;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::crew::{Admitted, Crew, Plan};
use crate::lead::State;
use crate::member::Member;
use crate::queue::Priority;
use crate::sync::lock;

/// A crew, and how often it has asked for one more thread.
struct Made {
    crew: Crew<usize>,
    asked: Arc<AtomicUsize>,
}

fn make(size: usize, max_threads: usize, parallel: bool) -> Made {
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = asked.clone();
    let crew = Crew::new(Plan {
        size,
        max_threads,
        max_queue: 2,
        parallel,
        start: Box::new(move || {
            asks.fetch_add(1, Ordering::SeqCst);
        }),
    });
    Made { crew, asked }
}

impl Made {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// A new thread of the crew, in a job or about to look for one.
    fn joined(&self) -> Arc<Member> {
        let member = Arc::new(Member::current());
        self.crew.join(&member, false);
        member
    }

    /// One that is parked.
    fn idle(&self) -> Arc<Member> {
        let member = self.joined();
        lock(&self.crew.members).idle.push(member.clone());
        member
    }

    /// The one that leads, which does `state`.
    fn leader(&self, state: State) -> Arc<Member> {
        let member = self.joined();
        self.crew.set_leader(&mut lock(&self.crew.members), &member);
        self.crew.lead.say(&member, state);
        member
    }

    fn state(&self) -> State {
        self.crew.lead.see().state()
    }

    fn leads(&self, member: &Member) -> bool {
        self.crew.lead.is_of(member)
    }

    fn is_listed(&self, member: &Member) -> bool {
        let members = lock(&self.crew.members);
        members.idle.iter().any(|idle| idle.id() == member.id())
    }

    fn push(&self, job: usize) {
        assert_eq!(self.crew.push(job, Priority::Normal), Ok(Admitted::InTime));
    }

    /// A job that nobody is told of.
    fn put(&self, job: usize) {
        assert!(self.crew.queue.push(job, Priority::Normal).is_ok());
    }
}
