//! Object references: `{'$py_ref', Interp, Index, Generation, Resource}`.
//!
//! The table keeps the object; the resource's end posts a release, which is applied only after
//! every job submitted before it has decoded (I10): such a job may name the object in its bytes.
//!
//! Thread: shared. `Drop` of the resource runs on schedulers and only posts.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyrt::{Attached, Kept, Obj};
use rustler::ResourceArc;

use crate::release;
use crew::sync::lock;

#[derive(Clone, Default)]
pub struct Exported(Arc<Table>);

#[derive(Default)]
struct Table {
    places: Mutex<Places>,
    released: Mutex<Releases>,
    decoding: Decoding,
}

#[derive(Default)]
struct Places {
    places: Vec<Place>,
    free: Vec<usize>,
    /// How many objects were exported.
    count: u64,
    /// Keyed by the system's random numbers.
    secret: RandomState,
}

impl Places {
    /// A number that nobody can guess: who makes up a reference must not find an object by it. Small
    /// enough to be one word of Erlang, never 0 and never given again, but for chance.
    fn generation(&mut self) -> u64 {
        self.count += 1;
        (self.secret.hash_one(self.count) >> 6).max(1)
    }
}

#[derive(Default)]
struct Place {
    generation: u64,
    object: Option<Arc<Kept>>,
}

/// Jobs admitted and not yet decoded, in two alternating counts: new ones go into one of them, so
/// the other runs dry.
#[derive(Default)]
struct Decoding {
    current: AtomicUsize,
    counts: [AtomicUsize; 2],
}

#[derive(Default)]
struct Releases {
    /// Posted, not yet in a batch.
    fresh: Vec<(usize, u64)>,
    batch: Vec<(usize, u64)>,
    /// Which counts were seen at zero since the batch was made.
    dry: [bool; 2],
}

/// Held by a job from its admission, and by an answer of Erlang from its arrival, until it is decoded.
pub struct Decodes {
    table: Arc<Table>,
    side: usize,
}

impl Drop for Decodes {
    fn drop(&mut self) {
        // Release, pairs with the acquire in `release_due`.
        self.table.decoding.counts[self.side].fetch_sub(1, Ordering::Release);
    }
}

/// The Erlang side of an exported object.
pub struct ObjectRef {
    table: Arc<Table>,
    pub index: usize,
    pub generation: u64,
}

#[rustler::resource_impl]
impl rustler::Resource for ObjectRef {}

impl Drop for ObjectRef {
    fn drop(&mut self) {
        lock(&self.table.released)
            .fresh
            .push((self.index, self.generation));
        release::soon();
    }
}

impl Exported {
    /// A job was admitted: what it may name stays until it has decoded.
    pub fn decodes(&self) -> Decodes {
        let side = self.0.decoding.current.load(Ordering::Relaxed) & 1;
        // AcqRel, pairs with `release_due`: the submit that counts here comes before any release
        // its caller can cause later.
        self.0.decoding.counts[side].fetch_add(1, Ordering::AcqRel);
        Decodes {
            table: self.0.clone(),
            side,
        }
    }

    pub fn export(&self, object: Obj<'_>) -> ResourceArc<ObjectRef> {
        let kept = Arc::new(Kept::new(object));
        let mut table = lock(&self.0.places);
        let index = match table.free.pop() {
            Some(index) => index,
            None => {
                table.places.push(Place::default());
                table.places.len() - 1
            }
        };
        let generation = table.generation();
        let place = &mut table.places[index];
        place.generation = generation;
        place.object = Some(kept);
        ResourceArc::new(ObjectRef {
            table: self.0.clone(),
            index,
            generation,
        })
    }

    pub fn find<'py>(&self, py: Attached<'py>, index: u64, generation: u64) -> Option<Obj<'py>> {
        let kept = {
            let table = lock(&self.0.places);
            let place = table.places.get(usize::try_from(index).ok()?)?;
            if place.generation != generation {
                return None;
            }
            place.object.clone()?
        };
        kept.get(py)
    }

    pub fn count(&self) -> usize {
        let table = lock(&self.0.places);
        table.places.len() - table.free.len()
    }

    /// How many of them Erlang still has: without those whose release waits for its time.
    pub fn held(&self) -> usize {
        let released = {
            let released = lock(&self.0.released);
            released.fresh.len() + released.batch.len()
        };
        self.count().saturating_sub(released)
    }

    /// Applies the releases whose time has come. Cheap when there are none.
    pub fn release_due(&self, py: Attached<'_>) {
        for (index, generation) in self.due() {
            let object = {
                let mut table = lock(&self.0.places);
                match table.places.get_mut(index) {
                    Some(place) if place.generation == generation => {
                        let object = place.object.take();
                        table.free.push(index);
                        object
                    }
                    _ => None,
                }
            };
            // I3: no lock is held while the object's destructor runs.
            if let Some(kept) = object.and_then(Arc::into_inner) {
                kept.release(py);
            }
        }
    }

    /// Whether releases are waiting.
    pub fn pending(&self) -> bool {
        let released = lock(&self.0.released);
        !released.fresh.is_empty() || !released.batch.is_empty()
    }

    fn due(&self) -> Vec<(usize, u64)> {
        let mut released = lock(&self.0.released);
        if released.batch.is_empty() {
            if released.fresh.is_empty() {
                return Vec::new();
            }
            released.batch = std::mem::take(&mut released.fresh);
            released.dry = [false; 2];
        }
        let decoding = &self.0.decoding;
        for side in 0..2 {
            // Acquire, pairs with `Decodes::drop`.
            if decoding.counts[side].load(Ordering::Acquire) == 0 {
                released.dry[side] = true;
            }
        }
        if released.dry == [true; 2] {
            return std::mem::take(&mut released.batch);
        }
        // New jobs go to the side that was seen dry; the other one runs dry.
        let side = usize::from(released.dry[1] && !released.dry[0]);
        decoding.current.store(side, Ordering::Relaxed);
        Vec::new()
    }
}
