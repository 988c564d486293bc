//! Python calls Erlang: one message out, then the thread waits, detached, for the answer.
//!
//! While it waits it runs the jobs of the very process that runs the callback (they nest on this
//! thread: depth costs stack, not threads), and of its own context if that has no other thread.
//!
//! Thread: any that runs Python. `complete` and `executor_gone` are called by schedulers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyrt::{Attached, thread};
use rustler::ResourceArc;

use crate::ask::Asked;
use crate::current::{self, Current};
use crate::event_loop::Loop;
use crate::executor::Home;
use crate::here::{Thread, here};
use crate::interp::Interp;
use crate::job::Job;
use crate::refs::{Decodes, Exported};
use crate::slot::Slot;
use crate::{closing, executor, run};
use crew::sync::lock;

/// Erlang's answer, encoded.
pub enum Answer {
    Value(Vec<u8>),
    /// `{Kind, Reason, Stacktrace}`
    Raised(Vec<u8>),
    /// The process that ran the callback is gone.
    Gone,
    /// It waits for the event loop whose thread waits for it.
    Deadlock,
}

/// An answer, and what keeps the objects alive that it may name until it is decoded.
pub type Named = (Answer, Decodes);

/// Why there is no answer.
pub enum NoAnswer {
    /// The job this thread runs was told to stop.
    Stopped,
    /// The application is not running.
    NotRunning,
}

/// Who waits for an answer.
pub enum Who {
    /// A thread, and the objects of its interpreter that Erlang has.
    Thread(Arc<Thread>, Exported),
    /// A coroutine, by a future of its loop.
    Task(Asked),
}

/// Who waits, and what for.
pub struct Waiter {
    who: Who,
    /// Whose executors may run its callback; `None`: only a fresh one.
    home: Option<Home>,
    answer: Mutex<Option<Named>>,
    executor: Mutex<Executor>,
}

/// Who runs the callback.
#[derive(Default)]
struct Executor {
    slot: Option<ResourceArc<Slot>>,
    /// Nobody waits for it any more.
    left: bool,
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static WAITERS: Mutex<Option<HashMap<u64, Arc<Waiter>>>> = Mutex::new(None);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Most answers come within this time; sleeping would cost more.
const SPIN: Duration = Duration::from_micros(20);

/// How many threads and how many coroutines wait, and how many callbacks there were.
pub fn counts() -> (usize, usize, usize) {
    let is_thread = |waiter: &&Arc<Waiter>| matches!(waiter.who, Who::Thread(..));
    let (threads, all) = lock(&WAITERS).as_ref().map_or((0, 0), |waiters| {
        (waiters.values().filter(is_thread).count(), waiters.len())
    });
    (threads, all - threads, CALLS.load(Ordering::Relaxed))
}

/// Calls the registered function `name` with the encoded list `args`.
pub fn call(py: Attached<'_>, interp: &Interp, name: &str, args: &[u8]) -> Result<Named, NoAnswer> {
    let me = here();
    let current = current::current(py, interp);
    CALLS.fetch_add(1, Ordering::Relaxed);
    let home = home_of(current.as_ref()).unwrap_or(Home::Thread(me.member().id()));
    let who = Who::Thread(me.clone(), interp.exported.clone());
    let (id, waiter) = register(who, Some(home));
    if !executor::dispatch(id, &waiter, current.as_ref(), name, args) {
        forget(id);
        return Err(NoAnswer::NotRunning);
    }
    let answer = wait(py, interp, &me, &waiter, current.as_ref());
    if answer.is_err() || me.has_nested() {
        waiter.leave(&me);
    }
    if answer.is_err() {
        // What is raised now is what somebody may have sent: twice, the second would end the code that
        // cleans up after the first.
        thread::raise_in(py, me.ident(), None);
    }
    forget(id);
    answer
}

/// The same for a coroutine, which goes on when the answer is there. `None`: not running.
pub fn ask(current: Option<&Current>, asked: Asked, name: &str, args: &[u8]) -> Option<u64> {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let (id, waiter) = register(Who::Task(asked), home_of(current));
    if !executor::dispatch(id, &waiter, current, name, args) {
        forget(id);
        return None;
    }
    Some(id)
}

fn home_of(current: Option<&Current>) -> Option<Home> {
    current.map(|current| Home::Process(*current.slot.pid()))
}

fn register(who: Who, home: Option<Home>) -> (u64, Arc<Waiter>) {
    // Relaxed: only uniqueness counts.
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let waiter = Arc::new(Waiter {
        who,
        home,
        answer: Mutex::new(None),
        executor: Mutex::default(),
    });
    lock(&WAITERS)
        .get_or_insert_default()
        .insert(id, waiter.clone());
    (id, waiter)
}

fn forget(id: u64) -> Option<Arc<Waiter>> {
    lock(&WAITERS).as_mut()?.remove(&id)
}

/// The future of a coroutine is over: if that is not by its answer, nobody wants one, and the process that
/// would give it ends.
pub fn abandon(py: Attached<'_>, id: u64) {
    let Some(waiter) = forget(id) else { return };
    let slot = waiter.left();
    if let Some(slot) = slot
        && slot.seat.abandon(id)
    {
        executor::end(slot.pid());
    }
    if let Who::Task(asked) = &waiter.who {
        asked.release(py);
    }
}

/// Nobody runs the callback `id`: `{Kind, Reason, Stacktrace}` is why.
pub fn refuse(id: u64, raised: Vec<u8>) {
    tell(id, Answer::Raised(raised));
}

pub fn find(id: u64) -> Option<Arc<Waiter>> {
    lock(&WAITERS).as_ref()?.get(&id).cloned()
}

impl Waiter {
    pub fn home(&self) -> Option<Home> {
        self.home
    }

