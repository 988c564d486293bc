//! What Python sees of a stream transport: the tables, and the methods that only look or set.

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, PyError, getter, method};

use super::{Stream, info, methods};
use crate::channel::Life;
use crate::channel::attributes::{self, Answer, none};

pub(super) static METHODS: [Function; 23] = [
    methods::WRITE,
    methods::WRITELINES,
    method!(
        Stream,
        c"write_eof",
        write_eof,
        c"Ends this side after what is queued."
    ),
    methods::CAN_WRITE_EOF,
    methods::CLOSE,
    methods::ABORT,
    method!(
        Stream,
        c"_force_close",
        force_close,
        c"Closes at once, for a reason."
    ),
    methods::IS_CLOSING,
    methods::PAUSE_READING,
    methods::RESUME_READING,
    methods::IS_READING,
    methods::SET_PROTOCOL,
    methods::GET_PROTOCOL,
    methods::GET_EXTRA_INFO,
    methods::SET_LIMITS,
    methods::GET_LIMITS,
    methods::GET_SIZE,
    method!(
        Stream,
        c"_make_empty_waiter",
        make_waiter,
        c"A future of an empty queue."
    ),
    method!(
        Stream,
        c"_reset_empty_waiter",
        reset_waiter,
        c"Nobody waits any more."
    ),
    method!(
        Stream,
        c"_fatal_error",
        fatal_error,
        c"Ends the connection."
    ),
    method!(
        Stream,
        c"_leave_loop",
        leave_loop,
        c"The loop watches it no longer."
    ),
    method!(
        Stream,
        c"_join_loop",
        join_loop,
        c"The loop watches it again."
    ),
    END,
];

pub(super) static GETTERS: [Getter; 9] = [
    getter!(Stream, c"__class__", class),
    getter!(Stream, c"_protocol_paused", attributes::protocol_paused),
    getter!(Stream, c"_sock", attributes::get_socket),
    getter!(Stream, c"_sock_fd", attributes::get_fd),
    getter!(Stream, c"_loop", attributes::get_loop),
    getter!(Stream, c"_extra", attributes::get_extra),
    getter!(Stream, c"_start_tls_compatible", yes),
    getter!(Stream, c"_sendfile_compatible", info::sendfile_mode),
    END_OF_GETTERS,
];

/// To `isinstance` it is a transport of asyncio's.
fn class<'py>(this: &Obj<'py>, _stream: &Stream) -> Answer<'py> {
    pyrt::call::import_c(this.py(), c"erlang._loop")?.getattr_c(c"_ErlangSocketTransport")
}

pub(super) fn write<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    let data = args.want(0, "data")?;
    stream.write(this, &data)?;
    none(args)
}

/// The pieces are queued, then sent by one system call.
pub(super) fn writelines<'py>(
    this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let pieces = args.want(0, "list_of_data")?.iter()?;
    let inside = stream.flags.inside.replace(true);
    let mut done = Ok(());
    while done.is_ok() {
        match pieces.next() {
            Ok(Some(piece)) => done = stream.write(this, &piece),
            Ok(None) => break,
            Err(error) => done = Err(error),
        }
    }
    stream.flags.inside.set(inside);
    if !inside && !stream.flags.listed.get() && stream.channel.life.get() < Life::Lost {
        stream.flush(this)?;
    }
    done?;
    none(args)
}

fn write_eof<'py>(_this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    let flags = &stream.flags;
    if stream.channel.life.get() != Life::Open || flags.wrote_eof.replace(true) {
        return none(args);
    }
    if stream.queue.borrow().chunks.is_empty() {
        stream.shutdown_write();
    }
    none(args)
}

pub(super) fn can_write_eof<'py>(
    _this: &Obj<'py>,
    _: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    Ok(Obj::bool(args.py(), true))
}

pub(super) fn close<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    stream.close(this)?;
    none(args)
}

pub(super) fn abort<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    stream.abort(this, None);
    none(args)
}

fn force_close<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    let error = args.want(0, "exc")?;
    stream.abort(this, (!error.is_none()).then(|| error.clone()));
    none(args)
}

fn fatal_error<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    let error = PyError::from_value(args.want(0, "exc")?.clone());
    let message = match args.get(1).or_else(|| args.keyword("message")) {
        Some(message) => message.display(),
        None => "Fatal error on transport".to_owned(),
    };
    stream.fatal(this, error, &message)?;
    none(args)
}

pub(super) fn pause_reading<'py>(
    _this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    if stream.channel.life.get() == Life::Open {
        stream.flags.paused.set(true);
        stream.watch(args.py());
    }
    none(args)
}

pub(super) fn resume_reading<'py>(
    _this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    if stream.channel.life.get() == Life::Open {
        stream.flags.paused.set(false);
        stream.watch(args.py());
    }
    none(args)
}

pub(super) fn is_reading<'py>(
    _this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let flags = &stream.flags;
    let reading = stream.channel.life.get() == Life::Open && !flags.paused.get();
    Ok(Obj::bool(args.py(), reading))
}

pub(super) fn set_protocol<'py>(
    _this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let protocol = args.want(0, "protocol")?;
    let asyncio = stream.channel.core(py).types.asyncio(py)?;
    let buffered = protocol.is_instance(&asyncio.buffered_protocol.get(py))?;
    stream.set_protocol(&protocol, buffered);
    none(args)
}

fn yes<'py>(this: &Obj<'py>, _stream: &Stream) -> Answer<'py> {
    Ok(Obj::bool(this.py(), true))
}

fn make_waiter<'py>(_this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    if stream.rare.empty_waiter.is_some() {
        let text = "Empty waiter is already set";
        return Err(PyError::new(py, Builtin::RuntimeError, text));
    }
    let event_loop = stream.channel.event_loop.obj(py);
    let waiter = event_loop.call_method(c"create_future", &[])?;
    if stream.queue.borrow().chunks.is_empty() {
        waiter.call_method(c"set_result", &[&Obj::none(py)])?;
    }
    stream.rare.empty_waiter.set(Some(waiter.clone()));
    Ok(waiter)
}

fn reset_waiter<'py>(_this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    stream.rare.empty_waiter.set(None);
    none(args)
}

fn leave_loop<'py>(_this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    stream.channel.leave_loop(args.py());
    none(args)
}

fn join_loop<'py>(this: &Obj<'py>, stream: &Stream, args: &Args<'_, 'py>) -> Answer<'py> {
    if stream.channel.life.get() < Life::Gone {
        stream.join_loop(this)?;
    }
    none(args)
}
