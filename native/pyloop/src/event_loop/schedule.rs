//! `call_soon`, `call_later` and `call_at`, `create_future` and `create_task`: a callback enters.
//!
//! Thread: the loop's own, or any other by way of the inbox.

use pyrt::call::import_c;
use pyrt::deferred::Call;
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::running::copy_context;
use pyrt::{Attached, Flag, Member, Obj, PyError, PyResult};
use reactor::{Key, Moment, clock};

use super::{Foreign, LoopCore, Work};
use crate::handle::{Plain, Timer};

type Answer<'py> = PyResult<'py, Obj<'py>>;

/// The context given by keyword, or a copy of the current one.
#[inline]
fn context<'py>(core: &LoopCore, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    if args.keywords() > 0 {
        let known = core.types.task_names.get();
        if let Some(context) = known.and_then(|names| args.sole_value(names))
            && !context.is_none()
        {
            return Ok(context.clone());
        }
        let name = core.types.names.context.get(args.py());
        match args.named(&name) {
            Some(context) if !context.is_none() => {
                if let (None, Some(names)) = (known, args.names()) {
                    remember(core, names);
                }
                return Ok(context.clone());
            }
            Some(_) if args.keywords() == 1 => {}
            _ => refuse_keywords(args, &name)?,
        }
    }
    copy_context(args.py())
}

/// The tuple is kept, so its address stays its own.
#[cold]
fn remember(core: &LoopCore, names: &Obj<'_>) {
    if names.tuple_len() == 1 {
        let kept = Member::new(names.clone());
        // Another thread may have been first; then this one is dropped.
        let _ = core.types.task_names.get_or_init(|| kept);
    }
}

#[cold]
fn refuse_keywords<'py>(args: &Args<'_, 'py>, known: &Obj<'py>) -> PyResult<'py, ()> {
    match args.unknown_keyword(&[known]) {
        Some(name) => {
            let text = format!("got an unexpected keyword argument '{name}'");
            Err(PyError::new(args.py(), Builtin::TypeError, &text))
        }
        None => Ok(()),
    }
}

/// In debug mode asyncio's own checks and handles: `self._debug_call_soon(context, callback, args)`.
#[cold]
fn debug_call<'py>(
    this: &Obj<'py>,
    method: &Member,
    first: &Obj<'py>,
    args: &Args<'_, 'py>,
    from: usize,
) -> Answer<'py> {
    let py = args.py();
    let context = args
        .keyword("context")
        .map_or_else(|| Obj::none(py), |context| context.clone());
    let callback = args.want(from, "callback")?;
    let rest = args.rest(from + 1).iter().map(|arg| (**arg).clone());
    let rest = Obj::tuple(py, rest)?;
    this.call_named(&method.get(py), [first, &context, &callback, &rest])
}

/// Up to here a float is as exact as an `int`.
const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

impl LoopCore {
    /// Puts work at the end of the ready queue.
    #[inline]
    fn enqueue(&self, work: Work) {
        if self.is_here() {
            self.reactor(|reactor| reactor.push(work));
        } else {
            self.leave(work);
        }
    }

    #[inline]
    fn soon<'py>(&self, args: &Args<'_, 'py>) -> PyResult<'py, Call<Plain>> {
        let py = args.py();
        let callback = args.want(0, "callback")?;
        let context = context(self, args)?;
        let class = self.types.handle.get(py);
        Call::new(&class, Plain::default(), &callback, args.rest(1), context)
    }

    /// `whole`: the time was given as an `int`.
    fn at<'py>(
        &self,
        this: &Obj<'py>,
        (when, whole): (f64, bool),
        args: &Args<'_, 'py>,
    ) -> PyResult<'py, Obj<'py>> {
        let py = args.py();
        let callback = args.want(1, "callback")?;
        let context = context(self, args)?;
        let timer = Timer {
            cancelled: Flag::default(),
            when,
            whole: whole && when.abs() <= EXACT,
            set: Flag::default(),
            event_loop: Member::new(this.clone()),
        };
        let class = self.types.timer.get(py);
        let call = Call::new(&class, timer, &callback, args.rest(2), context)?;
        let handle = call.obj(py);
        if self.is_here() {
            self.set_timer(call);
        } else {
            self.leave(Work::Set(call));
        }
        Ok(handle)
    }

    /// Sets a timer, on the loop's thread.
    pub(super) fn set_timer(&self, call: Call<Timer>) {
        let deadline = Moment::at_seconds(call.extra().when);
        call.extra().set.set(true);
        self.reactor(|reactor| reactor.set_timer(deadline, Work::Due(call)));
    }
}

pub(super) fn call_soon<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    core.check_closed(args.py())?;
    if core.debug.get() {
        let none = Obj::none(args.py());
        return debug_call(this, &core.types.names._debug_call_soon, &none, args, 0);
    }
    let call = core.soon(args)?;
    let handle = call.obj(args.py());
    core.enqueue(Work::Soon(call));
    Ok(handle)
}

