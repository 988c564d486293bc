//! What Python sees of every transport.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Obj, PyError, PyResult};

use super::flow::HIGH;
use super::{Channel, Life, Limits, Transport};

pub(crate) type Answer<'py> = PyResult<'py, Obj<'py>>;

pub(crate) fn none<'py>(args: &Args<'_, 'py>) -> Answer<'py> {
    Ok(Obj::none(args.py()))
}

fn or_none<'py>(py: Attached<'py>, object: Option<Obj<'py>>) -> Answer<'py> {
    Ok(object.unwrap_or_else(|| Obj::none(py)))
}

impl Channel {
    /// What the transport was given, and what was asked for since.
    fn extra<'py>(&self, py: Attached<'py>) -> Answer<'py> {
        match self.rare.extra.get(py) {
            Some(extra) => Ok(extra),
            None => {
                let extra = Obj::dict(py)?;
                self.rare.extra.set(Some(extra.clone()));
                Ok(extra)
            }
        }
    }
}

pub(crate) fn is_closing<'py, T: Transport>(
    _this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let closing = transport.channel().life.get() != Life::Open;
    Ok(Obj::bool(args.py(), closing))
}

pub(crate) fn get_protocol<'py, T: Transport>(
    _this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    or_none(args.py(), transport.channel().protocol.get(args.py()))
}

pub(crate) fn get_size<'py, T: Transport>(
    _this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    Obj::int(args.py(), transport.queued() as i64)
}

pub(crate) fn get_extra_info<'py, T: Transport>(
    _this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let py = args.py();
    let name = args
        .get(0)
        .or_else(|| args.keyword("name"))
        .ok_or_else(|| PyError::new(py, Builtin::TypeError, "missing argument: 'name'"))?;
    let default = args.get(1).or_else(|| args.keyword("default"));
    let channel = transport.channel();
    let extra = channel.extra(py)?;
    if let Some(value) = extra.dict_get(&name)? {
        return Ok(value);
    }
    if let Some(value) = transport.known(&name)? {
        extra.dict_set(&name, &value)?;
        return Ok(value);
    }
    let fill = channel.core(py).types.names._fill_extra.get(py);
    let socket = or_none(py, transport.socket(py)?)?;
    let event_loop = channel.event_loop.obj(py);
    event_loop.call_named(&fill, [&extra, &socket, &name])?;
    let value = extra.dict_get(&name)?;
    Ok(value.unwrap_or_else(|| default.map_or_else(|| Obj::none(py), |value| value.clone())))
}

pub(crate) fn set_limits<'py, T: Transport>(
    this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    let channel = transport.channel();
    channel.limits.set(Limits::asked(args, HIGH)?);
    channel.maybe_pause(this, transport.queued())?;
    channel.maybe_resume(this, transport.queued())?;
    none(args)
}

pub(crate) fn get_limits<'py, T: Transport>(
    _this: &Obj<'py>,
    transport: &T,
    args: &Args<'_, 'py>,
) -> Answer<'py> {
    transport.channel().limits.get().shown(args)
}

pub(crate) fn get_loop<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    Ok(transport.channel().event_loop.obj(this.py()))
}

pub(crate) fn get_file<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    or_none(this.py(), transport.channel().file.get(this.py()))
}

pub(crate) fn get_socket<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    or_none(this.py(), transport.socket(this.py())?)
}

pub(crate) fn get_fd<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    let channel = transport.channel();
    let fd = if channel.has_fd() { channel.fd() } else { -1 };
    Obj::int(this.py(), i64::from(fd))
}

pub(crate) fn get_extra<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    transport.channel().extra(this.py())
}

pub(crate) fn protocol_paused<'py, T: Transport>(this: &Obj<'py>, transport: &T) -> Answer<'py> {
    let paused = transport.channel().protocol_paused.get();
    Ok(Obj::bool(this.py(), paused))
}
