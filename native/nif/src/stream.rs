//! A stream: a generator whose items go to a process as messages, in slices and within a window.
//!
//! Thread: attached, a pool's thread. `acknowledge` is called by schedulers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyrt::context::Entered;
use pyrt::{Kept, Obj, PyResult};
use rustler::ResourceArc;

use crate::ask::Asked;
use crate::atoms;
use crate::callback;
use crate::courier::Wanted;
use crate::erts::{MsgEnv, Raw};
use crate::event_loop;
use crate::failure::Failure;
use crate::here::Thread;
use crate::interp::World;
use crate::job::{Job, Op, Reply, TicketRef};
use crate::release;
use crate::reply::{self, Answer};
use crate::run::{self, JobHost};
use crate::ticket::Ticket;
use crate::vars;
use crew::sync::lock;
use crew::{Credits, Parked};

/// How long a stream keeps its thread before others have their turn.
pub const SLICE: Duration = Duration::from_millis(1);

pub struct Stream {
    /// How far it may be ahead of its reader.
    pub credits: Credits,
    iterator: Mutex<Option<Arc<Kept>>>,
    /// The context its items are made in.
    context: Mutex<Option<Arc<Kept>>>,
    /// A task that waits for the reader.
    waits: Parked<Asked>,
}

/// Held by the job of a stream: when that is over, in whatever way, the generator is let go (and
/// its `finally` runs), though the reader may still have its reference.
pub struct Running(pub Arc<Stream>);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.waits.take());
        let context = lock(&self.0.context).take();
        drop(context);
        let iterator = lock(&self.0.iterator).take();
        if let Some(iterator) = iterator {
            release::end(iterator);
            release::soon();
        }
    }
}

impl Stream {
    /// `window`: at most so many unacknowledged items; `None`: as many as there are.
    pub fn new(window: Option<u32>) -> Arc<Self> {
        Arc::new(Stream {
            credits: Credits::new(window),
            iterator: Mutex::new(None),
            context: Mutex::new(None),
            waits: Parked::default(),
        })
    }

    /// The reader has taken `count` items.
    pub fn acknowledge(&self, ticket: &Ticket, count: u32) {
        self.credits.add(count);
        if let Some(job) = ticket.unpark() {
            job.pool.clone().resume(job);
        }
        go_on(self.waits.take());
    }

    /// The task goes on when the reader wants more: at once if that was between the last look and this.
    pub fn wait_for_room(&self, asked: Asked) {
        go_on(self.waits.park(asked, || self.credits.has()));
    }
}

fn go_on(waits: Option<Asked>) {
    const NONE: [u8; 7] = [
        etf::tag::VERSION,
        etf::tag::SMALL_ATOM_UTF8,
        4,
        b'n',
        b'o',
        b'n',
        b'e',
    ];
    if let Some(asked) = waits {
        asked.tell(callback::Answer::Value(NONE.to_vec()));
    }
}

/// What a slice ended with.
enum End<'py> {
    Over,
    Failed(Failure<'py>),
    NoCredit,
    TimeUp,
    Stopped,
    /// A loop takes the items.
    Elsewhere(Obj<'py>),
}

/// Sends items until there are none, the window is full or the slice is over.
pub fn pump(world: &World<'_, '_>, me: &Arc<Thread>, stream: &Arc<Stream>, mut job: Box<Job>) {
    let inside = enter(world, stream, &job);
    let items = match &inside {
        Ok(_) => iterator(world, stream, &mut job),
        Err(error) => Err(error.clone().into()),
    };
    let end = match items {
        Ok(items) if job.op == Op::AsyncStream => End::Elsewhere(items),
        Ok(items) => slice(world, stream, &mut job, &items),
        Err(failure) => End::Failed(failure),
    };
    drop(inside);
    run::leave(world, me);
    match end {
        End::Over => over(job, Ok(())),
        End::Failed(failure) => {
            let failure = run::settle_failure(&job, failure);
            over(job, Err(failure));
        }
        End::Elsewhere(items) => event_loop::hand_over(job, items),
        End::NoCredit | End::TimeUp if !job.ticket.pause() => job.recycle(),
        End::NoCredit => pause(stream, job),
        End::TimeUp => job.pool.clone().resume(job),
        // Interrupted, or its context is stopped: its reader waits. One that is cancelled is not told.
        End::Stopped => {
            let failure = run::settle_failure(&job, Failure::Cancelled);
            over(job, Err(failure));
        }
    }
}

/// Into the context of the stream, a copy of its process's from when it began.
fn enter<'py>(world: &World<'_, 'py>, stream: &Stream, job: &Job) -> PyResult<'py, Entered<'py>> {
    let known = lock(&stream.context).clone();
    if let Some(context) = known.and_then(|kept| kept.get(world.py)) {
        return Entered::enter(context);
    }
    let context = vars::copy(world.py, job)?;
    *lock(&stream.context) = Some(Arc::new(Kept::new(context.clone())));
    Entered::enter(context)
}

