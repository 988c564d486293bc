//! Jobs whose answers are known by a reference that the caller has made itself: found by it, to be cancelled.
//!
//! Thread: schedulers, and whichever lets go of a job. A lock, a look into a map.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use crew::sync::lock;
use rustler::Term;

use crate::ticket::Ticket;

/// By the bytes of the reference.
type Jobs = HashMap<Vec<u8>, Vec<Arc<Ticket>>>;

/// An entry lives as long as the job's reply, so the map has the bound of the queues (I8).
static JOBS: LazyLock<Mutex<Jobs>> = LazyLock::new(Mutex::default);

/// Keeps a job findable.
pub struct Given {
    key: Vec<u8>,
    id: u64,
}

impl Given {
    /// `None`: the name is no reference, and nobody can cancel by it.
    pub fn new(name: Term<'_>, ticket: &Arc<Ticket>) -> Option<Self> {
        let key = key(name)?;
        let mut jobs = lock(&JOBS);
        jobs.entry(key.clone()).or_default().push(ticket.clone());
        drop(jobs);
        Some(Given {
            key,
            id: ticket.id(),
        })
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let mut jobs = lock(&JOBS);
        // Other jobs may have the same name.
        if let Some(same) = jobs.get_mut(&self.key) {
            same.retain(|job| job.id() != self.id);
            if same.is_empty() {
                jobs.remove(&self.key);
            }
        }
    }
}

/// The jobs that have this name now.
pub fn find(name: Term<'_>) -> Vec<Arc<Ticket>> {
    let key = key(name);
    let named = key.and_then(|key| lock(&JOBS).get(&key).cloned());
    named.unwrap_or_default()
}

fn key(name: Term<'_>) -> Option<Vec<u8>> {
    name.is_ref().then(|| name.to_binary().as_slice().to_vec())
}
