//! `await erlang.async_call(...)`: Erlang's answer completes a future of the loop that asked.
//!
//! Thread: `ask` and the visit an attached one; `tell` schedulers, which only post (I9).

use std::sync::{Arc, Mutex};

use crew::sync::lock;
use pyloop::{Visit, Visitors};
use pyrt::class::{self, Class};
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Kept, Obj, PyError, PyResult};

use crate::callback::{self, Answer};
use crate::interp::Interp;
use crate::py_module::{self, NodeHost};
use crate::refs::Decodes;
use crate::{current, fork, release};

/// The future, and the way to its loop.
pub struct Asked {
    way: Visitors,
    interp: Arc<Interp>,
    /// Taken by the first answer.
    future: Mutex<Option<Kept>>,
}

impl Asked {
    pub fn new(way: Visitors, interp: Arc<Interp>, future: Kept) -> Self {
        Asked {
            way,
            interp,
            future: Mutex::new(Some(future)),
        }
    }

    pub fn tell(&self, answer: Answer) {
        let Some(future) = lock(&self.future).take() else {
            return;
        };
        let told = Told {
            interp: self.interp.clone(),
            future,
            answer,
            named: self.interp.exported.decodes(),
        };
        if !self.way.post(Box::new(told)) {
            // The loop is closed: nobody waits any more.
            release::soon();
        }
    }

    /// Nobody waits for the answer.
    pub fn release(&self, py: Attached<'_>) {
        let future = lock(&self.future).take();
        if let Some(future) = future {
            future.release(py);
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if lock(&self.future).take().is_some() {
            release::soon();
        }
    }
}

/// An answer on its way to the loop.
struct Told {
    interp: Arc<Interp>,
    future: Kept,
    answer: Answer,
    /// Keeps the objects that the answer may name.
    named: Decodes,
}

impl Visit for Told {
    fn visit<'py>(self: Box<Self>, event_loop: &Obj<'py>) -> PyResult<'py, ()> {
        let Told {
            interp,
            future,
            answer,
            named,
        } = *self;
        let py = event_loop.py();
        let Some(object) = future.get(py) else {
            return Ok(());
        };
        let done = complete(&interp, &object, answer);
        drop(named);
        future.release(py);
        if let Err(error) = done {
            error.unraisable(c"an answer of Erlang");
        }
        Ok(())
    }
}

fn complete<'py>(interp: &Interp, future: &Obj<'py>, answer: Answer) -> PyResult<'py, ()> {
    let py = future.py();
    // Cancelled meanwhile: the task that asked is gone.
    if future.call_method(c"done", &[])?.is_truthy()? {
        return Ok(());
    }
    let module = pyrt::call::import_c(py, c"erlang._node")?;
    let host = NodeHost {
        interp,
        current: None,
    };
    match py_module::value_of(&module, &host, answer) {
        Ok(value) => future.call_method(c"set_result", &[&value])?,
        Err(error) => future.call_method(c"set_exception", &[error.value()])?,
    };
    Ok(())
}

/// `ask(loop, future, name, *args)`: `False` if the loop is not one of ours.
pub fn ask<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let (event_loop, future) = (args.want(0, "loop")?, args.want(1, "future")?);
    let name = args.want(2, "name")?;
    let interp = py_module::interp(module)?;
    let way = interp
        .native(py)
        .and_then(|native| Visitors::of(&native, &event_loop));
    let Some(way) = way else {
        return Ok(Obj::bool(py, false));
    };
    let current = current::current(py, &interp);
    let host = NodeHost {
        interp: &interp,
        current: current.as_ref(),
    };
    let bytes = py_module::encode_args(py, &host, args, 3)?;
    let asked = Asked::new(way, interp.clone(), Kept::new((*future).clone()));
    let Some(id) = callback::ask(current.as_ref(), asked, name.as_utf8()?, &bytes) else {
        let text = "erlang_python is not running: start the application first";
        return Err(PyError::new(py, Builtin::RuntimeError, text));
    };
    if let Some(over) = interp.tasks.over(py, id)? {
        future.call_method(c"add_done_callback", &[&over])?;
    }
    Ok(Obj::bool(py, true))
}

/// Called when the future is over, which it is without an answer if it was cancelled.
pub struct Over(pub u64);

impl Class for Over {
    const NAME: &'static std::ffi::CStr = c"erlang._node.Over";
    const DOC: &'static std::ffi::CStr = c"Takes a future off the list of those that wait.";

    fn repr(&self) -> String {
        format!("<erlang question {}>", self.0)
    }

    fn hash(&self) -> u64 {
        self.0
    }

    fn equal(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> =
        Some(|this, _args| {
            if let Some(over) = class::body::<Over>(this, &this.type_of()) {
                callback::abandon(this.py(), over.0);
            }
            Ok(Obj::none(this.py()))
        });
}

/// `begin_loop()`: the loop of this sub-interpreter gets its thread. `False`: it has none.
pub fn begin_loop<'py>(module: &Obj<'py>, _args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    fork::refuse_child(module.py())?;
    let begun = py_module::interp(module)?.begin_loop();
    Ok(Obj::bool(module.py(), begun))
}

/// `current()`: who is run for, and what it said about the job: `(pid, about)`.
pub fn current_<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let interp = py_module::interp(module)?;
    let Some(current) = current::current(py, &interp) else {
        return Ok(Obj::none(py));
    };
    let host = NodeHost {
        interp: &interp,
        current: Some(&current),
    };
    let about = match current.ticket.about() {
        Some(bytes) => py_module::decode(py, &host, bytes)?,
        None => Obj::none(py),
    };
    let caller = py_module::pid_object(module, current.slot.pid())?;
    Obj::tuple(py, [caller, about].into_iter())
}
