//! A bounded table from the bytes of a name to the object that was made for it.
//!
//! I3: the lock is held for look-up and insertion only; what is thrown out is released after it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyrt::{Attached, Kept, Obj};

type Table = HashMap<Box<[u8]>, Kept, BuildHasherDefault<NameHasher>>;

pub(crate) struct Names {
    table: Mutex<Table>,
    limit: usize,
}

impl Names {
    pub fn new(limit: usize) -> Self {
        Names {
            table: Mutex::new(Table::default()),
            limit,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic inside the table's own code leaves a table that is at worst short of a name.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get<'py>(&self, py: Attached<'py>, name: &[u8]) -> Option<Obj<'py>> {
        self.lock().get(name).and_then(|kept| kept.get(py))
    }

    /// Whether this very object is the one of that name.
    pub fn holds(&self, name: &[u8], object: &Obj<'_>) -> bool {
        self.lock().get(name).is_some_and(|kept| kept.is(object))
    }

    /// The object of that name: `object`, or the one that was faster.
    pub fn put<'py>(&self, name: &[u8], object: Obj<'py>) -> Obj<'py> {
        let py = object.py();
        let kept = Kept::new(object.clone());
        let mut table = self.lock();
        if let Some(found) = table.get(name).and_then(|kept| kept.get(py)) {
            drop(table);
            kept.release(py);
            return found;
        }
        let full = if table.len() >= self.limit {
            std::mem::take(&mut *table)
        } else {
            Table::default()
        };
        table.insert(name.into(), kept);
        drop(table);
        full.into_values().for_each(|kept| kept.release(py));
        object
    }

    pub fn clear(&self, py: Attached<'_>) {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().for_each(|kept| kept.release(py));
    }
}

/// Fast on short names. Names that collide on purpose cost time only up to the table's limit.
#[derive(Default)]
struct NameHasher(u64);

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
    }

    fn write_usize(&mut self, len: usize) {
        self.add(len as u64);
    }

    fn finish(&self) -> u64 {
        // The table uses the top bits for one thing and the low bits for another.
        self.0 ^ (self.0 >> 32)
    }
}
