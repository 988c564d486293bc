//! The two objects a task of a loop has from us: whom it runs for, and what is called at its end.
//!
//! Thread: attached ones.

use std::sync::Arc;

use pyrt::class::{self, Class};
use pyrt::coroutine::{context_var, get_context_var, reset_context_var, set_context_var};
use pyrt::{Attached, Kept, Obj, PyResult, call};

use crate::ask::Over;
use crate::current::Current;
use crate::event_loop::{self, Loop};
use crate::job::Job;
use crate::stream_task;
use crate::ticket::Ticket;

/// What an interpreter needs to run tasks for Erlang.
pub struct Classes {
    running: Kept,
    done: Kept,
    over: Kept,
    /// The context variable whose value is a `Running`: inherited by all that a task starts.
    variable: Kept,
    pub streams: stream_task::Classes,
}

impl Classes {
    pub fn make(py: Attached<'_>) -> PyResult<'_, Self> {
        let module = call::import_c(py, c"erlang._node")?;
        Ok(Classes {
            running: Kept::new(class::make::<Running>(&module)?),
            done: Kept::new(class::make::<Done>(&module)?),
            over: Kept::new(class::make::<Over>(&module)?),
            variable: Kept::new(context_var(py, c"erlang.current")?),
            streams: stream_task::Classes::make(&module)?,
        })
    }

    /// Whom the code of the current context runs for, if that is a task.
    pub fn current(&self, py: Attached<'_>) -> Option<Current> {
        let (variable, class) = (self.variable.get(py)?, self.running.get(py)?);
        let value = get_context_var(&variable).ok()??;
        class::body::<Running>(&value, &class).map(|running| running.0.clone())
    }

    /// Whom the code of a context runs for, if that is a task.
    pub fn ticket_in(&self, context: &Obj<'_>) -> Option<Arc<Ticket>> {
        let py = context.py();
        let (variable, class) = (self.variable.get(py)?, self.running.get(py)?);
        let value = context.call_method(c"get", &[&variable]).ok()?;
        class::body::<Running>(&value, &class).map(|running| running.0.ticket.clone())
    }

    /// From here on the current context is that of a job.
    pub fn enter<'py>(&self, py: Attached<'py>, job: &Job) -> PyResult<'py, Option<Obj<'py>>> {
        let (Some(variable), Some(class)) = (self.variable.get(py), self.running.get(py)) else {
            return Ok(None);
        };
        let running = Running(Current {
            slot: job.slot.clone(),
            pool: None,
            ticket: job.ticket.clone(),
        });
        set_context_var(&variable, &class::instance(&class, running)?).map(Some)
    }

    /// The current context is what it was before `enter`, which gave the token.
    pub fn leave<'py>(&self, py: Attached<'py>, token: Option<Obj<'py>>) -> PyResult<'py, ()> {
        match (self.variable.get(py), token) {
            (Some(variable), Some(token)) => reset_context_var(&variable, &token),
            _ => Ok(()),
        }
    }

    /// What `add_done_callback` gets.
    pub fn done<'py>(
        &self,
        py: Attached<'py>,
        event_loop: &Arc<Loop>,
        id: u64,
    ) -> PyResult<'py, Option<Obj<'py>>> {
        let Some(class) = self.done.get(py) else {
            return Ok(None);
        };
        let done = Done {
            event_loop: event_loop.clone(),
            id,
        };
        class::instance(&class, done).map(Some)
    }

    /// The same for a future that waits for Erlang.
    pub fn over<'py>(&self, py: Attached<'py>, id: u64) -> PyResult<'py, Option<Obj<'py>>> {
        match self.over.get(py) {
            Some(class) => class::instance(&class, Over(id)).map(Some),
            None => Ok(None),
        }
    }
}

/// Whom a task runs for.
struct Running(Current);

impl Class for Running {
    const NAME: &'static std::ffi::CStr = c"erlang._node.Running";
    const DOC: &'static std::ffi::CStr = c"Whom a task runs for.";

    fn repr(&self) -> String {
        format!("<erlang task {}>", self.0.ticket.id())
    }

    fn hash(&self) -> u64 {
        self.0.ticket.id()
    }

    fn equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.ticket, &other.0.ticket)
    }
}

/// Called when a task is over.
struct Done {
    event_loop: Arc<Loop>,
    id: u64,
}

impl Class for Done {
    const NAME: &'static std::ffi::CStr = c"erlang._node.Done";
    const DOC: &'static std::ffi::CStr = c"Answers the Erlang process that waits for a task.";

    fn repr(&self) -> String {
        format!("<erlang answer {}>", self.id)
    }

    fn hash(&self) -> u64 {
        self.id
    }

    fn equal(&self, other: &Self) -> bool {
        self.id == other.id
    }

    const CALL: Option<for<'a, 'py> fn(&Obj<'py>, &Obj<'py>) -> PyResult<'py, Obj<'py>>> =
        Some(|this, args| {
            if let (Some(done), Some(task)) = (
                class::body::<Done>(this, &this.type_of()),
                args.tuple_item(0),
            ) {
                event_loop::task_over(&done.event_loop, done.id, &task);
            }
            Ok(Obj::none(this.py()))
        });
}
