//! Sorted sets: by score, equal scores by name.

use std::collections::BTreeMap;

use super::{Bytes, Data, Keys, Run, count, error, pairs, slice, wrong_type};
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

pub(super) const COMMANDS: &[(&str, usize, Run)] = &[
    ("ZADD", 3, |keys, args| {
        let scored: Result<Vec<_>, Failure> = pairs("ZADD", &args[1..])?
            .map(|(number, name)| Ok((score(number)?, name.to_vec())))
            .collect();
        let scored = scored?;
        let set = make(keys, args[0])?;
        let new = scored
            .into_iter()
            .filter(|(score, name)| set.insert(name.clone(), *score).is_none());
        Ok(count(new.count()))
    }),
    ("ZSCORE", 2, |keys, args| {
        let found = find(keys, args[0])?.and_then(|set| set.get(args[1]).copied());
        Ok(found.map_or(Reply::Nil, shown))
    }),
    ("ZCARD", 1, |keys, args| {
        Ok(count(find(keys, args[0])?.map_or(0, |set| set.len())))
    }),
    ("ZREM", 2, |keys, args| {
        let Some(set) = find(keys, args[0])? else {
            return Ok(Reply::Int(0));
        };
        let gone = args[1..]
            .iter()
            .filter(|name| set.remove(**name).is_some())
            .count();
        if set.is_empty() {
            keys.remove(args[0]);
        }
        Ok(count(gone))
    }),
    ("ZRANGE", 3, range),
];

fn range(keys: &mut Keys, args: &[&[u8]]) -> Result<Reply, Failure> {
    let (mut reversed, mut scores) = (false, false);
    for option in &args[3..] {
        match option.to_ascii_uppercase().as_slice() {
            b"REV" => reversed = true,
            b"WITHSCORES" => scores = true,
            _ => return Err(error("ERR syntax error")),
        }
    }
    let Some(set) = find(keys, args[0])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let mut items: Vec<(&Bytes, f64)> = set.iter().map(|(name, score)| (name, *score)).collect();
    // Stable: equal scores stay in the order of their names.
    items.sort_by(|a, b| a.1.total_cmp(&b.1));
    if reversed {
        items.reverse();
    }
    let mut list = Vec::new();
    for (name, score) in &items[slice(items.len(), args[1], args[2])?] {
        list.push(Reply::Bytes((*name).clone()));
        if scores {
            list.push(shown(*score));
        }
    }
    Ok(Reply::Array(list))
}

fn score(bytes: &[u8]) -> Result<f64, Failure> {
    let text = std::str::from_utf8(bytes).ok();
    let number = text.and_then(|text| text.parse::<f64>().ok());
    let number = number.filter(|number| !number.is_nan());
    number.ok_or_else(|| error("ERR value is not a valid float"))
}

fn shown(score: f64) -> Reply {
    Reply::Bytes(score.to_string().into_bytes())
}

type Sorted = BTreeMap<Bytes, f64>;

fn find<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<Option<&'a mut Sorted>, Failure> {
    match keys.get(key).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::Sorted(set)) => Ok(Some(set)),
        Some(_) => Err(wrong_type()),
    }
}

fn make<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<&'a mut Sorted, Failure> {
    match keys.make(key, || Data::Sorted(Sorted::new())) {
        Data::Sorted(set) => Ok(set),
        _ => Err(wrong_type()),
    }
}
