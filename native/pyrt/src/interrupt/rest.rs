//! Whether a thread sleeps in a call, or only waits for the GIL.
//!
//! Thread: any, while the other one lives.

use std::time::{Duration, Instant};

/// What a thread that lives has used of the processor, in nanoseconds, and its number in the system.
fn used(ident: u64) -> Option<(u64, i32)> {
    let mut clock = 0;
    // SAFETY: Python's number of a thread is the system's handle of it; the caller says that it lives.
    let found = unsafe { libc::pthread_getcpuclockid(ident as libc::pthread_t, &mut clock) };
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock, and room for its time.
    if found != 0 || unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    // The number is in the upper bits of the clock's, inverted.
    Some((
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        !(clock >> 3),
    ))
}

/// What is known of a thread's sleep.
#[derive(Clone, Copy)]
pub struct Rest {
    used: u64,
    since: Instant,
}

impl Rest {
    /// Whether a thread that lives sleeps and has not run for at least that long, as far as was seen in
    /// `known`, which is brought up to date.
    pub fn is(ident: u64, least: Duration, known: &mut Option<Rest>) -> bool {
        let Some((used, number)) = used(ident) else {
            return false;
        };
        match known {
            Some(rest) if rest.used == used => rest.since.elapsed() >= least && sleeps(number),
            _ => {
                let since = Instant::now();
                *known = Some(Rest { used, since });
                false
            }
        }
    }
}

/// Whether the system has put a thread to sleep: it is neither running nor about to.
fn sleeps(number: i32) -> bool {
    let told = std::fs::read_to_string(format!("/proc/self/task/{number}/stat"));
    // Its name, in parentheses, may be anything.
    let state = told.as_deref().ok().and_then(|text| text.rsplit_once(") "));
    state.is_some_and(|(_, rest)| rest.starts_with('S'))
}
