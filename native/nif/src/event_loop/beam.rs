//! Loops without a thread each: an Erlang process is told when one has something to do, and asks for
//! a step of it; the steps of all of them run on one thread.
//!
//! For thousands of loops that are mostly idle. A coroutine that blocks holds up all of them.
//!
//! Thread: `schedule` and `ask` any; the steps `py-turns`, one, with a thread state for life. Should
//! a loop that blocks be closed, another such thread takes over and the old one ends when it can.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crew::sync::lock;
use pyloop::Visitors;
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{Attached, Kept, Obj, PyResult, contain};
use rustler::LocalPid;
use rustler::types::atom::Atom;

use super::start::{Arrived, Tools};
use super::{Loop, helpers};
use crate::erts::Raw;
use crate::here::{Thread, here};
use crate::interp::Interp;
use crate::{atoms, fork, log, watch};

/// What a loop without a thread needs.
pub struct Beam {
    /// The process that drives it.
    owner: LocalPid,
    object: Mutex<Option<Kept>>,
    /// It is in the queue of the thread.
    queued: AtomicBool,
    /// A thread is in a step of it; one that was left behind may be so for long.
    stepping: AtomicBool,
    /// The owner has asked for a step and waits for its end.
    asked: AtomicBool,
    /// The deadline that the owner knows.
    told: AtomicI64,
    /// The descriptor that the owner watches, as the loop counts them.
    watched: AtomicU32,
}

/// No deadline at all was told yet.
const UNTOLD: i64 = i64::MIN;

impl Beam {
    pub fn new(owner: LocalPid) -> Self {
        Beam {
            owner,
            object: Mutex::new(None),
            queued: AtomicBool::new(false),
            stepping: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            told: AtomicI64::new(UNTOLD),
            watched: AtomicU32::new(0),
        }
    }

    pub fn object<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        lock(&self.object).as_ref().and_then(|kept| kept.get(py))
    }
}

/// The thread, and what it has to do. Each loop is in it once, so their number bounds it (I8).
struct Turns {
    queue: VecDeque<Arc<Loop>>,
    /// Whose step it runs.
    running: Option<Arc<Loop>>,
    /// Counts the threads; only the last one works.
    thread: u64,
    /// That one.
    worker: Option<Arc<Thread>>,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    queue: VecDeque::new(),
    running: None,
    thread: 0,
    worker: None,
});
static BELL: Condvar = Condvar::new();

/// A step of this loop, soon.
pub fn schedule(this: &Arc<Loop>) {
    let Some(beam) = &this.beam else { return };
    if beam.queued.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut turns = lock(&TURNS);
    turns.queue.push_back(this.clone());
    if turns.thread == 0 {
        start(&mut turns, this.interp.clone());
    }
    BELL.notify_one();
}

/// The owner wants a step, and to hear of its end.
pub fn ask(this: &Arc<Loop>) {
    if let Some(beam) = &this.beam {
        beam.asked.store(true, Ordering::Release);
        schedule(this);
    }
}

/// Whether the steps of all such loops are run by that thread.
pub fn is_run_by(thread: &Arc<Thread>) -> bool {
    let turns = lock(&TURNS);
    turns
        .worker
        .as_ref()
        .is_some_and(|worker| Arc::ptr_eq(worker, thread))
}

/// The loop is closed. Should it run at this moment, it may never come back: another thread serves
/// the others.
pub fn leave_behind(this: &Arc<Loop>) {
    if this.beam.is_none() {
        return;
    }
    let mut turns = lock(&TURNS);
    if turns
        .running
        .as_ref()
        .is_some_and(|running| Arc::ptr_eq(running, this))
    {
        start(&mut turns, this.interp.clone());
    }
}

fn start(turns: &mut Turns, interp: Arc<Interp>) {
    turns.thread += 1;
    turns.running = None;
    let number = turns.thread;
    if spawn_named("py-turns", move || work(number, &interp)).is_err() {
        log::failure("no thread for the event loops could be started");
    }
}

