//! What waits in `py_courier`, counted by the node it is for: each has a bound of its own (I8).
//!
//! A thread that may wait does so, detached, until the courier has caught up. An event loop waits
//! for processes of this node only, which takes as long as the messages do; another node may take
//! any time. `erlang.send` gives up a node that has taken nothing for 5 s; answers and items of
//! streams wait on, since they are for this node.
//!
//! Thread: any that runs Python. `delivered` and `set` run on schedulers: they lock for an instant.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use crew::backlog::{self, Backlog, Bounds, Look, Mark, MayWait};
use crew::sync::lock;
use rustler::LocalPid;

use crate::erts::{MsgEnv, Raw};
use crate::here::may_wait;

/// The lane of processes of this node. Those of others are named by the node.
pub const HERE: &[u8] = b"";

static BOUNDS: Bounds = Bounds {
    wait: Mark {
        items: 10_000,
        bytes: 32 << 20,
    },
    refuse: Mark {
        items: 20_000,
        bytes: 64 << 20,
    },
    silence: Duration::from_secs(5),
};

/// Why a message may not be sent.
#[derive(Debug)]
pub enum Refused {
    /// So much waits already.
    Full(Mark),
    /// The sender was told to stop.
    Stopped,
}

/// What its receiver gets if the courier dies with the answer: it waits for one.
pub struct Owed {
    pub to: LocalPid,
    /// Of the receiver, if it may not want the message any more; a term of the environment.
    pub alias: Option<Raw>,
    pub env: MsgEnv,
    pub message: Raw,
}

struct Parcel {
    lane: Box<[u8]>,
    bytes: usize,
    owed: Option<Owed>,
}

/// All that was posted and not delivered.
struct Books {
    courier: Option<LocalPid>,
    /// The number of the next parcel.
    next: u64,
    parcels: BTreeMap<u64, Parcel>,
    lanes: Option<HashMap<Box<[u8]>, Backlog>>,
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
    for (_, mut lane) in books.lanes.take().into_iter().flatten() {
        lane.wake();
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
    sender: MayWait,
    must_stop: impl Fn() -> bool,
) -> Result<u64, Refused> {
    room(lane, sender, GivesUp::Yes, must_stop, |books| {
        books.add(lane, bytes, None)
    })
}

/// Waits until a message for a process of this node may be sent, however long the courier takes.
pub fn wait(must_stop: impl Fn() -> bool) {
    let _ = room(HERE, may_wait(), GivesUp::No, must_stop, |_| ());
}

/// The courier has sent a message, or dropped it and said so.
pub fn delivered(number: u64) {
    let mut books = lock(&BOOKS);
    let Some(parcel) = books.parcels.remove(&number) else {
        return;
    };
    let lanes = books.lanes.get_or_insert_default();
    if let Some(lane) = lanes.get_mut(&parcel.lane) {
        if lane.take(parcel.bytes) {
            lane.wake();
        }
        if lane.size().items == 0 {
            lanes.remove(&parcel.lane);
        }
    }
    drop(books);
    drop(parcel);
}

/// There is no courier now. An answer that is owed stays in the books: whoever waits for it hears from the next one.
pub fn unsent(number: u64) {
    let is_owed = |parcel: &Parcel| parcel.owed.is_some();
    if !lock(&BOOKS).parcels.get(&number).is_some_and(is_owed) {
        delivered(number);
    }
}

/// Whether a thread waits no longer for a lane that has been silent for too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivesUp {
    Yes,
    No,
}

/// Runs `go` once the lane has room.
fn room<T>(
    lane: &[u8],
    sender: MayWait,
    gives_up: GivesUp,
    must_stop: impl Fn() -> bool,
    mut go: impl FnMut(&mut Books) -> T,
) -> Result<T, Refused> {
    backlog::enter(sender, |sender| {
        let mut books = lock(&BOOKS);
        let lanes = books.lanes.get_or_insert_default();
        let full = lanes
            .get_mut(lane)
            .map(|lane| (lane.look(sender, false), lane))
            .filter(|(look, _)| *look != Look::Room);
        let Some((look, full)) = full else {
            return Ok(Ok(go(&mut books)));
        };
        let waits = look == Look::Behind || look == Look::Silent && gives_up == GivesUp::No;
        if !waits {
            return Ok(Err(Refused::Full(full.size())));
        }
        if must_stop() {
            return Ok(Err(Refused::Stopped));
        }
        Err(full.enlist(sender))
    })
}

impl Books {
    fn add(&mut self, lane: &[u8], bytes: usize, owed: Option<Owed>) -> u64 {
        let number = self.next;
        self.next += 1;
        let lanes = self.lanes.get_or_insert_default();
        if !lanes.contains_key(lane) {
            lanes.insert(lane.into(), Backlog::new(&BOUNDS));
        }
        if let Some(counted) = lanes.get_mut(lane) {
            counted.add(bytes);
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
