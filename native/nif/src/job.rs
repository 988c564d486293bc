//! A job: what the caller asked for, in bytes of its own, and where the answer goes.
//!
//! Thread: owned by one thread at a time: submitter, queue, runner. Reused with its environment.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use pyrt::Kept;
use pyrt::buffer::Memory;
use rustler::types::atom::Atom;
use rustler::{LocalPid, ResourceArc, Term};

use crate::dag_python::NodeCall;
use crate::erts::{MsgEnv, Raw, binary_of, first_of_pair};
use crate::event_loop::Loop;
use crate::gather::Part;
use crate::given::Given;
use crate::numbers::number;
use crate::pool::Pool;
use crate::refs::Decodes;
use crate::release;
use crate::slot::{Namespace, Slot};
use crate::stream::{Running, Stream};
use crate::ticket::Ticket;
use crate::vars::Vars;
use crew::Priority;
use crew::sync::lock;

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Call,
    Eval,
    Exec,
    Collect,
    CollectEval,
    Stream,
    StreamEval,
    /// A node of a graph; never asked for by number.
    Node,
    /// A call whose value is awaited.
    Async,
    /// A call whose items are collected, also those of `async for`.
    AsyncCollect,
    /// A stream whose items a loop takes; becomes that when the call has given them.
    AsyncStream,
}

impl Op {
    pub fn from_code(code: u32) -> Option<Self> {
        const CALL: u32 = number("OP_CALL");
        const EVAL: u32 = number("OP_EVAL");
        const EXEC: u32 = number("OP_EXEC");
        const COLLECT: u32 = number("OP_COLLECT");
        const COLLECT_EVAL: u32 = number("OP_COLLECT_EVAL");
        const STREAM: u32 = number("OP_STREAM");
        const STREAM_EVAL: u32 = number("OP_STREAM_EVAL");
        const ASYNC: u32 = number("OP_ASYNC");
        const ASYNC_COLLECT: u32 = number("OP_ASYNC_COLLECT");
        Some(match code {
            CALL => Op::Call,
            EVAL => Op::Eval,
            EXEC => Op::Exec,
            COLLECT => Op::Collect,
            COLLECT_EVAL => Op::CollectEval,
            STREAM => Op::Stream,
            STREAM_EVAL => Op::StreamEval,
            ASYNC => Op::Async,
            ASYNC_COLLECT => Op::AsyncCollect,
            _ => return None,
        })
    }
}

/// Wishes of the caller, one bit each.
#[derive(Clone, Copy, Default, Debug)]
pub struct Flags(pub u32);

impl Flags {
    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// Give an object reference, don't convert.
    pub fn return_ref(self) -> bool {
        self.has(const { number("FLAG_RETURN_REF") })
    }

    /// The slot has something to tell about this job.
    pub fn about(self) -> bool {
        self.has(const { number("FLAG_ABOUT") })
    }

    /// It may be given a deadline.
    pub fn timed(self) -> bool {
        self.has(const { number("FLAG_TIMED") })
    }

    /// A module that refuses the interpreter is told as `refused`: the caller asks the main one.
    pub fn fallback(self) -> bool {
        self.has(const { number("FLAG_FALLBACK") })
    }

    /// Before what else waits for the pool.
    pub fn priority(self) -> Priority {
        if self.has(const { number("FLAG_HIGH") }) {
            Priority::High
        } else {
            Priority::Normal
        }
    }

    /// `{Type, Message, Map}` on an exception.
    pub fn traceback(self) -> bool {
        self.has(const { number("FLAG_TRACEBACK") })
    }
}

/// Where the answer goes.
pub enum Reply {
    /// `{Key, Answer}` to the process of the slot, which waits for it.
    Key(Raw),
    /// `{Tag, Name, Answer}` to a process whose user reads it.
    Message { to: LocalPid, tag: Atom, name: Name },
    /// The place among the answers of a gather.
    Part(Part),
    /// A stream's own messages.
    Stream {
        to: LocalPid,
        stream: Running,
        reference: ResourceArc<TicketRef>,
    },
    /// A node of a graph.
    Node(Box<NodeCall>),
    /// Nobody waits; a failure is logged.
    Nobody,
}

