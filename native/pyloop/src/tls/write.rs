//! From the protocol to the peer: small writes become one record, one `send` takes them all.
//!
//! Thread: the loop's own. Data waits here, not yet encrypted, while the stream has enough to send.

use pyrt::buffer::Buffer;
use pyrt::error::Builtin;
use pyrt::fill::lend;
use pyrt::kind::{BaseKind, Kind};
use pyrt::{Attached, Member, Obj, PyError, PyResult};

use super::{Chunk, Mode, Queue, Tls};
use crate::channel::flow;
use crate::transport::Stream;

/// As much as one record holds.
const RECORD: usize = 16 * 1024;

/// As much as is encrypted at once: the engine's buffer stays small and near.
const PIECE: usize = 2 * RECORD;

/// As much as is encrypted before it is sent.
const ROUND: usize = 256 * 1024;

/// As much as waits for the end of a callback or a turn.
const WAITS: usize = 64 * 1024;

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
}

/// What is encrypted next, out of the queue meanwhile.
enum Next {
    /// A chunk, from a byte on.
    One(Chunk, usize),
    /// Several, as one.
    Joined(Vec<u8>),
}

impl Next {
    fn len(&self, py: Attached<'_>) -> usize {
        match self {
            Next::One(chunk, done) => chunk.as_slice(py).len() - done,
            Next::Joined(joined) => joined.len(),
        }
    }
}

impl Queue {
    fn push(&mut self, chunk: Chunk, len: usize) {
        self.size += len;
        self.chunks.push_back(chunk);
    }

    /// The first chunk if it is large or alone, else as many as fit into a record.
    fn take_next(&mut self, py: Attached<'_>) -> Option<Next> {
        let first = self.chunks.pop_front()?;
        let done = std::mem::take(&mut self.done);
        let len = |chunk: &Chunk| chunk.as_slice(py).len();
        let mut total = len(&first) - done;
        let mut fits = |chunk: &Chunk| {
            total += len(chunk);
            total <= RECORD
        };
        let count = self
            .chunks
            .iter()
            .map_while(|c| fits(c).then_some(()))
            .count();
        if count == 0 {
            return Some(Next::One(first, done));
        }
        let mut joined = Vec::with_capacity(RECORD);
        joined.extend_from_slice(&first.as_slice(py)[done..]);
        for chunk in self.chunks.drain(..count) {
            joined.extend_from_slice(chunk.as_slice(py));
        }
        Some(Next::Joined(joined))
    }

    /// The engine took `count` bytes; the rest comes back.
    fn took(&mut self, py: Attached<'_>, next: Next, count: usize) {
        self.size -= count.min(self.size);
        if count >= next.len(py) {
            return;
        }
        match next {
            Next::One(chunk, done) => {
                self.chunks.push_front(chunk);
                self.done = done + count;
            }
            Next::Joined(joined) => {
                let rest = joined[count..].into();
                self.chunks.push_front(Chunk::Copy(rest));
            }
        }
    }
}

