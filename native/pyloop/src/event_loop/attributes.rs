//! What Python sees of `LoopCore`: the tables of methods and attributes, and the small ones.

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, PyError, PyResult, getter, method};
use reactor::clock;

use super::{LoopCore, accept, run, schedule, sockets, streams, watch};

type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(super) static METHODS: [Function; 38] = [
    method!(
        LoopCore,
        c"call_soon",
        schedule::call_soon,
        c"Runs a callback at the next turn."
    ),
    method!(
        LoopCore,
        c"call_soon_threadsafe",
        schedule::call_soon_threadsafe,
        c"call_soon from any thread; wakes the loop if it sleeps."
    ),
    method!(
        LoopCore,
        c"call_later",
        schedule::call_later,
        c"Runs a callback after a delay."
    ),
    method!(
        LoopCore,
        c"call_at",
        schedule::call_at,
        c"Runs a callback at a time."
    ),
    method!(
        LoopCore,
        c"create_future",
        schedule::create_future,
        c"A future of this loop."
    ),
    method!(
        LoopCore,
        c"create_task",
        schedule::create_task,
        c"Runs a coroutine as a task."
    ),
    method!(
        LoopCore,
        c"_enqueue",
        schedule::enqueue,
        c"A handle of asyncio's own is ready."
    ),
    method!(
        LoopCore,
        c"_schedule",
        schedule::schedule,
        c"A handle of asyncio's own has a time."
    ),
    method!(
        LoopCore,
        c"_unschedule",
        schedule::unschedule,
        c"It has none any more."
    ),
    method!(LoopCore, c"_run", run::run, c"Turns until stop.", open),
    method!(LoopCore, c"_run_once", run::run_once, c"One turn.", open),
    method!(
        LoopCore,
        c"_step",
        run::step,
        c"Turns without a wait, until nothing is to be done.",
        open
    ),
    method!(
        LoopCore,
        c"_add_reader",
        watch::add_reader,
        c"Watches a descriptor."
    ),
    method!(
        LoopCore,
        c"_add_writer",
        watch::add_writer,
        c"Watches a descriptor."
    ),
    method!(
        LoopCore,
        c"_remove_reader",
        watch::remove_reader,
        c"Stops watching."
    ),
    method!(
        LoopCore,
        c"_remove_writer",
        watch::remove_writer,
        c"Stops watching."
    ),
    method!(
        LoopCore,
        c"_watched",
        watch::watched,
        c"What a descriptor is watched for."
    ),
    method!(
        LoopCore,
        c"time",
        time,
        c"The time of this loop, in seconds."
    ),
    method!(
        LoopCore,
        c"get_debug",
        get_debug,
        c"Whether debug mode is on."
    ),
    method!(
        LoopCore,
        c"is_running",
        is_running,
        c"Whether a thread runs the loop."
    ),
    method!(
        LoopCore,
        c"is_closed",
        is_closed,
        c"Whether the loop was closed."
    ),
    method!(
        LoopCore,
        c"stop",
        stop,
        c"Ends run_forever after this turn."
    ),
    method!(
        LoopCore,
        c"_time_callbacks",
        time_callbacks,
        c"Tells _slow of callbacks that take so many seconds; 0: of none."
    ),
    method!(
        LoopCore,
        c"_write_to_self",
        wake,
        c"Wakes the loop if it sleeps."
    ),
    method!(
        LoopCore,
        c"_end",
        end,
        c"Drops all that waits and gives the descriptors back."
    ),
    method!(
        LoopCore,
        c"_stream",
        streams::stream,
        c"The transport of a connected socket."
    ),
    method!(
        LoopCore,
        c"_check_closed",
        check_closed,
        c"Refuses a loop that is closed, or the parent's."
    ),
    method!(
        LoopCore,
        c"_accept",
        accept::accept,
        c"Accepts what is there."
    ),
    method!(
        LoopCore,
        c"_after_fork",
        after_fork,
        c"This process is a child."
    ),
    method!(
        LoopCore,
        c"_sock_recv",
        sockets::sock_recv,
        c"Data, or a future of it."
    ),
    method!(
        LoopCore,
        c"_sock_sendall",
        sockets::sock_sendall,
        c"None, or a future of it."
    ),
    method!(
        LoopCore,
        c"_sock_forget",
        sockets::sock_forget,
        c"Nobody waits for a future any more."
    ),
    method!(
        LoopCore,
        c"_sock_wait",
        sockets::sock_wait,
        c"A future of readiness."
    ),
    method!(
        LoopCore,
        c"_pipe",
        streams::pipe,
        c"The transport of one end of a pipe."
    ),
    method!(
        LoopCore,
        c"_tls",
        streams::tls,
        c"The transport of a connection under TLS."
    ),
    method!(
        LoopCore,
        c"_datagram",
        streams::datagram,
        c"The transport of a datagram socket."
    ),
    method!(
        LoopCore,
        c"_ensure_fd_no_transport",
        streams::ensure_no_transport,
        c"Refuses a descriptor that a transport uses."
    ),
    END,
];

