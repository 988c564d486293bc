//! What a transport tells about itself: how `sendfile` works with it, `repr`.

use pyrt::Obj;

use super::{Kind, Stream};
use crate::channel::Life;
use crate::channel::attributes::Answer;

pub(super) fn sendfile_mode<'py>(this: &Obj<'py>, _stream: &Stream) -> Answer<'py> {
    let constants = pyrt::call::import_c(this.py(), c"asyncio.constants")?;
    constants
        .getattr_c(c"_SendfileMode")?
        .getattr_c(c"TRY_NATIVE")
}

/// As asyncio prints its own.
pub(super) fn repr<'py>(this: &Obj<'py>, stream: &Stream) -> Answer<'py> {
    let state = match stream.channel.life.get() {
        Life::Open => "",
        Life::Closing | Life::Lost => " closing",
        Life::Gone => " closed",
    };
    let interest = stream.interest();
    let read = if interest.readable { "polling" } else { "idle" };
    let write = if interest.writable { "polling" } else { "idle" };
    let (fd, size) = (stream.channel.fd(), stream.queue.borrow().size);
    let kind = match stream.flags.kind.get() {
        Kind::Plain => "",
        Kind::Buffered => " buffered",
        Kind::Tls => " tls",
    };
    let text = format!(
        "<_ErlangSocketTransport{state} fd={fd} read={read}{kind} write=<{write}, bufsize={size}>>"
    );
    Obj::text(this.py(), &text)
}
