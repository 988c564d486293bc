//! Hashes.

use std::collections::BTreeMap;

use super::{Bytes, Data, Keys, Run, count, maybe, pairs, wrong_type};
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

pub(super) const COMMANDS: &[(&str, usize, Run)] = &[
    ("HSET", 3, |keys, args| {
        let pairs = pairs("HSET", &args[1..])?;
        let hash = make(keys, args[0])?;
        let new =
            pairs.filter(|(field, value)| hash.insert(field.to_vec(), value.to_vec()).is_none());
        Ok(count(new.count()))
    }),
    ("HGET", 2, |keys, args| {
        Ok(maybe(
            find(keys, args[0])?.and_then(|hash| hash.get(args[1])),
        ))
    }),
    ("HMGET", 2, |keys, args| {
        let hash = find(keys, args[0])?;
        let fields = args[1..].iter();
        let each = fields.map(|field| maybe(hash.as_ref().and_then(|hash| hash.get(*field))));
        Ok(Reply::Array(each.collect()))
    }),
    ("HGETALL", 1, |keys, args| {
        let pairs = find(keys, args[0])?.into_iter().flatten();
        let flat = pairs.flat_map(|(key, value)| [key.clone(), value.clone()]);
        Ok(Reply::Array(flat.map(Reply::Bytes).collect()))
    }),
    ("HDEL", 2, |keys, args| {
        let Some(hash) = find(keys, args[0])? else {
            return Ok(Reply::Int(0));
        };
        let gone = args[1..]
            .iter()
            .filter(|field| hash.remove(**field).is_some())
            .count();
        if hash.is_empty() {
            keys.remove(args[0]);
        }
        Ok(count(gone))
    }),
    ("HLEN", 1, |keys, args| {
        Ok(count(find(keys, args[0])?.map_or(0, |hash| hash.len())))
    }),
];

type Hash = BTreeMap<Bytes, Bytes>;

fn find<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<Option<&'a mut Hash>, Failure> {
    match keys.get(key).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(wrong_type()),
    }
}

fn make<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<&'a mut Hash, Failure> {
    match keys.make(key, || Data::Hash(Hash::new())) {
        Data::Hash(hash) => Ok(hash),
        _ => Err(wrong_type()),
    }
}
