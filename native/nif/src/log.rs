//! Python's log records and lost failures, on their way to Erlang's logger.
//!
//! Thread: any of ours.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;

use crew::sync::lock;
use etf::write::{EMPTY_MAP, write_atom, write_binary, write_int, write_tuple};
use rustler::LocalPid;

use crate::erts::MsgEnv;
use crate::failure::Failure;

static LOGGER: Mutex<Logger> = Mutex::new(Logger::new(None));

/// The process that has the records logged, and how far it is behind.
struct Logger {
    pid: Option<LocalPid>,
    /// The bytes of each record that it has not taken, and their sum.
    records: VecDeque<usize>,
    bytes: usize,
    /// Those that were not sent since the last time it was told.
    dropped: usize,
    dropping: bool,
}

/// So much may wait for it; then records are dropped until it has caught up with half of that.
const MOST_RECORDS: usize = 10_000;
const MOST_BYTES: usize = 32 << 20;

thread_local! {
    static ENV: RefCell<MsgEnv> = RefCell::new(MsgEnv::new());
}

pub fn set(pid: LocalPid) {
    *lock(&LOGGER) = Logger::new(Some(pid));
}

/// A record was logged. Gives the number of those that were dropped, once the end of a flood is near.
pub fn logged() -> usize {
    lock(&LOGGER).taken()
}

impl Logger {
    const fn new(pid: Option<LocalPid>) -> Self {
        Logger {
            pid,
            records: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            dropping: false,
        }
    }

    /// Where to send a record of `bytes`, if it may be sent.
    fn admit(&mut self, bytes: usize) -> Option<LocalPid> {
        let pid = self.pid?;
        self.dropping |= self.records.len() >= MOST_RECORDS || self.bytes >= MOST_BYTES;
        if self.dropping {
            self.dropped += 1;
            return None;
        }
        self.records.push_back(bytes);
        self.bytes += bytes;
        Some(pid)
    }

    /// The oldest counts as the one that was taken: two threads may have sent theirs in another order.
    fn taken(&mut self) -> usize {
        self.bytes -= self.records.pop_front().unwrap_or(0);
        if self.records.len() > MOST_RECORDS / 2 || self.bytes > MOST_BYTES / 2 {
            return 0;
        }
        self.dropping = false;
        std::mem::take(&mut self.dropped)
    }
}

/// Python's numbers for a warning and an error.
const ERROR: i64 = 40;
const WARNING: i64 = 30;

/// `{py_log, Level, Logger, Message, Meta, About}`; `meta` is an encoded small map.
pub fn record(level: i64, logger: &str, message: &str, meta: &[u8], about: Option<&[u8]>) {
    // All that users name: the message, the logger, the file, the thread.
    let bytes = logger.len() + message.len() + meta.len() + about.map_or(0, <[u8]>::len);
    let Some(to) = lock(&LOGGER).admit(bytes) else {
        return;
    };
    let mut out = vec![etf::tag::VERSION];
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
    if !send_bytes(&to, &out) {
        logged();
    }
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

/// Output to a group leader is dropped. Its pid in the words of Erlang, which has none for it on our threads.
pub fn leader_is_behind(pid: &LocalPid) {
    let bytes = with_env(|env| env.encode_pid(pid)).unwrap_or_default();
    // The number, the serial and the creation are the last of it, four bytes each.
    let words: Vec<u32> = bytes
        .rchunks_exact(4)
        .take(3)
        .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        .collect();
    let name = match words[..] {
        [_, serial, number] => format!(" <0.{number}.{serial}>"),
        _ => String::new(),
    };
    warning(&format!(
        "the group leader{name} does not keep up: output of Python is dropped until it does"
    ));
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