pub(super) fn call_soon_threadsafe<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    core.check_closed(args.py())?;
    if core.debug.get() {
        let yes = Obj::bool(args.py(), true);
        return debug_call(this, &core.types.names._debug_call_soon, &yes, args, 0);
    }
    let call = core.soon(args)?;
    let handle = call.obj(args.py());
    // Before it runs, whoever calls a method of it has it alone, and the order of all calls is kept.
    core.enqueue(Work::Soon(call));
    Ok(handle)
}

pub(super) fn call_later<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let delay = args.want(0, "delay")?;
    if delay.is_none() {
        let text = "delay must not be None";
        return Err(PyError::new(py, Builtin::TypeError, text));
    }
    // Read anew, not the time of the turn: from the caller's view it must never fire early.
    let when = clock::to_seconds(clock::now()) + delay.as_f64()?;
    core.check_closed(py)?;
    if core.debug.get() {
        let when = Obj::float(py, when)?;
        return debug_call(this, &core.types.names._debug_call_at, &when, args, 1);
    }
    core.at(this, (when, false), args)
}

pub(super) fn call_at<'py>(this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let when = args.want(0, "when")?;
    if when.is_none() {
        let text = "when cannot be None";
        return Err(PyError::new(py, Builtin::TypeError, text));
    }
    core.check_closed(py)?;
    if core.debug.get() {
        return debug_call(this, &core.types.names._debug_call_at, &when, args, 1);
    }
    core.at(this, (when.as_f64()?, when.is_int()), args)
}

/// `_enqueue(handle)`: a handle of asyncio's own becomes ready.
pub(super) fn enqueue<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    let handle = Foreign(Member::new(args.want(0, "handle")?.clone()));
    core.enqueue(Work::Other(handle));
    Ok(Obj::none(args.py()))
}

/// `_schedule(handle, when)`: a handle of asyncio's own becomes ready at a time; gives its key.
pub(super) fn schedule<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    core.check_here(args.py())?;
    let deadline = Moment::at_seconds(args.want(1, "when")?.as_f64()?);
    let work = Work::Other(Foreign(Member::new(args.want(0, "handle")?.clone())));
    let key = core.reactor(|reactor| reactor.set_timer(deadline, work));
    Obj::int(args.py(), key.to_u64() as i64)
}

/// `_unschedule(key)`: such a handle was cancelled. Off the loop's thread it waits for its time.
pub(super) fn unschedule<'py>(
    _this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let key = args.want(0, "key")?.as_i64()?;
    if let (true, Some(key)) = (core.is_here(), key) {
        let key = Key::from_u64(key as u64);
        // Dropped outside of the reactor.
        drop(core.reactor(|reactor| reactor.cancel_timer(key)));
    }
    Ok(Obj::none(args.py()))
}

impl LoopCore {
    /// `{"loop": loop}`, the same one each time: nobody changes it.
    #[inline]
    fn options<'py>(&self, this: &Obj<'py>) -> Answer<'py> {
        if let Some(options) = self.tasks.options.get(this.py()) {
            return Ok(options);
        }
        let options = Obj::dict(this.py())?;
        options.dict_set_c(c"loop", this)?;
        // A closed loop keeps no cycle through itself.
        if !self.closed.get() {
            self.tasks.options.set(Some(options.clone()));
        }
        Ok(options)
    }

    /// `Future(loop=loop)`
    pub(super) fn future<'py>(&self, this: &Obj<'py>) -> Answer<'py> {
        let py = this.py();
        if self.tasks.replaced {
            let class = import_c(py, c"asyncio")?.getattr_c(c"Future")?;
            return class.call_with(&Obj::tuple(py, std::iter::empty())?, &self.options(this)?);
        }
        let asyncio = self.types.asyncio(py)?;
        let nothing = asyncio.nothing.get(py);
        asyncio
            .future
            .get(py)
            .call_with(&nothing, &self.options(this)?)
    }
}

pub(super) fn create_future<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    _args: &Args<'_, 'py>,
) -> Answer<'py> {
    core.future(this)
}

/// Plain tasks are made here; a task factory, a name and debug mode are for asyncio's own method.
pub(super) fn create_task<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    core.check_closed(py)?;
    let tasks = &core.tasks;
    if args.len() == 1 && !core.debug.get() && !tasks.factory.is_some() && !tasks.replaced {
        let asyncio = core.types.asyncio(py)?;
        let coroutine = args.want(0, "coro")?;
        let context = args.named(&core.types.names.context.get(py));
        match (args.keywords(), context) {
            (0, _) => {
                let only = Obj::tuple(py, [coroutine.clone()].into_iter())?;
                let task = asyncio.task.get(py);
                return task.call_with(&only, &core.options(this)?);
            }
            (1, Some(context)) => {
                let names = asyncio.loop_context.get(py);
                let task = asyncio.task.get(py);
                return task.call_few([&coroutine, this, &context], Some(&names));
            }
            _ => {}
        }
    }
    forward(this, core, args, py)
}

#[cold]
fn forward<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
    py: Attached<'py>,
) -> Answer<'py> {
    let method = this.getattr(&core.types.names._debug_create_task.get(py))?;
    args.forward(&method)
}