/// Keeps the job in its ticket until the reader acknowledges.
fn pause(stream: &Stream, job: Box<Job>) {
    let ticket = job.ticket.clone();
    if let Some(job) = ticket.park(job, || stream.credits.has()) {
        // Acknowledged or cancelled between the last look and this.
        job.pool.clone().resume(job);
    }
}

fn iterator<'py>(
    world: &World<'_, 'py>,
    stream: &Stream,
    job: &mut Job,
) -> Result<Obj<'py>, Failure<'py>> {
    let known = lock(&stream.iterator).clone();
    if let Some(items) = known.and_then(|kept| kept.get(world.py)) {
        return Ok(items);
    }
    let items = run::iterator(world, job)?;
    if job.op == Op::AsyncStream {
        return Ok(items);
    }
    *lock(&stream.iterator) = Some(Arc::new(Kept::new(items.clone())));
    Ok(items)
}

fn slice<'py>(
    world: &World<'_, 'py>,
    stream: &Stream,
    job: &mut Job,
    items: &Obj<'py>,
) -> End<'py> {
    let start = Instant::now();
    loop {
        if job.ticket.must_stop() {
            return End::Stopped;
        }
        if !stream.credits.has() {
            return End::NoCredit;
        }
        let item = match items.next() {
            Ok(Some(item)) => item,
            Ok(None) => return End::Over,
            Err(error) => return End::Failed(error.into()),
        };
        match reply::item(world, &JobHost { world, job }, &item) {
            Ok((bytes, widest)) => {
                reply::courier_room(world.py, &job.ticket, widest);
                if !job.ticket.begin_reply() {
                    return End::Stopped;
                }
                message(job, Answer::Bytes(bytes, widest), Wanted::Item);
                job.ticket.continue_run();
                stream.credits.take();
            }
            Err(failure) => return End::Failed(failure),
        }
        if start.elapsed() > SLICE {
            return End::TimeUp;
        }
    }
}

/// The last message, and the end.
pub fn over(mut job: Box<Job>, outcome: Result<(), Failure<'_>>) {
    let answer = match outcome {
        Ok(()) => Answer::Atom(atoms::done()),
        Err(failure) => reply::failed(&job, &failure),
    };
    if job.ticket.begin_reply() {
        message(&mut job, answer, Wanted::Answer);
        job.ticket.finish();
    }
    job.recycle();
}

/// How every message of a stream begins.
pub fn head(env: &MsgEnv, reference: &ResourceArc<TicketRef>) -> [Raw; 2] {
    [Raw::atom(atoms::py_stream()), env.resource(reference)]
}

/// `{py_stream, Ref, What}`
fn message(job: &mut Job, answer: Answer, wanted: Wanted) {
    let Reply::Stream { to, reference, .. } = &job.reply else {
        return;
    };
    let (to, head) = (*to, head(&job.env, reference));
    let ticket = job.ticket.clone();
    reply::send_to_user(&mut job.env, &ticket, &to, head, answer, wanted);
    job.env.clear();
}
