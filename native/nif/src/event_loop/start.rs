//! Jobs become tasks: a visit takes all that was posted since the last one, as one batch.
//!
//! Thread: the loop's own, attached, inside of a turn.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crew::sync::lock;
use pyrt::call::{self, Apart};
use pyrt::coroutine::Makes;
use pyrt::{Attached, Kept, Obj, PyResult, contain, kept};

use super::{Loop, Waiting, helpers, never_awaited};
use crate::closing;
use crate::erts::Raw;
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Job, Op};
use crate::plain;
use crate::reply;
use crate::run::{self, JobHost, Module};
use crate::submit;
use crate::vars;

/// Jobs started in one visit: descriptors and timers have their turn after so many.
const MOST: usize = 256;
/// Tasks that start at once, and are over at once if they never wait.
const EAGER: bool = pyrt::BUILT_FOR.1 >= 12;

/// Names and classes, found once.
pub(super) struct Tools {
    task: Kept,
    cancelled: Kept,
    collect: Kept,
    wrap: Kept,
    co_flags: Kept,
    /// `Task.done` and `Task.result`, not yet bound: every job calls them.
    done: Kept,
    result: Kept,
    add_done_callback: Kept,
    cancel: Kept,
    /// Before 3.14 a dict, by loop; a function of a loop since.
    current: Kept,
}

/// The same, for one visit.
struct Hands<'a, 'py> {
    this: &'a Arc<Loop>,
    world: &'a World<'a, 'py>,
    event_loop: &'a Obj<'py>,
    tools: &'a Tools,
    /// What every job needs of them.
    task: Obj<'py>,
    done: Obj<'py>,
    co_flags: Obj<'py>,
    /// Keyword arguments of a new task, a dict that nobody changes.
    options: Obj<'py>,
    /// The module that was last found imported and done.
    known: RefCell<Option<Obj<'py>>>,
}

impl Tools {
    pub(super) fn make(py: Attached<'_>) -> PyResult<'_, Self> {
        let (asyncio, helpers) = (call::import_c(py, c"asyncio")?, helpers(py)?);
        let word = |text| Obj::interned(py, text).map(Kept::new);
        let task = asyncio.getattr_c(c"Task")?;
        Ok(Tools {
            done: Kept::new(task.getattr_c(c"done")?),
            result: Kept::new(task.getattr_c(c"result")?),
            task: Kept::new(task),
            cancelled: Kept::new(asyncio.getattr_c(c"CancelledError")?),
            collect: Kept::new(helpers.getattr_c(c"collect")?),
            wrap: Kept::new(helpers.getattr_c(c"wrap")?),
            co_flags: word("co_flags")?,
            add_done_callback: word("add_done_callback")?,
            cancel: word("cancel")?,
            current: Kept::new(match pyrt::BUILT_FOR.1 {
                ..14 => call::import_c(py, c"asyncio.tasks")?.getattr_c(c"_current_tasks")?,
                _ => asyncio.getattr_c(c"current_task")?,
            }),
        })
    }

    pub(super) fn cancelled<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.cancelled.get(py)
    }

    /// The task that a loop runs at this moment. Runs no code of Python's.
    pub(super) fn current_task<'py>(
        &self,
        event_loop: &Obj<'py>,
    ) -> PyResult<'py, Option<Obj<'py>>> {
        match self.current.get(event_loop.py()) {
            Some(tasks) if tasks.is_dict() => tasks.dict_get(event_loop),
            Some(current_task) => current_task.call(&[event_loop]).map(Some),
            None => Ok(None),
        }
    }
}

/// Somebody has posted.
pub(super) struct Arrived(pub(super) Arc<Loop>);

impl pyloop::Visit for Arrived {
    fn visit<'py>(self: Box<Self>, event_loop: &Obj<'py>) -> PyResult<'py, ()> {
        let (this, py) = (self.0, event_loop.py());
        let cancels = this.intake.seen();
        kept::release_dropped(py);
        this.interp.release_exported(py);
        let visited = this
            .interp
            .with(py, |world| visit(&this, world, event_loop, cancels));
        if let Some(Err(error)) = visited {
            error.unraisable(c"starting tasks");
        }
        this.interp.flush_line(py);
        if !this.is_open() {
            event_loop.call_method(c"stop", &[])?;
        } else if this.intake.comes_again() {
            this.tell();
        }
        Ok(())
    }
}

