//! Writing: tried at once; what does not go waits for writable. Writes of one turn go together.
//!
//! Thread: the loop's own.

use std::io::IoSlice;

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::{Attached, Member, Obj, PyError, PyResult, section};
use rustix::io::Errno;

use super::{Chunk, Queue, Stream};
use crate::channel::{Life, Transport};
use crate::event_loop::watch::lend;
use crate::tls::Tls;

/// A write of this size or more is worth a system call of its own.
const LARGE: usize = 16 * 1024;

/// As many pieces as one `sendmsg` takes.
const PIECES: usize = 64;

impl Chunk {
    fn as_slice<'a>(&'a self, py: Attached<'_>) -> &'a [u8] {
        match self {
            Chunk::Bytes(bytes) => {
                let borrowed = bytes.get(py);
                let slice: *const [u8] = borrowed.as_bytes().unwrap_or_default();
                // SAFETY: the chunk keeps the `bytes`, which never changes.
                unsafe { &*slice }
            }
            Chunk::Copy(copy) => copy,
        }
    }

    /// From the byte `offset` on.
    pub(super) fn of<'py>(data: &Obj<'py>, slice: &[u8], offset: usize) -> Self {
        // Small rests are copied: the object may be much larger.
        if offset == 0 && data.as_bytes().is_some() && data.kind() == pyrt::kind::Kind::Bytes {
            Chunk::Bytes(Member::new(data.clone()))
        } else {
            Chunk::Copy(slice.get(offset..).unwrap_or_default().into())
        }
    }
}

impl Queue {
    pub(super) fn push(&mut self, chunk: Chunk, len: usize) {
        self.size += len;
        self.chunks.push_back(chunk);
    }

    /// Drops what was sent.
    fn advance(&mut self, py: Attached<'_>, count: usize) {
        self.size -= count.min(self.size);
        let mut left = self.sent + count;
        while let Some(first) = self.chunks.front() {
            let len = first.as_slice(py).len();
            if left < len {
                break;
            }
            left -= len;
            self.chunks.pop_front();
        }
        self.sent = left;
    }

    pub(super) fn clear(&mut self) {
        *self = Queue::default();
    }
}

