//! The life of an endpoint: made, closed, lost.
//!
//! Thread: the loop's own.

use pyrt::error::Builtin;
use pyrt::running::in_context;
use pyrt::{Obj, PyError, PyResult};

use super::{Datagram, Life, Queue};
use crate::event_loop::watch::lend;
use crate::event_loop::{Foreign, Work};

impl Datagram {
    /// `connection_made`, then receiving begins, then whoever waits for the endpoint is told.
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

    pub(super) fn close(&self, this: &Obj<'_>) {
        if self.flags.life.get() != Life::Open {
            return;
        }
        self.flags.life.set(Life::Closing);
        if self.queue.borrow().packets.is_empty() {
            self.lose(this, None);
        } else {
            self.watch(this.py());
        }
    }

    pub(super) fn abort<'py>(&self, this: &Obj<'py>, error: Option<Obj<'py>>) {
        *self.queue.borrow_mut() = Queue::default();
        self.lose(this, error);
    }

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
        let core = self.core(py);
        let told = in_context(&context, || {
            let Some(protocol) = self.protocol.get(py) else {
                return Ok(());
            };
            let error = self.rare.error.get(py).unwrap_or_else(|| Obj::none(py));
            let name = core.types.names.connection_lost.get(py);
            protocol.call_named(&name, [&error])?;
            Ok(())
        });
        if let Some(key) = self.key.take() {
            let source = core.reactor(|reactor| reactor.unregister(key, lend(self.fd)));
            core.forget_key(self.fd, key);
            drop(source);
        }
        let closed = match self.socket.get(py) {
            Some(socket) => socket.call_method(c"close", &[]).map(drop),
            None => Ok(()),
        };
        if let Err(error) = told {
            self.report(this, error, "Exception in callback connection_lost")?;
        }
        self.protocol.set(None);
        closed
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
