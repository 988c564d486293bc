//! Output on its way to group leaders. What a leader has not answered is bounded.
//!
//! A thread that may wait does so, detached, while the leader answers. An event loop may not, and nobody waits for a
//! leader that has been silent for `SILENCE`: that output is dropped, and one line in its place says how much.
//!
//! Thread: any that runs Python. `answered`, `of` and `down` run on schedulers: they lock for an instant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustler::{Env, LocalPid, Monitor, Resource, ResourceArc};

use crate::current::Current;
use crate::erts::{MsgEnv, Raw};
use crate::here::{Thread, here};
use crate::{atoms, log};
use crew::sync::lock;

/// How far a leader may fall behind before threads wait for it.
const WAIT: Mark = Mark {
    texts: 1_000,
    bytes: 1 << 20,
};
/// Before output is dropped that can't wait. Higher, so that loops print while threads wait.
const DROP: Mark = Mark {
    texts: 10_000,
    bytes: 16 << 20,
};
/// To where it must have caught up before anybody goes on: else every second line would be one about dropped ones.
const CAUGHT_UP: Mark = Mark {
    texts: WAIT.texts / 2,
    bytes: WAIT.bytes / 2,
};
/// A leader that answers nothing for this long is not waited for.
const SILENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct Mark {
    texts: usize,
    bytes: usize,
}

/// A group leader, one for each process that is one.
pub struct Leader {
    pid: LocalPid,
    unread: Mutex<Unread>,
}

struct Unread {
    texts: usize,
    bytes: usize,
    /// What was dropped since the last line about it.
    lost_lines: usize,
    lost_bytes: usize,
    /// Output is dropped until the leader has caught up, and one line has said so.
    dropping: bool,
    /// It has not answered for `SILENCE`.
    silent: bool,
    gone: bool,
    /// When it last answered.
    heard: Instant,
    waiting: Vec<Arc<Thread>>,
}

/// What became of a text.
#[derive(PartialEq, Eq)]
pub enum Written {
    /// Sent, or dropped.
    Done,
    /// The leader is behind, and the caller has not said whether it may wait.
    Full,
}

/// Whether the calling thread may wait for a leader that is behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Unknown,
    Waits,
    /// It runs an event loop.
    Never,
}

static LEADERS: Mutex<Option<HashMap<LocalPid, ResourceArc<Leader>>>> = Mutex::new(None);
/// The process that hears what leaders answer.
static PRINTER: Mutex<Option<LocalPid>> = Mutex::new(None);

#[rustler::resource_impl]
impl Resource for Leader {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        let known = lock(&LEADERS)
            .as_mut()
            .and_then(|leaders| leaders.remove(&self.pid));
        lock(&self.unread).end();
        drop(known);
    }
}

/// Another process hears the answers from now on; those to the one before it are lost.
pub fn set_printer(pid: Option<LocalPid>) {
    *lock(&PRINTER) = pid;
    let leaders: Vec<_> = lock(&LEADERS)
        .iter()
        .flat_map(|leaders| leaders.values().cloned())
        .collect();
    for leader in leaders {
        let mut unread = lock(&leader.unread);
        unread.wake();
        *unread = Unread {
            gone: unread.gone,
            ..Unread::new()
        };
    }
}

/// The leader with this pid.
pub fn of(env: Env<'_>, pid: LocalPid) -> ResourceArc<Leader> {
    let mut leaders = lock(&LEADERS);
    let leaders = leaders.get_or_insert_default();
    if let Some(leader) = leaders.get(&pid) {
        return leader.clone();
    }
    let leader = ResourceArc::new(Leader {
        pid,
        unread: Mutex::new(Unread::new()),
    });
    // Under the lock: `down` may come at once, and must find it.
    if leader.monitor(Some(env), &pid).is_some() {
        leaders.insert(pid, leader.clone());
    } else {
        lock(&leader.unread).gone = true;
    }
    leader
}

impl Leader {
    pub fn pid(&self) -> &LocalPid {
        &self.pid
    }
}

/// Sends `text`, waits, or drops it. Not attached, or not for long: `Waits` needs the former.
pub fn write(
    leader: &ResourceArc<Leader>,
    text: &str,
    patience: Patience,
    current: Option<&Current>,
) -> Written {
    let Some(printer) = *lock(&PRINTER) else {
        return Written::Done;
    };
    match enter(leader, text, patience, current) {
        Entry::Open => {
            let request = Request { leader, printer };
            if !log::with_env(|env| request.send(env, text, MsgEnv::send)) {
                lock(&leader.unread).end();
            }
            Written::Done
        }
        Entry::Shut => Written::Done,
        Entry::Full => Written::Full,
    }
}