impl Stream {
    pub(super) fn write<'py>(&self, this: &Obj<'py>, data: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        if let Some(bytes) = data.as_bytes() {
            return self.write_slice(this, data, bytes);
        }
        use pyrt::kind::BaseKind;
        match data.base_kind() {
            BaseKind::ByteArray | BaseKind::MemoryView => {}
            _ => {
                let class = data.type_name();
                let text = format!("data argument must be a bytes-like object, not '{class}'");
                return Err(PyError::new(py, Builtin::TypeError, &text));
            }
        }
        let mut copy = Vec::new();
        Buffer::of(data)?.append_to(&mut copy)?;
        self.write_slice(this, data, &copy)
    }

    /// Sends bytes that are no object of Python's; what does not go at once is copied.
    pub(crate) fn write_copy<'py>(&self, this: &Obj<'py>, data: &[u8]) -> PyResult<'py, ()> {
        self.write_slice(this, &Obj::none(this.py()), data)
    }

    fn write_slice<'py>(
        &self,
        this: &Obj<'py>,
        data: &Obj<'py>,
        slice: &[u8],
    ) -> PyResult<'py, ()> {
        let py = this.py();
        let flags = &self.flags;
        if flags.wrote_eof.get() {
            let text = "Cannot call write() after write_eof()";
            return Err(PyError::new(py, Builtin::RuntimeError, text));
        }
        if self.rare.empty_waiter.is_some() {
            let text = "unable to write; sendfile is in progress";
            return Err(PyError::new(py, Builtin::RuntimeError, text));
        }
        if slice.is_empty() {
            return Ok(());
        }
        let life = self.channel.life.get();
        if life >= Life::Lost || (life == Life::Closing && flags.medium.is_pipe()) {
            return self.lost_write(py);
        }
        let waiting = !self.queue.borrow().chunks.is_empty();
        let later = waiting || (slice.len() < LARGE && self.waits(this));
        self.put(this, data, slice, later)
    }

    /// Sends now, or `later`, after what waits.
    pub(super) fn put<'py>(
        &self,
        this: &Obj<'py>,
        data: &Obj<'py>,
        slice: &[u8],
        later: bool,
    ) -> PyResult<'py, ()> {
        let (py, flags) = (this.py(), &self.flags);
        if later {
            let chunk = Chunk::of(data, slice, 0);
            self.queue.borrow_mut().push(chunk, slice.len());
            if flags.inside.get() || flags.listed.get() {
                return self.flush_if_full(this);
            }
            self.watch(py);
            return self.channel.maybe_pause(this, self.queued());
        }
        let sent = match flags.medium.send(self.channel.fd(), slice) {
            Ok(sent) if sent == slice.len() => return Ok(()),
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return self.write_failed(this, errno),
        };
        let chunk = Chunk::of(data, slice, sent);
        let len = slice.len() - sent;
        self.queue.borrow_mut().push(chunk, len);
        self.watch(py);
        self.channel.maybe_pause(this, self.queued())
    }

    /// Whether a small write is sent later: at the end of the protocol's callback, or of the turn
    /// where this transport writes more than once per turn.
    pub(super) fn waits(&self, this: &Obj<'_>) -> bool {
        let flags = &self.flags;
        if flags.inside.get() {
            return true;
        }
        let core = self.channel.core(this.py());
        let turn = core.io.turn.get();
        let again = flags.turn.replace(turn) == turn;
        if again {
            flags.joins.set(true);
        }
        if flags.joins.get() && core.flush_at_turn_end(this) {
            flags.listed.set(true);
            return true;
        }
        false
    }

    fn flush_if_full<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        if self.queue.borrow().size > self.channel.limits.get().high {
            return self.flush(this);
        }
        Ok(())
    }

    /// The turn is over: its writes go out together.
    pub(super) fn turn_end<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.flags.listed.set(false);
        let above = match self.tls.get(this.py()) {
            Some(tls) => section::alone(&tls, || Tls::of(&tls).turn_end(&tls))?,
            None => 0,
        };
        let queued = self.queue.borrow().chunks.len();
        self.flags.joins.set(queued.max(above) > 1);
        if queued == 0 || self.channel.life.get() >= Life::Lost {
            return Ok(());
        }
        self.flush(this)
    }

    /// Sends what it can of the queue; the rest waits for writable.
    pub(super) fn flush<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        loop {
            let sent = {
                let mut queue = self.queue.borrow_mut();
                if queue.chunks.is_empty() {
                    break;
                }
                match self.send_queue(py, &queue) {
                    Ok((sent, all)) => {
                        queue.advance(py, sent);
                        Ok(all)
                    }
                    Err(errno) => Err(errno),
                }
            };
            match sent {
                // More pieces than one call takes: go on.
                Ok(true) => {}
                Ok(false) | Err(Errno::AGAIN | Errno::INTR) => break,
                Err(errno) => return self.write_failed(this, errno),
            }
        }
        self.watch(py);
        self.channel.maybe_pause(this, self.queued())?;
        self.channel.maybe_resume(this, self.queued())?;
        self.drained(this)
    }

    /// What waits for an empty queue: `sendfile`, `close`, `write_eof`.
    fn drained<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        if !self.queue.borrow().chunks.is_empty() || self.channel.life.get() >= Life::Lost {
            return Ok(());
        }
        if let Some(waiter) = self.rare.empty_waiter.get(py)
            && !waiter.call_method(c"done", &[])?.is_truthy()?
        {
            waiter.call_method(c"set_result", &[&Obj::none(py)])?;
        }
        if self.channel.life.get() == Life::Closing {
            self.channel.lose(this, None);
        } else if self.flags.wrote_eof.get() {
            self.shutdown_write();
        }
        Ok(())
    }

    pub(super) fn shutdown_write(&self) {
        // A peer that is gone already needs no end of data.
        let _ = rustix::net::shutdown(lend(self.channel.fd()), rustix::net::Shutdown::Write);
    }

    #[cold]
    fn write_failed<'py>(&self, this: &Obj<'py>, errno: Errno) -> PyResult<'py, ()> {
        let error = PyError::from_io(this.py(), &errno.into());
        self.queue.borrow_mut().clear();
        if let Some(waiter) = self.rare.empty_waiter.get(this.py())
            && !waiter.call_method(c"done", &[])?.is_truthy()?
        {
            waiter.call_method(c"set_exception", &[error.value()])?;
        }
        let what = if self.flags.medium.is_pipe() {
            self.flags.lost_writes.set(self.flags.lost_writes.get() + 1);
            "Fatal write error on pipe transport"
        } else {
            "Fatal write error on socket transport"
        };
        self.fatal(this, error, what)
    }

    /// Writes to a connection that is lost are dropped; a program that goes on is told.
    #[cold]
    fn lost_write<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let count = self.flags.lost_writes.get() + 1;
        self.flags.lost_writes.set(count);
        if count >= 5 {
            let logger = pyrt::call::import_c(py, c"asyncio.log")?.getattr_c(c"logger")?;
            let text = if self.flags.medium.is_pipe() {
                "pipe closed by peer or os.write(pipe, data) raised exception."
            } else {
                "socket.send() raised exception."
            };
            let text = Obj::text(py, text)?;
            logger.call_method(c"warning", &[&text])?;
        }
        Ok(())
    }

    /// How much was sent, and whether that was all that was tried.
    fn send_queue(&self, py: Attached<'_>, queue: &Queue) -> Result<(usize, bool), Errno> {
        let (medium, fd) = (self.flags.medium, self.channel.fd());
        let first = queue.chunks.front().map_or(&[][..], |c| c.as_slice(py));
        let first = first.get(queue.sent..).unwrap_or_default();
        if queue.chunks.len() == 1 {
            let sent = medium.send(fd, first)?;
            return Ok((sent, sent == first.len()));
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let rest = queue.chunks.iter().skip(1).map(|c| c.as_slice(py));
        let (mut count, mut total) = (0, 0);
        for (place, slice) in pieces.iter_mut().zip(std::iter::once(first).chain(rest)) {
            *place = IoSlice::new(slice);
            count += 1;
            total += slice.len();
        }
        let sent = medium.send_pieces(fd, &pieces[..count])?;
        Ok((sent, sent == total))
    }
}
