//! What waits in `py_courier`, counted by the node it is for: each has a bound of its own (I8).
//!
//! A thread that may wait does so, detached, until the courier has caught up. An event loop waits
//! for processes of this node only, which takes as long as the messages do; another node may take
//! any time. `erlang.send` gives up a node that has taken nothing for `SILENCE`; answers and items of
//! streams wait on, since they are for this node.
//!
//! Thread: any that runs Python. `delivered` and `set` run on schedulers: they lock for an instant.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crew::sync::lock;
use rustler::LocalPid;

use crate::erts::{MsgEnv, Raw};
use crate::here::{Thread, here};
use crate::leader::Patience;

/// The lane of processes of this node. Those of others are named by the node.
pub const HERE: &[u8] = b"";

/// So much may wait for a node before threads do.
const WAIT: Mark = Mark {
    messages: 10_000,
    bytes: 32 << 20,
};
/// Before a loop is refused. Higher, so that loops send while threads wait.
const REFUSE: Mark = Mark {
    messages: 2 * WAIT.messages,
    bytes: 2 * WAIT.bytes,
};
/// To where a node must have caught up before anybody goes on.
const CAUGHT_UP: Mark = Mark {
    messages: WAIT.messages / 2,
    bytes: WAIT.bytes / 2,
};
const SILENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct Mark {
    messages: usize,
    bytes: usize,
}

/// Why a message may not be sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// So many messages and bytes wait already.
    Full { messages: usize, bytes: usize },
    /// The sender was told to stop.
    Stopped,
}

/// What its receiver gets if the courier dies with the answer: it waits for one.
pub struct Owed {
    pub to: LocalPid,
    pub env: MsgEnv,
    pub message: Raw,
}

struct Parcel {
    lane: Box<[u8]>,
    bytes: usize,
    owed: Option<Owed>,
}

struct Lane {
    messages: usize,
    bytes: usize,
    /// When something was last delivered.
    heard: Instant,
    /// It has been quiet for `SILENCE`.
    silent: bool,
    waiting: Vec<Arc<Thread>>,
}

/// All that was posted and not delivered.
struct Books {
    courier: Option<LocalPid>,
    /// The number of the next parcel.
    next: u64,
    parcels: BTreeMap<u64, Parcel>,
    lanes: Option<HashMap<Box<[u8]>, Lane>>,
}

static BOOKS: Mutex<Books> = Mutex::new(Books {
    courier: None,
    next: 0,
    parcels: BTreeMap::new(),
    lanes: None,
});

/// Another process is the courier from now on. What its predecessor had is lost: whoever waits for
/// it is to be told.
pub fn set(courier: LocalPid) -> Vec<Owed> {
    let mut books = lock(&BOOKS);
    books.courier = Some(courier);
    for lane in books.lanes.take().into_iter().flatten() {
        lane.1.wake();
    }
    let lost = std::mem::take(&mut books.parcels);
    drop(books);
    lost.into_values()
        .filter_map(|parcel| parcel.owed)
        .collect()
}

pub fn courier() -> Option<LocalPid> {
    lock(&BOOKS).courier
}

/// Counts a message and gives its number. Never waits: for what must be sent.
pub fn count(lane: &[u8], bytes: usize, owed: Option<Owed>) -> u64 {
    lock(&BOOKS).add(lane, bytes, owed)
}

/// The same as soon as there is room.
pub fn enter(
    lane: &[u8],
    bytes: usize,
    patience: Patience,
    must_stop: impl Fn() -> bool,
) -> Result<u64, Refused> {
    room(lane, patience, GivesUp::Yes, must_stop, |books| {
        books.add(lane, bytes, None)
    })
}

/// Waits until a message for a process of this node may be sent, however long the courier takes.
pub fn wait(must_stop: impl Fn() -> bool) {
    let _ = room(HERE, Patience::Waits, GivesUp::No, must_stop, |_| ());
}

/// The courier has sent a message, or dropped it and said so.
pub fn delivered(number: u64) {
    let mut books = lock(&BOOKS);
    let Some(parcel) = books.parcels.remove(&number) else {
        return;
    };
    let lanes = books.lanes.get_or_insert_default();
    if let Some(lane) = lanes.get_mut(&parcel.lane) {
        lane.messages -= 1;
        lane.bytes -= parcel.bytes;
        lane.heard = Instant::now();
        lane.silent = false;
        if !lane.reaches(CAUGHT_UP) {
            lane.wake();
            lane.waiting.clear();
        }
        if lane.messages == 0 {
            lanes.remove(&parcel.lane);
        }
    }
    drop(books);
    drop(parcel);
}

/// Whether a thread waits no longer for a lane that has been quiet for `SILENCE`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivesUp {
    Yes,
    No,
}

/// Runs `go` once the lane has room.
fn room<T>(
    lane: &[u8],
    patience: Patience,
    gives_up: GivesUp,
    must_stop: impl Fn() -> bool,
    go: impl FnOnce(&mut Books) -> T,
) -> Result<T, Refused> {
    let began = Instant::now();
    let waits = patience == Patience::Waits;
    let mark = if patience == Patience::Never {
        REFUSE
    } else {
        WAIT
    };
    loop {
        // Read before the look: what happens after it changes the count.
        let me = waits.then(here);
        let seen = me.as_ref().map(|me| me.signal());
        let mut books = lock(&BOOKS);
        let full = books
            .lanes
            .get_or_insert_default()
            .get_mut(lane)
            .filter(|lane| lane.reaches(mark));
        let Some(full) = full else {
            return Ok(go(&mut books));
        };
        let quiet = full.heard.max(began).elapsed();
        full.silent |= waits && quiet >= SILENCE;
        let refuses = full.silent && gives_up == GivesUp::Yes;
        let (Some(me), Some(seen), false) = (me, seen, refuses) else {
            return Err(Refused::Full {
                messages: full.messages,
                bytes: full.bytes,
            });
        };
        if must_stop() {
            return Err(Refused::Stopped);
        }
        full.waiting.push(me.clone());
        drop(books);
        let left = SILENCE.checked_sub(quiet).filter(|left| !left.is_zero());
        me.wait(seen, Some(left.unwrap_or(SILENCE)));
        if let Some(lane) = lock(&BOOKS)
            .lanes
            .as_mut()
            .and_then(|lanes| lanes.get_mut(lane))
        {
            lane.waiting.retain(|other| !Arc::ptr_eq(other, &me));
        }
    }
}

impl Books {
    fn add(&mut self, lane: &[u8], bytes: usize, owed: Option<Owed>) -> u64 {
        let number = self.next;
        self.next += 1;
        let lanes = self.lanes.get_or_insert_default();
        if !lanes.contains_key(lane) {
            lanes.insert(lane.into(), Lane::new());
        }
        if let Some(counted) = lanes.get_mut(lane) {
            counted.messages += 1;
            counted.bytes += bytes;
        }
        let parcel = Parcel {
            lane: lane.into(),
            bytes,
            owed,
        };
        self.parcels.insert(number, parcel);
        number
    }
}

impl Lane {
    fn new() -> Self {
        Lane {
            messages: 0,
            bytes: 0,
            heard: Instant::now(),
            silent: false,
            waiting: Vec::new(),
        }
    }

    fn reaches(&self, mark: Mark) -> bool {
        self.messages >= mark.messages || self.bytes >= mark.bytes
    }

    fn wake(&self) {
        for thread in &self.waiting {
            thread.wake();
        }
    }
}
