//! Context variables (`contextvars`) of Erlang processes: `call`, `eval` and `exec` run in the
//! context of their process, everything else in a copy of it.
//!
//! Most processes set none. Their jobs run in an empty context that the thread keeps for the next one,
//! whoever that is for; only a context that a job has left variables in becomes the process's own.
//!
//! Thread: attached ones; `forget` and `end` are called by schedulers and only post (I9).

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use crew::sync::lock;
use pyrt::context::{self, Entered};
use pyrt::{Attached, Kept, Obj, PyResult};

use crate::job::{Job, Op, Reply};
use crate::release;

/// The context of a process, or of a `py_context`.
#[derive(Default)]
pub struct Vars(Mutex<State>);

#[derive(Default)]
struct State {
    context: Option<Arc<Kept>>,
    /// A job is in it: others get copies.
    entered: bool,
    /// The process is gone.
    over: bool,
}

thread_local! {
    /// A context without variables that nobody else has.
    static EMPTY: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// A context without variables.
fn empty(py: Attached<'_>) -> PyResult<'_, Obj<'_>> {
    let kept = EMPTY.with_borrow_mut(Option::take);
    if let Some(kept) = kept
        && let Some(context) = kept.into_obj(py)
    {
        return Ok(context);
    }
    context::new(py)
}

impl Vars {
    fn context<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        let kept = lock(&self.0).context.clone()?;
        kept.get(py)
    }

    /// Lets go of all variables.
    pub fn forget(&self) {
        let context = lock(&self.0).context.take();
        if context.is_some() {
            drop(context);
            release::soon();
        }
    }

    /// The same, for ever: a job that still runs leaves nothing here.
    pub fn end(&self) {
        lock(&self.0).over = true;
        self.forget();
    }

    /// A job has left the process's own context; what there is to keep of it.
    fn put(&self, py: Attached<'_>, context: Option<Obj<'_>>) {
        let mut state = lock(&self.0);
        state.entered = false;
        let known = match (&state.context, &context) {
            (Some(known), Some(context)) => known.is(context),
            (known, context) => known.is_none() && context.is_none(),
        };
        if known || state.over {
            // I3: no lock is held while the values' destructors run.
            drop(state);
            return drop(context);
        }
        let kept = context.map(|context| Arc::new(Kept::new(context)));
        let old = std::mem::replace(&mut state.context, kept);
        drop(state);
        if let Some(kept) = old.and_then(Arc::into_inner) {
            kept.release(py);
        }
    }
}

/// The job is in a context, until this is dropped.
pub struct Inside<'py> {
    py: Attached<'py>,
    entered: Option<Entered<'py>>,
    /// Whose context that is; `None`: nobody's.
    vars: Option<Arc<Vars>>,
}

impl<'py> Inside<'py> {
    /// Leaves the context of a process; one that is nobody's is not left yet.
    pub fn leave_own(self) -> Option<Self> {
        self.vars.is_none().then_some(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let context = self.entered.take().and_then(Entered::leave);
        let used = context.and_then(used);
        if let Some(vars) = self.vars.take() {
            vars.put(self.py, used);
        }
    }
}

/// The context, if it has variables. An empty one is kept for the thread's next job, if nobody else has
/// it (by a token of `ContextVar.set`).
fn used(context: Obj<'_>) -> Option<Obj<'_>> {
    if !context::is_empty(&context) {
        return Some(context);
    }
    if context.is_sole() {
        let py = context.py();
        let old = EMPTY.with_borrow_mut(|place| place.replace(Kept::new(context)));
        if let Some(old) = old {
            old.release(py);
        }
    }
    None
}

/// Whether what the job sets is for the next ones of its process.
fn sets(job: &Job) -> bool {
    matches!(job.reply, Reply::Key(_)) && matches!(job.op, Op::Call | Op::Eval | Op::Exec)
}

/// Enters the context of the job's process, or a copy of it.
pub fn enter<'py>(py: Attached<'py>, job: &Job) -> PyResult<'py, Inside<'py>> {
    let home = job.vars();
    if !sets(job) {
        return enter_copy(py, home);
    }
    let own = {
        let mut state = lock(&home.0);
        if state.entered {
            None
        } else {
            state.entered = true;
            Some(state.context.clone())
        }
    };
    let Some(kept) = own else {
        return enter_copy(py, home);
    };
    // From here on it is put back, also if it can't be entered.
    let mut inside = Inside {
        py,
        entered: None,
        vars: Some(home.clone()),
    };
    let context = match kept.and_then(|kept| kept.get(py)) {
        Some(context) => context,
        None => empty(py)?,
    };
    inside.entered = Some(Entered::enter(context)?);
    Ok(inside)
}

fn enter_copy<'py>(py: Attached<'py>, home: &Vars) -> PyResult<'py, Inside<'py>> {
    let context = match home.context(py) {
        Some(context) => context::copy(&context)?,
        None => empty(py)?,
    };
    Ok(Inside {
        py,
        entered: Some(Entered::enter(context)?),
        vars: None,
    })
}

/// A copy of the process's context for a stream, which is in it slice by slice.
pub fn copy<'py>(py: Attached<'py>, job: &Job) -> PyResult<'py, Obj<'py>> {
    match job.vars().context(py) {
        Some(context) => context::copy(&context),
        None => context::new(py),
    }
}

/// A copy of the process's context for a task, if the process has set variables.
pub fn enter_if_set<'py>(py: Attached<'py>, job: &Job) -> PyResult<'py, Option<Entered<'py>>> {
    match job.vars().context(py) {
        Some(context) => Entered::enter(context::copy(&context)?).map(Some),
        None => Ok(None),
    }
}
