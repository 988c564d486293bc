//! What a server was told: limits, timeouts, names.

use pyrt::error::Builtin;
use pyrt::{Obj, PyError, PyResult};

use super::forwarded::Trusted;
use super::head::Limits;
use super::log::{AccessLog, Target};
use super::options::{Given, Read, want};

#[derive(Clone, Debug)]
pub struct Config {
    pub given: Given,
    pub head: Limits,
    pub ticks: Ticks,
    /// Proxies that say who the client is.
    pub trusted: Trusted,
}

/// The times that are given, counted by looks at them.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// Seconds between two looks.
    pub length: f64,
    /// For a head to be complete.
    pub head: u32,
    /// That a connection may wait for its next request.
    pub idle: u32,
    /// Of silence before a WebSocket is pinged; 0 for never.
    pub ping: u32,
    /// For an answer to that.
    pub pong: u32,
}

/// An idle second costs nothing, but less is not needed.
const LONGEST_TICK: f64 = 1.0;
const SHORTEST_TICK: f64 = 0.01;

impl Config {
    /// From the mapping of all options.
    pub fn from<'py>(options: &Obj<'py>) -> PyResult<'py, Self> {
        let given = Given::from(options)?;
        Ok(Config {
            head: Limits {
                bytes: given.max_header_size as usize,
                headers: given.max_headers as usize,
            },
            ticks: Ticks::of(&given),
            trusted: trusted(options, &given)?,
            given,
        })
    }
}

impl Ticks {
    fn of(given: &Given) -> Self {
        let mut shorter = given.header_timeout.min(given.idle_timeout);
        if given.ws_ping_interval > 0.0 {
            shorter = shorter.min(given.ws_ping_interval);
            shorter = shorter.min(given.ws_ping_timeout);
        }
        let length = (shorter / 4.0).clamp(SHORTEST_TICK, LONGEST_TICK);
        // Saturates: a very long timeout is none.
        let ticks = |seconds: f64| (seconds / length).ceil() as u32;
        Ticks {
            length,
            head: ticks(given.header_timeout),
            idle: ticks(given.idle_timeout),
            ping: ticks(given.ws_ping_interval),
            pong: ticks(given.ws_ping_timeout),
        }
    }
}

/// The access log that the options ask for.
pub fn access_log<'py>(options: &Obj<'py>, given: &Given) -> PyResult<'py, Option<AccessLog>> {
    let format = given.access_log_format.as_str();
    if !given.access_log {
        // A mistake in it must not wait for the day when the log is turned on.
        return AccessLog::check(options.py(), format).map(|()| None);
    }
    let path = want(options, "access_log_file")?;
    let fd = want(options, "access_log_fd")?;
    let to = if want(options, "access_log_batches")?.is_truthy()? {
        Target::Batches
    } else if fd.is_none() {
        Target::Records
    } else {
        let fd = u64::read(options, "access_log_fd")?;
        let path = match path.is_none() {
            true => None,
            false => Some(path.as_utf8()?),
        };
        Target::Descriptor(i32::try_from(fd).unwrap_or(i32::MAX), path)
    };
    AccessLog::new(options.py(), format, &to).map(Some)
}

fn trusted<'py>(options: &Obj<'py>, given: &Given) -> PyResult<'py, Trusted> {
    Trusted::parse(&given.trusted_proxies).map_err(|word| {
        let text = format!("trusted_proxies: '{word}' is no address or network");
        PyError::new(options.py(), Builtin::ValueError, &text)
    })
}
