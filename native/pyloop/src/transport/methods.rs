//! The methods that sockets and the ends of pipes have in common, as entries of their tables.

use pyrt::method;
use pyrt::module::Function;

use super::Stream;
use super::attributes as own;
use crate::channel::attributes;

pub(super) const WRITE: Function = method!(
    Stream,
    c"write",
    own::write,
    c"Sends data, now or as soon as it can."
);

pub(super) const WRITELINES: Function = method!(
    Stream,
    c"writelines",
    own::writelines,
    c"Sends pieces of data together."
);

pub(super) const CAN_WRITE_EOF: Function = method!(
    Stream,
    c"can_write_eof",
    own::can_write_eof,
    c"True",
    anywhere
);

pub(super) const CLOSE: Function = method!(
    Stream,
    c"close",
    own::close,
    c"Closes after what is queued was sent.",
    sent
);

pub(super) const ABORT: Function = method!(Stream, c"abort", own::abort, c"Closes at once.", sent);

pub(super) const IS_CLOSING: Function = method!(
    Stream,
    c"is_closing",
    attributes::is_closing,
    c"Whether it closes or is closed.",
    anywhere
);

pub(super) const PAUSE_READING: Function = method!(
    Stream,
    c"pause_reading",
    own::pause_reading,
    c"No more data until resume_reading."
);

pub(super) const RESUME_READING: Function = method!(
    Stream,
    c"resume_reading",
    own::resume_reading,
    c"Data again."
);

pub(super) const IS_READING: Function = method!(
    Stream,
    c"is_reading",
    own::is_reading,
    c"Whether data is received.",
    anywhere
);

pub(super) const SET_PROTOCOL: Function = method!(
    Stream,
    c"set_protocol",
    own::set_protocol,
    c"Another protocol from now on."
);

pub(super) const GET_PROTOCOL: Function = method!(
    Stream,
    c"get_protocol",
    attributes::get_protocol,
    c"The protocol.",
    anywhere
);

pub(super) const GET_EXTRA_INFO: Function = method!(
    Stream,
    c"get_extra_info",
    attributes::get_extra_info,
    c"What is known of the connection.",
    anywhere
);

pub(super) const SET_LIMITS: Function = method!(
    Stream,
    c"set_write_buffer_limits",
    attributes::set_limits,
    c"The marks of flow control."
);

pub(super) const GET_LIMITS: Function = method!(
    Stream,
    c"get_write_buffer_limits",
    attributes::get_limits,
    c"(low, high)",
    anywhere
);

pub(super) const GET_SIZE: Function = method!(
    Stream,
    c"get_write_buffer_size",
    attributes::get_size,
    c"How much waits to be sent.",
    anywhere
);
