//! What Python sees of a datagram transport.

use pyrt::error::Builtin;
use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, PyError, PyResult, getter, method};

use super::{Datagram, HIGH, Life};

type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(super) static METHODS: [Function; 12] = [
    method!(Datagram, c"sendto", sendto, c"Sends a datagram."),
    method!(
        Datagram,
        c"close",
        close,
        c"Closes after what is queued was sent."
    ),
    method!(Datagram, c"abort", abort, c"Closes at once."),
    method!(Datagram, c"_force_close", abort, c"Closes at once."),
    method!(
        Datagram,
        c"is_closing",
        is_closing,
        c"Whether it closes or is closed."
    ),
    method!(
        Datagram,
        c"set_protocol",
        set_protocol,
        c"Another protocol from now on."
    ),
    method!(Datagram, c"get_protocol", get_protocol, c"The protocol."),
    method!(
        Datagram,
        c"get_extra_info",
        get_extra_info,
        c"What is known of the endpoint."
    ),
    method!(
        Datagram,
        c"set_write_buffer_limits",
        set_limits,
        c"The marks of flow control."
    ),
    method!(
        Datagram,
        c"get_write_buffer_limits",
        get_limits,
        c"(low, high)"
    ),
    method!(
        Datagram,
        c"get_write_buffer_size",
        get_size,
        c"How much waits to be sent."
    ),
    END,
];

pub(super) static GETTERS: [Getter; 6] = [
    getter!(Datagram, c"__class__", class),
    getter!(Datagram, c"_sock", get_socket),
    getter!(Datagram, c"_sock_fd", get_fd),
    getter!(Datagram, c"_loop", get_loop),
    getter!(Datagram, c"_extra", get_extra),
    END_OF_GETTERS,
];

fn none<'py>(args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::none(args.py()))
}

/// To `isinstance` it is a transport of asyncio's.
fn class<'py>(this: &Obj<'py>, _: &Datagram) -> Answer<'py> {
    pyrt::call::import_c(this.py(), c"erlang._loop")?.getattr_c(c"_ErlangDatagramTransport")
}

fn sendto<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let data = args.want(0, "data")?;
    let to = args.get(1).or_else(|| args.keyword("addr"));
    datagram.core(args.py()).check_here(args.py())?;
    datagram.send(this, &data, to.as_deref())?;
    none(args)
}

fn close<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    datagram.close(this);
    none(args)
}

fn abort<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let error = args.get(0).filter(|error| !error.is_none());
    datagram.abort(this, error.map(|error| error.clone()));
    none(args)
}

fn is_closing<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let closing = datagram.flags.life.get() != Life::Open;
    Ok(Obj::bool(args.py(), closing))
}

fn set_protocol<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    datagram
        .protocol
        .set(Some(args.want(0, "protocol")?.clone()));
    none(args)
}

fn get_protocol<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    Ok(datagram.protocol.get(py).unwrap_or_else(|| Obj::none(py)))
}

fn get_socket<'py>(this: &Obj<'py>, datagram: &Datagram) -> Answer<'py> {
    let py = this.py();
    Ok(datagram.socket.get(py).unwrap_or_else(|| Obj::none(py)))
}

fn get_fd<'py>(this: &Obj<'py>, datagram: &Datagram) -> Answer<'py> {
    Obj::int(this.py(), i64::from(datagram.fd))
}

fn get_loop<'py>(this: &Obj<'py>, datagram: &Datagram) -> Answer<'py> {
    Ok(datagram.event_loop.obj(this.py()))
}

fn get_extra<'py>(this: &Obj<'py>, datagram: &Datagram) -> Answer<'py> {
    let py = this.py();
    match datagram.rare.extra.get(py) {
        Some(extra) => Ok(extra),
        None => {
            let extra = Obj::dict(py)?;
            datagram.rare.extra.set(Some(extra.clone()));
            Ok(extra)
        }
    }
}

fn get_extra_info<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let name = args.want(0, "name")?;
    let default = args.get(1).or_else(|| args.keyword("default"));
    let extra = get_extra(this, datagram)?;
    if let Some(value) = extra.dict_get(&name)? {
        return Ok(value);
    }
    let fill = datagram.core(py).types.names._fill_extra.get(py);
    let socket = get_socket(this, datagram)?;
    let event_loop = datagram.event_loop.obj(py);
    event_loop.call_named(&fill, [&extra, &socket, &name])?;
    let value = extra.dict_get(&name)?;
    Ok(value.unwrap_or_else(|| default.map_or_else(|| Obj::none(py), |value| value.clone())))
}

fn size<'py>(args: &Args<'_, 'py>, index: usize, name: &str) -> PyResult<'py, Option<i64>> {
    match args.get(index).or_else(|| args.keyword(name)) {
        Some(value) if !value.is_none() => value.as_i64(),
        _ => Ok(None),
    }
}

fn set_limits<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let (high, low) = (size(args, 0, "high")?, size(args, 1, "low")?);
    let high = high.unwrap_or_else(|| low.map_or(HIGH as i64, |low| 4 * low));
    let low = low.unwrap_or(high / 4);
    if !(high >= low && low >= 0) {
        let text = format!("high ({high}) must be >= low ({low}) must be >= 0");
        return Err(PyError::new(args.py(), Builtin::ValueError, &text));
    }
    datagram.flags.limits.set((low as usize, high as usize));
    datagram.maybe_pause(this)?;
    datagram.maybe_resume(this)?;
    none(args)
}

fn get_limits<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let py = args.py();
    let (low, high) = datagram.flags.limits.get();
    let (low, high) = (Obj::int(py, low as i64)?, Obj::int(py, high as i64)?);
    Obj::tuple(py, [low, high].into_iter())
}

fn get_size<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    Obj::int(args.py(), datagram.queue.borrow().size as i64)
}
