//! Output on its way to group leaders. What a leader has not answered is bounded.
//!
//! A thread that may wait does so, detached, while the leader answers. An event loop may not, and nobody waits for a
//! leader that has been silent for 5 s: that output is dropped, and one line in its place says how much.
//!
//! Thread: any that runs Python. `answered`, `of` and `down` run on schedulers: they lock for an instant.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rustler::{Env, LocalPid, Monitor, Resource, ResourceArc};

use crate::current::Current;
use crate::erts::{MsgEnv, Raw};
use crate::{atoms, log};
use crew::backlog::{self, Backlog, Bounds, Look, Mark, MayWait};
use crew::sync::lock;

static BOUNDS: Bounds = Bounds {
    wait: Mark {
        items: 1_000,
        bytes: 1 << 20,
    },
    refuse: Mark {
        items: 10_000,
        bytes: 16 << 20,
    },
    silence: Duration::from_secs(5),
};

/// A group leader, one for each process that is one.
pub struct Leader {
    pid: LocalPid,
    unread: Mutex<Unread>,
}

struct Unread {
    backlog: Backlog,
    /// What was dropped since the last line about it.
    lost_lines: usize,
    lost_bytes: usize,
    /// Output is dropped until the leader has caught up, and one line has said so.
    dropping: bool,
    gone: bool,
}

/// What became of a text.
#[derive(PartialEq, Eq)]
pub enum Written {
    /// Sent, or dropped.
    Done,
    /// The leader is behind, and the caller has not said whether it may wait.
    Full,
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
        unread.backlog.wake();
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

/// Sends `text`, waits, or drops it. Not attached, or not for long: `MayWait::Yes` needs the former.
pub fn write(
    leader: &ResourceArc<Leader>,
    text: &str,
    may_wait: MayWait,
    current: Option<&Current>,
) -> Written {
    let Some(printer) = *lock(&PRINTER) else {
        return Written::Done;
    };
    match enter(leader, text, may_wait, current) {
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
    if !unread.backlog.take(bytes) {
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
    unread.backlog.wake();
}

/// Whether a text may be sent.
enum Entry {
    Open,
    /// It was dropped.
    Shut,
    Full,
}

fn enter(leader: &Leader, text: &str, may_wait: MayWait, current: Option<&Current>) -> Entry {
    let knows = !matches!(may_wait, MayWait::Unknown);
    backlog::enter(may_wait, |sender| {
        let mut unread = lock(&leader.unread);
        if unread.gone {
            return Ok(Entry::Shut);
        }
        let closed = unread.dropping;
        match unread.backlog.look(sender, closed) {
            Look::Room => {
                unread.backlog.add(text.len());
                return Ok(Entry::Open);
            }
            Look::Full if !knows => return Ok(Entry::Full),
            Look::Behind if !current.is_some_and(Current::must_stop) => {
                return Err(unread.backlog.enlist(sender));
            }
            Look::Full | Look::Silent | Look::Behind => {}
        }
        unread.lose(leader, text);
        Ok(Entry::Shut)
    })
}

impl Unread {
    fn new() -> Self {
        Unread {
            backlog: Backlog::new(&BOUNDS),
            lost_lines: 0,
            lost_bytes: 0,
            dropping: false,
            gone: false,
        }
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
        self.backlog.add(text.len());
        text
    }

    /// The process is gone: what was sent to it is, too.
    fn end(&mut self) {
        self.gone = true;
        self.backlog.wake();
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