    /// Says who runs the callback, and has begun it: its own calls nest on the thread that waits. `false`: a
    /// coroutine has left meanwhile, and nobody has to run it.
    pub fn assign(&self, slot: &ResourceArc<Slot>) -> bool {
        let mut executor = lock(&self.executor);
        executor.slot = Some(slot.clone());
        slot.seat.settle(self.home);
        match &self.who {
            Who::Thread(thread, _) if !executor.left => slot.set_nest(Some(thread.clone())),
            Who::Thread(..) => slot.set_nest(None),
            Who::Task(_) => {
                slot.set_nest(None);
                return !executor.left;
            }
        }
        true
    }

    /// Nobody waits any more. Gives who runs the callback, if anybody does yet.
    fn left(&self) -> Option<ResourceArc<Slot>> {
        let mut executor = lock(&self.executor);
        executor.left = true;
        executor.slot.clone()
    }

    /// The calling thread does not wait any more: what the function asks of Python from now on is for the
    /// pool, and so is what it has asked of this thread already. Kept here, a job would keep the objects
    /// that it may name, even if nobody waits for it.
    fn leave(&self, me: &Arc<Thread>) {
        if let Some(slot) = self.left() {
            slot.leave_nest(me);
        }
        for job in me.take_strays() {
            if job.ticket.is_cancelled() {
                job.recycle();
                continue;
            }
            let pool = job.pool.clone();
            if let Err((job, _)) = pool.push(job) {
                closing::refuse(job);
            }
        }
    }

    /// The answer is there. Only the first one counts.
    fn tell(&self, id: u64, answer: Answer) {
        match &self.who {
            Who::Thread(thread, exported) => {
                let named = (answer, exported.decodes());
                lock(&self.answer).get_or_insert(named);
                thread.wake();
            }
            Who::Task(asked) => {
                forget(id);
                asked.tell(answer);
            }
        }
    }
}

/// What ended a wait.
enum Woken {
    Answered(Named),
    Nested(Box<Job>),
    Stopped,
}

fn wait(
    py: Attached<'_>,
    interp: &Interp,
    me: &Arc<Thread>,
    waiter: &Waiter,
    current: Option<&Current>,
) -> Result<Named, NoAnswer> {
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
    if crew::spin(SPIN, || me.signal() != seen)
        && let Some(woken) = look(me, waiter, current)
    {
        return woken;
    }
    // Its own: a job that nests here may be another pool's, which does not miss this thread.
    let home = me.home();
    if let Some(pool) = &home {
        pool.crew.blocks(me.member());
    }
    let woken = loop {
        let seen = me.signal();
        if let Some(woken) = look(me, waiter, current) {
            break woken;
        }
        me.wait(seen, None);
    };
    if let Some(pool) = &home {
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
    if current.must_stop() {
        return Some(Woken::Stopped);
    }
    let pool = me.home()?;
    if pool.crew.is_single() {
        return pool.crew.pop().map(Woken::Nested);
    }
    None
}

/// The callback of this process is over; its names go with it.
pub fn leave(slot: &Slot) {
    slot.set_nest(None);
    slot.namespace().forget();
}

/// Erlang's answer to `id`.
pub fn complete(id: u64, answer: Answer) {
    if let Some(waiter) = find(id) {
        waiter.tell(id, answer);
    }
}

/// The process of `slot` runs a callback and is about to wait for a task of `event_loop`. If the thread
/// of that loop is the one that waits for the callback, neither would ever go on: the thread hears so,
/// and the process gets its task.
pub fn waits_for_loop(slot: &Slot, event_loop: &Loop) {
    let Some(thread) = slot.nest() else { return };
    if !event_loop.is_run_by(&thread) {
        return;
    }
    slot.set_nest(None);
    if let Some(id) = slot.seat.runs() {
        tell(id, Answer::Deadlock);
    }
}

/// The process that ran the callback `id` is gone: whoever waits for it hears so.
pub fn executor_gone(id: u64) {
    tell(id, Answer::Gone);
}

fn tell(id: u64, answer: Answer) {
    if let Some(waiter) = find(id) {
        waiter.tell(id, answer);
    }
}

/// All of them are gone, and so is who would have started others.
pub fn all_gone() {
    for (id, waiter) in waiters() {
        waiter.tell(id, Answer::Gone);
    }
}

fn waiters() -> Vec<(u64, Arc<Waiter>)> {
    let waiters = lock(&WAITERS);
    let all = waiters.iter().flatten();
    all.map(|(id, it)| (*id, it.clone())).collect()
}
