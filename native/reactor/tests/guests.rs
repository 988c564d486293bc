//! Work that others leave with the host of a loop itself, under a lock that the host gives up only to
//! wait: it runs in its order, and the loop does not sleep over it.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reactor::{Host, Key, Reactor, Readiness};

type Left = Mutex<VecDeque<u32>>;

fn lock(left: &Left) -> MutexGuard<'_, VecDeque<u32>> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Keeper<'a> {
    left: &'a Left,
    held: Option<MutexGuard<'a, VecDeque<u32>>>,
    seen: Vec<u32>,
    stdin: io::Stdin,
}

impl Host<u32, ()> for Keeper<'_> {
    fn before_wait(&mut self) {
        self.held = None;
    }

    fn after_wait(&mut self) {
        self.held = Some(lock(self.left));
    }

    fn collect(&mut self, ready: &mut VecDeque<u32>) {
        if let Some(held) = &mut self.held {
            ready.append(held);
        }
    }

    fn run(&mut self, _reactor: &mut Reactor<u32, ()>, work: u32) -> ControlFlow<()> {
        self.seen.push(work);
        ControlFlow::Continue(())
    }

    fn ready(&mut self, _: &mut Reactor<u32, ()>, _: Key, _: Readiness) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn lend(&self, _fd: RawFd) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }
}

#[test]
fn what_is_left_with_the_host_runs_in_order_and_ends_a_sleep() -> io::Result<()> {
    const COUNT: u32 = 20_000;
    let mut reactor = Reactor::new(8)?;
    let (poster, left) = (reactor.poster(), Left::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..COUNT {
                lock(&left).push_back(number);
                poster.nudge();
            }
        });
        let mut host = Keeper {
            left: &left,
            held: Some(lock(&left)),
            seen: Vec::new(),
            stdin: io::stdin(),
        };
        while host.seen.len() < COUNT as usize {
            reactor.turn(&mut host)?;
        }
        assert!(host.seen.iter().copied().eq(0..COUNT));
        Ok(())
    })
}