fn visit<'py>(
    this: &Arc<Loop>,
    world: &World<'_, 'py>,
    event_loop: &Obj<'py>,
    cancels: Vec<u64>,
) -> PyResult<'py, ()> {
    let Some(tools) = this.tools.get() else {
        return Ok(());
    };
    // A context of its own: what is set in it for one job, the next one sets anew.
    let _apart = Apart::enter(world.py)?;
    let py = world.py;
    let (Some(task), Some(done), Some(co_flags)) = (
        tools.task.get(py),
        tools.done.get(py),
        tools.co_flags.get(py),
    ) else {
        return Err(gone(py));
    };
    let hands = Hands {
        this,
        world,
        event_loop,
        tools,
        task,
        done,
        co_flags,
        options: options(event_loop)?,
        known: RefCell::new(None),
    };
    for id in cancels {
        hands.cancel(id);
    }
    let mut count = 0;
    while count < MOST
        && let Some(job) = this.intake.next_job()
    {
        hands.start(job);
        count += 1;
    }
    // Relaxed: a number for people.
    this.started.fetch_add(count as u64, Ordering::Relaxed);
    Ok(())
}

fn options<'py>(event_loop: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let py = event_loop.py();
    let options = Obj::dict(py)?;
    options.dict_set_c(c"loop", event_loop)?;
    if EAGER {
        options.dict_set_c(c"eager_start", &Obj::bool(py, true))?;
    }
    Ok(options)
}

/// The job has become a task, or never will.
struct Started<'a>(&'a Loop);

impl Drop for Started<'_> {
    fn drop(&mut self) {
        *lock(&self.0.starting) = None;
    }
}

/// What a job needs next.
enum Next<'py> {
    Await(Obj<'py>),
    /// A plain function, or one that must be imported first: a worker calls it.
    CallElsewhere,
}

impl<'py> Hands<'_, 'py> {
    fn start(&self, mut job: Box<Job>) {
        if !job.ticket.start_task() {
            job.ticket.leave_loop();
            let given = job
                .awaitable
                .take()
                .and_then(|kept| kept.get(self.world.py));
            job.recycle();
            return given.iter().for_each(never_awaited);
        }
        let own = match vars::enter_if_set(self.world.py, &job) {
            Ok(own) => own,
            Err(error) => return self.answer(job, Err(error.into())),
        };
        *lock(&self.this.starting) = Some(job.ticket.clone());
        let _started = Started(self.this);
        let next = contain("task", || self.next(&mut job));
        let next =
            next.unwrap_or_else(|place| Err(Failure::BadArgument(format!("a bug in {}", place.0))));
        match next {
            Ok(Next::Await(coroutine)) => self.run(job, &coroutine),
            Ok(Next::CallElsewhere) => call_elsewhere(job),
            Err(failure) => self.answer(job, Err(failure)),
        }
        drop(own);
    }

    /// The coroutine of a job.
    fn next(&self, job: &mut Job) -> Result<Next<'py>, Failure<'py>> {
        let py = self.world.py;
        self.world.interp.tasks.enter(py, job)?;
        if let Some(given) = job.awaitable.take() {
            let Some(given) = given.get(py) else {
                return Err(Failure::Died);
            };
            return self.awaitable(job, given).map(Next::Await);
        }
        let segments = job.segments();
        let host = JobHost {
            world: self.world,
            job,
        };
        let call = etf::Named::decode(&self.world.bound, &host, run::input(&segments))?;
        let Some(module) = self.module(&call.module)? else {
            return Ok(Next::CallElsewhere);
        };
        let function = run::find_in(self.world, job, module, &call.function)?;
        match (function.makes(&self.co_flags)?, job.op) {
            (Makes::Coroutine, Op::Async) | (Makes::AsyncGenerator, Op::AsyncCollect) => {}
            _ => {
                plain::learn(job);
                return Ok(Next::CallElsewhere);
            }
        }
        let mut args = Vec::new();
        let names = call.arguments(&mut args)?;
        drop(segments);
        job.decodes = None;
        let given = function.call_owned(&args, names.as_ref())?;
        self.awaitable(job, given).map(Next::Await)
    }

    /// The module, if it is at hand: asking whether one is imported and done costs more than a look
    /// whether it is the same as before.
    fn module(&self, name: &Obj<'py>) -> Result<Option<Module<'py>>, Failure<'py>> {
        let known = self.known.borrow().clone();
        if let Some(known) = known.filter(|known| call::is_module(name, known)) {
            return Ok(Some(Module::Imported(known)));
        }
        let found = run::at_hand(name)?;
        if let Some(Module::Imported(module)) = &found {
            self.known.replace(Some(module.clone()));
        }
        Ok(found)
    }

    /// A coroutine that gives the job's value.
    fn awaitable(&self, job: &Job, given: Obj<'py>) -> Result<Obj<'py>, Failure<'py>> {
        let wrapper = match job.op {
            Op::AsyncStream => {
                let streams = &self.world.interp.tasks.streams;
                return streams.pump(self.this, self.event_loop, job, &given);
            }
            Op::AsyncCollect => &self.tools.collect,
            _ if given.is_coroutine() => return Ok(given),
            _ => &self.tools.wrap,
        };
        match wrapper.get(self.world.py) {
            Some(wrapper) => Ok(wrapper.call(&[&given])?),
            None => Err(Failure::Died),
        }
    }

    fn run(&self, job: Box<Job>, coroutine: &Obj<'py>) {
        let (task, over) = match self.task(coroutine.clone()) {
            Ok(made) => made,
            Err(error) => return self.answer(job, Err(error.into())),
        };
        // Not the task: one that is over has let go of its coroutine.
        if let Err(error) = pyloop::lap(self.event_loop, || Ok(coroutine.clone())) {
            error.unraisable(c"telling of a slow task");
        }
        if over {
            self.finish(job, &task);
        } else {
            self.wait(job, task);
        }
    }

    /// A task, and whether it is over already.
    fn task(&self, coroutine: Obj<'py>) -> PyResult<'py, (Obj<'py>, bool)> {
        let only = Obj::tuple(self.world.py, [coroutine].into_iter())?;
        let task = self.task.call_with(&only, &self.options)?;
        let over = EAGER && self.done.call_few([&task], None)?.is_truthy()?;
        Ok((task, over))
    }

    /// The job is answered when the task is over.
    fn wait(&self, job: Box<Job>, task: Obj<'py>) {
        let (py, id) = (self.world.py, job.ticket.id());
        let done = self.world.interp.tasks.done(py, self.this, id);
        let added = done.and_then(|done| match (done, self.tools.add_done_callback.get(py)) {
            (Some(done), Some(name)) => task.call_named(&name, [&done]).map(drop),
            _ => Err(gone(py)),
        });
        match added {
            Ok(()) => {
                let task = Kept::new(task);
                lock(&self.this.waiting).insert(id, Waiting { job, task });
            }
            Err(error) => self.answer(job, Err(error.into())),
        }
    }

    fn cancel(&self, id: u64) {
        let py = self.world.py;
        let task = match lock(&self.this.waiting).get(&id) {
            Some(waiting) => waiting.task.get(py),
            None => None,
        };
        if let (Some(task), Some(cancel)) = (task, self.tools.cancel.get(py))
            && let Err(error) = task.call_named(&cancel, [])
        {
            error.unraisable(c"cancelling a task");
        }
    }

    fn finish(&self, job: Box<Job>, task: &Obj<'py>) {
        finish(self.this, self.world, self.tools, job, task);
    }

    fn answer(&self, job: Box<Job>, outcome: Result<Obj<'py>, Failure<'py>>) {
        job.ticket.leave_loop();
        reply::answer(self.world, job, outcome);
    }
}

