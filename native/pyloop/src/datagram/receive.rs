//! A datagram socket is readable: what is there goes to the protocol, one call each.
//!
//! Thread: the loop's own, attached, in the context of the transport.

use std::net::SocketAddr;

use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrAny, SocketAddrUnix, recvfrom};

use super::{Datagram, Family, unix};
use crate::channel::Life;
use crate::event_loop::watch::lend;
use crate::transport::ROOM;

/// As many as one readiness may bring: the other sources of the loop wait meanwhile.
const BATCH: usize = 16;

impl Datagram {
    pub(super) fn readable<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        for _ in 0..BATCH {
            if !self.interest().readable || !self.receive(this)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there may be more.
    fn receive<'py>(&self, this: &Obj<'py>) -> PyResult<'py, bool> {
        let py = this.py();
        let Some(protocol) = self.channel.protocol.get(py) else {
            return Ok(false);
        };
        let core = self.channel.core(py);
        let received = {
            let mut buffer = core.io.buffer.borrow_mut();
            if buffer.is_empty() {
                buffer.resize(ROOM, 0);
            }
            match recvfrom(lend(self.channel.fd()), &mut buffer[..], RecvFlags::empty()) {
                Ok((_, len, from)) => Ok((Obj::bytes(py, &buffer[..len])?, from)),
                Err(errno) => Err(errno),
            }
        };
        let (data, from) = match received {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(errno) => {
                let error = PyError::from_io(py, &errno.into());
                return self.error_received(this, error).map(|()| true);
            }
        };
        let from = self.sender(py, from)?;
        let name = core.types.names.datagram_received.get(py);
        match protocol.call_named(&name, [&data, &from]) {
            Ok(_) => Ok(self.channel.life.get() == Life::Open),
            Err(error) => {
                // As asyncio: the callback failed, the endpoint goes on.
                let what = "Exception in callback datagram_received";
                self.channel.report(this, error, what).map(|()| true)
            }
        }
    }

    /// What the protocol is told of where a datagram came from.
    fn sender<'py>(
        &self,
        py: Attached<'py>,
        from: Option<SocketAddrAny>,
    ) -> PyResult<'py, Obj<'py>> {
        let Some(from) = from else {
            return Ok(Obj::none(py));
        };
        if self.family == Family::Unix {
            return match SocketAddrUnix::try_from(from) {
                Ok(address) => unix::make(py, &address),
                Err(_) => Ok(Obj::none(py)),
            };
        }
        match SocketAddr::try_from(from) {
            Ok(address) => self.addresses.tuple(py, address),
            Err(_) => Ok(Obj::none(py)),
        }
    }

    /// The system's answer to an earlier datagram: the endpoint goes on.
    pub(super) fn error_received<'py>(
        &self,
        this: &Obj<'py>,
        error: PyError<'py>,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        let Some(protocol) = self.channel.protocol.get(py) else {
            return Ok(());
        };
        let name = self.channel.core(py).types.names.error_received.get(py);
        match protocol.call_named(&name, [error.value()]) {
            Ok(_) => Ok(()),
            Err(error) => self
                .channel
                .report(this, error, "Exception in callback error_received"),
        }
    }
}
