//! An event loop of the node: jobs come in, become tasks, and are answered when these are over.
//!
//! Thread: shared. `push`, `cancel` and `close` are called by schedulers and only post (I9); what
//! touches Python is in `start` and `serve`, on the loop's own thread.

use std::collections::{HashMap, VecDeque};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crew::sync::lock;
use crew::{Intake, Refused};
use pyloop::{Stopwatch, Visitors};
use pyrt::interrupt::Spot;
use pyrt::{Attached, Kept, Obj};
use rustler::LocalPid;

use crate::closing;
use crate::failure::Failure;
use crate::here::Thread;
use crate::interp::{Interp, World};
use crate::job::{Job, Op};
use crate::pool::Pool;
use crate::ticket::Ticket;
use crate::{plain, release, runtime, watch};

mod beam;
mod hang;
mod nifs;
mod serve;
mod start;

pub use nifs::{LoopRef, interrupt_tasks, is_open, linger_for, loop_of, of_resource};
pub use start::task_over;

/// Tasks that wait, per place in the queue: what is suspended costs memory only.
const TASKS_PER_PLACE: usize = 100;

pub struct Loop {
    interp: Arc<Interp>,
    /// The context it belongs to; a loop of the node belongs to none.
    context: Option<Arc<Pool>>,
    /// The process that stands for it.
    owner: LocalPid,
    /// Its thread was asked for.
    begun: AtomicBool,
    intake: Intake<Box<Job>>,
    /// The way to the loop's thread, once that is up.
    way: OnceLock<Visitors>,
    tools: OnceLock<start::Tools>,
    /// Who waits for which task.
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Jobs that were started here.
    started: AtomicU64,
    /// The job that is just becoming a task.
    starting: Mutex<Option<Arc<Ticket>>>,
    /// Where its thread runs Python.
    spot: Spot,
    /// The Python object, once there is one.
    object: OnceLock<Kept>,
    /// How long it is in what it runs.
    stopwatch: OnceLock<Arc<Stopwatch>>,
    /// Somebody looks whether it still sees what is to be cancelled.
    doubted: AtomicBool,
    /// Runs it; one without a thread of its own has none here.
    thread: OnceLock<Arc<Thread>>,
    /// Without a thread of its own: an Erlang process drives it.
    beam: Option<beam::Beam>,
}

/// Where a loop runs.
enum Place {
    /// Beside the node's pool, in the main interpreter.
    Node(Arc<Interp>),
    /// In a context, in whose interpreter that is.
    Context(Arc<Pool>),
}

/// A task, and the job that is answered when it is over.
struct Waiting {
    job: Box<Job>,
    task: Kept,
}

impl Loop {
    fn new(place: Place, owner: LocalPid, max_queue: usize, beam: Option<beam::Beam>) -> Arc<Self> {
        let (interp, context) = match place {
            Place::Node(interp) => (interp, None),
            Place::Context(pool) => (pool.interp.clone(), Some(pool)),
        };
        Arc::new(Loop {
            interp,
            context,
            owner,
            begun: AtomicBool::new(false),
            intake: Intake::new(max_queue),
            way: OnceLock::new(),
            tools: OnceLock::new(),
            waiting: Mutex::default(),
            started: AtomicU64::new(0),
            starting: Mutex::default(),
            spot: Spot::default(),
            object: OnceLock::new(),
            stopwatch: OnceLock::new(),
            doubted: AtomicBool::new(false),
            thread: OnceLock::new(),
            beam,
        })
    }

    /// Admits a job, or says why not and gives it back. Never waits.
    pub fn push(self: &Arc<Self>, job: Box<Job>) -> Result<(), (Box<Job>, Refused)> {
        job.ticket.enter_loop(self);
        let pushed = match self.is_full() {
            true => Err((job, Refused::Overload)),
            false => self
                .intake
                .push(job, |job, number| job.slot.company.came(number)),
        };
        let tell = pushed.inspect_err(|(job, _)| job.ticket.leave_loop())?;
        self.came(tell);
        Ok(())
    }

    /// The same for many, in their order; gives back those that it has no room for.
    pub fn push_all(
        self: &Arc<Self>,
        mut jobs: VecDeque<Box<Job>>,
    ) -> Result<(), (VecDeque<Box<Job>>, Refused)> {
        for job in &jobs {
            job.ticket.enter_loop(self);
        }
        let (tell, refused) = match self.is_full() {
            true => (false, Refused::Overload),
            false => self.intake.push_all(&mut jobs),
        };
        self.came(tell);
        if jobs.is_empty() {
            return Ok(());
        }
        for job in &jobs {
            job.ticket.leave_loop();
        }
        Err((jobs, refused))
    }

    /// As many tasks wait as may.
    fn is_full(&self) -> bool {
        let most = self.intake.max_queue().saturating_mul(TASKS_PER_PLACE);
        lock(&self.waiting).len() >= most
    }

    /// Something was posted.
    fn came(self: &Arc<Self>, tell: bool) {
        self.begin();
        if tell {
            self.tell();
        }
    }

    /// Its thread is started, if it has none yet: a context's loop costs nothing until it is used.
    pub fn begin(self: &Arc<Self>) {
        // Relaxed, twice: who starts the thread is all that counts.
        if self.beam.is_none()
            && !self.begun.load(Ordering::Relaxed)
            && !self.begun.swap(true, Ordering::Relaxed)
            && serve::start(self).is_err()
        {
            self.close();
        }
    }

