//! What Python sees of a TLS transport: the tables, and the methods that only look or set.
//!
//! The methods that begin with an underscore are for `TlsProtocol`.

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, PyError, PyResult, getter, method};

use super::{Mode, Tls, info};
use crate::transport::Stream;

type Answer<'py> = PyResult<'py, Obj<'py>>;

/// `entry!(c"name", body, c"doc")`
macro_rules! entry {
    ($name:expr, $body:path, $doc:expr $(, $who:ident)?) => {
        method!(Tls, $name, $body, $doc $(, $who)?)
    };
}

pub(super) static METHODS: [Function; 31] = [
    entry!(c"write", write, c"Sends data, now or as soon as it can."),
    entry!(c"writelines", writelines, c"Sends pieces of data together."),
    entry!(c"write_eof", write_eof, c"TLS can't end one side only."),
    entry!(c"can_write_eof", can_write_eof, c"False", anywhere),
    entry!(
        c"close",
        close,
        c"Closes after what is queued was sent.",
        sent
    ),
    entry!(
        c"_leave",
        leave,
        c"Closes as close() does, but does not wait for the peer to do the same."
    ),
    entry!(c"abort", abort, c"Closes at once.", sent),
    entry!(
        c"_force_close",
        force_close,
        c"Closes at once, for a reason."
    ),
    entry!(
        c"is_closing",
        is_closing,
        c"Whether it closes or is closed.",
        anywhere
    ),
    entry!(
        c"pause_reading",
        pause_reading,
        c"No more data until resume_reading."
    ),
    entry!(c"resume_reading", resume_reading, c"Data again."),
    entry!(
        c"is_reading",
        is_reading,
        c"Whether data is received.",
        anywhere
    ),
    entry!(
        c"set_protocol",
        set_protocol,
        c"Another protocol from now on."
    ),
    entry!(c"get_protocol", get_protocol, c"The protocol.", anywhere),
    entry!(
        c"get_extra_info",
        info::get_extra_info,
        c"What is known of the connection.",
        anywhere
    ),
    entry!(
        c"set_write_buffer_limits",
        info::set_write_limits,
        c"The marks of flow control."
    ),
    entry!(
        c"get_write_buffer_limits",
        info::get_write_limits,
        c"(low, high)",
        anywhere
    ),
    entry!(
        c"get_write_buffer_size",
        info::get_write_size,
        c"How much waits to be sent.",
        anywhere
    ),
    entry!(
        c"set_read_buffer_limits",
        info::set_read_limits,
        c"How much may wait to be read."
    ),
    entry!(
        c"get_read_buffer_limits",
        info::get_read_limits,
        c"(low, high)",
        anywhere
    ),
    entry!(
        c"get_read_buffer_size",
        info::get_read_size,
        c"How much waits to be read.",
        anywhere
    ),
    entry!(
        c"_test__append_write_backlog",
        append,
        c"As asyncio's, for Python's own tests."
    ),
    entry!(c"_attach", attach, c"The transport below."),
    entry!(c"_set_mode", set_mode, c"How far the connection is."),
    entry!(c"_adopt", adopt, c"The protocol from now on."),
    entry!(
        c"_pump",
        pump,
        c"Delivers what came, sends what was written."
    ),
    entry!(
        c"_send_outgoing",
        send_outgoing,
        c"Sends what the engine has made."
    ),
    entry!(
        c"_encrypt_all",
        encrypt_all,
        c"Encrypts what waits, before the end."
    ),
    entry!(
        c"_set_stream_full",
        set_stream_full,
        c"The transport below has enough."
    ),
    entry!(c"_release", release, c"The connection is lost."),
    END,
];

pub(super) static GETTERS: [Getter; 8] = [
    getter!(Tls, c"__class__", class),
    getter!(Tls, c"_protocol_paused", protocol_paused),
    getter!(Tls, c"_closed", get_closed, set_closed),
    getter!(Tls, c"_loop", get_loop),
    getter!(Tls, c"_ssl_protocol", get_control),
    getter!(Tls, c"_start_tls_compatible", yes),
    getter!(Tls, c"_sendfile_compatible", info::sendfile_mode),
    END_OF_GETTERS,
];

/// To `isinstance` it is a transport of asyncio's.
fn class<'py>(this: &Obj<'py>, _tls: &Tls) -> Answer<'py> {
    pyrt::call::import_c(this.py(), c"erlang._loop_tls")?.getattr_c(c"_ErlangSSLTransport")
}

fn none<'py>(args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::none(args.py()))
}

fn write<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let data = args.want(0, "data")?;
    tls.write(this, &data)?;
    none(args)
}

fn writelines<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let pieces = args.want(0, "list_of_data")?.iter()?;
    if tls.refuses() {
        tls.lost_write(args.py())?;
        return none(args);
    }
    let mut queued = Ok(());
    while queued.is_ok() {
        match pieces.next() {
            Ok(Some(piece)) => queued = tls.queue(&piece),
            Ok(None) => break,
            Err(error) => queued = Err(error),
        }
    }
    tls.wrote(this)?;
    queued?;
    none(args)
}

