//! Flow control, as asyncio's: `pause_writing` above the high mark, `resume_writing` at the low one.
//!
//! Thread: the loop's own.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};

use super::Channel;
use crate::event_loop::LoopCore;

/// The marks for `pause_writing` and `resume_writing`.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) high: usize,
    pub(crate) low: usize,
}

pub(super) const HIGH: usize = 64 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Limits::of(HIGH)
    }
}

impl Limits {
    /// As asyncio has it by default.
    pub(crate) const fn of(high: usize) -> Self {
        let low = high / 4;
        Limits { high, low }
    }

    /// The arguments `(high=None, low=None)`, where `usual` is the high mark that nobody asked for.
    pub(crate) fn asked<'py>(args: &Args<'_, 'py>, usual: usize) -> PyResult<'py, Self> {
        let (high, low) = (size(args, 0, "high")?, size(args, 1, "low")?);
        let high = high.unwrap_or_else(|| low.map_or(usual as i64, |low| low.saturating_mul(4)));
        let low = low.unwrap_or(high / 4);
        if !(high >= low && low >= 0) {
            let text = format!("high ({high}) must be >= low ({low}) must be >= 0");
            return Err(PyError::new(args.py(), Builtin::ValueError, &text));
        }
        Ok(Limits {
            high: high as usize,
            low: low as usize,
        })
    }

    /// `(low, high)`
    pub(crate) fn shown<'py>(self, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
        let py = args.py();
        let low = Obj::int(py, self.low as i64)?;
        Obj::tuple(py, [low, Obj::int(py, self.high as i64)?].into_iter())
    }
}

fn size<'py>(args: &Args<'_, 'py>, index: usize, name: &str) -> PyResult<'py, Option<i64>> {
    match args.get(index).or_else(|| args.keyword(name)) {
        Some(value) if !value.is_none() => match value.as_i64()? {
            Some(size) => Ok(Some(size)),
            // More than there can ever be is the most there can be.
            None => {
                let zero = Obj::int(args.py(), 0)?;
                let large = value.call_method(c"__gt__", &[&zero])?.is_truthy()?;
                Ok(Some(if large { i64::MAX } else { i64::MIN }))
            }
        },
        _ => Ok(None),
    }
}

/// Tells a protocol to write no more, or again. What it raises comes back with what to say of it.
pub(crate) fn tell<'py>(
    core: &LoopCore,
    protocol: &Obj<'py>,
    pause: bool,
) -> Result<(), (PyError<'py>, &'static str)> {
    let (py, names) = (protocol.py(), &core.types.names);
    let (name, what) = if pause {
        (&names.pause_writing, "protocol.pause_writing() failed")
    } else {
        (&names.resume_writing, "protocol.resume_writing() failed")
    };
    match protocol.call_named(&name.get(py), []) {
        Ok(_) => Ok(()),
        Err(error) => Err((error, what)),
    }
}

/// The exception handler of a transport's loop hears of a failure, unless it ends the program.
#[cold]
pub(crate) fn report<'py>(
    event_loop: &Obj<'py>,
    transport: &Obj<'py>,
    protocol: Option<Obj<'py>>,
    (error, what): (PyError<'py>, &str),
) -> PyResult<'py, ()> {
    let py = transport.py();
    if error.is_a(Builtin::KeyboardInterrupt) || error.is_a(Builtin::SystemExit) {
        return Err(error);
    }
    let context = Obj::dict(py)?;
    context.dict_set_c(c"message", &Obj::text(py, what)?)?;
    context.dict_set_c(c"exception", error.value())?;
    context.dict_set_c(c"transport", transport)?;
    let protocol = protocol.unwrap_or_else(|| Obj::none(py));
    context.dict_set_c(c"protocol", &protocol)?;
    event_loop.call_method(c"call_exception_handler", &[&context])?;
    Ok(())
}

impl Channel {
    /// More waits to be sent.
    pub(crate) fn maybe_pause<'py>(&self, this: &Obj<'py>, size: usize) -> PyResult<'py, ()> {
        if self.protocol_paused.get() || size <= self.limits.get().high {
            return Ok(());
        }
        self.protocol_paused.set(true);
        self.tell(this, true)
    }

    /// Less waits to be sent.
    pub(crate) fn maybe_resume<'py>(&self, this: &Obj<'py>, size: usize) -> PyResult<'py, ()> {
        if !self.protocol_paused.get() || size > self.limits.get().low {
            return Ok(());
        }
        self.protocol_paused.set(false);
        self.tell(this, false)
    }

    fn tell<'py>(&self, this: &Obj<'py>, pause: bool) -> PyResult<'py, ()> {
        let py = this.py();
        match self.protocol.get(py) {
            Some(protocol) => tell(self.core(py), &protocol, pause)
                .or_else(|(error, what)| self.report(this, error, what)),
            None => Ok(()),
        }
    }
}
