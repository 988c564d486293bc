//! Handles: what `call_soon`, `call_later` and the like give back.
//!
//! A handle is one object with its arguments inside; it lets go of them when it has run or was
//! cancelled, and is never used again. To `isinstance` it is asyncio's own class.
//! Thread: attached ones; a timer is cancelled on any, its loop hears of it.

use pyrt::deferred::{Call, Comparison, Deferrable};
use pyrt::module::{END, Function};
use pyrt::native::{END_OF_GETTERS, Getter};
use pyrt::{Attached, Flag, Member, Obj, PyResult, call_getter, call_method};

use crate::event_loop::LoopCore;

/// A callback that runs soon, or whenever a descriptor is ready.
#[derive(Default)]
pub struct Plain {
    pub cancelled: Flag,
    /// Runs again and again: keeps its callback.
    pub lasting: bool,
}

/// A callback that runs at a time.
pub struct Timer {
    pub cancelled: Flag,
    pub when: f64,
    /// The time was given as an `int`, and is told as one.
    pub whole: bool,
    /// It is among the loop's timers.
    pub set: Flag,
    pub event_loop: Member,
}

/// What both kinds have in common.
trait Handle: Deferrable {
    const KIND: &'static str;
    fn is_cancelled(&self) -> bool;
    fn cancel(call: &Call<Self>, py: Attached<'_>);
    fn asyncio_class<'py>(py: Attached<'py>) -> PyResult<'py, Obj<'py>>;
    fn describe(&self) -> String;
}

impl Handle for Plain {
    const KIND: &'static str = "Handle";

    fn is_cancelled(&self) -> bool {
        self.cancelled.get()
    }

    fn cancel(call: &Call<Self>, py: Attached<'_>) {
        if !call.extra().cancelled.replace(true) {
            call.clear(py);
        }
    }

    fn asyncio_class<'py>(py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        pyrt::call::import_c(py, c"asyncio.events")?.getattr_c(c"Handle")
    }

    fn describe(&self) -> String {
        String::new()
    }
}

impl Handle for Timer {
    const KIND: &'static str = "TimerHandle";

    fn is_cancelled(&self) -> bool {
        self.cancelled.get()
    }

    fn cancel(call: &Call<Self>, py: Attached<'_>) {
        let timer = call.extra();
        if timer.cancelled.replace(true) {
            return;
        }
        call.clear(py);
        if timer.set.replace(false) {
            LoopCore::of(&timer.event_loop.get(py)).timer_cancelled();
        }
    }

    fn asyncio_class<'py>(py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        pyrt::call::import_c(py, c"asyncio.events")?.getattr_c(c"TimerHandle")
    }

    fn describe(&self) -> String {
        match self.whole {
            true => format!(" when={}", self.when),
            // As Python prints a float: 3.0, not 3.
            false => format!(" when={:?}", self.when),
        }
    }
}

fn cancel<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    T::cancel(call, py);
    Ok(Obj::none(py))
}

fn run<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    call.run_seen(py)?;
    Ok(Obj::none(py))
}

fn callback<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(call.callback(py).unwrap_or_else(|| Obj::none(py)))
}

fn arguments<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    call.arguments(py).unwrap_or_else(|| Ok(Obj::none(py)))
}

fn context<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(call.context(py).unwrap_or_else(|| Obj::none(py)))
}

fn is_cancelled<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(Obj::bool(py, call.extra().is_cancelled()))
}

fn class<'py, T: Handle>(_call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    T::asyncio_class(py)
}

/// No traceback is taken: in debug mode the loop makes asyncio's own handles.
fn traceback<'py, T: Handle>(_call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(Obj::none(py))
}

/// As asyncio prints its own.
fn describe<'py, T: Handle>(call: &Call<T>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    let mut text = format!("<{}", T::KIND);
    if call.extra().is_cancelled() {
        text.push_str(" cancelled");
    }
    text.push_str(&call.extra().describe());
    if let (Some(callback), Some(args)) = (call.callback(py), call.arguments(py)) {
        let helpers = pyrt::call::import_c(py, c"asyncio.format_helpers")?;
        let source = helpers.call_method(c"_format_callback_source", &[&callback, &args?])?;
        text.push(' ');
        text.push_str(&source.display());
    }
    text.push('>');
    Obj::text(py, &text)
}

