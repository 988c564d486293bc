//! What a TLS transport tells about itself: extra information, limits, `repr`.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};

use super::{HIGH_READ, HIGH_WRITE, Mode, Tls};
use crate::channel::Limits;

type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(super) fn sendfile_mode<'py>(this: &Obj<'py>, _tls: &Tls) -> Answer<'py> {
    let constants = pyrt::call::import_c(this.py(), c"asyncio.constants")?;
    constants
        .getattr_c(c"_SendfileMode")?
        .getattr_c(c"FALLBACK")
}

/// What asyncio's part knows, else the stream below.
pub(super) fn get_extra_info<'py>(
    _this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let name = args
        .get(0)
        .or_else(|| args.keyword("name"))
        .ok_or_else(|| PyError::new(py, Builtin::TypeError, "missing argument: 'name'"))?;
    let default = args.get(1).or_else(|| args.keyword("default"));
    let default = default.map_or_else(|| Obj::none(py), |value| value.clone());
    let known = tls.control(py, c"_get_extra_info", &[&name, &default])?;
    Ok(known.unwrap_or(default))
}

pub(super) fn set_write_limits<'py>(
    this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    tls.write_limits.set(Limits::asked(args, HIGH_WRITE)?);
    tls.control_protocol(this)?;
    Ok(Obj::none(args.py()))
}

pub(super) fn get_write_limits<'py>(
    _this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    tls.write_limits.get().shown(args)
}

pub(super) fn get_write_size<'py>(
    _this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    Obj::int(args.py(), tls.write_size(args.py())? as i64)
}

pub(super) fn set_read_limits<'py>(
    _this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    tls.read_limits.set(Limits::asked(args, HIGH_READ)?);
    tls.control_stream(args.py())?;
    Ok(Obj::none(args.py()))
}

pub(super) fn get_read_limits<'py>(
    _this: &Obj<'py>,
    tls: &Tls,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    tls.read_limits.get().shown(args)
}

pub(super) fn get_read_size<'py>(_this: &Obj<'py>, tls: &Tls, args: &Args<'_, 'py>) -> Answer<'py> {
    Obj::int(args.py(), tls.incoming_size(args.py())? as i64)
}

pub(super) fn repr<'py>(this: &Obj<'py>, tls: &Tls) -> Answer<'py> {
    let state = match tls.flags.mode.get() {
        Mode::Open if !tls.flags.closed.get() => "open",
        Mode::Handshake => "handshake",
        Mode::Open | Mode::Flushing | Mode::Shutdown => "closing",
        Mode::Unwrapped if tls.flags.closed.get() => "closed",
        Mode::Unwrapped => "new",
    };
    let below = match tls.stream.get(this.py()) {
        Some(stream) => stream.repr()?.display(),
        None => "nothing".to_owned(),
    };
    Obj::text(
        this.py(),
        &format!("<_ErlangSSLTransport {state} over {below}>"),
    )
}
