//! The life of a connection: made, closed, lost.
//!
//! Thread: the loop's own. `connection_lost` is called once, by the loop, after everything else.

use pyrt::error::Builtin;
use pyrt::running::in_context;
use pyrt::{Obj, PyError, PyResult};
use reactor::Readiness;

use super::{Life, Stream};
use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, Source, Work};

impl Stream {
    /// The source is ready, in the order read, write.
    pub(crate) fn ready<'py>(&self, this: &Obj<'py>, is: Readiness) -> PyResult<'py, ()> {
        let context = self.context.obj(this.py());
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
        let context = self.context.obj(this.py());
        in_context(&context, || self.turn_end(this))
    }

    /// `connection_made`, then reading begins, then whoever waits for the connection is told.
    pub(crate) fn start<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let context = self.context.obj(py);
        let made = in_context(&context, || {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let name = self.core(py).types.names.connection_made.get(py);
            protocol.call_named(&name, [this])?;
            Ok(())
        });
        self.flags.started.set(true);
        self.watch(py);
        if let Some(waiter) = self.rare.waiter.take(py)
            && !waiter.call_method(c"done", &[])?.is_truthy()?
        {
            waiter.call_method(c"set_result", &[&Obj::none(py)])?;
        }
        match made {
            Ok(()) => Ok(()),
            Err(error) => self.report(this, error, "Exception in callback connection_made"),
        }
    }

    pub(super) fn close<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        if self.flags.life.get() != Life::Open {
            return Ok(());
        }
        self.flags.life.set(Life::Closing);
        if self.queue.borrow().chunks.is_empty() {
            self.lose(this, None);
        } else {
            self.watch(this.py());
        }
        Ok(())
    }

    /// Closes without sending what is queued.
    pub(super) fn abort<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        if self.flags.life.get() >= Life::Lost {
            return;
        }
        self.queue.borrow_mut().clear();
        self.lose(this, error);
    }

    /// The connection is lost: the protocol will hear of it from the loop.
    pub(super) fn lose<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        if self.flags.life.get() >= Life::Lost {
            return;
        }
        self.flags.life.set(Life::Lost);
        self.rare.error.set(error);
        self.watch(this.py());
        let work = Work::Lost(Foreign::of(this));
        self.core(this.py()).reactor(|reactor| reactor.push(work));
    }

    /// `connection_lost`, and the socket is closed.
    pub(crate) fn lost<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        if self.flags.life.replace(Life::Gone) == Life::Gone {
            return Ok(());
        }
        let context = self.context.obj(py);
        let told = in_context(&context, || {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let error = self.rare.error.get(py).unwrap_or_else(|| Obj::none(py));
            let name = self.core(py).types.names.connection_lost.get(py);
            protocol.call_named(&name, [&error])?;
            Ok(())
        });
        let closed = self.release(this);
        if let Err(error) = told {
            self.report(this, error, "Exception in callback connection_lost")?;
        }
        closed
    }

    /// The loop watches the socket no longer; `sendfile` does it by itself meanwhile.
    pub(super) fn leave_loop(&self, py: pyrt::Attached<'_>) {
        if let Some(key) = self.key.take() {
            let core = self.core(py);
            let source = core.reactor(|reactor| reactor.unregister(key, lend(self.fd)));
            core.forget_key(self.fd, key);
            drop(source);
        }
    }

    /// The loop watches the socket.
    pub(super) fn join_loop<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let source = Source::Stream(Foreign::of(this));
        let key = self.core(this.py()).register(this.py(), self.fd, source)?;
        self.key.set(Some(key));
        self.watch(this.py());
        Ok(())
    }

    /// Gives everything up: the source, the socket, the protocol, the server.
    fn release<'py>(&self, this: &Obj<'py>) -> PyResult<'py, ()> {
        let py = this.py();
        let core = self.core(py);
        self.leave_loop(py);
        self.protocol.set(None);
        self.close_own();
        if let Some(socket) = self.socket.get(py) {
            socket.call_method(c"close", &[])?;
        }
        if let Some(server) = self.rare.server.take(py) {
            let detach = core.types.names._detach_transport.get(py);
            let event_loop = self.event_loop.obj(py);
            event_loop.call_named(&detach, [&server, this])?;
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
            self.report(this, error, what)
        };
        self.abort(this, Some(value));
        reported
    }

    /// The loop's exception handler hears of it.
    #[cold]
    pub(super) fn report<'py>(
        &self,
        this: &Obj<'py>,
        error: PyError<'py>,
        what: &str,
    ) -> PyResult<'py, ()> {
        let py = this.py();
        if error.is_a(Builtin::KeyboardInterrupt) || error.is_a(Builtin::SystemExit) {
            return Err(error);
        }
        let protocol = self.protocol.get(py).unwrap_or_else(|| Obj::none(py));
        let context = Obj::dict(py)?;
        context.dict_set_c(c"message", &Obj::text(py, what)?)?;
        context.dict_set_c(c"exception", error.value())?;
        context.dict_set_c(c"transport", this)?;
        context.dict_set_c(c"protocol", &protocol)?;
        let event_loop = self.event_loop.obj(py);
        event_loop.call_method(c"call_exception_handler", &[&context])?;
        Ok(())
    }
}