/// What a message is known by.
pub enum Name {
    Reference(ResourceArc<TicketRef>),
    /// The caller's own choice, in the job's environment.
    Given {
        term: Raw,
        _given: Option<Given>,
    },
}

impl Name {
    pub fn term(&self, env: &MsgEnv) -> Raw {
        match self {
            Name::Reference(reference) => env.resource(reference),
            Name::Given { term, .. } => *term,
        }
    }
}

/// What `spawn_call` and `stream_start` give out: a reference by which the work is cancelled.
pub struct TicketRef {
    pub ticket: Arc<Ticket>,
    pub stream: Option<Arc<Stream>>,
}

#[rustler::resource_impl]
impl rustler::Resource for TicketRef {}

/// Where the bytes of a job lie.
enum Payload {
    /// Copied, small.
    Copied,
    /// A part of what was copied for many jobs.
    Shared(Arc<Vec<u8>>, Range<usize>),
    /// Segments of `term_to_iovec`: binaries referenced by an environment that views may keep.
    Lent(Arc<Lent>),
}

/// Binaries of the caller, referenced, not copied.
pub struct Lent {
    _env: Mutex<MsgEnv>,
    parts: Vec<(*const u8, usize)>,
}

// SAFETY: the memory is that of reference-counted binaries held by `_env`; it is only read.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

// SAFETY: `_env` holds the binaries, which never move and never change.
unsafe impl Memory for Lent {
    fn owns(&self, part: &[u8]) -> bool {
        let part = part.as_ptr_range();
        self.parts.iter().any(|&(data, len)| {
            // The end of a part: one past its last byte, as in any slice.
            data <= part.start && part.end <= data.wrapping_add(len)
        })
    }
}

pub struct Job {
    pub env: MsgEnv,
    bytes: Vec<u8>,
    payload: Payload,
    pub op: Op,
    pub flags: Flags,
    pub reply: Reply,
    pub ticket: Arc<Ticket>,
    pub slot: ResourceArc<Slot>,
    pub pool: Arc<Pool>,
    /// Keeps what the bytes may name, until they are decoded.
    pub decodes: Option<Decodes>,
    /// The loop that awaits what the call gives.
    pub event_loop: Option<Arc<Loop>>,
    /// What the call gave, on its way to that loop.
    pub awaitable: Option<Kept>,
}

/// The bytes of a payload: `{Bytes, Encoded}` has the terms beside their encoding, so that the objects that the
/// bytes name live as long as the NIF runs, which admits the job.
pub fn bytes_of(payload: Term<'_>) -> Term<'_> {
    first_of_pair(payload).unwrap_or(payload)
}

/// Over this the bytes of a job are given back to the allocator after use.
const KEEP_BYTES: usize = 64 << 10;

/// Jobs without a slot to wait in.
static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());
const MAX_SPARE: usize = 256;

/// The parts of a job worth keeping.
#[derive(Default)]
struct Spare {
    env: MsgEnv,
    bytes: Vec<u8>,
}

/// What a new job is made of.
pub struct Order {
    pub op: Op,
    pub flags: Flags,
    pub slot: ResourceArc<Slot>,
    pub pool: Arc<Pool>,
}

impl Job {
    /// The names and variables it sees: its context's, or those of its calling process.
    pub fn namespace(&self) -> &Namespace {
        match &self.pool.namespace {
            Some(namespace) => namespace,
            None => self.slot.namespace(),
        }
    }

    pub fn vars(&self) -> &Arc<Vars> {
        self.namespace().vars()
    }

    /// A job with an empty payload; `fill` comes next.
    pub fn new(order: Order) -> Box<Self> {
        if let Some(mut job) = order.slot.take_spare() {
            job.op = order.op;
            job.flags = order.flags;
            job.slot = order.slot;
            job.pool = order.pool;
            job.ticket = Ticket::new(order.flags.timed());
            return job;
        }
        let spare = lock(&SPARE).pop().unwrap_or_default();
        Self::with(order, spare)
    }

