//! One Python interpreter, as its threads see it: conversion types, compiled code, exported objects.
//!
//! Thread: shared; `with` needs a thread attached to this very interpreter.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};

use pyrt::call::{self, Source};
use pyrt::memory::Budget;
use pyrt::{Attached, Kept, Obj, PyResult, thread};

use crate::current;
use crate::event_loop::Loop;
use crate::guest::Guests;
use crate::refs::Exported;
use crate::stopper::Stopper;
use crate::task::Classes;
use crew::LossySet;
use crew::sync::lock;

/// Compiled sources kept per interpreter, and bytes of these sources; when full, all are dropped: a rare cost,
/// and no list.
const MAX_CODE: usize = 1024;
const MAX_SOURCE: usize = 8 << 20;

#[derive(Default)]
struct CodeCache {
    /// By what it is and its source.
    code: HashMap<(Source, Vec<u8>), Arc<Kept>>,
    bytes: usize,
}

impl CodeCache {
    /// Keeps a code object; gives what is dropped for it.
    fn keep(&mut self, key: (Source, Vec<u8>), code: Arc<Kept>) -> Option<CodeCache> {
        let len = key.1.len();
        if len > MAX_SOURCE {
            return None;
        }
        let full = self.code.len() >= MAX_CODE || self.bytes + len > MAX_SOURCE;
        let dropped = full.then(|| std::mem::take(self));
        if self.code.insert(key, code).is_none() {
            self.bytes += len;
        }
        dropped
    }
}

/// Whether the main interpreter has a GIL now. A free-threaded Python begins without one, and takes
/// one up for good when a module is imported that needs it.
static GIL: AtomicBool = AtomicBool::new(!pyrt::FREE_THREADED);

/// As it was when the last jobs of the main interpreter had ended.
pub fn has_gil() -> bool {
    // Relaxed: a fact about another thread, old as soon as it is read.
    GIL.load(Ordering::Relaxed)
}

