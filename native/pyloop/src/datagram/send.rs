//! Sending datagrams: tried at once; what the system does not take now waits for writable.
//!
//! Thread: the loop's own.

use std::net::SocketAddr;

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::kind::BaseKind;
use pyrt::{Obj, PyError, PyResult};
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sendto};

use super::{Datagram, Family, HEADER, Packet, To, unix};
use crate::channel::{Life, Transport};
use crate::event_loop::watch::lend;

impl Datagram {
    pub(super) fn send<'py>(
        &self,
        this: &Obj<'py>,
        data: &Obj<'py>,
        to: Option<&Obj<'py>>,
    ) -> PyResult<'py, ()> {
        if let Some(bytes) = data.as_bytes() {
            return self.send_slice(this, bytes, to);
        }
        if !matches!(data.base_kind(), BaseKind::ByteArray | BaseKind::MemoryView) {
            let class = data.type_name();
            let text = format!("data argument must be a bytes-like object, not '{class}'");
            return Err(PyError::new(this.py(), Builtin::TypeError, &text));
        }
        let mut copy = Vec::new();
        Buffer::of(data)?.append_to(&mut copy)?;
        self.send_slice(this, &copy, to)
    }

    fn send_slice<'py>(
        &self,
        this: &Obj<'py>,
        data: &[u8],
        to: Option<&Obj<'py>>,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        let to = match self.target(this, to) {
            Ok(to) => to,
            // As asyncio: what the system says of an address is for the protocol.
            Err(error) if error.is_a(Builtin::OSError) => return self.error_received(this, error),
            Err(error) => return Err(error),
        };
        if self.channel.life.get() >= Life::Lost {
            return Ok(());
        }
        if self.queue.borrow().packets.is_empty() {
            match self.transmit(data, &to) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => {
                    let error = PyError::from_io(py, &errno.into());
                    return self.error_received(this, error);
                }
            }
        }
        {
            let mut queue = self.queue.borrow_mut();
            queue.size += data.len() + HEADER;
            let data = data.into();
            queue.packets.push_back(Packet { data, to });
        }
        self.watch(py);
        self.channel.maybe_pause(this, self.queued())
    }

    /// Where to: an endpoint with a remote address has no other. It is not connected if it may broadcast.
    fn target<'py>(&self, this: &Obj<'py>, to: Option<&Obj<'py>>) -> PyResult<'py, To> {
        let py = this.py();
        let to = to.filter(|to| !to.is_none());
        let remote = self.remote.get(py);
        if let Some(remote) = &remote
            && let Some(to) = to
            && !to.call_method(c"__eq__", &[remote])?.is_truthy()?
        {
            let what = remote.repr()?.display();
            let text = format!("Invalid address: must be None or {what}");
            return Err(PyError::new(py, Builtin::ValueError, &text));
        }
        let Some(to) = to.or(remote.as_ref()).filter(|_| !self.connected) else {
            return Ok(To::Peer);
        };
        if self.family == Family::Unix {
            return unix::read(to).map(|address| To::Unix(Box::new(address)));
        }
        let ipv6 = self.family == Family::V6;
        match self.addresses.address(to, ipv6)? {
            Some(address) => Ok(To::Inet(address)),
            None => self.resolve(to, ipv6).map(To::Inet),
        }
    }

    /// A name and not a number: the socket module looks it up, as asyncio has it do.
    #[cold]
    fn resolve<'py>(&self, to: &Obj<'py>, ipv6: bool) -> PyResult<'py, SocketAddr> {
        let py = to.py();
        let name = self.channel.core(py).types.names._resolve_datagram.get(py);
        let family = Obj::bool(py, ipv6);
        let event_loop = self.channel.event_loop.obj(py);
        let numeric = event_loop.call_named(&name, [to, &family])?;
        self.addresses.address(&numeric, ipv6)?.ok_or_else(|| {
            let what = to.repr().map_or_else(|_| String::new(), |to| to.display());
            let text = format!("not an address: {what}");
            PyError::new(py, Builtin::ValueError, &text)
        })
    }

    fn transmit(&self, data: &[u8], to: &To) -> Result<(), Errno> {
        let fd = lend(self.channel.fd());
        match to {
            To::Inet(to) => sendto(fd, data, SendFlags::NOSIGNAL, to)?,
            To::Unix(to) => sendto(fd, data, SendFlags::NOSIGNAL, &**to)?,
            To::Peer => send(fd, data, SendFlags::NOSIGNAL)?,
        };
        Ok(())
    }

    /// Sends what it can of the queue.
    pub(super) fn flush<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        loop {
            let Some(packet) = self.queue.borrow_mut().packets.pop_front() else {
                break;
            };
            let failed = match self.transmit(&packet.data, &packet.to) {
                Ok(()) => None,
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.queue.borrow_mut().packets.push_front(packet);
                    break;
                }
                Err(errno) => Some(errno),
            };
            self.queue.borrow_mut().size -= packet.data.len() + HEADER;
            if let Some(errno) = failed {
                let error = PyError::from_io(this.py(), &errno.into());
                self.error_received(this, error)?;
            }
        }
        self.watch(this.py());
        self.channel.maybe_resume(this, self.queued())?;
        if self.queue.borrow().packets.is_empty() && self.channel.life.get() == Life::Closing {
            self.channel.lose(this, None);
        }
        Ok(())
    }
}