fn append<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.queue(&*args.want(0, "data")?)?;
    none(args)
}

fn write_eof<'py>(_this: &Obj<'py>, _tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let text = "TLS has no half-closed connections: use close()";
    Err(PyError::new(args.py(), Builtin::NotImplementedError, text))
}

fn can_write_eof<'py>(_this: &Obj<'py>, _tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), false))
}

fn close<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    if tls.flags.closed.replace(true) {
        tls.forget();
    } else {
        tls.control(args.py(), c"_start_shutdown", &[])?;
    }
    none(args)
}

fn leave<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.flags.closed.set(true);
    tls.control(args.py(), c"_leave", &[])?;
    none(args)
}

fn end<'py>(tls: &Tls, reason: &Obj<'py>) -> Answer<'py> {
    tls.flags.closed.set(true);
    tls.control(reason.py(), c"_abort", &[reason])?;
    Ok(Obj::none(reason.py()))
}

fn abort<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    end(tls, &Obj::none(args.py()))
}

fn force_close<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    end(tls, &*args.want(0, "exc")?)
}

fn is_closing<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), tls.flags.closed.get()))
}

fn pause_reading<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.flags.reading_paused.set(true);
    if let Some(control) = tls.control.get(args.py()) {
        let yes = Obj::bool(args.py(), true);
        control.setattr_c(c"_app_reading_paused", &yes)?;
    }
    none(args)
}

/// asyncio's part goes on from the loop, not from within this call.
fn resume_reading<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.flags.reading_paused.set(false);
    tls.control(args.py(), c"_resume_reading", &[])?;
    none(args)
}

fn is_reading<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::bool(args.py(), !tls.flags.reading_paused.get()))
}

fn set_protocol<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let protocol = args.want(0, "protocol")?;
    tls.control(args.py(), c"_set_app_protocol", &[&protocol])?;
    none(args)
}

fn get_protocol<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    Ok(tls.protocol.get(py).unwrap_or_else(|| Obj::none(py)))
}

fn attach<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let stream = args.want(0, "transport")?;
    if !stream.is_exactly(&tls.core(py).types.stream.get(py)) {
        let text = "TLS is put above a stream transport of this loop only";
        return Err(PyError::new(py, Builtin::TypeError, text));
    }
    Stream::alone(&stream, |stream| stream.put_below(this));
    tls.stream.set(Some(stream.clone()));
    none(args)
}

fn set_mode<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.flags.mode.set(match args.want(0, "mode")?.as_i64()? {
        Some(1) => Mode::Handshake,
        Some(2) => Mode::Open,
        Some(3) => Mode::Flushing,
        Some(4) => Mode::Shutdown,
        _ => Mode::Unwrapped,
    });
    none(args)
}

fn adopt<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.adopt(&*args.want(0, "protocol")?)?;
    none(args)
}

fn pump<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    // Called after the handshake, at the end and after a pause: the count may be wrong.
    tls.records.borrow_mut().doubt();
    tls.pump(this)?;
    none(args)
}

fn send_outgoing<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.send_pending(args.py())?;
    tls.control_protocol(this)?;
    none(args)
}

fn encrypt_all<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.write_out(this, true)
        .or_else(|error| tls.failed(error))?;
    none(args)
}

fn set_stream_full<'py>(this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    let full = args.want(0, "full")?.is_truthy()?;
    tls.flags.stream_full.set(full);
    if !full {
        tls.send_pending(args.py())?;
        tls.write_out(this, false)
            .or_else(|error| tls.failed(error))?;
    }
    none(args)
}

fn release<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    tls.release();
    none(args)
}

fn protocol_paused<'py>(this: &Obj<'py>, tls: &Tls) -> Answer<'py> {
    Ok(Obj::bool(this.py(), tls.flags.protocol_paused.get()))
}

fn get_closed<'py>(this: &Obj<'py>, tls: &Tls) -> Answer<'py> {
    Ok(Obj::bool(this.py(), tls.flags.closed.get()))
}

fn set_closed<'py>(_this: &Obj<'py>, tls: &Tls, closed: &Obj<'py>) -> PyResult<'py, ()> {
    tls.flags.closed.set(closed.is_truthy()?);
    Ok(())
}

fn get_loop<'py>(this: &Obj<'py>, tls: &Tls) -> Answer<'py> {
    Ok(tls.event_loop.obj(this.py()))
}

fn get_control<'py>(this: &Obj<'py>, tls: &Tls) -> Answer<'py> {
    let py = this.py();
    Ok(tls.control.get(py).unwrap_or_else(|| Obj::none(py)))
}

fn yes<'py>(this: &Obj<'py>, _tls: &Tls) -> Answer<'py> {
    Ok(Obj::bool(this.py(), true))
}
