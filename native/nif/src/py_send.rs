//! `send` and `whereis` of `erlang._node`.
//!
//! Thread: any that runs Python, attached.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Obj, PyError, PyResult};
use rustler::LocalPid;

use crate::courier;
use crate::current::{self, Current};
use crate::erts::{MsgEnv, Raw};
use crate::py_module::{NodeHost, interp, pid_object, raised, with_world};
use crate::{fork, log};

pub fn send<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let (dest, term) = (args.want(0, "dest")?, args.want(1, "term")?);
    let interp = interp(module)?;
    let current = current::current(py, &interp);
    let host = NodeHost {
        interp: &interp,
        current: current.as_ref(),
    };
    with_world(host.interp, py, |world| {
        let encode = |object: &Obj<'py>| {
            let mut out = vec![131];
            etf::encode(&world.bound, &host, object, &mut out)
                .map(|summary| (out, summary.widest_map))
                .map_err(|error| raised(py, error))
        };
        let (term, widest) = encode(&term)?;
        let sent = if dest.is_text() {
            let name = dest.as_utf8()?;
            log::with_env(|env| {
                let to = env.whereis(name)?;
                Some(deliver(
                    env,
                    current.as_ref(),
                    Raw::pid(&to),
                    Some(to),
                    &term,
                    widest,
                ))
            })
        } else {
            let (dest, _) = encode(&dest)?;
            if !is_destination(&dest) {
                let text = "dest must be a pid, a registered name, or (name, node) as atoms";
                return Err(PyError::new(py, Builtin::TypeError, text));
            }
            log::with_env(|env| {
                let to = env.decode(&dest)?;
                let local = env.as_local_pid(to);
                Some(deliver(env, current.as_ref(), to, local, &term, widest))
            })
        };
        match sent {
            Some(_) => Ok(Obj::none(py)),
            None => {
                let text = format!("no process is registered as {}", dest.display());
                Err(PyError::new(py, Builtin::ValueError, &text))
            }
        }
    })
}

/// A pid, an alias or a tuple of two, by the tag of its encoding.
fn is_destination(term: &[u8]) -> bool {
    matches!(term, [131, 88 | 90 | 103 | 114, ..] | [131, 104, 2, ..])
}

/// Sends from here where that is allowed, else by way of the courier.
fn deliver(
    env: &mut MsgEnv,
    current: Option<&Current>,
    to: Raw,
    local: Option<LocalPid>,
    term: &[u8],
    widest: usize,
) -> bool {
    let couriered = current.is_some_and(|current| current.ticket.is_couriered());
    match local {
        Some(local) if !couriered && courier::may_build(widest) => match env.decode(term) {
            Some(term) => env.send(&local, term),
            // The courier can't read it either, and says so in the log.
            None => courier::relay_to(env, to, term),
        },
        _ => {
            if let Some(current) = current {
                current.ticket.set_couriered();
            }
            courier::relay_to(env, to, term)
        }
    }
}

pub fn whereis<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    fork::refuse_child(py)?;
    let name = args.want(0, "name")?;
    let name = name.as_utf8()?;
    match log::with_env(|env| env.whereis(name)) {
        Some(pid) => pid_object(module, &pid),
        None => Ok(Obj::none(py)),
    }
}
