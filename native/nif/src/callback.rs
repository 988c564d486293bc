//! Python calls Erlang: one message out, then the thread waits, detached, for the answer.
//!
//! While it waits it runs the jobs of the very process that runs the callback (they nest on this
//! thread: depth costs stack, not threads), and of its own context if that has no other thread.
//!
//! Thread: any that runs Python. `complete` and the executor functions are called by schedulers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyrt::Attached;
use rustler::{LocalPid, ResourceArc};

use crate::current::{self, Current};
use crate::erts::Raw;
use crate::here::{Thread, here};
use crate::interp::Interp;
use crate::job::Job;
use crate::slot::Slot;
use crate::{atoms, log, run};
use crew::sync::lock;

/// Erlang's answer, encoded.
pub enum Answer {
    Value(Vec<u8>),
    /// `{Kind, Reason, Stacktrace}`
    Raised(Vec<u8>),
    /// The process that ran the callback is gone.
    Gone,
}

/// Why there is no answer.
pub enum NoAnswer {
    /// The job this thread runs was told to stop.
    Stopped,
    /// The application is not running.
    NotRunning,
}

/// A thread that waits.
struct Waiter {
    thread: Arc<Thread>,
    answer: Mutex<Option<Answer>>,
    /// Which process runs the callback.
    executor: Mutex<Option<LocalPid>>,
}

