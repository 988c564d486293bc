//! Lines on their way to a descriptor: a bounded buffer, and a thread that writes it.
//!
//! The loop appends and goes on. The thread writes when the buffer has reached `FULL`, or `INTERVAL` after
//! its first line, and may wait for a slow reader as long as it likes: what does not fit into the buffer
//! meanwhile is dropped by whole lines and counted, and the count is a line of its own.
//! Thread: `Sink` the loop's; `access-log` writes. Never: knows Python; writes under the lock.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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
pub struct Sink(Arc<Shared>);

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
        Ok(Sink(shared))
    }

    /// `line` appends one line, if there is room for it. Never waits for the reader.
    pub fn push(&self, line: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.lock();
        let before = state.lines.len();
        if before + LINE > BOUND {
            state.dropped += 1;
            return;
        }
        line(&mut state.lines);
        let reached = before < FULL && state.lines.len() >= FULL;
        drop(state);
        if before == 0 || reached {
            self.0.changed.notify_all();
        }
    }

    /// Has what waits written now, and waits for that; whether all is written.
    pub fn flush(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut state = self.0.lock();
        if !state.lines.is_empty() {
            state.hurries = true;
            self.0.changed.notify_all();
        }
        while state.writes || !state.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.0.wait(state, Some(left));
        }
        true
    }
}

impl Drop for Sink {
    /// What waits is still written; nobody waits for it.
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn piped(shape: Shape) -> (Sink, io::PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        (Sink::start(writer.into(), None, shape).unwrap(), reader)
    }

    fn push(sink: &Sink, text: &str) {
        sink.push(|out| out.extend_from_slice(format!("{text}\n").as_bytes()));
    }

    #[test]
    fn a_line_is_written_without_another_one_after_it() {
        let (sink, reader) = piped(Shape::Text);
        push(&sink, "first");
        let mut lines = BufReader::new(reader).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "first");
        push(&sink, "second");
        assert_eq!(lines.next().unwrap().unwrap(), "second");
    }

    #[test]
    fn what_waits_is_written_when_the_sink_ends() {
        let (sink, mut reader) = piped(Shape::Text);
        for number in 0..100 {
            push(&sink, &format!("line {number}"));
        }
        drop(sink);
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        assert_eq!(all.lines().count(), 100);
        assert!(all.ends_with("line 99\n"));
    }

    #[test]
    fn flush_returns_when_all_is_written() {
        let (sink, mut reader) = piped(Shape::Text);
        push(&sink, "here");
        assert!(sink.flush(LONG));
        let mut five = [0; 5];
        reader.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"here\n");
        assert!(sink.flush(Duration::ZERO));
    }

    #[test]
    fn a_reader_that_does_not_read_holds_up_nobody_and_is_told_what_is_missing() {
        for shape in [Shape::Text, Shape::Json] {
            let (sink, reader) = piped(shape);
            let pushed = 60_000;
            for number in 0..pushed {
                push(&sink, &format!("{number:0>99}"));
            }
            // More than the pipe, the thread and the buffer hold: the rest was dropped at once.
            assert!(!sink.flush(Duration::ZERO));
            drop(sink);
            let mut seen = 0;
            let mut missing = 0;
            for line in BufReader::new(reader).lines() {
                let line = line.unwrap();
                match line.len() {
                    99 => seen += 1,
                    _ => missing += counted(&line, shape),
                }
            }
            assert!(missing > 0);
            assert_eq!(seen + missing, pushed);
        }
    }

    fn counted(line: &str, shape: Shape) -> u64 {
        let number = match shape {
            Shape::Text => line.split(' ').nth(2),
            Shape::Json => line
                .split("\"dropped\":")
                .nth(1)
                .and_then(|rest| rest.split(',').next()),
        };
        number.and_then(|number| number.parse().ok()).unwrap()
    }

    #[test]
    fn lines_of_several_writers_are_whole() {
        let (reader, writer) = io::pipe().unwrap();
        let sinks: Vec<_> = (0..3)
            .map(|_| {
                let fd = writer.try_clone().unwrap();
                Sink::start(fd.into(), None, Shape::Text).unwrap()
            })
            .collect();
        drop(writer);
        let writing = thread::spawn(move || {
            for number in 0..3000 {
                for (at, sink) in sinks.iter().enumerate() {
                    let letter = ["a", "b", "c"][at];
                    push(sink, &letter.repeat(1 + number % 700));
                }
                if number % 500 == 0 {
                    sinks.iter().for_each(|sink| assert!(sink.flush(LONG)));
                }
            }
            sinks.iter().for_each(|sink| assert!(sink.flush(LONG)));
        });
        let mut count = 0;
        for line in BufReader::new(reader).lines() {
            let line = line.unwrap();
            count += 1;
            let first = line.chars().next().unwrap();
            assert!(line.chars().all(|letter| letter == first), "{line}");
        }
        writing.join().unwrap();
        assert_eq!(count, 9000);
    }

    #[test]
    fn a_reader_that_has_left_holds_up_nobody() {
        let (sink, reader) = piped(Shape::Text);
        drop(reader);
        for _ in 0..10_000 {
            push(&sink, &"x".repeat(200));
        }
        assert!(sink.flush(LONG));
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let path = std::env::temp_dir().join(format!("access-{}.log", std::process::id()));
        let moved = path.with_extension("1");
        let open = || {
            std::fs::File::options()
                .append(true)
                .create(true)
                .open(&path)
                .unwrap()
        };
        let sink = Sink::start(open().into(), Some(path.clone()), Shape::Text).unwrap();
        push(&sink, "one");
        assert!(sink.flush(LONG));
        std::fs::rename(&path, &moved).unwrap();
        let mut at = 0;
        // It looks once a second.
        while !path.exists() {
            at += 1;
            push(&sink, &format!("more {at}"));
            assert!(sink.flush(LONG));
            thread::sleep(Duration::from_millis(20));
        }
        let (old, new) = (
            std::fs::read_to_string(&moved).unwrap(),
            std::fs::read_to_string(&path).unwrap(),
        );
        assert!(old.starts_with("one\n"));
        assert_eq!(new, format!("more {at}\n"));
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&moved).unwrap();
    }

    #[test]
    fn a_descriptor_that_does_not_block_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let sink = Sink::start(writer.into(), None, Shape::Text).unwrap();
        for number in 0..4000 {
            push(&sink, &format!("{number:0>99}"));
        }
        drop(sink);
        assert_eq!(BufReader::new(reader).lines().count(), 4000);
    }
}
