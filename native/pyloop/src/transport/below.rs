//! A stream below TLS: what comes goes to the TLS transport, which gives what is to be sent.
//!
//! Thread: the loop's own, attached.

use pyrt::{Attached, Obj, PyResult, section};

use super::read::{Got, later_or};
use super::{Chunk, Kind, ROOM, Stream};
use crate::channel::Life;
use crate::tls::Tls;

impl Stream {
    /// From now on TLS takes what comes; the protocol hears of the rest.
    pub(crate) fn put_below(&self, tls: &Obj<'_>) {
        self.flags.kind.set(Kind::Tls);
        self.tls.set(Some(tls.clone()));
    }

    /// Reads once, into the loop's buffer, and has TLS go on with it.
    pub(super) fn read_tls<'py>(&self, this: &Obj<'py>, protocol: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let Some(tls) = self.tls.get(py) else {
            return Ok(());
        };
        // Out of its place while Python runs (I3).
        let place = &self.channel.core(py).io.buffer;
        let mut buffer = place.take();
        buffer.resize(ROOM, 0);
        let received = self
            .flags
            .medium
            .receive(self.channel.fd(), &mut buffer[..]);
        let fed = match received {
            Ok(0) => Ok(Got::Eof),
            Ok(len) => {
                let take = || Tls::of(&tls).take(py, &buffer[..len]);
                Ok(Got::Data(section::alone(&tls, take)))
            }
            Err(errno) => later_or(errno),
        };
        drop(place.replace(buffer));
        let done = match fed {
            Ok(Got::Data(taken)) => {
                taken.and_then(|taken| section::alone(&tls, || Tls::of(&tls).arrived(&tls, taken)))
            }
            Ok(Got::Eof) => return self.got_eof(this, protocol),
            Ok(Got::Later) => return Ok(()),
            Err(errno) => return self.read_failed(this, errno),
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => {
                let what = "Fatal error: protocol.buffer_updated() call failed.";
                self.fatal(this, error, what)
            }
        }
    }

    /// Whether the protocol's callback runs; how it was before.
    pub(crate) fn set_inside(&self, inside: bool) -> bool {
        self.flags.inside.replace(inside)
    }

    /// Whether what was just written may wait for more: somebody will ask for it.
    pub(crate) fn may_wait(&self, this: &Obj<'_>) -> bool {
        self.flags.listed.get() || self.waits(this)
    }

    /// Sends a `bytes` at once, or after what waits.
    pub(crate) fn send_now<'py>(&self, this: &Obj<'py>, data: &Obj<'py>) -> PyResult<'py, ()> {
        match data.as_bytes() {
            Some(slice) if !slice.is_empty() && self.channel.life.get() < Life::Lost => {
                let waiting = !self.queue.borrow().chunks.is_empty();
                self.put(this, data, slice, waiting)
            }
            _ => Ok(()),
        }
    }

    /// Queues a `bytes`, to be sent by `send_held`.
    pub(crate) fn hold(&self, data: &Obj<'_>) {
        if let Some(slice) = data.as_bytes()
            && !slice.is_empty()
            && self.channel.life.get() < Life::Lost
        {
            let chunk = Chunk::of(data, slice, 0);
            self.queue.borrow_mut().push(chunk, slice.len());
        }
    }

    /// Sends what was held, by one system call.
    pub(crate) fn send_held<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        if self.channel.life.get() >= Life::Lost {
            return Ok(());
        }
        self.flush(this)
    }

    /// `pause_reading` and `resume_reading`.
    pub(crate) fn set_reading(&self, py: Attached<'_>, reading: bool) {
        if self.channel.life.get() == Life::Open {
            self.flags.paused.set(!reading);
            self.watch(py);
        }
    }
}