fn work(number: u64, interp: &Arc<Interp>) {
    let Some(mut state) = ThreadState::new(interp.python()) else {
        return;
    };
    {
        let mut turns = lock(&TURNS);
        if turns.thread == number {
            turns.worker = Some(here());
        }
    }
    while let Some(this) = next(number) {
        if let Some(beam) = &this.beam {
            beam.queued.store(false, Ordering::Release);
            state.attached(|py| {
                let _ = contain("loop", || step(py, &this, beam));
            });
            fork::end_if_child();
        }
        let mut turns = lock(&TURNS);
        if turns.thread == number {
            turns.running = None;
        }
    }
}

/// The next loop; `None`: another thread works now.
fn next(number: u64) -> Option<Arc<Loop>> {
    let mut turns = lock(&TURNS);
    loop {
        if turns.thread != number {
            return None;
        }
        if let Some(this) = turns.queue.pop_front() {
            turns.running = Some(this.clone());
            return Some(this);
        }
        turns = BELL.wait(turns).unwrap_or_else(PoisonError::into_inner);
    }
}

fn step(py: Attached<'_>, this: &Arc<Loop>, beam: &Beam) {
    if beam.stepping.swap(true, Ordering::AcqRel) {
        // Whoever is in it looks again when it comes out.
        return;
    }
    let stepped = if this.is_open() {
        one_step(py, this, beam)
    } else {
        end(py, this, beam)
    };
    if let Err(error) = stepped {
        let text = format!("an event loop ended: {}", error.value().display());
        log::failure(&text);
        this.close();
        log::with_env(|env| {
            let why = Raw::atom(atoms::stopped());
            let message = env.tuple(&[Raw::atom(atoms::py_worker_down()), why]);
            env.send(&beam.owner, message);
        });
    }
    beam.stepping.store(false, Ordering::Release);
    if !this.is_open() && lock(&beam.object).is_some() {
        // Closed meanwhile: the loop is ended by the next step.
        schedule(this);
    }
}

fn one_step<'py>(py: Attached<'py>, this: &Arc<Loop>, beam: &Beam) -> PyResult<'py, ()> {
    let object = object(py, this, beam)?;
    if this.intake.is_told() {
        Visitors::push(&object, Box::new(Arrived(this.clone())));
    }
    let helpers = helpers(py)?;
    let next = this
        .spot
        .run(py, || helpers.call_method(c"step", &[&object]))?;
    let next = next.as_i64()?.unwrap_or(0);
    // Before the end of the step is told: from then on the owner waits for this descriptor.
    let generation = Visitors::generation(&object);
    if beam.watched.swap(generation, Ordering::Relaxed) != generation {
        tell_descriptor(beam, &object);
    }
    if next == 0 {
        schedule(this);
    } else if beam.asked.swap(false, Ordering::AcqRel) || beam.told.load(Ordering::Relaxed) != next
    {
        beam.told.store(next, Ordering::Relaxed);
        tell(beam, atoms::py_loop_rests(), next);
    }
    Ok(())
}

/// The loop object, made at the first step.
fn object<'py>(py: Attached<'py>, this: &Arc<Loop>, beam: &Beam) -> PyResult<'py, Obj<'py>> {
    if let Some(object) = beam.object(py) {
        return Ok(object);
    }
    let object = helpers(py)?.call_method(c"new_shared_loop", &[])?;
    let _ = this.tools.set(Tools::make(py)?);
    let _ = this.stopwatch.set(Visitors::stopwatch(&object));
    watch::look_after(this);
    *lock(&beam.object) = Some(Kept::new(object.clone()));
    tell_descriptor(beam, &object);
    Ok(object)
}

fn tell_descriptor(beam: &Beam, object: &Obj<'_>) {
    if let Some(fd) = Visitors::descriptor(object) {
        tell(beam, atoms::py_loop_up(), fd.into());
    }
}

/// Ends the tasks that are left, and the loop.
fn end<'py>(py: Attached<'py>, this: &Arc<Loop>, beam: &Beam) -> PyResult<'py, ()> {
    let object = lock(&beam.object).take();
    // It is this thread that ends it: no other is needed.
    lock(&TURNS).running = None;
    this.refuse_all();
    if let Some(object) = object {
        if let Some(object) = object.get(py) {
            helpers(py)?.call_method(c"end", &[&object])?;
        }
        object.release(py);
    }
    Ok(())
}

fn tell(beam: &Beam, what: Atom, number: i64) {
    log::with_env(|env| {
        let message = env.tuple(&[Raw::atom(what), env.int(number)]);
        env.send(&beam.owner, message);
    });
}
