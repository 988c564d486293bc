//! A stream is readable: one `recv` per readiness, then the protocol.
//!
//! Thread: the loop's own, attached, in the context of the transport.

use pyrt::error::Builtin;
use pyrt::fill::Writable;
use pyrt::{Attached, Obj, PyError, PyResult};
use rustix::io::Errno;

use super::{Kind, Medium, Stream};
use crate::channel::Life;

/// The most that one `recv` takes.
pub(crate) const ROOM: usize = 256 * 1024;

/// What `recv` brought.
pub(super) enum Got<T> {
    Data(T),
    Eof,
    Later,
}

impl Stream {
    /// Reads once and tells the protocol.
    pub(super) fn readable<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        if matches!(self.flags.medium, Medium::Writer { .. }) {
            self.reader_gone(this);
            return Ok(());
        }
        let Some(protocol) = self.channel.protocol.get(py) else {
            return Ok(());
        };
        match self.flags.kind.get() {
            Kind::Plain => self.read_plain(this, &protocol),
            Kind::Buffered => self.read_buffered(this, &protocol),
            Kind::Tls => self.read_tls(this, &protocol),
        }
    }

    fn read_plain<'py>(&self, this: &Obj<'py>, protocol: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let data = match self.receive(py)? {
            Ok(Got::Data(data)) => data,
            Ok(Got::Eof) => return self.got_eof(this, protocol),
            Ok(Got::Later) => return Ok(()),
            Err(error) => return self.read_failed(this, error),
        };
        let name = self.channel.core(py).types.names.data_received.get(py);
        self.flags.inside.set(true);
        let done = protocol.call_named(&name, [&data]);
        self.leave(this)?;
        match done {
            Ok(_) => Ok(()),
            // As asyncio: the callback failed, the pipe goes on.
            Err(error) if self.flags.medium.is_pipe() => {
                let what = "Exception in callback data_received";
                self.channel.report(this, error, what)
            }
            Err(error) => {
                let what = "Fatal error: protocol.data_received() call failed.";
                self.fatal(this, error, what)
            }
        }
    }

    /// Into the loop's buffer, then a `bytes` of the exact size: memory of the largest size for
    /// each read would be fresh from the system each time, which costs more than the copy.
    fn receive<'py>(&self, py: Attached<'py>) -> PyResult<'py, Result<Got<Obj<'py>>, Errno>> {
        let core = self.channel.core(py);
        let mut buffer = core.io.buffer.borrow_mut();
        if buffer.is_empty() {
            buffer.resize(ROOM, 0);
        }
        match self
            .flags
            .medium
            .receive(self.channel.fd(), &mut buffer[..])
        {
            Ok(0) => Ok(Ok(Got::Eof)),
            Ok(len) => Ok(Ok(Got::Data(Obj::bytes(py, &buffer[..len])?))),
            Err(errno) => Ok(later_or(errno)),
        }
    }

    fn read_buffered<'py>(&self, this: &Obj<'py>, protocol: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let names = &self.channel.core(py).types.names;
        let hint = Obj::int(py, -1)?;
        let lent = protocol
            .call_named(&names.get_buffer.get(py), [&hint])
            .and_then(|buffer| Writable::of(&buffer));
        let mut lent = match lent {
            Ok(lent) => lent,
            Err(error) => {
                let what = "Fatal error: protocol.get_buffer() call failed.";
                return self.fatal(this, error, what);
            }
        };
        if lent.memory().is_empty() {
            let text = "get_buffer() returned an empty buffer";
            let error = PyError::new(py, Builtin::RuntimeError, text);
            let what = "Fatal error: protocol.get_buffer() call failed.";
            return self.fatal(this, error, what);
        }
        let received = self.flags.medium.receive(self.channel.fd(), lent.memory());
        drop(lent);
        let len = match received {
            Ok(0) => return self.got_eof(this, protocol),
            Ok(len) => len,
            Err(errno) => match later_or::<()>(errno) {
                Ok(_) => return Ok(()),
                Err(errno) => return self.read_failed(this, errno),
            },
        };
        let len = Obj::int(py, len as i64)?;
        self.flags.inside.set(true);
        let done = protocol.call_named(&names.buffer_updated.get(py), [&len]);
        self.leave(this)?;
        match done {
            Ok(_) => Ok(()),
            Err(error) => {
                let what = "Fatal error: protocol.buffer_updated() call failed.";
                self.fatal(this, error, what)
            }
        }
    }

    #[cold]
    pub(super) fn read_failed<'py>(&self, this: &Obj<'py>, errno: Errno) -> PyResult<'py, ()> {
        if self.flags.medium.is_pipe() {
            return self.pipe_read_failed(this, errno);
        }
        let error = PyError::from_io(this.py(), &errno.into());
        self.fatal(this, error, "Fatal read error on socket transport")
    }

    pub(super) fn got_eof<'py>(&self, this: &Obj<'py>, protocol: &Obj<'py>) -> PyResult<'py, ()> {
        if self.flags.medium.is_pipe() {
            return self.pipe_ended(this, protocol);
        }
        let py = this.py();
        let name = self.channel.core(py).types.names.eof_received.get(py);
        self.flags.inside.set(true);
        let keep_open = protocol
            .call_named(&name, [])
            .and_then(|answer| answer.is_truthy());
        self.leave(this)?;
        match keep_open {
            Ok(true) => {
                // The other way is still open; a hang-up would be readable for ever.
                self.flags.eof.set(true);
                self.watch(py);
                Ok(())
            }
            Ok(false) => self.close(this),
            Err(error) => {
                let what = "Fatal error: protocol.eof_received() call failed.";
                self.fatal(this, error, what)
            }
        }
    }

    /// The protocol's callback has returned: what it wrote goes out, in one system call.
    fn leave<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.flags.inside.set(false);
        if self.queue.borrow().chunks.is_empty() || self.channel.life.get() >= Life::Lost {
            return Ok(());
        }
        self.flush(this)
    }
}

/// No data at this time is no failure.
pub(super) fn later_or<T>(errno: Errno) -> Result<Got<T>, Errno> {
    match errno {
        Errno::AGAIN | Errno::INTR => Ok(Got::Later),
        errno => Err(errno),
    }
}
