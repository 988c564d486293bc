//! The life of a connection: made, closed, lost.
//!
//! Thread: the loop's own.

use pyrt::error::Builtin;
use pyrt::running::in_context;
use pyrt::{Attached, Obj, PyError, PyResult};
use reactor::Readiness;
use rustix::io::Errno;

use super::Stream;
use crate::channel::Life;
use crate::event_loop::{Foreign, Source};

impl Stream {
    /// The source is ready, in the order read, write.
    pub(crate) fn ready<'py>(&self, this: &Obj<'py>, is: Readiness) -> PyResult<'py, ()> {
        let context = self.channel.context.obj(this.py());
        in_context(&context, || {
            if is.readable && self.interest().readable {
                self.readable(this)?;
            }
            // Both bits are served in this turn: a skipped writer would wait a whole turn.
            if is.writable && self.interest().writable {
                self.flush(this)?;
            }
            Ok(())
        })
    }

    pub(crate) fn end_of_turn<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let context = self.channel.context.obj(this.py());
        in_context(&context, || self.turn_end(this))
    }

    pub(crate) fn start<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.channel.start(this, || {
            let watched = self.channel.watch(this.py(), self.interest());
            match watched {
                // Some devices are always ready and can't be watched.
                Err(error) if self.flags.medium.is_pipe() => {
                    Err(PyError::from_io(this.py(), &error))
                }
                _ => Ok(()),
            }
        })
    }

    pub(super) fn close<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        if self.channel.life.get() != Life::Open {
            return Ok(());
        }
        self.channel.life.set(Life::Closing);
        if self.queue.borrow().chunks.is_empty() {
            self.channel.lose(this, None);
        } else {
            self.watch(this.py());
        }
        Ok(())
    }

    /// Closes without sending what is queued.
    pub(super) fn abort<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        if self.channel.life.get() >= Life::Lost {
            return;
        }
        self.queue.borrow_mut().clear();
        self.channel.lose(this, error);
    }

    /// This process is a child of the one whose connection it is.
    pub(crate) fn part_from_parent(&self) {
        self.channel.life.set(Life::Gone);
    }

    pub(crate) fn lost<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        self.channel.lost(this, || self.release(this))
    }

    /// The loop watches the socket.
    pub(super) fn join_loop<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let source = Source::Stream(Foreign::of(this));
        self.channel.join_loop(this.py(), source)?;
        self.watch(this.py());
        Ok(())
    }

    /// Gives up the socket, the protocol and the server.
    fn release<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        self.tls.set(None);
        self.fail_waiters(py)?;
        self.close_own();
        self.channel.close_file(py)?;
        if let Some(server) = self.rare.server.take(py) {
            let detach = self.channel.core(py).types.names._detach_transport.get(py);
            let event_loop = self.channel.event_loop.obj(py);
            event_loop.call_named(&detach, [&server, this])?;
        }
        Ok(())
    }

    /// `sendfile` waits for the queue, or for the socket itself: neither will be ready any more.
    fn fail_waiters<'py>(&self, py: Attached<'py>) -> PyResult<'py, ()> {
        let mut waiters = match self.channel.has_fd() {
            true => self.channel.core(py).take_waits(py, self.channel.fd()),
            false => Vec::new(),
        };
        waiters.extend(self.rare.empty_waiter.get(py));
        for waiter in waiters {
            if !waiter.call_method(c"done", &[])?.is_truthy()? {
                let error = PyError::from_io(py, &Errno::CONNABORTED.into());
                waiter.call_method(c"set_exception", &[error.value()])?;
            }
        }
        Ok(())
    }

    /// A failure that ends the connection. The system's are expected; others are reported.
    #[cold]
    pub(super) fn fatal<'py>(
        &self,
        this: &Obj<'py>,
        error: PyError<'py>,
        what: &str,
    ) -> PyResult<'py, ()> {
        let value = error.value().clone();
        let reported = if error.is_a(Builtin::OSError) {
            Ok(())
        } else {
            self.channel.report(this, error, what)
        };
        self.abort(this, Some(value));
        reported
    }
}
