//! A datagram socket is readable: what is there goes to the protocol, one call each.
//!
//! Thread: the loop's own, attached, in the context of the transport.

use std::net::SocketAddr;

use pyrt::{Obj, PyError, PyResult};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recvfrom};

use super::Datagram;
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
            match recvfrom(lend(self.channel.fd), &mut buffer[..], RecvFlags::empty()) {
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
        let from = match from.map(SocketAddr::try_from) {
            Some(Ok(address)) => self.addresses.tuple(py, address)?,
            _ => Obj::none(py),
        };
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
