//! `send` and `whereis` of `erlang._node`.
//!
//! Thread: any that runs Python, attached.

use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Obj, PyError, PyResult, call};
use rustler::LocalPid;

use crew::backlog::{Mark, MayWait};

use crate::courier;
use crate::current::{self, Current};
use crate::erts::{MsgEnv, Raw};
use crate::here::may_wait;
use crate::lanes::{self, Refused};
use crate::py_module::{NodeHost, interp, pid_object, raised, stopped, with_world};
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
    let (to, message) = with_world(host.interp, py, |world| {
        let encode = |object: &Obj<'py>| {
            let mut out = vec![etf::tag::VERSION];
            etf::encode(&world.bound, &host, object, &mut out)
                .map(|summary| (out, summary.widest_map))
                .map_err(|error| raised(py, error))
        };
        let (term, widest) = encode(&term)?;
        let message = Message { term, widest };
        if dest.is_text() {
            return Ok((Destination::Name(dest.as_utf8()?.to_owned()), message));
        }
        let (dest, _) = encode(&dest)?;
        if !etf::is_destination(&dest) {
            let text = "dest must be a pid, a registered name, or (name, node) as atoms";
            return Err(PyError::new(py, Builtin::TypeError, text));
        }
        Ok((Destination::Term(dest), message))
    })?;
    let couriered = current
        .as_ref()
        .is_some_and(|current| current.ticket.is_couriered());
    match log::with_env(|env| to.send_here(env, &message, couriered)) {
        Sent::Yes => Ok(Obj::none(py)),
        Sent::Nobody => {
            let text = format!("no process is registered as {}", dest.display());
            Err(PyError::new(py, Builtin::ValueError, &text))
        }
        Sent::Not => {
            if let Some(current) = &current {
                current.ticket.set_couriered();
            }
            by_courier(module, current.as_ref(), &to, &message)
        }
    }
}

/// A term in its encoding, and the widest map in it.
struct Message {
    term: Vec<u8>,
    widest: usize,
}

enum Destination {
    Name(String),
    /// In its encoding.
    Term(Vec<u8>),
}

enum Sent {
    Yes,
    /// There is no such process.
    Nobody,
    /// It must go by the courier.
    Not,
}

impl Destination {
    /// As a term, and as a process of this node.
    fn find(&self, env: &MsgEnv) -> Option<(Raw, Option<LocalPid>)> {
        match self {
            Destination::Name(name) => env.whereis(name).map(|pid| (Raw::pid(&pid), Some(pid))),
            Destination::Term(bytes) => {
                let term = env.decode(bytes)?;
                Some((term, env.as_local_pid(term)))
            }
        }
    }

    /// Sends from here where that is allowed.
    fn send_here(&self, env: &mut MsgEnv, message: &Message, couriered: bool) -> Sent {
        match self.find(env) {
            None => Sent::Nobody,
            Some((_, Some(local))) if !couriered && courier::may_build(message.widest) => {
                match env.decode(&message.term) {
                    Some(term) => {
                        env.send(&local, term);
                        Sent::Yes
                    }
                    // The courier can't read it either, and says so in the log.
                    None => Sent::Not,
                }
            }
            Some(_) => Sent::Not,
        }
    }

    /// The node that takes it. A process of this one may be named by its node, too.
    fn lane(&self) -> &[u8] {
        match self {
            Destination::Name(_) => lanes::HERE,
            Destination::Term(term) if log::with_env(|env| is_local(env, term)) => lanes::HERE,
            Destination::Term(term) => etf::node_of_destination(term).unwrap_or(lanes::HERE),
        }
    }
}

fn is_local(env: &MsgEnv, term: &[u8]) -> bool {
    env.decode(term)
        .is_some_and(|term| env.as_local_pid(term).is_some())
}

/// Waits for room; an event loop does not wait for another node.
fn by_courier<'py>(
    module: &Obj<'py>,
    current: Option<&Current>,
    to: &Destination,
    message: &Message,
) -> PyResult<'py, Obj<'py>> {
    let py = module.py();
    let lane = to.lane();
    let bytes = message.term.len();
    let must_stop = || current.is_some_and(Current::must_stop);
    let mut room = lanes::enter(lane, bytes, MayWait::Unknown, must_stop);
    if room.is_err() {
        room = if lane != lanes::HERE && runs_loop(py)? {
            lanes::enter(lane, bytes, MayWait::Never, must_stop)
        } else {
            py.detach(|| lanes::enter(lane, bytes, may_wait(), must_stop))
        };
    }
    match room {
        Ok(number) => {
            let sent = log::with_env(|env| {
                let (to, _) = to.find(env)?;
                Some(courier::relay_to(env, number, to, &message.term))
            });
            if sent.is_none() {
                // It was registered a moment ago.
                lanes::delivered(number);
            }
            Ok(Obj::none(py))
        }
        Err(Refused::Stopped) => Err(stopped(module)),
        Err(Refused::Full(Mark { items, bytes })) => {
            let whom = match lane {
                lanes::HERE => "processes of this node".to_owned(),
                node => format!("the node {}", String::from_utf8_lossy(node)),
            };
            let text =
                format!("{items} messages, {bytes} bytes, wait for {whom}: this one was not sent");
            Err(PyError::new(py, Builtin::OverflowError, &text))
        }
    }
}

fn runs_loop(py: Attached<'_>) -> PyResult<'_, bool> {
    let boot = call::import_c(py, c"erlang._boot")?;
    boot.call_method(c"runs_loop", &[])?.is_truthy()
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
