//! Bytes of a connection become requests, one at a time: the next one waits for the answer.
//!
//! Thread: the loop's own.

use std::mem::MaybeUninit;

use pyrt::{Attached, Obj, PyResult};

use super::chunked::Decoder;
use super::connection::{Connection, HIGH, Phase};
use super::head::{self, Framing, Head, MOST_HEADERS};
use super::log::Outcome;
use super::request::{self, Request};
use super::scope::Begun;
use super::{respond, run, scope, ws};

/// The most of an unwanted body that is read to keep the connection.
const SMALL: u64 = 64 * 1024;

impl Connection {
    /// More has come; or, with nothing, what waits may go on.
    pub fn data<'py>(&self, this: &Obj<'py>, data: &[u8]) -> PyResult<'py, ()> {
        let py = this.py();
        if self.flags.pumping.get() {
            self.input.borrow_mut().extend_from_slice(data);
            return Ok(());
        }
        let mut input = self.input.take();
        self.flags.pumping.set(true);
        let used = if input.is_empty() {
            self.advance(this, data)
        } else {
            input.extend_from_slice(data);
            self.advance(this, &input)
        };
        self.flags.pumping.set(false);
        let used = used?;
        if matches!(self.phase.get(), Phase::Closed | Phase::Linger) {
            return Ok(());
        }
        let was_empty = input.is_empty();
        let rest = if was_empty {
            data[used..].to_vec()
        } else if used == input.len() {
            Vec::new()
        } else {
            input.drain(..used);
            input
        };
        // The time for a head counts from its first byte.
        if (was_empty || used > 0) && matches!(self.phase.get(), Phase::Head) {
            self.wait_begins(py);
        }
        self.input.replace(rest);
        self.flow(py)
    }

    /// Works on `data` as far as it goes; how much of it was used.
    fn advance<'py>(&self, this: &Obj<'py>, data: &[u8]) -> PyResult<'py, usize> {
        let py = this.py();
        let mut at = 0;
        loop {
            let rest = &data[at..];
            match self.phase.get() {
                Phase::Head if rest.is_empty() => break,
                Phase::Head => match self.head(this, rest)? {
                    Some(len) => at += len,
                    None => break,
                },
                Phase::Length(left) if left > 0 => {
                    if rest.is_empty() {
                        break;
                    }
                    let len = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.phase.set(Phase::Length(left - len as u64));
                    self.wait_begins(py);
                    self.body(py, &rest[..len])?;
                    at += len;
                }
                Phase::Length(_) => self.body_ends(py)?,
                Phase::Chunked(decoder) => {
                    if rest.is_empty() {
                        break;
                    }
                    at += self.chunked(py, decoder, rest)?;
                }
                Phase::Answer => {
                    run::start(self, this)?;
                    if matches!(self.phase.get(), Phase::Answer) {
                        break;
                    }
                }
                Phase::Socket => {
                    run::start(self, this)?;
                    let used = ws::incoming(self, py, rest)?;
                    at += used;
                    if used == 0 {
                        break;
                    }
                }
                Phase::Linger | Phase::Closed => return Ok(data.len()),
            }
        }
        // The application hears of a request before all of its body is there.
        run::start(self, this)?;
        Ok(at)
    }

    /// The size of a head that is complete. What may not be served is refused.
    fn head<'py>(&self, this: &Obj<'py>, data: &[u8]) -> PyResult<'py, Option<usize>> {
        let py = this.py();
        let server = self.server(py);
        let config = &server.parts(py)?.config;
        let mut room = [MaybeUninit::uninit(); MOST_HEADERS];
        let head = match head::parse(data, config.head, &mut room, &self.searched) {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(None),
            Err(status) => {
                if status == 505
                    && let Some(copy) = head::as_one_one(data)
                {
                    return self.head(this, &copy);
                }
                self.refuse_head(py, None, status)?;
                return Ok(None);
            }
        };
        let most = config.given.max_in_flight;
        let full = most > 0 && server.live.in_flight.get() >= most;
        if full || self.flags.surplus.get() {
            self.refuse_head(py, Some(&head), 503)?;
            return Ok(None);
        }
        if let Framing::Length(length) = head.facts.framing
            && config.given.max_body_size > 0
            && length > config.given.max_body_size
        {
            self.refuse_head(py, Some(&head), 413)?;
            return Ok(None);
        }
        self.open(this, &head)?;
        Ok(Some(head.len))
    }

    fn open<'py>(&self, this: &Obj<'py>, head: &Head<'_>) -> PyResult<'py, ()> {
        let Some(Begun { scope, entry }) = scope::build(self, this.py(), head)? else {
            return self.refuse_head(this.py(), Some(head), 400);
        };
        if head.facts.websocket {
            return ws::open(self, this, head, &scope, entry);
        }
        let request = request::make(this, head.facts, entry, None)?;
        self.request.set(Some(request));
        self.pending.set(Some(scope));
        self.phase.set(match head.facts.framing {
            Framing::None => Phase::Length(0),
            Framing::Length(length) => Phase::Length(length),
            Framing::Chunked => Phase::Chunked(Decoder::default()),
        });
        Ok(())
    }

    /// Refuses what did not become a request.
    #[cold]
    pub fn refuse_head<'py>(
        &self,
        py: Attached<'py>,
        head: Option<&Head<'_>>,
        status: u16,
    ) -> PyResult<'py, ()> {
        let server = self.server(py);
        if let (Some(entry), Some(log)) = (scope::refused(self, py, head)?, &server.parts(py)?.log)
        {
            log.write(py, server, &entry, Outcome { status, bytes: 0 })?;
        }
        self.refuse(py, status)
    }

    fn chunked<'py>(
        &self,
        py: Attached<'py>,
        mut decoder: Decoder,
        data: &[u8],
    ) -> PyResult<'py, usize> {
        let mut body = Vec::new();
        let Ok(used) = decoder.feed(data, |piece| body.extend_from_slice(piece)) else {
            self.broken(py)?;
            return Ok(data.len());
        };
        self.phase.set(Phase::Chunked(decoder));
        self.wait_begins(py);
        self.body(py, &body)?;
        if decoder.is_done() && matches!(self.phase.get(), Phase::Chunked(_)) {
            self.body_ends(py)?;
        }
        Ok(used)
    }

    fn body<'py>(&self, py: Attached<'py>, data: &[u8]) -> PyResult<'py, ()> {
        let Some(request) = self.request.get(py) else {
            return Ok(());
        };
        let body = Request::of(&request);
        let total = body.push(data);
        let most = self.server(py).parts(py)?.config.given.max_body_size;
        if most > 0 && total > most {
            return self.fail(py, 413);
        }
        body.wake(py)
    }

    fn body_ends<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let Some(request) = self.request.get(py) else {
            // Answered already; the rest was not wanted.
            self.phase.set(Phase::Head);
            self.wait_begins(py);
            return Ok(());
        };
        self.phase.set(Phase::Answer);
        Request::of(&request).end(py)
    }

    fn broken<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        self.fail(py, 400)
    }

    /// The body can't be served: refused if nothing was answered yet. The application sees the
    /// peer leave.
    #[cold]
    fn fail<'py>(&self, py: Attached<'py>, status: u16) -> PyResult<'py, ()> {
        self.pending.set(None);
        match self.request.take(py) {
            Some(request) => {
                let body = Request::of(&request);
                let begun = body.out.borrow().status();
                respond::log_access(body, py, begun.unwrap_or(status))?;
                if begun.is_some() {
                    self.close(py)?;
                } else {
                    self.refuse(py, status)?;
                }
                body.peer_left(&request)
            }
            None => self.close(py),
        }
    }

    /// The answer is complete.
    pub fn answered<'py>(&self, this: &Obj<'py>, keep: bool, wanted: bool) -> PyResult<'py, ()> {
        let py = this.py();
        self.request.set(None);
        if matches!(self.phase.get(), Phase::Closed | Phase::Linger) {
            return Ok(());
        }
        if !keep || self.server(py).live.draining.get() {
            return self.end(py);
        }
        match self.phase.get() {
            Phase::Length(left) if left > 0 && (left > SMALL || !wanted) => return self.linger(py),
            Phase::Chunked(_) => return self.linger(py),
            Phase::Answer => self.phase.set(Phase::Head),
            _ => {}
        }
        self.wait_begins(py);
        self.pump_soon(this)?;
        self.flow(py)
    }

    /// What waits goes on; not now, since the application that made it possible is on the stack.
    pub fn pump_soon<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        if self.flags.pumping.get() || self.input.borrow().is_empty() {
            return Ok(());
        }
        let names = &self.server(py).types.names;
        let pump = this.getattr(&names.pump.get(py))?;
        let event_loop = self.server(py).event_loop(py)?;
        event_loop.call_named(&names.call_soon.get(py), [&pump])?;
        Ok(())
    }

    /// Reads no more than is wanted.
    pub fn flow<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let Some(transport) = self.transport.get(py) else {
            return Ok(());
        };
        let pause = match self.phase.get() {
            Phase::Head | Phase::Linger | Phase::Closed => false,
            _ => self.unread(py) > HIGH,
        };
        if self.flags.read_paused.replace(pause) != pause {
            let name = if pause {
                c"pause_reading"
            } else {
                c"resume_reading"
            };
            transport.call_method(name, &[])?;
        }
        Ok(())
    }

    /// What the application has not taken.
    fn unread(&self, py: Attached<'_>) -> usize {
        let (waits, whole_frames) = match self.request.get(py) {
            Some(request) => {
                let own = Request::of(&request);
                let accepted = own
                    .socket
                    .as_ref()
                    .is_some_and(|ws| !ws.borrow().is_asked());
                (own.unread(), accepted)
            }
            None => (0, false),
        };
        // A frame is taken as a whole, and its size has a limit of its own.
        if whole_frames {
            return waits;
        }
        waits + self.input.borrow().len()
    }
}
