//! Keys of (index, generation), and the table they open: a stale key finds nothing (I6).
//!
//! Thread: the loop's own.

/// Names an entry of a `Table` for as long as it is there, and nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub fn from_u64(value: u64) -> Self {
        Key {
            index: value as u32,
            generation: (value >> 32) as u32,
        }
    }
}

struct Slot<T> {
    generation: u32,
    entry: Entry<T>,
}

enum Entry<T> {
    Full(T),
    /// The next free slot; its own index at the end of the list.
    Free(u32),
}

/// Entries by key, each operation in constant time.
pub struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Option<u32>,
    len: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            slots: Vec::new(),
            free: None,
            len: 0,
        }
    }
}

impl<T> Table<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        let Some(index) = self.free else {
            let index = self.slots.len() as u32;
            self.slots.push(Slot {
                generation: 0,
                entry: Entry::Full(value),
            });
            return Key {
                index,
                generation: 0,
            };
        };
        let slot = &mut self.slots[index as usize];
        self.free = match slot.entry {
            Entry::Free(next) if next != index => Some(next),
            _ => None,
        };
        slot.entry = Entry::Full(value);
        Key {
            index,
            generation: slot.generation,
        }
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.index as usize) {
            Some(slot) if slot.generation == key.generation => match &slot.entry {
                Entry::Full(value) => Some(value),
                Entry::Free(_) => None,
            },
            _ => None,
        }
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.index as usize) {
            Some(slot) if slot.generation == key.generation => match &mut slot.entry {
                Entry::Full(value) => Some(value),
                Entry::Free(_) => None,
            },
            _ => None,
        }
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation || matches!(slot.entry, Entry::Free(_)) {
            return None;
        }
        let next = self.free.unwrap_or(key.index);
        let entry = std::mem::replace(&mut slot.entry, Entry::Free(next));
        slot.generation = slot.generation.wrapping_add(1);
        self.free = Some(key.index);
        self.len -= 1;
        match entry {
            Entry::Full(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    /// Every entry with its key.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(index, slot)| {
                let key = Key {
                    index: index as u32,
                    generation: slot.generation,
                };
                match &mut slot.entry {
                    Entry::Full(value) => Some((key, value)),
                    Entry::Free(_) => None,
                }
            })
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| match &slot.entry {
            Entry::Full(value) => Some(value),
            Entry::Free(_) => None,
        })
    }

    /// The key of an entry that is the one looked for.
    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<Key> {
        let found = |slot: &Slot<T>| matches!(&slot.entry, Entry::Full(value) if is(value));
        let index = self.slots.iter().position(found)?;
        let generation = self.slots[index].generation;
        let index = index as u32;
        Some(Key { index, generation })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_though_its_place_is_taken_again() {
        let mut table = Table::default();
        let first = table.insert("first");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second");
        assert_eq!(first.to_u64() as u32, second.to_u64() as u32);
        assert_eq!(table.get(first), None);
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(Key::from_u64(second.to_u64())), Some(&"second"));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn freed_places_are_used_before_new_ones() {
        let mut table = Table::default();
        let keys: Vec<_> = (0..100).map(|n| table.insert(n)).collect();
        for key in &keys {
            table.remove(*key);
        }
        assert!(table.is_empty());
        for n in 0..100 {
            assert!((table.insert(n).to_u64() as u32) < 100);
        }
        assert_eq!(table.iter().count(), 100);
    }
}
