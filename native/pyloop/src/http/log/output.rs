//! Where lines are written: a descriptor that may block, may be full, and may be a file that others move.
//!
//! Whole lines go out by one write of at most `PIPE_BUF`, which the system does not mix with the writes of
//! other processes.
//! Thread: `access-log`.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{fstat, stat};
use rustix::io::Errno;

use super::plan::LINE;

/// Time between two looks at where a file is.
const LOOK: Duration = Duration::from_secs(1);
/// Who may use a file that is made: as `erlang.serve._access` has it.
const MODE: u32 = 0o644;

pub struct Output {
    fd: OwnedFd,
    path: Option<PathBuf>,
    looked: Instant,
    /// The last line that was written has no end.
    torn: bool,
}

impl Output {
    pub fn new(fd: OwnedFd, path: Option<PathBuf>) -> Self {
        Output {
            fd,
            path,
            looked: Instant::now(),
            torn: false,
        }
    }

    /// Waits as long as it takes; how many lines could not be written.
    pub fn write(&mut self, lines: &[u8]) -> u64 {
        self.look();
        let (mut rest, mut lost) = (lines, 0);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(whole(rest));
            lost += self.piece(now);
            rest = later;
        }
        lost
    }

    fn piece(&mut self, lines: &[u8]) -> u64 {
        if self.torn && self.all(b"\n") == 1 {
            self.torn = false;
        }
        let written = if self.torn { 0 } else { self.all(lines) };
        let (done, left) = lines.split_at(written);
        self.torn |= !left.is_empty() && done.last().is_some_and(|last| *last != b'\n');
        left.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// How much was written before an error.
    fn all(&self, data: &[u8]) -> usize {
        let mut at = 0;
        while at < data.len() {
            match rustix::io::write(&self.fd, &data[at..]) {
                Ok(0) => break,
                Ok(len) => at += len,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut one = [PollFd::new(&self.fd, PollFlags::OUT)];
                    // Whatever it says, the next write knows better.
                    let _ = poll(&mut one, None);
                }
                Err(_) => break,
            }
        }
        at
    }

    /// A file that is not at its path any more was moved away by somebody who keeps logs.
    fn look(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| self.looked.elapsed() >= LOOK) else {
            return;
        };
        self.looked = Instant::now();
        let same = match (stat(path), fstat(&self.fd)) {
            (Ok(there), Ok(ours)) => there.st_ino == ours.st_ino && there.st_dev == ours.st_dev,
            _ => false,
        };
        let mut options = File::options();
        options.append(true).create(true).mode(MODE);
        if !same && let Ok(file) = options.open(path) {
            self.fd = file.into();
            self.torn = false;
        }
    }
}

/// The length of as many whole lines as one write may have.
fn whole(lines: &[u8]) -> usize {
    if lines.len() <= LINE {
        return lines.len();
    }
    let end = lines[..LINE].iter().rposition(|byte| *byte == b'\n');
    end.map_or(LINE, |end| end + 1)
}
