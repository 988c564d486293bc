//! The Erlang processes that run callbacks: which are free, and how one gets its next.
//!
//! An executor that has answered looks for a moment for its next callback: Python code that calls
//! Erlang once mostly does so in a loop. After that it sleeps and is sent a message.
//!
//! Thread: `dispatch` any that runs Python; the rest schedulers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crew::sync::lock;
use crew::{Meet, Patience};
use rustler::types::binary::NewBinary;
use rustler::{Encoder, Env, LocalPid, ResourceArc, Term};

use crate::callback::{self, Answer, Waiter};
use crate::current::Current;
use crate::erts::Raw;
use crate::slot::Slot;
use crate::{atoms, log};

/// One that is free.
struct Executor {
    pid: LocalPid,
    slot: ResourceArc<Slot>,
    /// For whom it has worked. What a function leaves behind (a timer that is not over, a late answer, a link)
    /// reaches its process whenever it likes, so nobody else's function may run there. `None`: it is fresh.
    home: Option<Home>,
}

/// Whose callbacks one executor runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// Those of code that runs for an Erlang process.
    Process(LocalPid),
    /// Those of a thread that runs for none, by the crew's number: Python's comes again with another thread.
    Thread(usize),
}

/// Where an executor waits for a moment for its next callback.
pub struct Seat {
    meet: Meet<Callback>,
    patience: Patience,
    /// Whether it has answered before. One callback does not mean that another one comes soon.
    is_used: AtomicBool,
    /// The callback that it runs, 0 for none, `ABANDONED` if it has to end.
    runs: AtomicU64,
    home: Mutex<Option<Home>>,
}

const ABANDONED: u64 = u64::MAX;

impl Default for Seat {
    fn default() -> Self {
        Seat {
            meet: Meet::default(),
            patience: Patience::new(LOOK),
            is_used: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            home: Mutex::new(None),
        }
    }
}

impl Seat {
    pub fn begin(&self, id: u64) {
        // Release, pairs with the exchanges below: whoever takes the number sees what was set before.
        self.runs.store(id, Ordering::Release);
    }

    /// From here on it works for that one only.
    pub fn settle(&self, home: Option<Home>) {
        *lock(&self.home) = home;
    }