fn gone(py: Attached<'_>) -> pyrt::PyError<'_> {
    pyrt::PyError::new(
        py,
        pyrt::error::Builtin::RuntimeError,
        "the loop belongs to another interpreter",
    )
}

/// Gives a job to the workers; should these refuse it, its caller hears so.
fn call_elsewhere(job: Box<Job>) {
    job.ticket.leave_loop();
    if !job.ticket.pause() {
        return job.recycle();
    }
    let pool = job.pool.clone();
    if let Err((job, refused)) = pool.push(job) {
        if job
            .ticket
            .start(&crate::here::here(), &job.pool.interp, &job)
        {
            closing::fail(job, Raw::atom(submit::refusal(refused)));
        } else {
            job.recycle();
        }
    }
}

/// The outcome of a task that is over goes to whom it was for.
fn finish<'py>(this: &Loop, world: &World<'_, 'py>, tools: &Tools, job: Box<Job>, task: &Obj<'py>) {
    let py = world.py;
    let outcome = match tools.result.get(py) {
        Some(result) => result.call_few([task], None),
        None => Err(gone(py)),
    };
    let outcome = outcome.map_err(|error| {
        let is = |class: Option<Obj<'py>>| class.is_some_and(|it| error.value().is_subtype(&it));
        let cancelled = is(tools.cancelled.get(py));
        let failure = match this.is_open() {
            true if cancelled => Failure::Cancelled,
            // As a task, or with all that the thread of the loop did.
            false if cancelled || is(world.interp.cancelled(py)) => Failure::Died,
            _ => Failure::Raised(error),
        };
        run::settle_failure(&job, failure)
    });
    job.ticket.leave_loop();
    reply::answer(world, job, outcome);
}

/// A task is over: its job is answered, unless that was done already.
pub fn task_over(this: &Arc<Loop>, id: u64, task: &Obj<'_>) {
    let waiting = lock(&this.waiting).remove(&id);
    let (Some(Waiting { job, task: kept }), Some(tools)) = (waiting, this.tools.get()) else {
        return;
    };
    let py = task.py();
    this.interp
        .with(py, |world| finish(this, world, tools, job, task));
    kept.release(py);
}
