//! From the peer to the protocol: fed to the engine, decrypted, delivered once per packet.
//!
//! Thread: the loop's own, attached, in the context of the stream below.

use pyrt::error::Builtin;
use pyrt::fill::{Fresh, Writable, lend, lend_mut};
use pyrt::{Attached, Obj, PyError, PyResult};

use super::{Engine, Mode, Tls};
use crate::transport::Stream;

/// More than the largest record holds.
const RECORD: usize = 16 * 1024 + 1;

/// A packet is fed in pieces of about this size.
const PIECE: usize = 32 * 1024;

/// What the engine gave.
pub(crate) enum Got<T> {
    Data(T),
    /// Nothing before more comes from the peer.
    Later,
    /// The peer has said goodbye.
    Closed,
}

/// What became of a packet.
pub(crate) enum Taken<'py> {
    /// The engine has it.
    Fed,
    /// It is decrypted, and the engine has no more.
    Read(PyResult<'py, (Option<Obj<'py>>, Got<()>)>),
}

impl Tls {
    /// Takes what the stream has received. Runs no code of the user's.
    pub(crate) fn take<'py>(&self, py: Attached<'py>, data: &[u8]) -> PyResult<'py, Taken<'py>> {
        let flags = &self.flags;
        let plain = flags.mode.get() == Mode::Open && !flags.buffered.get();
        if data.len() > PIECE && plain && !flags.reading_paused.get() {
            return Ok(Taken::Read(self.read_pieces(py, data)));
        }
        self.feed(py, data)?;
        Ok(Taken::Fed)
    }

    fn feed<'py>(&self, py: Attached<'py>, data: &[u8]) -> PyResult<'py, ()> {
        self.records.borrow_mut().feed(data);
        let Some(engine) = self.engine() else {
            return Ok(());
        };
        lend(py, data, |view| engine.feed.get(py).call(&[view]).map(drop))
    }

    /// Goes on with what was taken.
    pub(crate) fn arrived<'py>(&self, this: &Obj<'py>, taken: Taken<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        match (self.flags.mode.get(), taken) {
            (_, Taken::Read(read)) => self.pump_after(this, || {
                let (data, got) = read?;
                match self.protocol.get(py) {
                    Some(protocol) => self.tell_data(py, &protocol, data)?,
                    None => return Ok(()),
                }
                self.deliver_after(this, got)
            }),
            (Mode::Open, Taken::Fed) => self.pump(this),
            (Mode::Unwrapped, Taken::Fed) => Ok(()),
            (Mode::Handshake | Mode::Flushing | Mode::Shutdown, Taken::Fed) => {
                self.control(py, c"_advance", &[]).map(drop)
            }
        }
    }

    /// Delivers what can be decrypted, then sends what the protocol has written.
    pub(super) fn pump<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        if !self.flows() {
            return Ok(());
        }
        self.pump_after(this, || self.deliver(this))
    }

    fn pump_after<'py>(
        &self,
        this: &Obj<'py>,
        body: impl FnOnce() -> PyResult<'py, ()>,
    ) -> PyResult<'py, ()> {
        let read = self.while_inside(this.py(), body);
        // What was written before a failure goes out, as it would have without waiting.
        let written = self.write_out(this, false);
        match read.and(written) {
            Ok(()) => self.control_stream(this.py()),
            Err(error) => self.failed(error),
        }
    }

    /// What is written meanwhile waits for the end of `body`.
    fn while_inside<'py, T>(&self, py: Attached<'py>, body: impl FnOnce() -> T) -> T {
        let Some(stream) = self.stream.get(py) else {
            return body();
        };
        let before = Stream::alone(&stream, |stream| stream.set_inside(true));
        let done = body();
        Stream::alone(&stream, |stream| stream.set_inside(before));
        done
    }

    fn deliver<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        while self.flows() && !self.flags.reading_paused.get() && self.records.borrow().any() {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let got = if self.flags.buffered.get() {
                self.deliver_into(py, &protocol)?
            } else {
                self.deliver_bytes(py, &protocol)?
            };
            match got {
                Got::Data(()) => {}
                Got::Later => return Ok(()),
                Got::Closed => return self.peer_closed(py),
            }
        }
        Ok(())
    }

    /// What follows a packet that was decrypted on its way in.
    fn deliver_after<'py>(&self, this: &Obj<'py>, got: Got<()>) -> PyResult<'py, ()> {
        match got {
            Got::Data(()) => self.deliver(this),
            Got::Later => Ok(()),
            Got::Closed => self.peer_closed(this.py()),
        }
    }

    #[cold]
    fn peer_closed<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.control(py, c"_peer_closed", &[]).map(drop)
    }

    fn tell_data<'py>(
        &self,
        py: Attached<'py>,
        protocol: &Obj<'py>,
        data: Option<Obj<'py>>,
    ) -> PyResult<'py, ()> {
        let Some(data) = data else {
            return Ok(());
        };
        let name = self.core(py).types.names.data_received.get(py);
        protocol.call_named(&name, [&data]).map(drop)
    }

    fn deliver_bytes<'py>(&self, py: Attached<'py>, protocol: &Obj<'py>) -> PyResult<'py, Got<()>> {
        let Some(engine) = self.engine() else {
            return Ok(Got::Later);
        };
        let one = self.records.borrow().one();
        let (data, got) = if one {
            match self.read_one(py, &engine)? {
                Got::Data(data) => (Some(data), Got::Data(())),
                Got::Later => (None, Got::Later),
                Got::Closed => (None, Got::Closed),
            }
        } else {
            self.read_many(py, &engine)?
        };
        self.tell_data(py, protocol, data)?;
        Ok(got)
    }

    /// One record: the engine makes the `bytes`.
    fn read_one<'py>(&self, py: Attached<'py>, engine: &Engine) -> PyResult<'py, Got<Obj<'py>>> {
        let asked = self.records.borrow().size().clamp(1, RECORD);
        let data = engine.read.get(py).call(&[&Obj::int(py, asked as i64)?]);
        match data {
            Ok(data) => {
                let count = data.as_bytes().map_or(0, <[u8]>::len);
                self.records.borrow_mut().read(count, asked);
                Ok(if count == 0 {
                    Got::Closed
                } else {
                    Got::Data(data)
                })
            }
            Err(error) => self.again(engine, error),
        }
    }

    /// Several records: into one `bytes`, for one call of the protocol.
    fn read_many<'py>(
        &self,
        py: Attached<'py>,
        engine: &Engine,
    ) -> PyResult<'py, (Option<Obj<'py>>, Got<()>)> {
        let room = self.records.borrow().size().max(RECORD);
        let mut fresh = Fresh::new(py, room)?;
        let got = self.fill(&mut fresh, engine)?;
        Ok((finish(fresh)?, got))
    }

    /// A large packet: piece by piece, so that the engine's buffer stays small and near.
    fn read_pieces<'py>(
        &self,
        py: Attached<'py>,
        mut data: &[u8],
    ) -> PyResult<'py, (Option<Obj<'py>>, Got<()>)> {
        let Some(engine) = self.engine() else {
            return Ok((None, Got::Later));
        };
        let room = self.records.borrow().size() + data.len();
        let mut fresh = Fresh::new(py, room.max(RECORD))?;
        let mut got = Got::Data(());
        while !data.is_empty() {
            let len = self.records.borrow().piece(data, PIECE);
            let (piece, rest) = data.split_at(len);
            data = rest;
            self.feed(py, piece)?;
            if !matches!(got, Got::Closed) {
                got = self.fill(&mut fresh, &engine)?;
            }
        }
        Ok((finish(fresh)?, got))
    }

    /// Reads until there is no more, or no room.
    fn fill<'py>(&self, fresh: &mut Fresh<'py>, engine: &Engine) -> PyResult<'py, Got<()>> {
        while fresh.left() > 0 && self.records.borrow().any() {
            let asked = fresh.left();
            let mut outcome = Got::Later;
            fresh.fill(|view| {
                outcome = self.read_into(engine, view, asked)?;
                Ok(match outcome {
                    Got::Data(count) => count,
                    Got::Later | Got::Closed => 0,
                })
            })?;
            match outcome {
                Got::Data(_) => {}
                Got::Later => return Ok(Got::Later),
                Got::Closed => return Ok(Got::Closed),
            }
        }
        Ok(Got::Data(()))
    }

    /// `sslobj.read(asked, view)`
    fn read_into<'py>(
        &self,
        engine: &Engine,
        view: &Obj<'py>,
        asked: usize,
    ) -> PyResult<'py, Got<usize>> {
        let py = view.py();
        let len = Obj::int(py, asked as i64)?;
        match engine.read.get(py).call(&[&len, view]) {
            Ok(count) => {
                let count = count.as_i64()?.unwrap_or(0) as usize;
                self.records.borrow_mut().read(count, asked);
                Ok(if count == 0 {
                    Got::Closed
                } else {
                    Got::Data(count)
                })
            }
            Err(error) => self.again(engine, error),
        }
    }

    /// The engine raised: needs it more from the peer, or has it failed?
    fn again<'py, T>(&self, engine: &Engine, error: PyError<'py>) -> PyResult<'py, Got<T>> {
        if engine.is_again(&error)? {
            self.records.borrow_mut().exhausted();
            return Ok(Got::Later);
        }
        Err(error)
    }

    /// Into the protocol's own memory.
    fn deliver_into<'py>(&self, py: Attached<'py>, protocol: &Obj<'py>) -> PyResult<'py, Got<()>> {
        let Some(engine) = self.engine() else {
            return Ok(Got::Later);
        };
        let names = &self.core(py).types.names;
        let hint = Obj::int(py, self.incoming_size(py)? as i64)?;
        let buffer = protocol.call_named(&names.get_buffer.get(py), [&hint])?;
        let mut lent = Writable::of(&buffer)?;
        let memory = lent.memory();
        if memory.is_empty() {
            let text = "get_buffer() returned an empty buffer";
            return Err(PyError::new(py, Builtin::RuntimeError, text));
        }
        let mut filled = 0;
        let mut got = Got::Data(());
        while filled < memory.len() && self.records.borrow().any() {
            let rest = &mut memory[filled..];
            let asked = rest.len();
            match lend_mut(py, rest, |view| self.read_into(&engine, view, asked))? {
                Got::Data(count) => filled += count.min(asked),
                Got::Later => {
                    got = Got::Later;
                    break;
                }
                Got::Closed => {
                    got = Got::Closed;
                    break;
                }
            }
        }
        drop(lent);
        if filled > 0 {
            let count = Obj::int(py, filled as i64)?;
            protocol.call_named(&names.buffer_updated.get(py), [&count])?;
        }
        Ok(got)
    }

    /// How much of what came the engine has not taken.
    pub(super) fn incoming_size<'py>(&self, py: Attached<'py>) -> PyResult<'py, usize> {
        self.pending(py, true)
    }

    /// `pending` of one of the two buffers.
    pub(super) fn pending<'py>(&self, py: Attached<'py>, incoming: bool) -> PyResult<'py, usize> {
        let Some(engine) = self.engine() else {
            return Ok(0);
        };
        let buffer = if incoming {
            &engine.incoming
        } else {
            &engine.outgoing
        };
        let name = self.core(py).types.names.pending.get(py);
        let pending = buffer.get(py).getattr(&name)?.as_i64()?;
        Ok(pending.unwrap_or(0) as usize)
    }

    /// The stream is read until enough waits, and again when little does.
    pub(super) fn control_stream<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let stopped = self.flags.stream_stopped.get();
        if !self.flags.reading_paused.get() && !stopped {
            return Ok(());
        }
        let Some(stream) = self.stream.get(py) else {
            return Ok(());
        };
        let (size, limits) = (self.incoming_size(py)?, self.read_limits.get());
        if size >= limits.high && !stopped {
            self.flags.stream_stopped.set(true);
            Stream::alone(&stream, |stream| stream.set_reading(py, false));
        } else if size <= limits.low && stopped {
            self.flags.stream_stopped.set(false);
            Stream::alone(&stream, |stream| stream.set_reading(py, true));
        }
        Ok(())
    }
}

fn finish(fresh: Fresh<'_>) -> PyResult<'_, Option<Obj<'_>>> {
    if fresh.filled() == 0 {
        return Ok(None);
    }
    fresh.finish().map(Some)
}
