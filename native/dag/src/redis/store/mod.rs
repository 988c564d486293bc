//! The embedded store: the commands of graphs answered in memory, as Redis answers them (RESP2).
//!
//! Thread: any; a command holds the lock while it runs, and none of them waits.

mod hashes;
mod lists;
mod sets;
mod sorted;
mod strings;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use reactor::clock;

use crate::redis::failure::Failure;
use crate::redis::resp::Reply;
use crate::sync::{Mutex, lock};

type Bytes = Vec<u8>;
type Run = fn(&mut Keys, &[&[u8]]) -> Result<Reply, Failure>;

enum Data {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    List(VecDeque<Bytes>),
    Set(BTreeSet<Bytes>),
    Sorted(BTreeMap<Bytes, f64>),
}

struct Entry {
    data: Data,
    /// When it is gone, by the monotonic clock.
    expires: Option<u64>,
}

#[derive(Default)]
struct Keys {
    entries: HashMap<Bytes, Entry>,
    /// How often a key was given a time since those that are over were looked for.
    timed: usize,
}

impl Keys {
    fn get(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let gone = self
            .entries
            .get(key)?
            .expires
            .is_some_and(|at| at <= clock::now());
        if gone {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    /// The data of a key, made by `new` where there is none.
    fn make(&mut self, key: &[u8], new: fn() -> Data) -> &mut Data {
        // Looks at its time first.
        let _ = self.get(key);
        let entry = self.entries.entry(key.to_vec());
        let fresh = || Entry {
            data: new(),
            expires: None,
        };
        &mut entry.or_insert_with(fresh).data
    }

    fn put(&mut self, key: &[u8], data: Data) {
        let expires = None;
        self.entries.insert(key.to_vec(), Entry { data, expires });
    }

    /// A key was given a time. Keys that nobody asks for again are thrown out here, in a sweep that comes the
    /// later the more keys there are.
    fn note_time(&mut self) {
        self.timed += 1;
        if self.timed > self.entries.len() / 2 + 64 {
            let now = clock::now();
            self.entries
                .retain(|_, entry| entry.expires.is_none_or(|at| at > now));
            self.timed = 0;
        }
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.get(key).is_some() && self.entries.remove(key).is_some()
    }
}

#[derive(Default)]
pub(crate) struct Store(Mutex<Keys>);

impl Store {
    pub fn run<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Reply, Failure> {
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        let Some((name, args)) = args.split_first() else {
            return Err(error("ERR empty command"));
        };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        let Some((least, run)) = find(&name) else {
            let text = format!("ERR unknown command '{name}' of the embedded store");
            return Err(Failure::Server(text));
        };
        if args.len() < least {
            return Err(wrong_count(&name));
        }
        run(&mut lock(&self.0), args)
    }
}

/// A command by its name: how many arguments it needs at least, and what it does.
fn find(name: &str) -> Option<(usize, Run)> {
    let tables = [
        strings::COMMANDS,
        hashes::COMMANDS,
        lists::COMMANDS,
        sets::COMMANDS,
        sorted::COMMANDS,
    ];
    let mut rows = tables.into_iter().flatten();
    rows.find_map(|(row, least, run)| (*row == name).then_some((*least, *run)))
}

fn error(text: &str) -> Failure {
    Failure::Server(text.to_owned())
}

fn wrong_count(name: &str) -> Failure {
    let name = name.to_ascii_lowercase();
    Failure::Server(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

/// Keys and values, or what else comes in pairs.
fn pairs<'a, 'b>(
    name: &str,
    args: &'a [&'b [u8]],
) -> Result<impl Iterator<Item = (&'b [u8], &'b [u8])> + 'a, Failure> {
    match args.len().is_multiple_of(2) {
        true => Ok(args.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
        false => Err(wrong_count(name)),
    }
}

fn wrong_type() -> Failure {
    error("WRONGTYPE Operation against a key holding the wrong kind of value")
}

fn ok() -> Reply {
    Reply::Simple("OK".to_owned())
}

fn int(bytes: &[u8]) -> Result<i64, Failure> {
    let text = std::str::from_utf8(bytes).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| error("ERR value is not an integer or out of range"))
}

fn count(count: usize) -> Reply {
    Reply::Int(count as i64)
}

fn maybe(bytes: Option<&Bytes>) -> Reply {
    bytes.map_or(Reply::Nil, |bytes| Reply::Bytes(bytes.clone()))
}

/// The part of `len` items that `from` and `to` name, counted from the end where negative.
fn slice(len: usize, from: &[u8], to: &[u8]) -> Result<std::ops::Range<usize>, Failure> {
    let len = len as i64;
    let place = |n: i64| if n < 0 { len + n } else { n };
    let from = place(int(from)?).max(0);
    let to = place(int(to)?).saturating_add(1).min(len);
    Ok(from.min(to.max(0)) as usize..to.max(0) as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn run(store: &Store, command: &str) -> Result<Reply, Failure> {
        store.run(&command.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn a_range_may_end_at_the_largest_number() {
        let store = Store::default();
        assert_eq!(run(&store, "RPUSH list a b"), Ok(Reply::Int(2)));
        let all = run(&store, "LRANGE list 0 9223372036854775807");
        assert!(matches!(all, Ok(Reply::Array(items)) if items.len() == 2));
    }

    #[test]
    fn a_key_without_its_value_is_an_error_and_nothing_is_written() {
        let store = Store::default();
        for odd in ["MSET a 1 b", "HSET hash a 1 b", "ZADD sorted 1 a 2"] {
            assert!(matches!(run(&store, odd), Err(Failure::Server(_))), "{odd}");
        }
        assert_eq!(run(&store, "DBSIZE"), Ok(Reply::Int(0)));
    }

    #[test]
    fn keys_whose_time_is_over_are_thrown_out_though_nobody_asks_for_them() {
        let store = Store::default();
        assert_eq!(run(&store, "SET stays 1"), Ok(ok()));
        for n in 0..10_000 {
            assert_eq!(run(&store, &format!("SET nonce:{n} 1 PX 0")), Ok(ok()));
        }
        assert!(lock(&store.0).entries.len() < 500);
        assert!(matches!(run(&store, "GET stays"), Ok(Reply::Bytes(_))));
    }
}
