//! `erlang._node`, the rest of it: output, log records, sleep.
//!
//! Thread: any that runs Python, attached.

use crew::backlog::MayWait;
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};
use rustler::ResourceArc;

use crate::current::Current;
use crate::here::{here, may_wait};
use crate::leader::{self, Leader, Written};
use crate::py_module::{NodeHost, interp, raised, stopped, with_world};
use crate::{courier, current, fork, log, runtime};
use etf::write::EMPTY_MAP;

pub fn log_<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let level = args.want(0, "level")?.as_i64()?.unwrap_or(0);
    let logger = args.want(1, "logger")?.display();
    let message = args.want(2, "message")?.display();
    if fork::is_child() {
        fork::say(&format!("{logger}: {message}\n"));
        return Ok(Obj::none(py));
    }
    let meta = args.want(3, "meta")?;
    let interp = interp(module)?;
    let current = current::current(py, &interp);
    let about = current.as_ref().and_then(|current| current.ticket.about());
    let host = NodeHost {
        interp: &interp,
        current: None,
    };
    with_world(host.interp, py, |world| {
        let mut out = Vec::new();
        let widest = etf::encode(&world.bound, &host, &meta, &mut out)
            .map_err(|error| raised(py, error))?
            .widest_map;
        if !courier::may_build(widest) {
            // An empty map: metadata of a record is small, or it is not told.
            out = EMPTY_MAP.to_vec();
        }
        log::record(level, &logger, &message, &out, about.map(|about| &**about));
        Ok(Obj::none(py))
    })
}

/// To the group leader of the process that the code runs for. `False`: that is behind, and whoever knows whether
/// this thread may wait asks `write_behind`.
pub fn write<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let text = args.want(0, "text")?.display();
    let current = current::current(py, &*interp(module)?);
    let leader = leader_of(current.as_ref());
    let written = leader::write(&leader, &text, MayWait::Unknown, current.as_ref());
    Ok(Obj::bool(py, written == Written::Done))
}

/// `write_behind(text, wait)`: waits until the leader has caught up, or drops the text.
pub fn write_behind<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let text = args.want(0, "text")?.display();
    let waits = args.want(1, "wait")?.is_truthy()?;
    let current = current::current(py, &*interp(module)?);
    let leader = leader_of(current.as_ref());
    if waits {
        py.detach(|| leader::write(&leader, &text, may_wait(), current.as_ref()));
    } else {
        leader::write(&leader, &text, MayWait::Never, current.as_ref());
    }
    Ok(Obj::none(py))
}

fn leader_of(current: Option<&Current>) -> ResourceArc<Leader> {
    match current {
        Some(current) => current.slot.leader(),
        None => runtime::leader(),
    }
}

pub fn line_begun<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    current::line_begun();
    Ok(Obj::none(args.py()))
}

pub fn sleep<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let seconds = args.want(0, "seconds")?.as_f64()?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(PyError::new(
            py,
            Builtin::ValueError,
            "seconds must be between 0 and 1e9",
        ));
    }
    let current = current::current(py, &*interp(module)?);
    let stop = py.detach(|| {
        let me = here();
        let end = std::time::Instant::now() + std::time::Duration::from_secs_f64(seconds);
        loop {
            let seen = me.signal();
            if current.as_ref().is_some_and(|current| current.must_stop()) {
                return true;
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            me.wait(seen, Some(left));
        }
    });
    if stop {
        Err(stopped(module))
    } else {
        Ok(Obj::none(py))
    }
}

/// `tracing(original, function)`: `sys.settrace` or `sys.setprofile`, undone at the end of the job.
pub fn tracing<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let (original, function) = (args.want(0, "original")?, args.want(1, "function")?);
    let done = original.call(&[&function])?;
    current::traced();
    Ok(done)
}
