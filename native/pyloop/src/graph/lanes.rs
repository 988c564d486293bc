//! The lanes that all graphs of this process share, started with the first run.
//!
//! Thread: any. After a fork the child starts its own: threads do not come along.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use dag::{Error, Lanes};

/// Runs that may go on at once; more are refused.
const MOST_RUNS: usize = 10_000;

struct Started {
    process: u32,
    lanes: Arc<Lanes>,
}

static LANES: Mutex<Option<Started>> = Mutex::new(None);

pub fn lanes() -> Result<Arc<Lanes>, Error> {
    let mut place = LANES.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(started) = &*place
        && started.process == process
    {
        return Ok(started.lanes.clone());
    }
    let threads = available_parallelism().map_or(2, usize::from);
    let lanes = Arc::new(Lanes::start(threads, MOST_RUNS)?);
    let started = Started {
        process,
        lanes: lanes.clone(),
    };
    // The parent's: its threads are not here, so nobody could wait for their end.
    std::mem::forget(place.replace(started));
    Ok(lanes)
}
