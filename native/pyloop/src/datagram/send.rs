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

use super::{Datagram, HEADER, Life, Packet};
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
        let to = self.target(this, to)?;
        if self.flags.life.get() >= Life::Lost {
            return Ok(());
        }
        if self.queue.borrow().packets.is_empty() {
            match self.transmit(data, to) {
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
        self.maybe_pause(this)
    }

    /// Where to: a connected endpoint has one address only.
    fn target<'py>(
        &self,
        this: &Obj<'py>,
        to: Option<&Obj<'py>>,
    ) -> PyResult<'py, Option<SocketAddr>> {
        let py = this.py();
        let to = to.filter(|to| !to.is_none());
        if let Some(remote) = self.rare.remote.get(py) {
            if let Some(to) = to
                && !to.call_method(c"__eq__", &[&remote])?.is_truthy()?
            {
                let what = remote.repr()?.display();
                let text = format!("Invalid address: must be None or {what}");
                return Err(PyError::new(py, Builtin::ValueError, &text));
            }
            return Ok(None);
        }
        let Some(to) = to else {
            return Ok(None);
        };
        if self.flags.connected {
            return Ok(None);
        }
        if let Some(address) = self.addresses.address(to, self.flags.ipv6)? {
            return Ok(Some(address));
        }
        self.resolve(to)
    }

    /// A name and not a number: the socket module looks it up, as asyncio has it do.
    #[cold]
    fn resolve<'py>(&self, to: &Obj<'py>) -> PyResult<'py, Option<SocketAddr>> {
        let py = to.py();
        let name = self.core(py).types.names._resolve_datagram.get(py);
        let family = Obj::bool(py, self.flags.ipv6);
        let event_loop = self.event_loop.obj(py);
        let numeric = event_loop.call_named(&name, [to, &family])?;
        match self.addresses.address(&numeric, self.flags.ipv6)? {
            Some(address) => Ok(Some(address)),
            None => {
                let text = format!("not an address: {}", to.repr()?.display());
                Err(PyError::new(py, Builtin::ValueError, &text))
            }
        }
    }

    fn transmit(&self, data: &[u8], to: Option<SocketAddr>) -> Result<(), Errno> {
        match to {
            Some(to) => sendto(lend(self.fd), data, SendFlags::NOSIGNAL, &to)?,
            None => send(lend(self.fd), data, SendFlags::NOSIGNAL)?,
        };
        Ok(())
    }

    /// Sends what it can of the queue.
    pub(super) fn flush<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        loop {
            let Some(packet) = self.queue.borrow_mut().packets.pop_front() else {
                break;
            };
            let failed = match self.transmit(&packet.data, packet.to) {
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
        self.maybe_resume(this)?;
        if self.queue.borrow().packets.is_empty() && self.flags.life.get() == Life::Closing {
            self.lose(this, None);
        }
        Ok(())
    }

    pub(super) fn maybe_pause<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let high = self.flags.limits.get().1;
        if self.flags.protocol_paused.get() || self.queue.borrow().size <= high {
            return Ok(());
        }
        self.flags.protocol_paused.set(true);
        self.tell(this, true)
    }

    pub(super) fn maybe_resume<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let low = self.flags.limits.get().0;
        if !self.flags.protocol_paused.get() || self.queue.borrow().size > low {
            return Ok(());
        }
        self.flags.protocol_paused.set(false);
        self.tell(this, false)
    }

    fn tell<'py>(&self, this: &Obj<'py>, pause: bool) -> PyResult<'py, ()> {
        let py = this.py();
        let Some(protocol) = self.protocol.get(py) else {
            return Ok(());
        };
        let names = &self.core(py).types.names;
        let (name, what) = if pause {
            (&names.pause_writing, "protocol.pause_writing() failed")
        } else {
            (&names.resume_writing, "protocol.resume_writing() failed")
        };
        match protocol.call_named(&name.get(py), []) {
            Ok(_) => Ok(()),
            Err(error) => self.report(this, error, what),
        }
    }
}
