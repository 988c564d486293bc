//! Lists.

use std::collections::VecDeque;

use super::{Bytes, Data, Keys, Run, count, slice, wrong_type};
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

pub(super) const COMMANDS: &[(&str, usize, Run)] = &[
    ("RPUSH", 2, |keys, args| {
        let list = make(keys, args[0])?;
        list.extend(args[1..].iter().map(|item| item.to_vec()));
        Ok(count(list.len()))
    }),
    ("LPUSH", 2, |keys, args| {
        let list = make(keys, args[0])?;
        args[1..]
            .iter()
            .for_each(|item| list.push_front(item.to_vec()));
        Ok(count(list.len()))
    }),
    ("LPOP", 1, |keys, args| {
        pop(keys, args[0], VecDeque::pop_front)
    }),
    ("RPOP", 1, |keys, args| {
        pop(keys, args[0], VecDeque::pop_back)
    }),
    ("LLEN", 1, |keys, args| {
        Ok(count(find(keys, args[0])?.map_or(0, |list| list.len())))
    }),
    ("LRANGE", 3, |keys, args| {
        let Some(list) = find(keys, args[0])? else {
            return Ok(Reply::Array(Vec::new()));
        };
        let range = slice(list.len(), args[1], args[2])?;
        let items = list.range(range).cloned();
        Ok(Reply::Array(items.map(Reply::Bytes).collect()))
    }),
];

type List = VecDeque<Bytes>;

fn find<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<Option<&'a mut List>, Failure> {
    match keys.get(key).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::List(list)) => Ok(Some(list)),
        Some(_) => Err(wrong_type()),
    }
}

fn make<'a>(keys: &'a mut Keys, key: &[u8]) -> Result<&'a mut List, Failure> {
    match keys.make(key, || Data::List(List::new())) {
        Data::List(list) => Ok(list),
        _ => Err(wrong_type()),
    }
}

fn pop(keys: &mut Keys, key: &[u8], end: fn(&mut List) -> Option<Bytes>) -> Result<Reply, Failure> {
    let Some(list) = find(keys, key)? else {
        return Ok(Reply::Nil);
    };
    let item = end(list);
    if list.is_empty() {
        keys.remove(key);
    }
    Ok(item.map_or(Reply::Nil, Reply::Bytes))
}