pub(super) static GETTERS: [Getter; 7] = [
    getter!(LoopCore, c"_closed", get_closed, set_closed),
    getter!(LoopCore, c"_debug", read_debug, set_debug),
    getter!(LoopCore, c"_stopping", get_stopping, set_stopping),
    getter!(LoopCore, c"_thread_id", get_thread, set_thread),
    getter!(LoopCore, c"_task_factory", get_factory, set_factory),
    getter!(LoopCore, c"_timers", get_timers),
    END_OF_GETTERS,
];

fn time<'py>(_this: &Obj<'py>, _core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    Obj::float(args.py(), clock::to_seconds(clock::now()))
}

fn get_debug<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), core.debug.get()))
}

fn is_running<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    let runs = core.owner.get() != 0 && !core.lent.get();
    Ok(Obj::bool(args.py(), runs))
}

fn is_closed<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), core.closed.get()))
}

fn stop<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    core.stopping.set(true);
    Ok(Obj::none(args.py()))
}

fn time_callbacks<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    let seconds = args.want(0, "seconds")?.as_f64()?;
    core.stopwatch.set_limit(clock::from_seconds(seconds));
    Ok(Obj::none(args.py()))
}

fn wake<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    core.post.wake();
    Ok(Obj::none(args.py()))
}

fn end<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    // Another thread may have begun to run it.
    if core.turning.get() {
        let text = "Cannot close a running event loop";
        return Err(PyError::new(args.py(), Builtin::RuntimeError, text));
    }
    core.let_go_of_sockets(args.py());
    core.end(args.py());
    Ok(Obj::none(args.py()))
}

fn check_closed<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    core.check_closed(args.py())?;
    Ok(Obj::none(args.py()))
}

fn after_fork<'py>(_this: &Obj<'py>, core: &LoopCore, args: &Args<'_, 'py>) -> Answer<'py> {
    core.part_from_parent(args.py());
    Ok(Obj::none(args.py()))
}

fn get_closed<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    Ok(Obj::bool(this.py(), core.closed.get()))
}

fn set_closed<'py>(_this: &Obj<'py>, core: &LoopCore, value: &Obj<'py>) -> PyResult<'py, ()> {
    core.closed.set(value.is_truthy()?);
    Ok(())
}

fn read_debug<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    Ok(Obj::bool(this.py(), core.debug.get()))
}

fn set_debug<'py>(_this: &Obj<'py>, core: &LoopCore, value: &Obj<'py>) -> PyResult<'py, ()> {
    core.debug.set(value.is_truthy()?);
    Ok(())
}

fn get_stopping<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    Ok(Obj::bool(this.py(), core.stopping.get()))
}

fn set_stopping<'py>(_this: &Obj<'py>, core: &LoopCore, value: &Obj<'py>) -> PyResult<'py, ()> {
    core.stopping.set(value.is_truthy()?);
    Ok(())
}

fn get_thread<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    match core.owner.get() {
        0 => Ok(Obj::none(this.py())),
        _ if core.lent.get() => Ok(Obj::none(this.py())),
        owner => Obj::int(this.py(), owner as i64),
    }
}

fn set_thread<'py>(_this: &Obj<'py>, core: &LoopCore, value: &Obj<'py>) -> PyResult<'py, ()> {
    let owner = if value.is_none() {
        None
    } else {
        value.as_i64()?
    };
    // Not while another thread runs it: one that tried to, and was refused, says so here.
    if !core.lent.get() && (!core.turning.get() || core.runs_here()) {
        core.owner.set(owner.unwrap_or(0) as u64);
    }
    Ok(())
}

fn get_factory<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    Ok(core
        .tasks
        .factory
        .get(this.py())
        .unwrap_or_else(|| Obj::none(this.py())))
}

fn set_factory<'py>(_this: &Obj<'py>, core: &LoopCore, value: &Obj<'py>) -> PyResult<'py, ()> {
    core.tasks
        .factory
        .set((!value.is_none()).then(|| value.clone()));
    Ok(())
}

fn get_timers<'py>(this: &Obj<'py>, core: &LoopCore) -> Answer<'py> {
    core.check_here(this.py())?;
    let count = core.reactor(|reactor| reactor.timers());
    Obj::int(this.py(), count as i64)
}