pub struct Interp {
    this: Weak<Interp>,
    /// 0 is the main interpreter.
    number: u64,
    python: thread::Interp,
    native: Kept,
    cancelled: Kept,
    flush: Kept,
    untrace: Kept,
    /// `sys._is_gil_enabled`, in the main interpreter of a free-threaded Python.
    is_gil_enabled: Option<Kept>,
    code: Mutex<CodeCache>,
    /// Functions that are no coroutine functions.
    pub plain: LossySet,
    pub exported: Exported,
    /// The classes of tasks that run for Erlang.
    pub tasks: Classes,
    /// Deepest nesting that Python's recursion limit was raised for.
    depth: AtomicUsize,
    /// `false` from the moment it is ended.
    alive: RwLock<bool>,
    /// Stops its jobs.
    pub stopper: Stopper,
    /// Who else of ours is in it.
    pub guests: Guests,
    /// The loop of a sub-interpreter.
    event_loop: OnceLock<Weak<Loop>>,
    /// What a sub-interpreter has, and whether that is bounded.
    pub memory: OnceLock<(&'static Budget, bool)>,
}

/// An interpreter in use by the calling thread.
pub struct World<'a, 'py> {
    pub py: Attached<'py>,
    pub interp: &'a Interp,
    pub bound: etf::Bound<'a, 'py>,
}

impl Interp {
    /// The interpreter this thread is attached to. Imports the package.
    pub fn current<'py>(py: Attached<'py>, number: u64) -> PyResult<'py, Arc<Self>> {
        let native = call::import_c(py, c"erlang._native")?;
        let errors = call::import_c(py, c"erlang._errors")?;
        let cancelled = errors.getattr_c(c"Cancelled")?;
        let flush = call::import_c(py, c"erlang._stdio")?.getattr_c(c"flush_thread")?;
        let untrace = call::import_c(py, c"erlang._trace")?.getattr_c(c"untrace")?;
        let Some(python) = thread::Interp::current(py) else {
            let class = pyrt::error::Builtin::RuntimeError;
            return Err(pyrt::PyError::new(py, class, "no interpreter"));
        };
        let is_gil_enabled = if pyrt::FREE_THREADED && number == 0 {
            let sys = call::import_c(py, c"sys")?;
            Some(Kept::new(sys.getattr_c(c"_is_gil_enabled")?))
        } else {
            None
        };
        let tasks = Classes::make(py)?;
        Ok(Arc::new_cyclic(|this| Interp {
            this: this.clone(),
            number,
            python,
            native: Kept::new(native),
            cancelled: Kept::new(cancelled),
            flush: Kept::new(flush),
            untrace: Kept::new(untrace),
            is_gil_enabled,
            code: Mutex::default(),
            plain: LossySet::default(),
            exported: Exported::default(),
            tasks,
            depth: AtomicUsize::new(0),
            alive: RwLock::new(true),
            stopper: Stopper::default(),
            guests: Guests::default(),
            event_loop: OnceLock::new(),
            memory: OnceLock::new(),
        }))
    }

    /// For who keeps it beyond a borrow.
    pub fn shared(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub fn python(&self) -> thread::Interp {
        self.python
    }

    /// Keeps the interpreter from being ended while a thread that is not its own uses it.
    /// `None`: it has ended.
    pub fn hold(&self) -> Option<RwLockReadGuard<'_, bool>> {
        let alive = self.alive.read().unwrap_or_else(PoisonError::into_inner);
        if *alive { Some(alive) } else { None }
    }

    /// From here on nobody else uses it. Its own thread calls this, detached, before its end.
    pub fn retire(&self) {
        *self.alive.write().unwrap_or_else(PoisonError::into_inner) = false;
    }

    pub fn set_loop(&self, event_loop: &Arc<Loop>) {
        let _ = self.event_loop.set(Arc::downgrade(event_loop));
    }

    /// The loop of a sub-interpreter, with its thread.
    pub fn begin_loop(&self) -> bool {
        let event_loop = self.event_loop.get().and_then(Weak::upgrade);
        if let Some(event_loop) = &event_loop {
            event_loop.begin();
        }
        event_loop.is_some()
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn is_main(&self) -> bool {
        self.number == 0
    }

    /// The object behind a reference, if it is one of this interpreter.
    pub fn object<'py>(
        &self,
        py: Attached<'py>,
        number: u64,
        index: u64,
        generation: u64,
    ) -> Option<Obj<'py>> {
        if number != self.number {
            return None;
        }
        self.exported.find(py, index, generation)
    }

    /// `erlang._native` of this interpreter.
    pub fn native<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.native.get(py)
    }

    /// Runs `body` with what conversion needs at hand.
    pub fn with<'py, T>(
        &self,
        py: Attached<'py>,
        body: impl FnOnce(&World<'_, 'py>) -> T,
    ) -> Option<T> {
        let native = self.native.get(py)?;
        let state = pyloop::state(&native)?;
        let world = World {
            py,
            interp: self,
            bound: state.types.bind(py),
        };
        Some(body(&world))
    }

    /// The class of the exception that stops a job.
    pub fn cancelled<'py>(&self, py: Attached<'py>) -> Option<Obj<'py>> {
        self.cancelled.get(py)
    }

    /// A code object, compiled once per source.
    pub fn compile<'py>(
        &self,
        py: Attached<'py>,
        source: &[u8],
        kind: Source,
    ) -> PyResult<'py, Obj<'py>> {
        let key = (kind, source.to_vec());
        let known = lock(&self.code).code.get(&key).cloned();
        if let Some(code) = known.and_then(|kept| kept.get(py)) {
            return Ok(code);
        }
        let file: &CStr = match kind {
            Source::Expression => c"<py:eval>",
            Source::Statements => c"<py:exec>",
        };
        let code = call::compile(py, source, file, kind)?;
        let kept = Arc::new(Kept::new(code.clone()));
        let dropped = lock(&self.code).keep(key, kept);
        // I3: the lock is gone before code objects are released.
        drop(dropped);
        Ok(code)
    }

    /// Sends the line this thread has begun to whom it runs for: the next job is another's.
    pub fn flush_line(&self, py: Attached<'_>) {
        if current::take_line_begun()
            && let Some(flush) = self.flush.get(py)
            && let Err(error) = flush.call(&[])
        {
            error.unraisable(c"flushing output");
        }
    }

    /// Ends the tracing and profiling that the job of this thread has begun.
    pub fn untrace(&self, py: Attached<'_>) {
        if current::take_traced()
            && let Some(untrace) = self.untrace.get(py)
            && let Err(error) = untrace.call(&[])
        {
            error.unraisable(c"ending a trace");
        }
    }

    /// Remembers whether there is a GIL; does nothing where that can't change.
    pub fn note_gil(&self, py: Attached<'_>) {
        let Some(asked) = self.is_gil_enabled.as_ref().and_then(|kept| kept.get(py)) else {
            return;
        };
        if let Ok(Ok(enabled)) = asked.call(&[]).map(|answer| answer.is_truthy()) {
            GIL.store(enabled, Ordering::Relaxed);
        }
    }

    pub fn release_exported(&self, py: Attached<'_>) {
        self.exported.release_due(py);
    }

    /// Before a nested job at `depth` runs: Python's limit counts all levels of the thread, so it
    /// is raised by what the levels below may need. One that a user has set higher stays.
    pub fn allow_depth(&self, py: Attached<'_>, depth: usize) {
        const FRAMES_PER_LEVEL: usize = 20;
        // Before 3.12 this limit is also what keeps C code from the end of the stack, and it holds
        // for every thread from now on: 8 MiB must be enough for whoever recurses without end.
        const MOST: usize = if pyrt::BUILT_FOR.1 < 12 {
            6_000
        } else {
            1_000_000
        };
        // Relaxed: the worst a race does is to set the limit twice.
        if self.depth.fetch_max(depth, Ordering::Relaxed) < depth {
            let wanted = call::DEFAULT_RECURSION_LIMIT + depth * FRAMES_PER_LEVEL;
            call::raise_recursion_limit(py, wanted.min(MOST));
        }
    }
}
