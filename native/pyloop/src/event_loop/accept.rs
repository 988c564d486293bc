//! A listening socket is readable: connections become transports, without a task or an object each.
//!
//! Thread: the loop's own.

use std::net::SocketAddr;

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::LoopCore;
use super::watch::{lend, number_of, want_fd};
use crate::transport;

/// `_accept(sock, protocol_factory, server, backlog)`: accepts what is there. What the system
/// refuses is raised; what the factory raises closes that one connection.
pub(super) fn accept<'py>(
    this: &Obj<'py>,
    core: &LoopCore,
    args: &Args<'_, 'py>,
) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    core.check_closed(py)?;
    let listener = want_fd(args)?;
    let (factory, server) = (args.want(1, "protocol_factory")?, args.want(2, "server")?);
    let backlog = args.want(3, "backlog")?.as_i64()?.unwrap_or(0);
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    for _ in 0..=backlog {
        let (connection, peer) = match acceptfrom_with(lend(listener), flags) {
            Ok(accepted) => accepted,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => break,
            Err(errno) => return Err(PyError::from_io(py, &errno.into())),
        };
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let attached = (!server.is_none()).then(|| server.clone());
        let made = factory.call(&[]);
        if core.forked.get() {
            // The connections are the parent's.
            break;
        }
        let made = made
            .and_then(|protocol| transport::accepted(this, connection, peer, &protocol, attached));
        if let Err(error) = made {
            report(this, error)?;
        }
        // The factory may have closed it: its number is another descriptor's then.
        if number_of(args)? != Some(listener) {
            break;
        }
    }
    Ok(Obj::none(py))
}

#[cold]
fn report<'py>(this: &Obj<'py>, error: PyError<'py>) -> PyResult<'py, ()> {
    let py = this.py();
    if error.is_a(Builtin::KeyboardInterrupt) || error.is_a(Builtin::SystemExit) {
        return Err(error);
    }
    let context = Obj::dict(py)?;
    let what = "Error on transport creation for incoming connection";
    context.dict_set_c(c"message", &Obj::text(py, what)?)?;
    context.dict_set_c(c"exception", error.value())?;
    this.call_method(c"call_exception_handler", &[&context])?;
    Ok(())
}
