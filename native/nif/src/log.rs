//! Python's log records and lost failures, on their way to Erlang's logger.
//!
//! Thread: any of ours.

use std::cell::RefCell;
use std::sync::Mutex;

use crate::out::{EMPTY_MAP, write_atom, write_binary, write_int, write_tuple};
use crew::sync::lock;
use rustler::LocalPid;

use crate::atoms;
use crate::erts::{MsgEnv, Raw};
use crate::failure::Failure;

static LOGGER: Mutex<Option<LocalPid>> = Mutex::new(None);

thread_local! {
    static ENV: RefCell<MsgEnv> = RefCell::new(MsgEnv::new());
}

pub fn set(pid: LocalPid) {
    *lock(&LOGGER) = Some(pid);
}

/// Python's numbers for a warning and an error.
const ERROR: i64 = 40;
const WARNING: i64 = 30;

/// `{py_log, Level, Logger, Message, Meta, About}`; `meta` is an encoded small map.
pub fn record(level: i64, logger: &str, message: &str, meta: &[u8], about: Option<&[u8]>) {
    let Some(to) = *lock(&LOGGER) else { return };
    let mut out = vec![131];
    write_tuple(&mut out, 6);
    write_atom(&mut out, "py_log");
    write_int(&mut out, level);
    write_binary(&mut out, logger.as_bytes());
    write_binary(&mut out, message.as_bytes());
    out.extend_from_slice(meta);
    match about {
        Some(about) => write_binary(&mut out, about),
        None => write_atom(&mut out, "undefined"),
    }
    send_bytes(&to, &out);
}

/// A task keeps its loop from all else: said as asyncio does.
pub fn slow_task(text: &str, about: Option<&[u8]>) {
    record(WARNING, "asyncio", text, &EMPTY_MAP, about);
}

/// `py:cast` has no caller to tell.
pub fn cast_failed(failure: &Failure<'_>) {
    let text = match failure {
        Failure::Raised(error) => {
            let value = error.value();
            format!("py:cast failed: {}: {}", value.type_name(), value.display())
        }
        Failure::BadArgument(what) => format!("py:cast failed: bad argument: {what}"),
        Failure::NotConvertible(what) => format!("py:cast failed: not convertible: {what}"),
        Failure::TooDeep => "py:cast failed: nested too deep".to_owned(),
        Failure::Interrupted | Failure::Cancelled | Failure::Died => return,
    };
    // An empty map.
    record(ERROR, "erlang", &text, &EMPTY_MAP, None);
}

/// A failure that nobody waits to hear of.
pub fn failure(text: &str) {
    record(ERROR, "erlang", text, &EMPTY_MAP, None);
}

pub fn warning(text: &str) {
    record(WARNING, "erlang", text, &EMPTY_MAP, None);
}

/// Sends a term given as bytes (no large map in it).
pub fn send_bytes(to: &LocalPid, bytes: &[u8]) -> bool {
    ENV.with_borrow_mut(|env| {
        let sent = match env.decode(bytes) {
            Some(term) => env.send(to, term),
            None => false,
        };
        env.clear();
        sent
    })
}

/// Runs `body` with this thread's own environment, cleared afterwards.
pub fn with_env<T>(body: impl FnOnce(&mut MsgEnv) -> T) -> T {
    ENV.with_borrow_mut(|env| {
        let value = body(env);
        env.clear();
        value
    })
}

/// An output request to a group leader. The answer goes to the logger process, which drops it.
pub fn write_chars(leader: &LocalPid, text: &str) {
    let Some(from) = *lock(&LOGGER) else { return };
    with_env(|env| {
        let chars = env.binary(text.as_bytes());
        let request = env.tuple(&[
            Raw::atom(atoms::put_chars()),
            Raw::atom(atoms::unicode()),
            chars,
        ]);
        let message = env.tuple(&[
            Raw::atom(atoms::io_request()),
            Raw::pid(&from),
            Raw::atom(atoms::py_log()),
            request,
        ]);
        env.send(leader, message);
    });
}
