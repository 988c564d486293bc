//! Descriptors that are this library's own. A process made by `fork` has copies of them: with one of
//! an epoll set it would watch for its parent, with one of a connection it would keep it open.
//!
//! Thread: any; `each` is for the only thread of a child. Never: takes a lock.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each number. Larger ones are not known: such a process has given up on order.
const WORDS: usize = 1024;
static NUMBERS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// A descriptor that a child of this process is not to have.
#[derive(Debug)]
pub struct Own(OwnedFd);

impl From<OwnedFd> for Own {
    fn from(fd: OwnedFd) -> Self {
        if let Some((word, bit)) = place(fd.as_raw_fd()) {
            // Relaxed: a fork that comes between the opening and this leaves its child a copy.
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Own(fd)
    }
}

impl Drop for Own {
    /// Before it is closed: from then on the number may be another's.
    fn drop(&mut self) {
        if let Some((word, bit)) = place(self.0.as_raw_fd()) {
            word.fetch_and(!bit, Ordering::Release);
        }
    }
}

impl AsFd for Own {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn place(fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(fd).ok()?;
    Some((NUMBERS.get(number / 64)?, 1 << (number % 64)))
}

/// Every number that is open, in a child of a fork.
pub fn each(visit: &mut dyn FnMut(RawFd)) {
    for (index, word) in NUMBERS.iter().enumerate() {
        let mut bits = word.load(Ordering::Acquire);
        while bits != 0 {
            visit((index * 64) as RawFd + bits.trailing_zeros() as RawFd);
            bits &= bits - 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn is_known(number: RawFd) -> bool {
        let mut found = false;
        each(&mut |fd| found |= fd == number);
        found
    }

    #[test]
    fn what_is_open_is_known_and_what_was_closed_is_not() {
        let any = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        // Numbers that no other test is given.
        for number in [963, 1000, 1001] {
            let own = Own::from(rustix::io::fcntl_dupfd_cloexec(&any, number).unwrap());
            assert_eq!(own.as_fd().as_raw_fd(), number);
            assert!(is_known(number));
            drop(own);
            assert!(!is_known(number));
        }
    }
}
