//! The Redis clients of this process: one per URL, and the embedded store where there is none.
//!
//! Thread: any; `open` looks a name up and may block.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, TryLockError};

use dag::redis::{Config, Failure, Redis};
use pyrt::fork::{PerProcess, generation};

use super::lanes::lanes;

/// As many servers as one process speaks to.
const MOST: usize = 64;

/// The name of the embedded store, in the place of a URL.
const EMBEDDED: &str = "embedded";

/// By URL.
static CLIENTS: PerProcess<HashMap<String, Redis>> = PerProcess::new();
/// What an empty URL stands for; a child asks its parent's server, by a connection of its own.
static DEFAULT: RwLock<String> = RwLock::new(String::new());

/// The server of those who name none; empty for the embedded store.
pub fn set_default(url: &str) {
    let mut place = DEFAULT.write().unwrap_or_else(PoisonError::into_inner);
    url.clone_into(&mut place);
}

fn default_url() -> String {
    match DEFAULT.try_read() {
        Ok(url) => url.clone(),
        // It was being set when this child was made, and nobody is here to end that.
        Err(TryLockError::WouldBlock) if generation() > 0 => String::new(),
        Err(_) => DEFAULT
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone(),
    }
}

fn resolved(url: &str) -> String {
    let url = if url.is_empty() {
        default_url()
    } else {
        url.to_owned()
    };
    if url.is_empty() {
        EMBEDDED.to_owned()
    } else {
        url
    }
}

/// The client for a URL that was opened before; the embedded store is always there.
pub fn redis(url: &str) -> Option<Redis> {
    known(&resolved(url))
}

fn known(url: &str) -> Option<Redis> {
    let mut clients = CLIENTS.lock();
    if url == EMBEDDED && !clients.contains_key(url) {
        clients.insert(url.to_owned(), Redis::embedded());
    }
    clients.get(url).cloned()
}

/// The client for a URL, made now if there is none. Connects in the background.
pub fn open(url: &str) -> Result<Redis, Failure> {
    let url = resolved(url);
    if let Some(redis) = known(&url) {
        return Ok(redis);
    }
    let config = Config::parse(&url)?;
    let lanes = lanes().map_err(|error| Failure::Config(error.to_string()))?;
    let redis = Redis::open(lanes.io(), config)?;
    let mut clients = CLIENTS.lock();
    if clients.len() >= MOST {
        let what = format!("{MOST} other servers are in use already");
        return Err(Failure::Config(what));
    }
    clients.insert(url, redis.clone());
    Ok(redis)
}

/// Forgets all clients: connections end with their last user, the embedded store is emptied.
pub fn close() {
    let clients = std::mem::take(&mut *CLIENTS.lock());
    // Without the lock: their connections end.
    drop(clients);
}
