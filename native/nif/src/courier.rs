//! Messages that users receive and that may not be built on this thread: `py_courier` builds them.
//!
//! Thread: any of ours.
//! Never: posts what is not counted (`lanes`); waits.

use rustler::{Env, LocalPid};

use crate::atoms;
use crate::erts::{MsgEnv, Raw};
use crate::lanes::{self, HERE, Owed};

/// Maps up to this size are flat: they may be built on any thread of any OTP release.
const FLAT_MAP: usize = 32;

/// A new courier: the answers that were lost with the one before it are errors.
pub fn set(caller: Env<'_>, pid: LocalPid) {
    for mut owed in lanes::set(pid) {
        match owed.alias {
            Some(alias) => _ = forward(Some(caller), &mut owed.env, alias, owed.message, None),
            None => _ = owed.env.send_from(caller, &owed.to, owed.message),
        }
    }
}

pub fn may_build(widest_map: usize) -> bool {
    widest_map <= FLAT_MAP
}

/// Whether somebody waits for what is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The answer to the job, or the last message of a stream.
    Answer,
    Item,
}

/// `{relay, Number, To, Head, Bytes}`: the courier sends `{Tag, Ref, binary_to_term(Bytes)}`.
pub fn relay(
    env: &mut MsgEnv,
    to: &LocalPid,
    head: &[Raw; 2],
    bytes: &[u8],
    wanted: Wanted,
) -> bool {
    let owed = (wanted == Wanted::Answer).then(|| owed(env, to, head));
    let number = lanes::count(HERE, bytes.len(), owed);
    let head = env.list(head);
    post_bytes(env, number, Raw::pid(to), head, bytes)
}

/// `{forward, Number, To, Message}`: a message whose term is built already, behind earlier ones, to a process or an
/// alias. On a scheduler `caller` is the environment of the NIF.
pub fn forward(
    caller: Option<Env<'_>>,
    env: &mut MsgEnv,
    to: Raw,
    message: Raw,
    owed: Option<Owed>,
) -> bool {
    let number = lanes::count(HERE, 0, owed);
    let parcel = [
        Raw::atom(atoms::forward()),
        env.int(number as i64),
        to,
        message,
    ];
    let message = env.tuple(&parcel);
    post(caller, env, number, message)
}

/// `{relay, Number, To, [], Bytes}` for any destination: just the term is sent.
pub fn relay_to(env: &mut MsgEnv, number: u64, to: Raw, bytes: &[u8]) -> bool {
    let nothing = env.list(&[]);
    post_bytes(env, number, to, nothing, bytes)
}

fn post_bytes(env: &mut MsgEnv, number: u64, to: Raw, head: Raw, bytes: &[u8]) -> bool {
    let parcel = [
        Raw::atom(atoms::relay()),
        env.int(number as i64),
        to,
        head,
        env.binary(bytes),
    ];
    let message = env.tuple(&parcel);
    post(None, env, number, message)
}

fn post(caller: Option<Env<'_>>, env: &mut MsgEnv, number: u64, message: Raw) -> bool {
    let sent = lanes::courier().is_some_and(|courier| match caller {
        Some(caller) => env.send_from(caller, &courier, message),
        None => env.send(&courier, message),
    });
    if !sent {
        lanes::unsent(number);
    }
    sent
}

/// `{Head..., {error, {context_died, stopped}}}` in place of the answer.
pub fn owed(env: &MsgEnv, to: &LocalPid, head: &[Raw]) -> Owed {
    owed_with(env, to, head, |_, error| error)
}

/// The same with what `answer` makes of the error.
pub fn owed_with(
    env: &MsgEnv,
    to: &LocalPid,
    head: &[Raw],
    answer: impl FnOnce(&MsgEnv, Raw) -> Raw,
) -> Owed {
    let own = MsgEnv::new();
    let reason = own.tuple(&[
        Raw::atom(atoms::context_died()),
        Raw::atom(atoms::stopped()),
    ]);
    let error = own.tuple(&[Raw::atom(atoms::error()), reason]);
    let mut words: Vec<Raw> = head.iter().map(|&word| own.copy_from(env, word)).collect();
    words.push(answer(&own, error));
    let message = own.tuple(&words);
    Owed {
        to: *to,
        alias: None,
        env: own,
        message,
    }
}
