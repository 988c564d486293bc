//! Messages that users receive and that may not be built on this thread: `py_courier` builds them.
//!
//! Thread: any of ours.

use std::sync::Mutex;

use rustler::LocalPid;

use crate::atoms;
use crate::erts::{MsgEnv, Raw};
use crew::sync::lock;

/// Maps up to this size are flat: they may be built on any thread of any OTP release.
const FLAT_MAP: usize = 32;

static COURIER: Mutex<Option<LocalPid>> = Mutex::new(None);

pub fn set(pid: LocalPid) {
    *lock(&COURIER) = Some(pid);
}

pub fn may_build(widest_map: usize) -> bool {
    widest_map <= FLAT_MAP
}

/// `{relay, To, Head, Bytes}`: the courier sends `{Tag, Ref, binary_to_term(Bytes)}`, or just the
/// term where there is no head.
pub fn relay(env: &mut MsgEnv, to: &LocalPid, head: &[Raw], bytes: &[u8]) -> bool {
    let bytes = env.binary(bytes);
    let head = env.list(head);
    let message = env.tuple(&[Raw::atom(atoms::relay()), Raw::pid(to), head, bytes]);
    post(env, message)
}

/// `{forward, To, Message}`: a message whose term is built already, behind earlier ones.
pub fn forward(env: &mut MsgEnv, to: &LocalPid, message: Raw) -> bool {
    forward_to(env, Raw::pid(to), message)
}

/// The same for a destination that is no local pid.
pub fn forward_to(env: &mut MsgEnv, to: Raw, message: Raw) -> bool {
    let message = env.tuple(&[Raw::atom(atoms::forward()), to, message]);
    post(env, message)
}

/// `{relay, To, [], Bytes}` for any destination.
pub fn relay_to(env: &mut MsgEnv, to: Raw, bytes: &[u8]) -> bool {
    let bytes = env.binary(bytes);
    let nothing = env.list(&[]);
    let message = env.tuple(&[Raw::atom(atoms::relay()), to, nothing, bytes]);
    post(env, message)
}

fn post(env: &mut MsgEnv, message: Raw) -> bool {
    let courier = *lock(&COURIER);
    courier.is_some_and(|courier| env.send(&courier, message))
}
