//! Servers of this process that accept from one socket: a connection goes to the one with the fewest.
//!
//! Who accepted it passes it on. Left to itself, the system wakes the loop that went to sleep last, and
//! that one would have them all.
//! Thread: any; a connection arrives on the thread of the loop that serves it.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyrt::{Kept, Obj, PyResult};

use crate::visit::{Visit, Visitors};

/// By the number that the servers were given.
static SHARES: Mutex<Option<HashMap<i64, Share>>> = Mutex::new(None);

#[derive(Default)]
struct Share {
    desks: Vec<Arc<Desk>>,
    /// Counts: who is asked first, where several have as few.
    turn: usize,
}

/// One server, as the others see it.
struct Desk {
    open: Arc<AtomicUsize>,
    /// Passed to it, by itself too, and not there yet.
    underway: AtomicUsize,
    way: Visitors,
    /// Takes the descriptor of a connection. `None`: it has left, and keeps its server no more.
    taker: Mutex<Option<Kept>>,
}

impl Desk {
    fn load(&self) -> usize {
        // Relaxed: what others have, a moment ago.
        self.open.load(Ordering::Relaxed) + self.underway.load(Ordering::Relaxed)
    }
}

/// A server's part in a share, until it is dropped.
pub struct Membership {
    number: i64,
    desk: Arc<Desk>,
    /// Kept since `settle` was called.
    kept: Cell<usize>,
}

fn shares() -> MutexGuard<'static, Option<HashMap<i64, Share>>> {
    SHARES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Membership {
    /// From now on others pass connections to `taker`, on its loop.
    pub fn new(number: i64, open: Arc<AtomicUsize>, way: Visitors, taker: &Obj<'_>) -> Self {
        let desk = Arc::new(Desk {
            open,
            underway: AtomicUsize::new(0),
            way,
            taker: Mutex::new(Some(Kept::new(taker.clone()))),
        });
        let mut shares = shares();
        let share = shares.get_or_insert_default().entry(number).or_default();
        share.desks.push(Arc::clone(&desk));
        Membership {
            number,
            desk,
            kept: Cell::new(0),
        }
    }

    /// Passes a connection to a server that has fewer. Gives it back: it is this one's.
    pub fn pass_on(&self, connection: OwnedFd) -> Result<(), OwnedFd> {
        let place = Arc::new(Mutex::new(Some(connection)));
        while let Some(desk) = self.chosen() {
            desk.underway.fetch_add(1, Ordering::Relaxed);
            let passed = Passed {
                desk: Arc::clone(&desk),
                connection: Arc::clone(&place),
            };
            if desk.way.post(Box::new(passed)) {
                return Ok(());
            }
            // Its loop is closed.
            leave(self.number, &desk);
        }
        self.desk.underway.fetch_add(1, Ordering::Relaxed);
        self.kept.set(self.kept.get() + 1);
        taken(&place).map_or(Ok(()), Err)
    }

    /// All that waited were accepted: those that were kept are with their loop now, as others' are.
    pub fn settle(&self) {
        let kept = self.kept.take();
        self.desk.underway.fetch_sub(kept, Ordering::Relaxed);
    }

    /// The one with the fewest, in turn where there are several; `None`: this one.
    fn chosen(&self) -> Option<Arc<Desk>> {
        let mut shares = shares();
        let share = shares.as_mut()?.get_mut(&self.number)?;
        share.turn = share.turn.wrapping_add(1);
        let first = share.turn % share.desks.len().max(1);
        let (before, from) = share.desks.split_at(first);
        let fewest = from.iter().chain(before).min_by_key(|desk| desk.load())?;
        (!Arc::ptr_eq(fewest, &self.desk)).then(|| Arc::clone(fewest))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        leave(self.number, &self.desk);
    }
}

fn leave(number: i64, desk: &Arc<Desk>) {
    drop(taken(&desk.taker));
    let mut shares = shares();
    let Some(all) = shares.as_mut() else { return };
    let Some(share) = all.get_mut(&number) else {
        return;
    };
    share.desks.retain(|other| !Arc::ptr_eq(other, desk));
    if share.desks.is_empty() {
        all.remove(&number);
    }
}

fn taken<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A connection on its way.
struct Passed {
    desk: Arc<Desk>,
    connection: Arc<Mutex<Option<OwnedFd>>>,
}

impl Visit for Passed {
    fn visit<'py>(self: Box<Self>, event_loop: &Obj<'py>) -> PyResult<'py, ()> {
        let py = event_loop.py();
        self.desk.underway.fetch_sub(1, Ordering::Relaxed);
        let taker = {
            let kept = self.desk.taker.lock();
            let kept = kept.unwrap_or_else(PoisonError::into_inner);
            kept.as_ref().and_then(|kept| kept.get(py))
        };
        let (Some(taker), Some(connection)) = (taker, taken(&self.connection)) else {
            return Ok(());
        };
        let number = Obj::int(py, connection.into_raw_fd().into())?;
        if let Err(error) = taker.call(&[&number]) {
            error.unraisable(c"taking a connection");
        }
        Ok(())
    }
}