/// The leader has answered a text of `bytes`.
pub fn answered(env: Env<'_>, leader: &ResourceArc<Leader>, bytes: usize) {
    let printer = *lock(&PRINTER);
    let mut unread = lock(&leader.unread);
    unread.texts = unread.texts.saturating_sub(1);
    unread.bytes = unread.bytes.saturating_sub(bytes);
    unread.heard = Instant::now();
    unread.silent = false;
    if unread.reaches(CAUGHT_UP) {
        return;
    }
    if let Some(printer) = printer
        && unread.dropping
    {
        // Under the lock: the line stands where the others would be.
        let text = unread.lost();
        let request = Request { leader, printer };
        let send = |own: &mut MsgEnv, to: &LocalPid, message| own.send_from(env, to, message);
        log::with_env(|own| request.send(own, &text, send));
    }
    unread.wake();
}

/// Whether a text may be sent.
enum Entry {
    Open,
    /// It was dropped.
    Shut,
    Full,
}

fn enter(leader: &Leader, text: &str, patience: Patience, current: Option<&Current>) -> Entry {
    let began = Instant::now();
    loop {
        // Read before the look: what happens after it changes the count.
        let me = (patience == Patience::Waits).then(here);
        let seen = me.as_ref().map(|me| me.signal());
        let mut unread = lock(&leader.unread);
        if unread.gone {
            return Entry::Shut;
        }
        let mark = if patience == Patience::Never {
            DROP
        } else {
            WAIT
        };
        if !unread.dropping && !unread.reaches(mark) {
            unread.texts += 1;
            unread.bytes += text.len();
            return Entry::Open;
        }
        let (Some(me), Some(seen)) = (me, seen) else {
            if patience == Patience::Unknown {
                return Entry::Full;
            }
            unread.lose(leader, text);
            return Entry::Shut;
        };
        let quiet = unread.heard.max(began).elapsed();
        unread.silent |= quiet >= SILENCE;
        if unread.silent || current.is_some_and(Current::must_stop) {
            unread.lose(leader, text);
            return Entry::Shut;
        }
        unread.waiting.push(me.clone());
        drop(unread);
        me.wait(seen, Some(SILENCE - quiet));
        lock(&leader.unread)
            .waiting
            .retain(|other| !Arc::ptr_eq(other, &me));
    }
}

impl Unread {
    fn new() -> Self {
        Unread {
            texts: 0,
            bytes: 0,
            lost_lines: 0,
            lost_bytes: 0,
            dropping: false,
            silent: false,
            gone: false,
            heard: Instant::now(),
            waiting: Vec::new(),
        }
    }

    fn reaches(&self, mark: Mark) -> bool {
        self.texts >= mark.texts || self.bytes >= mark.bytes
    }

    /// Counts a text that nobody will see. The first of several is logged: the leader may never read again.
    fn lose(&mut self, leader: &Leader, text: &str) {
        self.lost_lines += text.lines().count();
        self.lost_bytes += text.len();
        if !self.dropping {
            self.dropping = true;
            log::leader_is_behind(&leader.pid);
        }
    }

    /// The line in place of what was dropped; output goes on after it.
    fn lost(&mut self) -> String {
        let text = format!(
            "[{} lines of Python's output, {} bytes, were dropped here: the group leader did not keep up]\n",
            self.lost_lines, self.lost_bytes
        );
        (self.lost_lines, self.lost_bytes, self.dropping) = (0, 0, false);
        self.texts += 1;
        self.bytes += text.len();
        text
    }

    /// The process is gone: what was sent to it is, too.
    fn end(&mut self) {
        self.gone = true;
        self.wake();
    }

    fn wake(&mut self) {
        for thread in self.waiting.drain(..) {
            thread.wake();
        }
    }
}

/// `{io_request, Printer, {py_printed, Leader, Bytes}, {put_chars, unicode, Text}}`
struct Request<'a> {
    leader: &'a ResourceArc<Leader>,
    printer: LocalPid,
}

impl Request<'_> {
    fn send(
        &self,
        env: &mut MsgEnv,
        text: &str,
        send: impl FnOnce(&mut MsgEnv, &LocalPid, Raw) -> bool,
    ) -> bool {
        let chars = env.binary(text.as_bytes());
        let put = env.tuple(&[
            Raw::atom(atoms::put_chars()),
            Raw::atom(atoms::unicode()),
            chars,
        ]);
        let answer = env.tuple(&[
            Raw::atom(atoms::py_printed()),
            env.resource(self.leader),
            env.int(text.len() as i64),
        ]);
        let message = env.tuple(&[
            Raw::atom(atoms::io_request()),
            Raw::pid(&self.printer),
            answer,
            put,
        ]);
        send(env, &self.leader.pid, message)
    }
}
