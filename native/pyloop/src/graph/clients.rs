//! The Redis clients of this process: one per URL, and the embedded store where there is none.
//!
//! Thread: any; `open` looks a name up and may block.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use dag::redis::{Config, Failure, Redis};

use super::lanes::lanes;

/// As many servers as one process speaks to.
const MOST: usize = 64;

struct Client {
    process: u32,
    redis: Redis,
}

/// The name of the embedded store, in the place of a URL.
const EMBEDDED: &str = "embedded";

/// By URL.
static CLIENTS: Mutex<Option<HashMap<String, Client>>> = Mutex::new(None);
/// What an empty URL stands for.
static DEFAULT: Mutex<String> = Mutex::new(String::new());

/// The server of those who name none; empty for the embedded store.
pub fn set_default(url: &str) {
    let mut place = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    url.clone_into(&mut place);
}

fn resolved(url: &str) -> String {
    let default = || {
        DEFAULT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    };
    let url = if url.is_empty() {
        default()
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
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = clients.get_or_insert_with(HashMap::new);
    let process = std::process::id();
    let known = clients.get(url).filter(|c| c.process == process);
    if known.is_none() && url == EMBEDDED {
        let redis = Redis::embedded();
        let fresh = Client { process, redis };
        clients.insert(url.to_owned(), fresh);
    }
    let known = clients.get(url).filter(|c| c.process == process);
    known.map(|client| client.redis.clone())
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
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = clients.get_or_insert_with(HashMap::new);
    if clients.len() >= MOST {
        let what = format!("{MOST} other servers are in use already");
        return Err(Failure::Config(what));
    }
    let client = Client {
        process: std::process::id(),
        redis: redis.clone(),
    };
    clients.insert(url, client);
    Ok(redis)
}

/// Forgets all clients: connections end with their last user, the embedded store is emptied.
pub fn close() {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = clients.take();
    drop(clients);
}