impl Deferrable for Plain {
    const NAME: &'static std::ffi::CStr = c"erlang._native.Handle";
    const DOC: &'static std::ffi::CStr = c"A callback that will run, unless it is cancelled.";

    fn methods() -> &'static [Function] {
        static METHODS: [Function; 5] = [
            call_method!(
                Plain,
                c"cancel",
                cancel,
                c"cancel()\n--\n\nIt will not run."
            ),
            call_method!(
                Plain,
                c"cancelled",
                is_cancelled,
                c"Whether it was cancelled."
            ),
            call_method!(Plain, c"get_context", context, c"The context it runs in."),
            call_method!(Plain, c"_run", run, c"Runs it now."),
            END,
        ];
        &METHODS
    }

    fn getters() -> &'static [Getter] {
        static GETTERS: [Getter; 7] = [
            call_getter!(Plain, c"__class__", class),
            call_getter!(Plain, c"_callback", callback),
            call_getter!(Plain, c"_args", arguments),
            call_getter!(Plain, c"_context", context),
            call_getter!(Plain, c"_cancelled", is_cancelled),
            call_getter!(Plain, c"_source_traceback", traceback),
            END_OF_GETTERS,
        ];
        &GETTERS
    }

    fn repr<'py>(call: &Call<Self>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        describe(call, py)
    }
}

fn when<'py>(call: &Call<Timer>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    let timer = call.extra();
    match timer.whole {
        true => Obj::int(py, timer.when as i64),
        false => Obj::float(py, timer.when),
    }
}

fn event_loop<'py>(call: &Call<Timer>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(call.extra().event_loop.obj(py))
}

fn scheduled<'py>(call: &Call<Timer>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    Ok(Obj::bool(py, call.extra().set.get()))
}

impl Deferrable for Timer {
    const NAME: &'static std::ffi::CStr = c"erlang._native.TimerHandle";
    const DOC: &'static std::ffi::CStr = c"A callback that will run at a time.";

    fn methods() -> &'static [Function] {
        static METHODS: [Function; 6] = [
            call_method!(
                Timer,
                c"cancel",
                cancel,
                c"cancel()\n--\n\nIt will not run."
            ),
            call_method!(
                Timer,
                c"cancelled",
                is_cancelled,
                c"Whether it was cancelled."
            ),
            call_method!(Timer, c"get_context", context, c"The context it runs in."),
            call_method!(
                Timer,
                c"when",
                when,
                c"The time of the loop at which it runs."
            ),
            call_method!(Timer, c"_run", run, c"Runs it now."),
            END,
        ];
        &METHODS
    }

    fn getters() -> &'static [Getter] {
        static GETTERS: [Getter; 10] = [
            call_getter!(Timer, c"__class__", class),
            call_getter!(Timer, c"_callback", callback),
            call_getter!(Timer, c"_args", arguments),
            call_getter!(Timer, c"_context", context),
            call_getter!(Timer, c"_cancelled", is_cancelled),
            call_getter!(Timer, c"_source_traceback", traceback),
            call_getter!(Timer, c"_when", when),
            call_getter!(Timer, c"_loop", event_loop),
            call_getter!(Timer, c"_scheduled", scheduled),
            END_OF_GETTERS,
        ];
        &GETTERS
    }

    fn repr<'py>(call: &Call<Self>, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        describe(call, py)
    }

    const COMPARES: bool = true;

    fn hash(&self) -> isize {
        self.when.to_bits() as isize
    }

    /// By time; equal ones are the same call at the same time.
    fn compare(this: &Call<Self>, other: &Obj<'_>, how: Comparison) -> Option<bool> {
        let py = other.py();
        let class = this.obj(py);
        let that = Call::<Timer>::of(other, &class.type_of())?;
        let (a, b) = (this.extra().when, that.extra().when);
        let same = || this.obj(py).is(other);
        Some(match how {
            Comparison::Less => a < b,
            Comparison::LessEqual => a < b || same(),
            Comparison::Greater => a > b,
            Comparison::GreaterEqual => a > b || same(),
            Comparison::Equal => same(),
            Comparison::NotEqual => !same(),
        })
    }
}