/// An Erlang process that runs callbacks and is free.
struct Executor {
    pid: LocalPid,
    slot: ResourceArc<Slot>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static WAITERS: Mutex<Option<HashMap<u64, Arc<Waiter>>>> = Mutex::new(None);
static EXECUTORS: Mutex<Vec<Executor>> = Mutex::new(Vec::new());
/// Starts an executor when none is free.
static MANAGER: Mutex<Option<LocalPid>> = Mutex::new(None);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// So many stay, however long there is nothing to do.
const LEAST_IDLE: usize = 2;
/// More free executors than this are sent home.
const MOST_IDLE: usize = 64;
/// Most answers come within this time; sleeping would cost more.
const SPIN: Duration = Duration::from_micros(20);

pub fn set_manager(pid: Option<LocalPid>) {
    *lock(&MANAGER) = pid;
    if pid.is_none() {
        lock(&EXECUTORS).clear();
    }
}

/// How many threads wait, and how many callbacks there were.
pub fn counts() -> (usize, usize) {
    let waiting = lock(&WAITERS).as_ref().map_or(0, HashMap::len);
    (waiting, CALLS.load(Ordering::Relaxed))
}

/// Calls the registered function `name` with the encoded list `args`.
pub fn call(
    py: Attached<'_>,
    interp: &Interp,
    name: &str,
    args: &[u8],
) -> Result<Answer, NoAnswer> {
    let me = here();
    let current = current::current();
    CALLS.fetch_add(1, Ordering::Relaxed);
    let (id, waiter) = register(&me);
    if !dispatch(id, &waiter, &current, name, args) {
        forget(id);
        return Err(NoAnswer::NotRunning);
    }
    let answer = wait(py, interp, &me, &waiter, current.as_ref());
    forget(id);
    answer
}

fn register(me: &Arc<Thread>) -> (u64, Arc<Waiter>) {
    // Relaxed: only uniqueness counts.
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let waiter = Arc::new(Waiter {
        thread: me.clone(),
        answer: Mutex::new(None),
        executor: Mutex::new(None),
    });
    lock(&WAITERS)
        .get_or_insert_default()
        .insert(id, waiter.clone());
    (id, waiter)
}

fn forget(id: u64) {
    if let Some(waiters) = &mut *lock(&WAITERS) {
        waiters.remove(&id);
    }
}

fn find(id: u64) -> Option<Arc<Waiter>> {
    lock(&WAITERS).as_ref()?.get(&id).cloned()
}

/// `{py_callback, Id, Name, Args, Caller, GroupLeader}` to a free executor, else to the manager.
fn dispatch(
    id: u64,
    waiter: &Arc<Waiter>,
    current: &Option<Current>,
    name: &str,
    args: &[u8],
) -> bool {
    let executor = lock(&EXECUTORS).pop();
    let to = match &executor {
        Some(executor) => {
            assign(waiter, executor);
            executor.pid
        }
        None => match *lock(&MANAGER) {
            Some(manager) => manager,
            None => return false,
        },
    };
    let undefined = Raw::atom(atoms::undefined());
    log::with_env(|env| {
        let (caller, leader) = match current {
            Some(current) => (
                Raw::pid(current.slot.pid()),
                Raw::pid(current.slot.group_leader()),
            ),
            None => (undefined, undefined),
        };
        let message = env.tuple(&[
            Raw::atom(atoms::py_callback()),
            env.int(id as i64),
            env.binary(name.as_bytes()),
            env.binary(args),
            caller,
            leader,
        ]);
        // An executor that died just now: the manager sees its death and calls `executor_died`.
        env.send(&to, message) || executor.is_some()
    })
}

fn assign(waiter: &Arc<Waiter>, executor: &Executor) {
    *lock(&waiter.executor) = Some(executor.pid);
    executor.slot.set_nest(Some(waiter.thread.clone()));
}

/// What ended a wait.
enum Woken {
    Answered(Answer),
    Nested(Box<Job>),
    Stopped,
}

fn wait(
    py: Attached<'_>,
    interp: &Interp,
    me: &Arc<Thread>,
    waiter: &Waiter,
    current: Option<&Current>,
) -> Result<Answer, NoAnswer> {
    loop {
        match py.detach(|| wait_detached(me, waiter, current)) {
            Woken::Answered(answer) => return Ok(answer),
            Woken::Stopped => return Err(NoAnswer::Stopped),
            Woken::Nested(job) => {
                interp.with(py, |world| run::run_nested(world, me, job));
            }
        }
    }
}

/// Waits without the GIL (I3), and says so to the pool: others take the work meanwhile.
fn wait_detached(me: &Arc<Thread>, waiter: &Waiter, current: Option<&Current>) -> Woken {
    let seen = me.signal();
    if let Some(woken) = look(me, waiter, current) {
        return woken;
    }
    // Most answers are quick: the pool is told only when this takes longer.
    if me.spin(SPIN, || me.signal() != seen)
        && let Some(woken) = look(me, waiter, current)
    {
        return woken;
    }
    let pool = current.map(|current| &current.pool);
    if let Some(pool) = pool {
        pool.crew.blocks(me.member());
    }
    let woken = loop {
        let seen = me.signal();
        if let Some(woken) = look(me, waiter, current) {
            break woken;
        }
        me.wait(seen, None);
    };
    if let Some(pool) = pool {
        pool.crew.unblocks(me.member());
    }
    woken
}

fn look(me: &Thread, waiter: &Waiter, current: Option<&Current>) -> Option<Woken> {
    if let Some(answer) = lock(&waiter.answer).take() {
        return Some(Woken::Answered(answer));
    }
    if let Some(job) = me.take_nested() {
        return Some(Woken::Nested(job));
    }
    let current = current?;
    if current.ticket.must_stop() {
        return Some(Woken::Stopped);
    }
    if current.pool.crew.is_single() {
        return current.pool.crew.pop().map(Woken::Nested);
    }
    None
}

/// An executor is free for the next callback. `false`: there are enough, it may end.
pub fn executor_ready(pid: LocalPid, slot: ResourceArc<Slot>) -> bool {
    let mut executors = lock(&EXECUTORS);
    if executors.len() >= MOST_IDLE {
        return false;
    }
    executors.push(Executor { pid, slot });
    true
}

/// A free executor wants to end. `false`: it was given work meanwhile, or too few would stay.
pub fn executor_leaves(pid: &LocalPid) -> bool {
    let mut executors = lock(&EXECUTORS);
    let known = executors.iter().position(|executor| executor.pid == *pid);
    match known {
        Some(index) if executors.len() > LEAST_IDLE => {
            executors.remove(index);
            true
        }
        _ => false,
    }
}

/// An executor that the manager started takes the callback `id`. `false`: nobody waits any more.
pub fn executor_takes(id: u64, pid: LocalPid, slot: ResourceArc<Slot>) -> bool {
    match find(id) {
        Some(waiter) => {
            assign(&waiter, &Executor { pid, slot });
            true
        }
        None => false,
    }
}

/// Erlang's answer to `id`.
pub fn complete(id: u64, slot: &Slot, answer: Answer) {
    slot.set_nest(None);
    // The next callback of this process is another caller's.
    slot.namespace().forget();
    if let Some(waiter) = find(id) {
        *lock(&waiter.answer) = Some(answer);
        waiter.thread.wake();
    }
}

/// An executor ended: whoever waits for it hears so.
pub fn executor_died(pid: &LocalPid) {
    lock(&EXECUTORS).retain(|executor| executor.pid != *pid);
    let waiters: Vec<Arc<Waiter>> = match &*lock(&WAITERS) {
        Some(waiters) => waiters.values().cloned().collect(),
        None => return,
    };
    for waiter in waiters {
        if lock(&waiter.executor).as_ref() == Some(pid) {
            lock(&waiter.answer).get_or_insert(Answer::Gone);
            waiter.thread.wake();
        }
    }
}
