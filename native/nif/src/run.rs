//! Hop 4 of a call: decodes the bytes, calls Python, hands the outcome to `reply`.
//!
//! Thread: attached; a pool's thread, or one that waits in a callback of the calling process.
//! Never: lets a panic or an exception out; runs a job twice.

use std::sync::Arc;

use pyrt::buffer::Memory;
use pyrt::call::{self, Apart, Source};
use pyrt::{Attached, Obj, contain};

use crate::current;
use crate::dag_python;
use crate::event_loop;
use crate::failure::{self, Failure};
use crate::fork;
use crate::here::Thread;
use crate::interp::World;
use crate::job::{Job, Op, Reply, Segments};
use crate::reply;
use crate::runtime;
use crate::stream;
use crate::stream_task;
use crate::ticket::Why;
use crate::vars;

type Outcome<'py> = Result<Obj<'py>, Failure<'py>>;

/// Stack a nested job must find, or it is refused: room for a deep Python call and a conversion.
const STACK_NEEDED: usize = 1 << 20;

/// Runs one job to its end, or to the end of its slice.
pub fn run(world: &World<'_, '_>, me: &Arc<Thread>, mut job: Box<Job>) {
    // Before it starts: whoever cancels it from then on finds it here.
    me.push_job(world.py, job.ticket.clone());
    if !job.ticket.start(me, world.interp, &job) {
        // Cancelled while it was queued: it never runs.
        me.pop_job(world.py);
        return job.recycle();
    }
    let _current = current::enter(&job);
    if let Reply::Stream { stream, .. } = &job.reply {
        let stream = stream.0.clone();
        let _ = contain("stream", || stream::pump(world, me, &stream, job));
        return fork::end_if_child();
    }
    let inside = match vars::enter(world.py, &job) {
        Ok(inside) => inside,
        Err(error) => {
            leave(world, me);
            return reply::answer(world, job, Err(error.into()));
        }
    };
    let outcome = contain("job", || execute_about(world, &mut job));
    fork::end_if_child();
    // With its answer the process may call again, and finds what it has set.
    let _inside = inside.leave_own();
    leave(world, me);
    let outcome = match outcome {
        Ok(Ok(value)) if event_loop::is_to_be_awaited(&job, &value) => {
            return event_loop::hand_over(job, value);
        }
        Ok(outcome) => outcome.map_err(|failure| settle_failure(&job, failure)),
        Err(place) => Err(Failure::BadArgument(format!("a bug in {}", place.0))),
    };
    reply::answer(world, job, outcome);
}

/// Runs the job. If its caller has said something about it, threads and tasks that it starts inherit that.
fn execute_about<'py>(world: &World<'_, 'py>, job: &mut Job) -> Outcome<'py> {
    if job.ticket.about().is_none() {
        return execute(world, job);
    }
    let tasks = &world.interp.tasks;
    let token = tasks.enter(world.py, job)?;
    let outcome = execute(world, job);
    tasks.leave(world.py, token)?;
    outcome
}

/// Runs a job of the process that runs this thread's callback, on top of what the thread does.
pub fn run_nested(world: &World<'_, '_>, me: &Arc<Thread>, job: Box<Job>) {
    if pyrt::thread::stack_left() < STACK_NEEDED {
        if job.ticket.start(me, world.interp, &job) {
            reply::answer(world, job, Err(failure::recursion(world.py)));
        }
        return;
    }
    world.interp.flush_line(world.py);
    world.interp.allow_depth(world.py, me.depth());
    match Apart::enter(world.py) {
        Ok(_apart) => run(world, me, job),
        Err(error) => {
            if job.ticket.start(me, world.interp, &job) {
                reply::answer(world, job, Err(error.into()));
            }
        }
    }
}

/// The job no longer runs on this thread.
pub fn leave(world: &World<'_, '_>, me: &Arc<Thread>) {
    world.interp.flush_line(world.py);
    world.interp.untrace(world.py);
    me.pop_job(world.py);
}

/// What the caller is told when the job was stopped from outside.
pub fn settle_failure<'py>(job: &Job, failure: Failure<'py>) -> Failure<'py> {
    match job.ticket.why() {
        Some(Why::Interrupted) => Failure::Interrupted,
        Some(Why::Died) => Failure::Died,
        None => failure,
    }
}

fn execute<'py>(world: &World<'_, 'py>, job: &mut Job) -> Outcome<'py> {
    match job.op {
        Op::Call => call(world, job),
        Op::Async | Op::AsyncCollect => {
            let value = call(world, job)?;
            event_loop::settle(world, job, value)
        }
        Op::Eval => eval(world, job, Source::Expression),
        Op::Exec => eval(world, job, Source::Statements),
        Op::Node => dag_python::call(world, job),
        // The items are taken and encoded one by one in `reply`.
        Op::Collect => Ok(call(world, job)?.iter()?),
        Op::Stream => {
            let items = call(world, job)?;
            if items.is_async_iterable() && !items.is_iterable() {
                return stream_task::settle(world, job, items);
            }
            Ok(items.iter()?)
        }
        // Its items are there already.
        Op::AsyncStream => Err(Failure::Died),
        Op::CollectEval | Op::StreamEval => Ok(eval(world, job, Source::Expression)?.iter()?),
    }
}

/// The object a stream iterates over.
pub fn iterator<'py>(world: &World<'_, 'py>, job: &mut Job) -> Outcome<'py> {
    execute(world, job)
}

