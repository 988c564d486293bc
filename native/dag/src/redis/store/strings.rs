//! Keys, strings and numbers.

use reactor::clock;

use super::{Data, Entry, Keys, Run, count, error, int, maybe, ok, pairs, wrong_type};
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

pub(super) const COMMANDS: &[(&str, usize, Run)] = &[
    ("ECHO", 1, |_, args| Ok(Reply::Bytes(args[0].to_vec()))),
    ("PING", 0, |_, args| match args.first() {
        Some(text) => Ok(Reply::Bytes(text.to_vec())),
        None => Ok(Reply::Simple("PONG".to_owned())),
    }),
    ("GET", 1, get),
    ("SET", 2, set),
    ("MGET", 1, |keys, args| {
        let each = args
            .iter()
            .map(|key| get(keys, &[key]).unwrap_or(Reply::Nil));
        Ok(Reply::Array(each.collect()))
    }),
    ("MSET", 2, |keys, args| {
        for (key, value) in pairs("MSET", args)? {
            keys.put(key, Data::Text(value.to_vec()));
        }
        Ok(ok())
    }),
    ("DEL", 1, |keys, args| {
        Ok(count(args.iter().filter(|key| keys.remove(key)).count()))
    }),
    ("EXISTS", 1, |keys, args| {
        Ok(count(
            args.iter().filter(|key| keys.get(key).is_some()).count(),
        ))
    }),
    ("INCR", 1, |keys, args| add(keys, args[0], 1)),
    ("DECR", 1, |keys, args| add(keys, args[0], -1)),
    ("INCRBY", 2, |keys, args| add(keys, args[0], int(args[1])?)),
    ("EXPIRE", 2, |keys, args| expire(keys, args, 1_000_000_000)),
    ("PEXPIRE", 2, |keys, args| expire(keys, args, 1_000_000)),
    ("TTL", 1, |keys, args| {
        Ok(Reply::Int(left(keys, args[0], 1_000_000_000)))
    }),
    ("PTTL", 1, |keys, args| {
        Ok(Reply::Int(left(keys, args[0], 1_000_000)))
    }),
    ("FLUSHALL", 0, flush),
    ("FLUSHDB", 0, flush),
    ("DBSIZE", 0, |keys, _| Ok(count(keys.entries.len()))),
    ("SELECT", 1, |_, _| Ok(ok())),
];

fn flush(keys: &mut Keys, _: &[&[u8]]) -> Result<Reply, Failure> {
    keys.entries.clear();
    Ok(ok())
}

fn get(keys: &mut Keys, args: &[&[u8]]) -> Result<Reply, Failure> {
    match keys.get(args[0]).map(|entry| &entry.data) {
        None => Ok(Reply::Nil),
        Some(Data::Text(text)) => Ok(maybe(Some(text))),
        Some(_) => Err(wrong_type()),
    }
}

fn set(keys: &mut Keys, args: &[&[u8]]) -> Result<Reply, Failure> {
    let mut expires = None;
    let mut options = args[2..].iter();
    while let Some(option) = options.next() {
        let there = keys.get(args[0]).is_some();
        let unit = match option.to_ascii_uppercase().as_slice() {
            b"NX" if there => return Ok(Reply::Nil),
            b"XX" if !there => return Ok(Reply::Nil),
            b"NX" | b"XX" => continue,
            b"EX" => 1_000_000_000,
            b"PX" => 1_000_000,
            _ => return Err(error("ERR syntax error")),
        };
        let time = options.next().ok_or_else(|| error("ERR syntax error"))?;
        expires = Some(later(int(time)?, unit));
    }
    let data = Data::Text(args[1].to_vec());
    keys.entries
        .insert(args[0].to_vec(), Entry { data, expires });
    if expires.is_some() {
        keys.note_time();
    }
    Ok(ok())
}

fn later(time: i64, unit: u64) -> u64 {
    let nanos = u64::try_from(time).unwrap_or(0).saturating_mul(unit);
    clock::now().saturating_add(nanos)
}

fn add(keys: &mut Keys, key: &[u8], by: i64) -> Result<Reply, Failure> {
    let Data::Text(text) = keys.make(key, || Data::Text(b"0".to_vec())) else {
        return Err(wrong_type());
    };
    let sum = int(text)?.checked_add(by);
    let sum = sum.ok_or_else(|| error("ERR increment or decrement would overflow"))?;
    *text = sum.to_string().into_bytes();
    Ok(Reply::Int(sum))
}

fn expire(keys: &mut Keys, args: &[&[u8]], unit: u64) -> Result<Reply, Failure> {
    let at = later(int(args[1])?, unit);
    let Some(entry) = keys.get(args[0]) else {
        return Ok(Reply::Int(0));
    };
    entry.expires = Some(at);
    keys.note_time();
    Ok(Reply::Int(1))
}

/// -2 without the key, -1 without a time, as Redis says it.
fn left(keys: &mut Keys, key: &[u8], unit: u64) -> i64 {
    match keys.get(key).map(|entry| entry.expires) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => (at.saturating_sub(clock::now()).div_ceil(unit)) as i64,
    }
}
