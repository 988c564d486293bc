//! How threads of the pool sleep, and how a push wakes one of them.
//!
//! Thread: `wake_one` any; `sleep` the pool's. Never: holds the lock while work is looked for.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex, lock, wait};

#[derive(Default)]
struct Bell {
    /// Wakes that nobody has taken yet; never more than there are sleepers.
    tokens: usize,
    stopped: bool,
}

pub(crate) struct Sleepers {
    /// Threads that sleep or are about to.
    idle: AtomicUsize,
    bell: Mutex<Bell>,
    rung: Condvar,
}

impl Sleepers {
    pub fn new() -> Self {
        Sleepers {
            idle: AtomicUsize::new(0),
            bell: Mutex::new(Bell::default()),
            rung: Condvar::new(),
        }
    }

    /// After a push.
    pub fn wake_one(&self) {
        // Pairs with the fence in `sleep`: either this sees the sleeper, or he sees the push.
        fence(Ordering::SeqCst);
        let idle = self.idle.load(Ordering::Relaxed);
        if idle == 0 {
            return;
        }
        let mut bell = lock(&self.bell);
        if bell.tokens < idle {
            bell.tokens += 1;
            drop(bell);
            self.rung.notify_one();
        }
    }

    /// Sleeps until a wake, unless there is work already. `false`: the pool has stopped.
    pub fn sleep(&self, has_work: impl Fn() -> bool) -> bool {
        self.idle.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake_one`.
        fence(Ordering::SeqCst);
        let found = has_work();
        let mut bell = lock(&self.bell);
        while !found && bell.tokens == 0 && !bell.stopped {
            bell = wait(&self.rung, bell);
        }
        // Who found work himself leaves the wake to the one it was meant for.
        if !found {
            bell.tokens = bell.tokens.saturating_sub(1);
        }
        self.idle.fetch_sub(1, Ordering::Relaxed);
        !bell.stopped
    }

    pub fn stop(&self) {
        lock(&self.bell).stopped = true;
        self.rung.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        lock(&self.bell).stopped
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn no_push_is_slept_through() {
        loom::model(|| {
            let sleepers = Arc::new(Sleepers::new());
            let work = Arc::new(AtomicUsize::new(0));
            let pushers: Vec<_> = (0..2)
                .map(|_| {
                    let (sleepers, work) = (sleepers.clone(), work.clone());
                    thread::spawn(move || {
                        work.fetch_add(1, Ordering::Relaxed);
                        sleepers.wake_one();
                    })
                })
                .collect();
            let mut done = 0;
            while done < 2 {
                let here = work.swap(0, Ordering::Relaxed);
                done += here;
                if here == 0 && done < 2 {
                    assert!(sleepers.sleep(|| work.load(Ordering::Relaxed) > 0));
                }
            }
            for pusher in pushers {
                assert!(pusher.join().is_ok());
            }
        });
    }

    #[test]
    fn stop_wakes_a_sleeper() {
        loom::model(|| {
            let sleepers = Arc::new(Sleepers::new());
            let sleeping = {
                let sleepers = sleepers.clone();
                thread::spawn(move || while sleepers.sleep(|| false) {})
            };
            sleepers.stop();
            assert!(sleeping.join().is_ok());
        });
    }
}
