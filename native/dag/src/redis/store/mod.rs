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
struct Keys(HashMap<Bytes, Entry>);

impl Keys {
    fn get(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let gone = self
            .0
            .get(key)?
            .expires
            .is_some_and(|at| at <= clock::now());
        if gone {
            self.0.remove(key);
        }
        self.0.get_mut(key)
    }

    /// The data of a key, made by `new` where there is none.
    fn make(&mut self, key: &[u8], new: fn() -> Data) -> &mut Data {
        // Looks at its time first.
        let _ = self.get(key);
        let entry = self.0.entry(key.to_vec());
        let fresh = || Entry {
            data: new(),
            expires: None,
        };
        &mut entry.or_insert_with(fresh).data
    }

    fn put(&mut self, key: &[u8], data: Data) {
        let expires = None;
        self.0.insert(key.to_vec(), Entry { data, expires });
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.get(key).is_some() && self.0.remove(key).is_some()
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
            let name = name.to_ascii_lowercase();
            let text = format!("ERR wrong number of arguments for '{name}' command");
            return Err(Failure::Server(text));
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
    let to = (place(int(to)?) + 1).min(len);
    Ok(from.min(to.max(0)) as usize..to.max(0) as usize)
}
