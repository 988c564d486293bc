//! What `receive` and `send` give to be awaited.
//!
//! Nothing is taken from the request before the task that waits goes on: a task that is cancelled
//! in its wait loses no data.
//! Thread: the loop's own.

use pyrt::awaitable::{Awaitable, Step, close, send, throw};
use pyrt::error::Builtin;
use pyrt::module::{END, Function};
use pyrt::native::{END_OF_GETTERS, Getter, Native, Nobody};
use pyrt::{Attached, Obj, Place, PyError, PyResult, Visit, method};

use super::home::elsewhere;
use super::request::Request;

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Nothing,
    /// The next event for the application.
    Event,
    /// Room for more data to send.
    Room,
}

pub struct Wait {
    request: Place,
    need: Need,
    /// The iterator of the future that is waited for.
    inner: Place,
    /// That future, where it is one of the request's.
    waiter: Place,
    /// What is still to be sent: `send` was called on a thread that is not the loop's.
    message: Place,
}

impl Wait {
    pub fn make<'py>(
        class: &Obj<'py>,
        request: Option<&Obj<'py>>,
        need: Need,
    ) -> PyResult<'py, Obj<'py>> {
        let wait = Wait {
            request: Place::new(request.cloned()),
            need,
            inner: Place::default(),
            waiter: Place::default(),
            message: Place::default(),
        };
        // SAFETY: called with the class of `Wait` only.
        unsafe { pyrt::native::instance(class, wait) }
    }

    /// Sends when it is awaited, which is on the loop's thread.
    pub fn to_send<'py>(
        class: &Obj<'py>,
        request: &Obj<'py>,
        message: &Obj<'py>,
    ) -> PyResult<'py, Obj<'py>> {
        let wait = Wait {
            request: Place::new(Some(request.clone())),
            need: Need::Nothing,
            inner: Place::default(),
            waiter: Place::default(),
            message: Place::new(Some(message.clone())),
        };
        // SAFETY: called with the class of `Wait` only.
        unsafe { pyrt::native::instance(class, wait) }
    }
}

impl Awaitable for Wait {
    fn step<'py>(&self, this: &Obj<'py>) -> PyResult<'py, Step<'py>> {
        let py = this.py();
        let Some(request) = self.request.get(py) else {
            return Ok(Step::Done(None));
        };
        let body = Request::of(&request);
        // Elsewhere `send` would give another of these, without end.
        if !body.connection(py).server(py).is_here(py) {
            return Err(elsewhere(py));
        }
        if let Some(message) = self.message.take(py) {
            let sent = request.call_method(c"send", &[&message])?;
            self.inner.set(Some(sent.call_method(c"__await__", &[])?));
        }
        if let Some(inner) = self.inner.take(py)
            && let Some(future) = inner.next()?
        {
            self.inner.set(Some(inner));
            return Ok(Step::Wait(future));
        }
        self.waiter.set(None);
        loop {
            if let Some(value) = body.take(&request, self.need)? {
                let value = (!value.is_none()).then_some(value);
                return Ok(Step::Done(value));
            }
            let waiter = body.new_waiter(&request)?;
            let inner = waiter.iter()?;
            if let Some(future) = inner.next()? {
                self.inner.set(Some(inner));
                self.waiter.set(Some(waiter));
                return Ok(Step::Wait(future));
            }
        }
    }

    fn abandon(&self, py: Attached<'_>) {
        let (request, waiter) = (self.request.take(py), self.waiter.take(py));
        if let (Some(request), Some(waiter)) = (request, waiter) {
            let body = Request::of(&request);
            // A collector on another thread leaves it to the end of the request.
            if body.connection(py).server(py).is_here(py) {
                body.forget_waiter(&waiter);
            }
        }
        self.inner.set(None);
        self.message.set(None);
    }
}

static METHODS: [Function; 4] = [
    method!(Wait, c"send", send, c"Goes on."),
    method!(Wait, c"throw", throw, c"Ends with an exception."),
    method!(Wait, c"close", close, c"Ends."),
    END,
];

static GETTERS: [Getter; 1] = [END_OF_GETTERS];

impl Native for Wait {
    const NAME: &'static std::ffi::CStr = c"erlang._native.HttpWait";
    const DOC: &'static std::ffi::CStr = c"What receive() and send() give to be awaited.";

    type Governor = Nobody;

    fn methods() -> &'static [Function] {
        &METHODS
    }

    fn getters() -> &'static [Getter] {
        &GETTERS
    }

    fn new<'py>(class: &Obj<'py>) -> PyResult<'py, Self> {
        let text = "made by receive() and send() only";
        Err(PyError::new(class.py(), Builtin::TypeError, text))
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.place(&self.request);
        visit.place(&self.inner);
        visit.place(&self.waiter);
        visit.place(&self.message);
    }

    fn clear(&self, _py: Attached<'_>) {
        for place in [&self.request, &self.inner, &self.waiter, &self.message] {
            place.set(None);
        }
    }
}
