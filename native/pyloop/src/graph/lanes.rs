//! The lanes that all graphs of this process share, started with the first run.
//!
//! Thread: any. After a fork the child starts its own: threads do not come along.

use std::sync::Arc;
use std::thread::available_parallelism;

use dag::{Error, Lanes};
use pyrt::fork::PerProcess;

/// Runs that may go on at once; more are refused.
const MOST_RUNS: usize = 10_000;

static LANES: PerProcess<Option<Arc<Lanes>>> = PerProcess::new();

pub fn lanes() -> Result<Arc<Lanes>, Error> {
    let mut place = LANES.lock();
    if let Some(lanes) = &*place {
        return Ok(lanes.clone());
    }
    let threads = available_parallelism().map_or(2, usize::from);
    let lanes = Arc::new(Lanes::start(threads, MOST_RUNS)?);
    *place = Some(lanes.clone());
    Ok(lanes)
}
