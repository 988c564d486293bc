//! The access log: one line per request, made here and written by a thread of its own (`sink`), handed to
//! the logger of a node many at a time (`batch`), or a record of Python's `logging` where a program has
//! configured that.
//!
//! `entry` is taken from the head, `plan` makes a line of it at the end.
//! Thread: the loop's own.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pyrt::error::Builtin;
use pyrt::{Attached, Obj, PyError, PyResult};

use rustix::io::fcntl_dupfd_cloexec;

use super::server::Server;
use crate::event_loop::watch::lend;

mod batch;
mod entry;
mod escape;
mod field;
mod number;
mod output;
mod plan;
mod sink;
mod stamp;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use batch::Batch;
pub use entry::{Asked, Client, Entry};
pub use plan::Outcome;
use plan::Plan;
use sink::Sink;
use stamp::{Moment, Stamp};

/// The status of a request whose client left before the answer had begun, as other servers have it.
pub const LEFT: u16 = 499;

/// Where lines go, as the options say.
pub enum Target<'a> {
    /// A copy of this descriptor; and its path, if it has one.
    Descriptor(i32, Option<&'a str>),
    /// The owner of the server, a record each.
    Records,
    /// The owner of the server, who takes many at a time.
    Batches,
}

enum Way {
    Sink(Sink),
    Records,
    Batches(RefCell<Batch>),
}

pub struct AccessLog {
    pub plan: Plan,
    way: Way,
    stamp: RefCell<Stamp>,
}

fn bad_format<'py>(py: Attached<'py>, why: &str) -> PyError<'py> {
    PyError::new(
        py,
        Builtin::ValueError,
        &format!("access_log_format: {why}"),
    )
}

impl AccessLog {
    /// Whether `new` would take the format.
    pub fn check<'py>(py: Attached<'py>, format: &str) -> PyResult<'py, ()> {
        let plan = Plan::parse(format);
        plan.map(drop).map_err(|why| bad_format(py, &why))
    }

    pub fn new<'py>(py: Attached<'py>, format: &str, to: &Target<'_>) -> PyResult<'py, Self> {
        let plan = match to {
            // Where it ends there is a time already.
            Target::Batches => Plan::parse_untimed(format),
            _ => Plan::parse(format),
        };
        let plan = plan.map_err(|why| bad_format(py, &why))?;
        let way = match to {
            Target::Descriptor(fd, path) => {
                let started = fcntl_dupfd_cloexec(lend(*fd), 3)
                    .map_err(io::Error::from)
                    .and_then(|fd| Sink::start(fd, path.map(PathBuf::from), plan.shape()));
                Way::Sink(started.map_err(|error| PyError::from_io(py, &error))?)
            }
            Target::Records => Way::Records,
            Target::Batches => Way::Batches(RefCell::default()),
        };
        Ok(AccessLog {
            plan,
            way,
            stamp: RefCell::default(),
        })
    }

    /// A filter or handler of `logging` that raises is told of, and holds up no request.
    pub fn write<'py>(
        &self,
        py: Attached<'py>,
        server: &Server,
        entry: &Entry,
        end: Outcome,
    ) -> PyResult<'py, ()> {
        match self.hand_on(py, server, entry, end) {
            Err(error) if error.is_a(Builtin::Exception) => {
                error.unraisable(c"writing the access log");
                Ok(())
            }
            done => done,
        }
    }

    fn hand_on<'py>(
        &self,
        py: Attached<'py>,
        server: &Server,
        entry: &Entry,
        end: Outcome,
    ) -> PyResult<'py, ()> {
        match &self.way {
            Way::Sink(sink) => {
                let at = Moment::now(self.plan.is_exact());
                sink.push(|out| self.line(out, entry, end, at));
            }
            Way::Batches(batch) => {
                let at = Moment::now(true);
                let mut batch = batch.borrow_mut();
                let tell = batch.push(at, |out| self.line(out, entry, end, at));
                drop(batch);
                if tell {
                    server.owner(py)?.call_method(c"access_waits", &[])?;
                }
            }
            Way::Records if self.plan.is_common() => self.record(py, server, entry, end)?,
            Way::Records => {
                let mut line = Vec::new();
                self.line(&mut line, entry, end, Moment::now(self.plan.is_exact()));
                let line = Obj::text(py, String::from_utf8_lossy(&line).trim_end())?;
                server.owner(py)?.call_method(c"access_line", &[&line])?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut Vec<u8>, entry: &Entry, end: Outcome, at: Moment) {
        let mut stamp = self.stamp.borrow_mut();
        self.plan.line(out, entry, end, at, &mut stamp);
    }

    /// With parts that handlers and filters can look at.
    fn record<'py>(
        &self,
        py: Attached<'py>,
        server: &Server,
        entry: &Entry,
        end: Outcome,
    ) -> PyResult<'py, ()> {
        let [client, method, target, version] = plan::parts(entry);
        let status = Obj::int(py, i64::from(end.status))?;
        let parts = [
            &Obj::text(py, &client)?,
            &Obj::text(py, &method)?,
            &Obj::text(py, &target)?,
            &Obj::text(py, &version)?,
            &status,
        ];
        server.owner(py)?.call_method(c"access", &parts)?;
        Ok(())
    }

    /// Whether all lines are written; waits for that, if it is given the time.
    pub fn flush(&self, py: Attached<'_>, most: Duration) -> bool {
        match &self.way {
            Way::Sink(sink) if most.is_zero() => sink.flush(most),
            Way::Sink(sink) => py.detach(|| sink.flush(most)),
            Way::Records | Way::Batches(_) => true,
        }
    }

    /// Lines for the owner, each behind its time, and how many are missing.
    pub fn take(&self) -> (Vec<u8>, u64) {
        match &self.way {
            Way::Batches(batch) => batch.borrow_mut().take(),
            Way::Sink(_) | Way::Records => (Vec::new(), 0),
        }
    }
}