    /// Nobody waits for its callback `id`. `false`: it is over.
    pub fn abandon(&self, id: u64) -> bool {
        // AcqRel, pairs with `finish`: one of both has the callback.
        self.runs
            .compare_exchange(id, ABANDONED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn is_free(&self) -> bool {
        self.runs.load(Ordering::Acquire) == 0
    }

    /// The callback that it runs.
    pub fn runs(&self) -> Option<u64> {
        let id = self.runs.load(Ordering::Acquire);
        (id != 0 && id != ABANDONED).then_some(id)
    }

    /// Its callback `id` is over. `false`: it was abandoned before.
    fn finish(&self, id: u64) -> bool {
        self.runs
            .compare_exchange(id, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// A function that Python calls.
pub struct Callback {
    id: u64,
    name: String,
    /// The list of arguments, encoded.
    args: Vec<u8>,
    /// Who called Python, and where its output goes.
    caller: Option<(LocalPid, LocalPid)>,
    /// What that one has said about its job.
    about: Option<Arc<[u8]>>,
}

/// What an executor does after an answer.
pub enum Next {
    Callback(Callback),
    Stay,
    /// There are enough.
    Leave,
}

static EXECUTORS: Mutex<Vec<Executor>> = Mutex::new(Vec::new());
/// Starts an executor when none is free.
static MANAGER: Mutex<Option<LocalPid>> = Mutex::new(None);

/// The manager was asked for fresh ones. Until there is one, or room for one.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The number of fresh ones, which wait for whoever calls first.
const LEAST_FRESH: usize = 2;
/// Of more free executors than this the one that has waited longest ends.
const MOST_IDLE: usize = 64;
/// How long one looks for its next callback.
const LOOK: Duration = Duration::from_micros(8);

/// Executors belong to their manager: with another one, or none, they are gone, and so are the requests
/// in its mailbox.
pub fn set_manager(pid: Option<LocalPid>) {
    *lock(&MANAGER) = None;
    lock(&EXECUTORS).clear();
    // Relaxed, here and below: whoever comes too late asks at the next callback.
    ASKED.store(false, Ordering::Relaxed);
    callback::all_gone();
    *lock(&MANAGER) = pid;
}

/// To a free executor, else to the manager. `false`: the application is not running.
pub fn dispatch(
    id: u64,
    waiter: &Arc<Waiter>,
    current: Option<&Current>,
    name: &str,
    args: &[u8],
) -> bool {
    let mut callback = Callback {
        id,
        name: name.to_owned(),
        args: args.to_vec(),
        caller: current.map(|current| (*current.slot.pid(), *current.slot.leader().pid())),
        about: current.and_then(|current| current.ticket.about().cloned()),
    };
    loop {
        let Some(executor) = take(id, waiter.home()) else {
            let manager = *lock(&MANAGER);
            return manager.is_some_and(|manager| callback.send(&manager));
        };
        // The one who waits is here: it can't have left.
        waiter.assign(&executor.slot);
        callback = match executor.slot.seat.meet.give(callback) {
            Ok(()) => return true,
            Err(callback) => callback,
        };
        // One that dies with the message in its mailbox: its slot sees it and calls `ended`.
        if callback.send(&executor.pid) {
            return true;
        }
        // It is gone, and so is its part in this callback: `ended` may come later, when another one runs it.
        if !executor.slot.seat.finish(id) {
            // It came before, and the caller was told.
            return true;
        }
    }
}

/// One that has worked for the same caller, else a fresh one.
fn take(id: u64, home: Option<Home>) -> Option<Executor> {
    let (executor, needs_more) = {
        let mut executors = lock(&EXECUTORS);
        let own = home.and_then(|home| executors.iter().rposition(|one| one.home == Some(home)));
        let index = own.or_else(|| executors.iter().rposition(|one| one.home.is_none()));
        let executor = index.map(|index| executors.remove(index));
        if let Some(executor) = &executor {
            // Under the lock: from here on it must not leave.
            executor.slot.seat.begin(id);
        }
        (executor, own.is_none() && fresh(&executors) < LEAST_FRESH)
    };
    if needs_more && !ASKED.swap(true, Ordering::Relaxed) {
        ask_for_more();
    }
    executor
}

fn ask_for_more() {
    if let Some(manager) = *lock(&MANAGER) {
        log::with_env(|env| env.send(&manager, Raw::atom(atoms::py_more())));
    }
}

fn fresh(executors: &[Executor]) -> usize {
    executors.iter().filter(|one| one.home.is_none()).count()
}

impl Callback {
    /// `{py_callback, Id, Name, Args, Caller, GroupLeader, About}`, as a message.
    fn send(&self, to: &LocalPid) -> bool {
        let undefined = Raw::atom(atoms::undefined());
        log::with_env(|env| {
            let (caller, leader) = match &self.caller {
                Some((caller, leader)) => (Raw::pid(caller), Raw::pid(leader)),
                None => (undefined, undefined),
            };
            let message = env.tuple(&[
                Raw::atom(atoms::py_callback()),
                env.int(self.id as i64),
                env.binary(self.name.as_bytes()),
                env.binary(&self.args),
                caller,
                leader,
                self.about
                    .as_ref()
                    .map_or(undefined, |about| env.binary(about)),
            ]);
            env.send(to, message)
        })
    }

    /// The same, as a value.
    pub fn term<'a>(&self, env: Env<'a>) -> Term<'a> {
        let (caller, leader) = match &self.caller {
            Some((caller, leader)) => (caller.encode(env), leader.encode(env)),
            None => (
                atoms::undefined().encode(env),
                atoms::undefined().encode(env),
            ),
        };
        let name = binary(env, self.name.as_bytes());
        let args = binary(env, &self.args);
        let about = match &self.about {
            Some(about) => binary(env, about),
            None => atoms::undefined().encode(env),
        };
        let tag = atoms::py_callback();
        (tag, self.id, name, args, caller, leader, about).encode(env)
    }
}

fn binary<'a>(env: Env<'a>, bytes: &[u8]) -> Term<'a> {
    let mut binary = NewBinary::new(env, bytes.len());
    binary.copy_from_slice(bytes);
    binary.into()
}

/// A new one is free for its first callback.
pub fn ready(pid: LocalPid, slot: ResourceArc<Slot>) {
    push(Executor {
        pid,
        slot,
        home: None,
    });
    ASKED.store(false, Ordering::Relaxed);
}

fn push(executor: Executor) {
    let surplus = {
        let mut executors = lock(&EXECUTORS);
        executors.push(executor);
        match executors.len() > MOST_IDLE {
            true => oldest(&mut executors),
            false => None,
        }
    };
    surplus.as_ref().map(Executor::dismiss);
}

/// Takes out the one that has waited longest for its caller.
fn oldest(executors: &mut Vec<Executor>) -> Option<Executor> {
    let index = executors.iter().position(|one| one.home.is_some())?;
    Some(executors.remove(index))
}

/// Makes room for another one: a free one ends. `false`: there is none that works for somebody.
pub fn evict() -> bool {
    let surplus = oldest(&mut lock(&EXECUTORS));
    surplus.as_ref().map(Executor::dismiss).is_some()
}

impl Executor {
    /// It asks whether it may leave.
    fn dismiss(&self) {
        log::with_env(|env| env.send(&self.pid, Raw::atom(atoms::py_leave())));
    }
}

/// Its answer to `id`; then it looks for its next for a moment, unless its process can't be used again.
pub fn answers(
    pid: LocalPid,
    id: u64,
    slot: &ResourceArc<Slot>,
    answer: Answer,
    is_clean: bool,
) -> Next {
    let seat = &slot.seat;
    if !seat.finish(id) {
        // An order to end is on its way: it must not meet the next callback.
        return Next::Leave;
    }
    let home = is_clean.then(|| *lock(&seat.home)).flatten();
    // Relaxed: a habit of its own process.
    let is_used = seat.is_used.swap(true, Ordering::Relaxed);
    let wanted = home.is_some() && is_used;
    let looks = wanted.then(|| seat.patience.take()).flatten();
    if looks.is_some() {
        seat.meet.open();
    }
    callback::leave(slot);
    // Before the answer: the code that gets it may call again at once.
    if home.is_some() {
        let slot = slot.clone();
        push(Executor { pid, slot, home });
    }
    callback::complete(id, answer);
    if home.is_none() {
        return Next::Leave;
    }
    let Some(limit) = looks else {
        return Next::Stay;
    };
    let next = seat.meet.wait(limit);
    seat.patience.learn(next.is_some());
    next.map_or(Next::Stay, Next::Callback)
}

/// A free one wants to end. `false`: it was given work meanwhile, or is one of the fresh ones that stay.
pub fn leaves(pid: &LocalPid, slot: &Slot) -> bool {
    let mut executors = lock(&EXECUTORS);
    let known = executors.iter().position(|executor| executor.pid == *pid);
    let Some(index) = known else {
        // Taken out: to be dismissed, or with a callback that it has not seen yet.
        return slot.seat.is_free();
    };
    if executors[index].home.is_none() && fresh(&executors) <= LEAST_FRESH {
        return false;
    }
    executors.remove(index);
    true
}

/// One that the manager started takes the callback `id`. `false`: nobody waits any more.
pub fn takes(id: u64, slot: &ResourceArc<Slot>) -> bool {
    match callback::find(id) {
        Some(waiter) => {
            slot.seat.begin(id);
            waiter.assign(slot)
        }
        None => false,
    }
}

/// Its callback was abandoned: the manager ends it.
pub fn end(pid: &LocalPid) {
    let Some(manager) = *lock(&MANAGER) else {
        return;
    };
    log::with_env(|env| {
        let message = env.tuple(&[Raw::atom(atoms::py_abandoned()), Raw::pid(pid)]);
        env.send(&manager, message)
    });
}

/// It is not free any more.
pub fn died(pid: &LocalPid) {
    lock(&EXECUTORS).retain(|executor| executor.pid != *pid);
    ASKED.store(false, Ordering::Relaxed);
}

/// The process of a slot has ended. Whoever waits for a callback of it hears so from here, for its manager may
/// have ended before it and know nothing of its last callback.
pub fn ended(slot: &Slot) {
    if let Some(id) = slot.seat.runs()
        && slot.seat.finish(id)
    {
        callback::executor_gone(id);
    }
}
