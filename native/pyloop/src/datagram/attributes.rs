//! What Python sees of a datagram transport.

use pyrt::module::{Args, END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Obj, getter, method};

use super::Datagram;
use crate::channel::attributes::{self, Answer, none};

pub(super) static METHODS: [Function; 12] = [
    method!(Datagram, c"sendto", sendto, c"Sends a datagram."),
    method!(
        Datagram,
        c"close",
        close,
        c"Closes after what is queued was sent.",
        sent
    ),
    method!(Datagram, c"abort", abort, c"Closes at once.", sent),
    method!(Datagram, c"_force_close", abort, c"Closes at once."),
    method!(
        Datagram,
        c"is_closing",
        attributes::is_closing,
        c"Whether it closes or is closed.",
        anywhere
    ),
    method!(
        Datagram,
        c"set_protocol",
        set_protocol,
        c"Another protocol from now on."
    ),
    method!(
        Datagram,
        c"get_protocol",
        attributes::get_protocol,
        c"The protocol.",
        anywhere
    ),
    method!(
        Datagram,
        c"get_extra_info",
        attributes::get_extra_info,
        c"What is known of the endpoint.",
        anywhere
    ),
    method!(
        Datagram,
        c"set_write_buffer_limits",
        attributes::set_limits,
        c"The marks of flow control."
    ),
    method!(
        Datagram,
        c"get_write_buffer_limits",
        attributes::get_limits,
        c"(low, high)",
        anywhere
    ),
    method!(
        Datagram,
        c"get_write_buffer_size",
        attributes::get_size,
        c"How much waits to be sent.",
        anywhere
    ),
    END,
];

pub(super) static GETTERS: [Getter; 6] = [
    getter!(Datagram, c"__class__", class),
    getter!(Datagram, c"_sock", attributes::get_socket),
    getter!(Datagram, c"_sock_fd", attributes::get_fd),
    getter!(Datagram, c"_loop", attributes::get_loop),
    getter!(Datagram, c"_extra", attributes::get_extra),
    END_OF_GETTERS,
];

/// To `isinstance` it is a transport of asyncio's.
fn class<'py>(this: &Obj<'py>, _: &Datagram) -> Answer<'py> {
    pyrt::call::import_c(this.py(), c"erlang._loop")?.getattr_c(c"_ErlangDatagramTransport")
}

fn sendto<'py>(this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let data = args.want(0, "data")?;
    let to = args.get(1).or_else(|| args.keyword("addr"));
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

fn set_protocol<'py>(_this: &Obj<'py>, datagram: &Datagram, args: &Args<'_, 'py>) -> Answer<'py> {
    let protocol = args.want(0, "protocol")?.clone();
    datagram.channel.protocol.set(Some(protocol));
    none(args)
}