    /// What makes the Python object: only loops of the node itself, and that of a sub-interpreter, run
    /// what code without a loop spawns.
    fn maker(&self) -> &'static CStr {
        if self.context.is_some() && self.interp.is_main() {
            c"new_context_loop"
        } else {
            c"new_loop"
        }
    }

    /// Whose workers call what is no coroutine function, and whose names it sees.
    pub fn workers(&self) -> Option<Arc<Pool>> {
        self.context.clone().or_else(runtime::main_pool)
    }

    pub fn interp(&self) -> &Arc<Interp> {
        &self.interp
    }

    /// Puts back a job that was admitted before.
    fn resume(self: &Arc<Self>, job: Box<Job>) {
        job.ticket.enter_loop(self);
        match self.intake.resume(job) {
            Ok(tell) => self.came(tell),
            // Whoever closed it has answered all that was there.
            Err(job) => closing::refuse(job),
        }
    }

    /// The task of a job is told to stop.
    pub fn cancel(self: &Arc<Self>, id: u64) {
        if self.intake.cancel(id) {
            self.tell();
        }
        self.doubt();
    }

    /// Refuses work from now on; the watch answers what is there, the thread ends.
    pub fn close(self: &Arc<Self>) {
        self.intake.close();
        watch::close_loop(self.clone());
        self.tell();
    }

    pub fn is_open(&self) -> bool {
        self.intake.is_open()
    }

    /// Whether nothing of it goes on while that thread waits.
    pub fn is_run_by(&self, thread: &Arc<Thread>) -> bool {
        match &self.beam {
            Some(_) => beam::is_run_by(thread),
            None => self
                .thread
                .get()
                .is_some_and(|own| Arc::ptr_eq(own, thread)),
        }
    }

    /// Answers everything that was accepted (I4).
    pub fn refuse_all(self: &Arc<Self>) {
        beam::leave_behind(self);
        for job in self.intake.take_all() {
            job.ticket.leave_loop();
            closing::refuse(job);
        }
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        if waiting.is_empty() {
            return;
        }
        for (_, Waiting { job, task }) in waiting {
            drop(task);
            job.ticket.leave_loop();
            closing::stop(job);
        }
        release::soon();
    }

    /// The Python object, for whoever is attached to its interpreter.
    fn object<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        match &self.beam {
            Some(beam) => beam.object(py),
            None => self.object.get()?.get(py),
        }
    }

    fn tell(self: &Arc<Self>) {
        if self.beam.is_some() {
            return beam::schedule(self);
        }
        if let Some(way) = self.way.get()
            && !way.post(Box::new(start::Arrived(self.clone())))
        {
            // The thread is gone: nobody else answers.
            watch::close_loop(self.clone());
        }
    }

    /// `{Queued, Waiting, Started}`
    fn counts(&self) -> (usize, usize, u64) {
        let (queued, waiting) = (self.intake.len(), lock(&self.waiting).len());
        // Relaxed: a number for people.
        (queued, waiting, self.started.load(Ordering::Relaxed))
    }
}

/// Whether what a call gave is for the job's loop to await.
pub fn is_to_be_awaited(job: &Job, value: &Obj<'_>) -> bool {
    job.event_loop.is_some()
        && match job.op {
            Op::Async | Op::Node => value.is_awaitable(),
            Op::AsyncCollect => value.is_async_iterable(),
            _ => false,
        }
}

/// A worker has called the function: its loop awaits what that gave.
pub fn hand_over(mut job: Box<Job>, value: Obj<'_>) {
    let Some(event_loop) = job.event_loop.clone() else {
        return job.recycle();
    };
    if value.is_coroutine() {
        plain::forget(&job);
    }
    job.awaitable = Some(Kept::new(value.clone()));
    if job.ticket.pause() {
        event_loop.resume(job);
    } else {
        job.recycle();
        never_awaited(&value);
    }
}

/// A coroutine whose job was cancelled before its first step: closed, or Python complains of it.
fn never_awaited(value: &Obj<'_>) {
    if value.is_coroutine()
        && let Err(error) = value.call_method(c"close", &[])
    {
        error.unraisable(c"closing the coroutine of a cancelled job");
    }
}

/// What a call gave on a thread of a pool: items that need no loop are taken here, and where there
/// is no loop (a bound process, a named pool) the thread awaits by itself.
pub fn settle<'py>(
    world: &World<'_, 'py>,
    job: &mut Job,
    value: Obj<'py>,
) -> Result<Obj<'py>, Failure<'py>> {
    let collect = job.op == Op::AsyncCollect;
    if collect && !value.is_async_iterable() {
        job.op = Op::Collect;
        return Ok(value.iter()?);
    }
    if job.event_loop.is_some() || !(collect || value.is_awaitable()) {
        return Ok(value);
    }
    let way = if collect {
        c"collect_here"
    } else {
        c"run_here"
    };
    Ok(helpers(world.py)?.call_method(way, &[&value])?)
}

pub fn helpers(py: Attached<'_>) -> pyrt::PyResult<'_, Obj<'_>> {
    pyrt::call::import_c(py, c"erlang._tasks")
}
