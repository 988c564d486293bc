//! Sets.

use std::collections::BTreeSet;

use super::{Bytes, Data, Keys, Run, count, wrong_type};
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

pub(super) const COMMANDS: &[(&str, usize, Run)] = &[
    ("SADD", 2, |keys, args| {
        let set = make(keys, args[0])?;
        let new = args[1..].iter().filter(|item| set.insert(item.to_vec()));
        Ok(count(new.count()))
    }),
    ("SREM", 2, |keys, args| {
        let Some(set) = find(keys, args[0])? else {
            return Ok(Reply::Int(0));
        };
        let gone = args[1..].iter().filter(|item| set.remove(**item)).count();
        if set.is_empty() {
            keys.remove(args[0]);
        }
        Ok(count(gone))
    }),
    ("SMEMBERS", 1, |keys, args| {
        let items = find(keys, args[0])?
            .into_iter()
            .flat_map(|set| set.iter().cloned());
        Ok(Reply::Array(items.map(Reply::Bytes).collect()))
    }),
    ("SISMEMBER", 2, |keys, args| {
        let found = find(keys, args[0])?.is_some_and(|set| set.contains(args[1]));
        Ok(Reply::Int(found.into()))
    }),
    ("SCARD", 1, |keys, args| {
        Ok(count(find(keys, args[0])?.map_or(0, |set| set.len())))
    }),
];

type Set = BTreeSet<Bytes>;

fn find<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<Option<&'a mut Set>, Failure> {
    match keys.get(key).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::Set(set)) => Ok(Some(set)),
        Some(_) => Err(wrong_type()),
    }
}

fn make<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<&'a mut Set, Failure> {
    match keys.make(key, || Data::Set(Set::new())) {
        Data::Set(set) => Ok(set),
        _ => Err(wrong_type()),
    }
}