fn call<'py>(world: &World<'_, 'py>, job: &mut Job) -> Outcome<'py> {
    let mut args = Vec::new();
    let call = {
        let segments = job.segments();
        let host = JobHost { world, job };
        etf::decode_call(&world.bound, &host, input(&segments), &mut args)?
    };
    job.decodes = None;
    let function = find(world, job, &call.module, &call.function)?;
    Ok(function.call_owned(&args, call.names.as_ref())?)
}

fn eval<'py>(world: &World<'_, 'py>, job: &mut Job, kind: Source) -> Outcome<'py> {
    // {Code, Locals}; the code as bytes whatever is in it.
    let pair = {
        let segments = job.segments();
        let host = JobHost { world, job };
        etf::decode(&world.bound, &host, input(&segments))?
    };
    job.decodes = None;
    let (Some(code), Some(locals)) = (pair.tuple_item(0), pair.tuple_item(1)) else {
        return Err(Failure::BadArgument("code and locals".to_owned()));
    };
    let source = code.as_bytes().unwrap_or_default();
    let code = world.interp.compile(world.py, source, kind)?;
    let names = namespace(world.py, job)?;
    if locals.is_dict() && locals.dict_len() > 0 {
        // One dict for both, so that lambdas and comprehensions see the locals too.
        let names = names.dict_copy()?;
        names.dict_update(&locals)?;
        return Ok(call::run_code(&code, &names, &names)?);
    }
    Ok(call::run_code(&code, &names, &names)?)
}

/// The names this job sees: its context's, or those of its calling process.
fn namespace<'py>(py: Attached<'py>, job: &Job) -> Result<Obj<'py>, Failure<'py>> {
    Ok(job.namespace().get(py)?)
}

/// Where a function is looked for.
pub enum Module<'py> {
    /// `__main__`, which means the caller's own names.
    Own,
    /// `builtins`, of which some functions look at the names of their caller.
    Builtins(Obj<'py>),
    Imported(Obj<'py>),
}

/// The module, if it is there already or names the caller's own; on a loop nothing is imported.
pub fn at_hand<'py>(module: &Obj<'py>) -> Result<Option<Module<'py>>, Failure<'py>> {
    match module.as_utf8()? {
        "__main__" => Ok(Some(Module::Own)),
        "builtins" => Ok(call::imported(module)?.map(Module::Builtins)),
        _ => Ok(call::imported(module)?.map(Module::Imported)),
    }
}

/// The function of that name in a module, which is imported if it must be.
pub fn find<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    module: &Obj<'py>,
    function: &Obj<'py>,
) -> Result<Obj<'py>, Failure<'py>> {
    let place = match at_hand(module)? {
        Some(place) => place,
        None => Module::Imported(call::import(module)?),
    };
    find_in(world, job, place, function)
}

/// The same where the module is known; a dotted name goes through attributes.
pub fn find_in<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    place: Module<'py>,
    function: &Obj<'py>,
) -> Result<Obj<'py>, Failure<'py>> {
    let module = match place {
        Module::Own => {
            let names = namespace(world.py, job)?;
            if let Some(found) = names.dict_get(function)? {
                return Ok(found);
            }
            call::import_c(world.py, c"__main__")?
        }
        Module::Builtins(module) => match looks_at_names(world, job, function)? {
            Some(found) => return Ok(found),
            None => module,
        },
        Module::Imported(module) => module,
    };
    let name = function.as_utf8()?;
    if !name.contains('.') {
        return Ok(module.getattr(function)?);
    }
    let mut found = module;
    for part in name.split('.') {
        found = found.getattr(&Obj::text(world.py, part)?)?;
    }
    Ok(found)
}

/// A built-in function that looks at the names of its caller, with those of the job: there is no frame in
/// which it could look.
fn looks_at_names<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    function: &Obj<'py>,
) -> Result<Option<Obj<'py>>, Failure<'py>> {
    match function.as_utf8()? {
        "eval" | "exec" | "dir" | "vars" | "locals" | "globals" => {}
        _ => return Ok(None),
    }
    let names = namespace(world.py, job)?;
    let package = call::import_c(world.py, c"erlang._names")?;
    Ok(Some(package.call_method(c"bind", &[function, &names])?))
}

pub fn input<'a>(segments: &'a Segments<'a>) -> etf::Input<'a> {
    match segments {
        Segments::One(bytes) => etf::Input::one(bytes),
        Segments::Many(parts) => etf::Input::segments(parts),
    }
}

/// What the codec asks of the job around it.
pub struct JobHost<'a, 'w, 'py> {
    pub world: &'a World<'w, 'py>,
    pub job: &'a Job,
}

impl etf::Host for JobHost<'_, '_, '_> {
    fn node(&self) -> etf::NodeId {
        runtime::node(self.job.slot.pid())
    }

    fn object<'py>(
        &self,
        py: Attached<'py>,
        interp: u64,
        index: u64,
        generation: u64,
    ) -> Option<Obj<'py>> {
        self.world.interp.object(py, interp, index, generation)
    }

    fn segment_owner(&self, _segment: usize) -> Option<Arc<dyn Memory>> {
        self.job.segment_owner()
    }

    fn cancelled(&self) -> bool {
        self.job.ticket.must_stop()
    }

    fn max_depth(&self) -> usize {
        runtime::max_depth()
    }

    fn knows(&self, fun: &[u8]) -> bool {
        runtime::knows(fun)
    }
}