impl Tls {
    /// Puts data into the queue.
    pub(super) fn queue<'py>(&self, data: &Obj<'py>) -> PyResult<'py, ()> {
        let (chunk, len) = match data.as_bytes() {
            Some(bytes) if data.kind() == Kind::Bytes => {
                (Chunk::Bytes(Member::new(data.clone())), bytes.len())
            }
            Some(bytes) => (Chunk::Copy(bytes.into()), bytes.len()),
            None => {
                let mut copy = Vec::new();
                Buffer::of(data)?.append_to(&mut copy)?;
                let len = copy.len();
                (Chunk::Copy(copy.into()), len)
            }
        };
        if len > 0 {
            self.queue.borrow_mut().push(chunk, len);
        }
        Ok(())
    }

    pub(super) fn write<'py>(&self, this: &Obj<'py>, data: &Obj<'py>) -> PyResult<'py, ()> {
        if data.as_bytes().is_none()
            && !matches!(data.base_kind(), BaseKind::ByteArray | BaseKind::MemoryView)
        {
            let class = data.type_name();
            let text = format!("data: expecting a bytes-like instance, got {class}");
            return Err(PyError::new(this.py(), Builtin::TypeError, &text));
        }
        if self.refuses() {
            return match data.is_truthy()? {
                true => self.lost_write(this.py()),
                false => Ok(()),
            };
        }
        self.queue(data)?;
        self.wrote(this)
    }

    /// Whether data that is written now is dropped.
    pub(super) fn refuses(&self) -> bool {
        !matches!(self.flags.mode.get(), Mode::Open | Mode::Handshake)
    }

    /// Something was queued: it goes out now, or with what else this callback or turn writes.
    pub(super) fn wrote<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let size = self.queue.borrow().size;
        if self.flags.mode.get() != Mode::Open || size == 0 {
            return Ok(());
        }
        if size < WAITS
            && let Some(stream) = self.stream.get(this.py())
            && Stream::alone(&stream, |below| below.may_wait(&stream))
        {
            return Ok(());
        }
        match self.write_out(this, false) {
            Ok(()) => Ok(()),
            Err(error) => self.failed(error),
        }
    }

    /// The turn is over: its writes go out together. How many they were.
    pub(crate) fn turn_end<'py>(&self, this: &Obj<'py>) -> PyResult<'py, usize> {
        let queued = self.queue.borrow().chunks.len();
        if queued > 0 && self.flags.mode.get() == Mode::Open {
            self.write_out(this, false)
                .or_else(|error| self.failed(error))?;
        }
        Ok(queued)
    }

    /// Encrypts what is queued and gives it to the stream, until that has enough; `all`: even then.
    pub(super) fn write_out<'py>(&self, this: &Obj<'py>, all: bool) -> PyResult<'py, ()> {
        let py = this.py();
        let mut wrote = false;
        loop {
            let (mut round, mut piece, mut held) = (0, 0, false);
            while round < ROUND && self.flows() && (all || !self.flags.stream_full.get()) {
                if piece >= PIECE {
                    held |= self.hold_pending(py)?;
                    piece = 0;
                }
                match self.encrypt(py)? {
                    Some(count) => (round, piece) = (round + count, piece + count),
                    None => break,
                }
            }
            if round == 0 {
                break;
            }
            wrote = true;
            if held {
                self.send_held(py)?;
            } else {
                self.send_pending(py)?;
            }
        }
        if !wrote && self.pending(py, false)? > 0 {
            // Answers of the engine's own.
            self.send_pending(py)?;
        }
        self.control_protocol(this)
    }

    /// Encrypts the next piece; how much of it the engine took.
    fn encrypt<'py>(&self, py: Attached<'py>) -> PyResult<'py, Option<usize>> {
        let Some(engine) = self.engine() else {
            return Ok(None);
        };
        let Some(next) = self.queue.borrow_mut().take_next(py) else {
            return Ok(None);
        };
        let write = engine.write.get(py);
        let taken = match &next {
            Next::One(Chunk::Bytes(bytes), 0) if next.len(py) <= PIECE => {
                write.call(&[&bytes.get(py)])
            }
            Next::One(chunk, done) => {
                let rest = &chunk.as_slice(py)[*done..];
                let part = &rest[..rest.len().min(PIECE)];
                lend(py, part, |view| write.call(&[view]))
            }
            Next::Joined(joined) => lend(py, joined, |view| write.call(&[view])),
        };
        let count = match taken {
            Ok(count) => Some(count.as_i64()?.unwrap_or(0) as usize),
            Err(error) if engine.is_again(&error)? => None,
            Err(error) => return Err(error),
        };
        self.queue.borrow_mut().took(py, next, count.unwrap_or(0));
        Ok(count)
    }

    /// Gives the stream what the engine has made, unless it has enough.
    pub(super) fn send_pending<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        if self.flags.stream_full.get() {
            return Ok(());
        }
        let (Some(stream), Some(engine)) = (self.stream.get(py), self.engine()) else {
            return Ok(());
        };
        let data = engine.drain.get(py).call(&[])?;
        Stream::alone(&stream, |below| below.send_now(&stream, &data))
    }

    /// As `send_pending`, but the stream sends it with what follows; whether it will.
    fn hold_pending<'py>(&self, py: Attached<'py>) -> PyResult<'py, bool> {
        if self.flags.stream_full.get() {
            return Ok(false);
        }
        let (Some(stream), Some(engine)) = (self.stream.get(py), self.engine()) else {
            return Ok(false);
        };
        let made = engine.drain.get(py).call(&[])?;
        Stream::alone(&stream, |below| below.hold(&made));
        Ok(true)
    }

    fn send_held<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.hold_pending(py)?;
        match self.stream.get(py) {
            Some(stream) => Stream::alone(&stream, |below| below.send_held(&stream)),
            None => Ok(()),
        }
    }

    /// How much the protocol has written that the stream does not have yet.
    pub(super) fn write_size<'py>(&self, py: Attached<'py>) -> PyResult<'py, usize> {
        let queued = self.queue.borrow().size;
        Ok(queued + self.pending(py, false)?)
    }

    /// Tells the protocol when too much waits, and when little does.
    pub(super) fn control_protocol<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let flags = &self.flags;
        // Nothing waits here as long as the stream takes it.
        if !flags.stream_full.get() && !flags.protocol_paused.get() && self.is_drained() {
            return Ok(());
        }
        let py = this.py();
        let (size, limits) = (self.write_size(py)?, self.write_limits.get());
        if size > 0 && size >= limits.high && !flags.protocol_paused.get() {
            flags.protocol_paused.set(true);
            self.tell(this, true)
        } else if size <= limits.low && flags.protocol_paused.get() {
            flags.protocol_paused.set(false);
            self.tell(this, false)
        } else {
            Ok(())
        }
    }

    fn is_drained(&self) -> bool {
        self.queue.borrow().chunks.is_empty()
    }

    fn tell<'py>(&self, this: &Obj<'py>, pause: bool) -> PyResult<'py, ()> {
        let py = this.py();
        let Some(protocol) = self.protocol.get(py) else {
            return Ok(());
        };
        flow::tell(self.core(py), &protocol, pause).or_else(|failure| {
            flow::report(
                &self.event_loop.get(py),
                this,
                self.control.get(py),
                failure,
            )
        })
    }

    /// Writes to a connection that is lost are dropped; a program that goes on is told.
    #[cold]
    pub(super) fn lost_write<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let nothing = Obj::tuple(py, std::iter::empty())?;
        // asyncio's own counts and warns: the connection takes no data.
        self.control(py, c"_write_appdata", &[&nothing]).map(drop)
    }
}
