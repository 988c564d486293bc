//! Lines on their way to a descriptor: a bounded buffer, and a thread that writes it.
//!
//! The loop appends and goes on. The thread writes when the buffer has reached `FULL`, or `INTERVAL` after
//! its first line, and may wait for a slow reader as long as it likes: what does not fit into the buffer
//! meanwhile is dropped by whole lines and counted, and the count is a line of its own.
//! Thread: `Sink` the loop's; `access-log` writes. Never: knows Python; writes under the lock; locks in the
//! child of a fork.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyrt::fork::generation;

use super::output::Output;
use super::plan::{LINE, Shape, notice};

/// Lines that wait do so in at most this much memory; the thread may have the same once more.
const BOUND: usize = 1024 * 1024;
/// So much is written without waiting for more.
const FULL: usize = 32 * 1024;
/// No line waits for longer, if it can be written.
const INTERVAL: Duration = Duration::from_millis(100);
/// Writing needs little.
const STACK: usize = 128 * 1024;

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    dropped: u64,
    /// The thread has lines that are not written yet.
    writes: bool,
    /// Somebody waits for all to be written.
    hurries: bool,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The loop's end.
pub struct Sink {
    shared: Arc<Shared>,
    /// Whose thread writes. In the child of a fork there is none, and the lock may be held for ever.
    generation: u32,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let woken = match most {
            None => self.changed.wait(state),
            Some(most) => {
                let waited = self.changed.wait_timeout(state, most);
                waited.map(|(state, _)| state).map_err(|poisoned| {
                    let (state, _) = poisoned.into_inner();
                    PoisonError::new(state)
                })
            }
        };
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until lines are due, and takes them; how many are missing after them. `None`: the end.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.lock();
        while state.lines.is_empty() {
            if state.closed {
                return None;
            }
            state = self.wait(state, None);
        }
        let due = Instant::now() + INTERVAL;
        while state.lines.len() < FULL && !state.hurries && !state.closed {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, Some(left));
        }
        std::mem::swap(lines, &mut state.lines);
        state.writes = true;
        Some(std::mem::take(&mut state.dropped))
    }

    fn written(&self) {
        let mut state = self.lock();
        state.writes = false;
        state.hurries = state.hurries && !state.lines.is_empty();
        drop(state);
        self.changed.notify_all();
    }

    /// The body of the thread.
    fn write_all(&self, mut output: Output, shape: Shape) {
        let (mut lines, mut lost) = (Vec::new(), 0);
        while let Some(dropped) = self.take(&mut lines) {
            lost += dropped + output.write(&lines);
            lines.clear();
            if lost > 0 {
                notice(&mut lines, shape, lost);
                if output.write(&lines) == 0 {
                    lost = 0;
                }
                lines.clear();
            }
            self.written();
        }
    }
}

impl Sink {
    /// `path` is where the descriptor was opened, if that may be moved away: it is opened again then.
    pub fn start(fd: OwnedFd, path: Option<PathBuf>, shape: Shape) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (theirs, output) = (Arc::clone(&shared), Output::new(fd, path));
        let body = move || {
            // A panic is a bug of ours: the lines after it are dropped, and the server goes on.
            let _ = pyrt::contain("access-log", || theirs.write_all(output, shape));
        };
        thread::Builder::new()
            .name("access-log".to_owned())
            .stack_size(STACK)
            .spawn(body)?;
        let generation = generation();
        Ok(Sink { shared, generation })
    }

    fn is_here(&self) -> bool {
        self.generation == generation()
    }

    /// `line` appends one line, if there is room for it. Never waits for the reader.
    pub fn push(&self, line: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_here() {
            return;
        }
        let mut state = self.shared.lock();
        let before = state.lines.len();
        if before + LINE > BOUND {
            state.dropped += 1;
            return;
        }
        line(&mut state.lines);
        let reached = before < FULL && state.lines.len() >= FULL;
        drop(state);
        if before == 0 || reached {
            self.shared.changed.notify_all();
        }
    }

    /// Has what waits written now, and waits for that; whether all is written.
    pub fn flush(&self, most: Duration) -> bool {
        if !self.is_here() {
            return true;
        }
        let until = Instant::now() + most;
        let mut state = self.shared.lock();
        if !state.lines.is_empty() {
            state.hurries = true;
            self.shared.changed.notify_all();
        }
        while state.writes || !state.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.wait(state, Some(left));
        }
        true
    }
}

impl Drop for Sink {
    /// What waits is still written; nobody waits for it.
    fn drop(&mut self) {
        if self.is_here() {
            self.shared.lock().closed = true;
            self.shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
