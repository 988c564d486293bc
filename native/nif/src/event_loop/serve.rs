//! The thread of a loop: sleeps in epoll with the GIL released, and ends when the loop is closed.
//!
//! Thread: `py-loop`, one per loop, with one thread state for life.

use std::sync::Arc;

use pyloop::Visitors;
use pyrt::error::Builtin;
use pyrt::thread::{ThreadState, spawn_named};
use pyrt::{Attached, Kept, PyError, PyResult, contain};

use super::start::{Arrived, Tools};
use super::{Loop, helpers};
use crate::fork;
use crate::here::here;
use crate::{atoms, log, watch};

/// Starts the thread; the loop's owner hears `{py_worker_down, Why}` if it ends by itself.
pub(super) fn start(this: &Arc<Loop>) -> std::io::Result<()> {
    let this = this.clone();
    spawn_named("py-loop", move || {
        let me = here();
        me.set_owner(this.owner);
        let _ = this.thread.set(me.clone());
        let served = contain("loop", || {
            // First in, last out: whoever ends the interpreter waits for it.
            let _guest = this.interp.visit()?;
            let mut state = ThreadState::new(this.interp.python())?;
            state.attached(|py| {
                if let Err(error) = serve(py, &this) {
                    let text = format!("an event loop ended: {}", error.value().display());
                    log::failure(&text);
                }
            });
            Some(())
        });
        let open = this.is_open();
        this.close();
        this.refuse_all();
        match served {
            Err(_) => me.tell_owner(atoms::panicked()),
            Ok(_) if open => me.tell_owner(atoms::stopped()),
            Ok(_) => {}
        }
    })
    .map(drop)
}

/// Runs the loop until it is closed.
fn serve<'py>(py: Attached<'py>, this: &Arc<Loop>) -> PyResult<'py, ()> {
    let helpers = helpers(py)?;
    let event_loop = helpers.call_method(this.maker(), &[])?;
    let _ = this.tools.set(Tools::make(py)?);
    let _ = this.object.set(Kept::new(event_loop.clone()));
    let way = this
        .interp
        .native(py)
        .and_then(|native| Visitors::of(&native, &event_loop));
    let Some(way) = way else {
        let text = "not a loop of this node";
        return Err(PyError::new(py, Builtin::SystemError, text));
    };
    // What was posted before the way was known.
    way.post(Box::new(Arrived(this.clone())));
    let _ = this.way.set(way);
    let _ = this.stopwatch.set(Visitors::stopwatch(&event_loop));
    watch::look_after(this);
    while this.is_open() {
        let served = this
            .spot
            .run(py, || helpers.call_method(c"serve", &[&event_loop]));
        fork::end_if_child();
        served?;
    }
    helpers.call_method(c"end", &[&event_loop])?;
    Ok(())
}