    /// The same for one of many at once: they would only get in each other's way at what was kept.
    pub fn fresh(order: Order) -> Box<Self> {
        Self::with(order, Spare::default())
    }

    fn with(order: Order, Spare { env, bytes }: Spare) -> Box<Self> {
        Box::new(Job {
            env,
            bytes,
            payload: Payload::Copied,
            op: order.op,
            flags: order.flags,
            reply: Reply::Nobody,
            ticket: Ticket::new(order.flags.timed()),
            slot: order.slot,
            pool: order.pool,
            decodes: None,
            event_loop: None,
            awaitable: None,
        })
    }

    /// Takes the bytes of `term`: a binary is copied, a list of binaries is referenced.
    pub fn fill(&mut self, term: Term<'_>) -> bool {
        let term = bytes_of(term);
        if let Some(bytes) = binary_of(term) {
            self.bytes.extend_from_slice(bytes);
            return true;
        }
        let Ok(items) = term.decode::<rustler::ListIterator>() else {
            return false;
        };
        let env = MsgEnv::new();
        let mut parts = Vec::new();
        for item in items {
            match env.bytes_of(env.copy(item)) {
                Some(part) => parts.push(part),
                None => return false,
            }
        }
        self.payload = Payload::Lent(Arc::new(Lent {
            _env: Mutex::new(env),
            parts,
        }));
        true
    }

    /// Takes bytes that were copied for this one and others.
    pub fn share(&mut self, bytes: &Arc<Vec<u8>>, range: Range<usize>) {
        self.payload = Payload::Shared(bytes.clone(), range);
    }

    /// The payload as slices.
    pub fn segments(&self) -> Segments<'_> {
        match &self.payload {
            Payload::Copied => Segments::One(&self.bytes),
            Payload::Shared(bytes, range) => {
                Segments::One(bytes.get(range.clone()).unwrap_or_default())
            }
            Payload::Lent(lent) => Segments::Many(
                lent.parts
                    .iter()
                    // SAFETY: memory of binaries that `lent` holds, never written.
                    .map(|&(data, len)| unsafe { std::slice::from_raw_parts(data, len) })
                    .collect(),
            ),
        }
    }

    /// The first of those slices.
    pub fn first_segment(&self) -> &[u8] {
        match &self.payload {
            Payload::Copied => &self.bytes,
            Payload::Shared(bytes, range) => bytes.get(range.clone()).unwrap_or_default(),
            Payload::Lent(lent) => match lent.parts.first() {
                // SAFETY: memory of a binary that `lent` holds, never written.
                Some(&(data, len)) => unsafe { std::slice::from_raw_parts(data, len) },
                None => &[],
            },
        }
    }

    /// What keeps the memory of a segment alive after the job, for views.
    pub fn segment_owner(&self) -> Option<Arc<dyn Memory>> {
        match &self.payload {
            Payload::Copied | Payload::Shared(..) => None,
            Payload::Lent(lent) => Some(lent.clone()),
        }
    }

    /// After its end: what can be used again is kept, in the slot or for anyone.
    pub fn recycle(mut self: Box<Self>) {
        self.env.clear();
        self.payload = Payload::Copied;
        self.reply = Reply::Nobody;
        self.decodes = None;
        self.event_loop = None;
        if self.awaitable.take().is_some() {
            release::soon();
        }
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes = Vec::new();
        }
        if !self.env.is_made() && self.bytes.capacity() == 0 {
            return;
        }
        let slot = self.slot.clone();
        let Some(job) = slot.give_spare(self) else {
            return;
        };
        let mut spare = lock(&SPARE);
        if spare.len() < MAX_SPARE {
            let Job { env, bytes, .. } = *job;
            spare.push(Spare { env, bytes });
        }
    }
}

pub enum Segments<'a> {
    One(&'a [u8]),
    Many(Vec<&'a [u8]>),
}
