//! What a transport tells about itself: extra information, limits, `repr`.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};

use super::{HIGH, Kind, Life, Limits, Stream};

type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(super) fn sendfile_mode<'py>(this: &Obj<'py>, _stream: &Stream) -> Answer<'py> {
    let constants = pyrt::call::import_c(this.py(), c"asyncio.constants")?;
    constants
        .getattr_c(c"_SendfileMode")?
        .getattr_c(c"TRY_NATIVE")
}

/// What the transport was given, and the names of the socket, asked for when they are needed.
pub(super) fn get_extra<'py>(this: &Obj<'py>, stream: &Stream) -> Answer<'py> {
    let py = this.py();
    match stream.rare.extra.get(py) {
        Some(extra) => Ok(extra),
        None => {
            let extra = Obj::dict(py)?;
            stream.rare.extra.set(Some(extra.clone()));
            Ok(extra)
        }
    }
}

pub(super) fn get_extra_info<'py>(
    this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let name = args
        .get(0)
        .or_else(|| args.keyword("name"))
        .ok_or_else(|| PyError::new(py, Builtin::TypeError, "missing argument: 'name'"))?;
    let default = args.get(1).or_else(|| args.keyword("default"));
    let extra = get_extra(this, stream)?;
    if let Some(value) = extra.dict_get(&name)? {
        return Ok(value);
    }
    if let Some(peer) = stream.rare.peer.get()
        && name.as_utf8().is_ok_and(|name| name == "peername")
    {
        let peer = crate::datagram::address_tuple(py, peer)?;
        extra.dict_set(&name, &peer)?;
        return Ok(peer);
    }
    let fill = stream.core(py).types.names._fill_extra.get(py);
    let socket = stream.socket_object(py)?;
    let socket = socket.unwrap_or_else(|| Obj::none(py));
    let event_loop = stream.event_loop.obj(py);
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

pub(super) fn set_limits<'py>(
    this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let (high, low) = (size(args, 0, "high")?, size(args, 1, "low")?);
    let high = high.unwrap_or_else(|| low.map_or(HIGH as i64, |low| 4 * low));
    let low = low.unwrap_or(high / 4);
    if !(high >= low && low >= 0) {
        let text = format!("high ({high}) must be >= low ({low}) must be >= 0");
        return Err(PyError::new(args.py(), Builtin::ValueError, &text));
    }
    stream.limits.set(Limits {
        high: high as usize,
        low: low as usize,
    });
    stream.check_limits(this)?;
    Ok(Obj::none(args.py()))
}

pub(super) fn get_limits<'py>(
    _this: &Obj<'py>,
    stream: &Stream,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let Limits { high, low } = stream.limits.get();
    let (low, high) = (Obj::int(py, low as i64)?, Obj::int(py, high as i64)?);
    Obj::tuple(py, [low, high].into_iter())
}

/// As asyncio prints its own.
pub(super) fn repr<'py>(this: &Obj<'py>, stream: &Stream) -> Answer<'py> {
    let state = match stream.flags.life.get() {
        Life::Open => "",
        Life::Closing | Life::Lost => " closing",
        Life::Gone => " closed",
    };
    let interest = stream.interest();
    let read = if interest.readable { "polling" } else { "idle" };
    let write = if interest.writable { "polling" } else { "idle" };
    let (fd, size) = (stream.fd, stream.queue.borrow().size);
    let kind = match stream.flags.kind.get() {
        Kind::Plain => "",
        Kind::Buffered => " buffered",
    };
    let text = format!(
        "<_ErlangSocketTransport{state} fd={fd} read={read}{kind} write=<{write}, bufsize={size}>>"
    );
    Obj::text(this.py(), &text)
}
