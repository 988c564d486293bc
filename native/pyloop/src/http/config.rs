//! What a server was told: limits, timeouts, names.

use pyrt::error::Builtin;
use pyrt::{Obj, PyError, PyResult};

use super::forwarded::Trusted;
use super::head::Limits;
use super::log::{AccessLog, Target};

#[derive(Clone, Debug)]
pub struct Config {
    pub head: Limits,
    /// The largest request body; 0 for any.
    pub body: u64,
    /// Connections at the same time; 0 for any.
    pub connections: usize,
    /// Requests at the same time; 0 for any.
    pub in_flight: usize,
    /// Seconds between two looks at the timeouts.
    pub tick: f64,
    /// Ticks for a head to be complete.
    pub head_ticks: u32,
    /// Ticks that a connection may wait for its next request.
    pub idle_ticks: u32,
    pub root_path: String,
    /// The value of the header `server`; empty for none.
    pub server_header: String,
    pub socket: SocketConfig,
    /// Proxies that say who the client is.
    pub trusted: Trusted,
}

/// What concerns WebSockets.
#[derive(Clone, Copy, Debug)]
pub struct SocketConfig {
    /// The largest message.
    pub most: usize,
    /// permessage-deflate may be agreed on.
    pub packs: bool,
    /// Ticks of silence before a ping; 0 for none.
    pub ping_ticks: u32,
    /// Ticks for an answer to it.
    pub pong_ticks: u32,
}

/// An idle second costs nothing, but less is not needed.
const LONGEST_TICK: f64 = 1.0;
const SHORTEST_TICK: f64 = 0.01;

impl Config {
    /// From the mapping of all options.
    pub fn from<'py>(options: &Obj<'py>) -> PyResult<'py, Self> {
        let count = |name| number(options, name).map(|value| value as usize);
        let head_timeout = seconds(options, "header_timeout")?;
        let idle_timeout = seconds(options, "idle_timeout")?;
        let ping = want(options, "ws_ping_interval")?.as_f64()?;
        let pong = seconds(options, "ws_ping_timeout")?;
        let mut shorter = head_timeout.min(idle_timeout);
        if ping > 0.0 {
            shorter = shorter.min(ping).min(pong);
        }
        let tick = (shorter / 4.0).clamp(SHORTEST_TICK, LONGEST_TICK);
        Ok(Config {
            head: Limits {
                bytes: count("max_header_size")?,
                headers: count("max_headers")?,
            },
            body: number(options, "max_body_size")?,
            connections: count("max_connections")?,
            in_flight: count("max_in_flight")?,
            tick,
            head_ticks: ticks(head_timeout, tick),
            idle_ticks: ticks(idle_timeout, tick),
            root_path: want(options, "root_path")?.as_utf8()?.to_owned(),
            server_header: want(options, "server_header")?.as_utf8()?.to_owned(),
            trusted: trusted(options)?,
            socket: SocketConfig {
                most: count("ws_max_size")?,
                packs: want(options, "ws_deflate")?.is_truthy()?,
                ping_ticks: ticks(ping, tick),
                pong_ticks: ticks(pong, tick),
            },
        })
    }
}

/// The access log that the options ask for.
pub fn access_log<'py>(options: &Obj<'py>) -> PyResult<'py, Option<AccessLog>> {
    let format = want(options, "access_log_format")?;
    if !want(options, "access_log")?.is_truthy()? {
        // A mistake in it must not wait for the day when the log is turned on.
        return AccessLog::check(options.py(), format.as_utf8()?).map(|()| None);
    }
    let path = want(options, "access_log_file")?;
    let fd = want(options, "access_log_fd")?;
    let to = if want(options, "access_log_batches")?.is_truthy()? {
        Target::Batches
    } else if fd.is_none() {
        Target::Records
    } else {
        let fd = number(options, "access_log_fd")?;
        let path = match path.is_none() {
            true => None,
            false => Some(path.as_utf8()?),
        };
        Target::Descriptor(i32::try_from(fd).unwrap_or(i32::MAX), path)
    };
    AccessLog::new(options.py(), format.as_utf8()?, &to).map(Some)
}

fn trusted<'py>(options: &Obj<'py>) -> PyResult<'py, Trusted> {
    Trusted::parse(want(options, "trusted_proxies")?.as_utf8()?).map_err(|word| {
        let text = format!("trusted_proxies: '{word}' is no address or network");
        PyError::new(options.py(), Builtin::ValueError, &text)
    })
}

fn ticks(timeout: f64, tick: f64) -> u32 {
    // Saturates: a very long timeout is none.
    (timeout / tick).ceil() as u32
}

fn want<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, Obj<'py>> {
    let key = Obj::text(options.py(), name)?;
    options.dict_get(&key)?.ok_or_else(|| {
        let text = format!("the option {name} is missing");
        PyError::new(options.py(), Builtin::TypeError, &text)
    })
}

fn number<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, u64> {
    let value = want(options, name)?.as_i64()?;
    value
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| {
            let text = format!("{name} must be zero or a positive number");
            PyError::new(options.py(), Builtin::ValueError, &text)
        })
}

fn seconds<'py>(options: &Obj<'py>, name: &str) -> PyResult<'py, f64> {
    let value = want(options, name)?.as_f64()?;
    if value > 0.0 {
        return Ok(value);
    }
    let text = format!("{name} must be a positive number of seconds");
    Err(PyError::new(options.py(), Builtin::ValueError, &text))
}
