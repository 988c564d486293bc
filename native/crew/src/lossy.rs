//! A set for guesses: of a fixed size and without a lock, so it forgets, and seldom takes one thing for another.
//!
//! Thread: any.

use std::hash::{DefaultHasher, Hasher};

use crate::sync::atomic::{AtomicU64, Ordering};

const PLACES: usize = 256;

/// Each place has the hash of what was put there last; 0 is nothing.
#[derive(Debug)]
pub struct LossySet(Box<[AtomicU64]>);

impl Default for LossySet {
    fn default() -> Self {
        LossySet((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl LossySet {
    /// `kind`: the same bytes of another kind are something else.
    pub fn has(&self, kind: u8, bytes: &[u8]) -> bool {
        let hash = hash(kind, bytes);
        // Relaxed, here and below: a guess.
        self.place(hash).load(Ordering::Relaxed) == hash
    }

    pub fn insert(&self, kind: u8, bytes: &[u8]) {
        let hash = hash(kind, bytes);
        self.place(hash).store(hash, Ordering::Relaxed);
    }

    pub fn remove(&self, kind: u8, bytes: &[u8]) {
        let hash = hash(kind, bytes);
        let place = self.place(hash);
        if place.load(Ordering::Relaxed) == hash {
            place.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.0[hash as usize % PLACES]
    }
}

fn hash(kind: u8, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(kind);
    hasher.write(bytes);
    hasher.finish().max(1)
}
