//! `erlang._node`: knows which threads import (`erlang._imports`), so that nobody interrupts them.
//!
//! Thread: any that runs Python, attached.

use pyrt::module::Args;
use pyrt::{Obj, PyResult};

use crate::{fork, here};

pub fn importing<'py>(_module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let function = args.want(0, "function")?;
    let rest: Vec<&Obj<'py>> = args.rest(1).iter().map(|arg| &**arg).collect();
    let import = || function.call(&rest);
    match here::known() {
        // Nobody interrupts a forked child, and the lock may be another's there.
        Some(thread) if !fork::is_child() => thread.while_importing(import),
        // A thread of Python's own runs no job.
        _ => import(),
    }
}
