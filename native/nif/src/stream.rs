//! A stream: a generator whose items go to a process as messages, in slices and within a window.
//!
//! Thread: attached, a pool's thread. `acknowledge` is called by schedulers.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyrt::{Kept, Obj};

use crate::atoms;
use crate::erts::Raw;
use crate::failure::Failure;
use crate::here::Thread;
use crate::interp::World;
use crate::job::{Job, Reply};
use crate::release;
use crate::reply::{self, Answer};
use crate::run;
use crate::ticket::Ticket;
use crew::sync::lock;

/// How long a stream keeps its thread before others have their turn.
const SLICE: Duration = Duration::from_millis(1);

pub struct Stream {
    /// How many items may still be sent before the reader says more.
    credits: AtomicI64,
    iterator: Mutex<Option<Arc<Kept>>>,
}

/// Held by the job of a stream: when that is over, in whatever way, the generator is let go (and
/// its `finally` runs), though the reader may still have its reference.
pub struct Running(pub Arc<Stream>);

impl Drop for Running {
    fn drop(&mut self) {
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
            credits: AtomicI64::new(window.map_or(i64::MAX / 2, i64::from)),
            iterator: Mutex::new(None),
        })
    }

    /// The reader has taken `count` items.
    pub fn acknowledge(&self, ticket: &Ticket, count: u32) {
        // AcqRel, pairs with the load in `pause`: either it sees the credits, or this finds the job.
        self.credits.fetch_add(i64::from(count), Ordering::AcqRel);
        if let Some(job) = ticket.unpark() {
            job.pool.clone().resume(job);
        }
    }

    fn has_credit(&self) -> bool {
        self.credits.load(Ordering::Acquire) > 0
    }
}

/// What a slice ended with.
enum End<'py> {
    Over,
    Failed(Failure<'py>),
    NoCredit,
    TimeUp,
    Stopped,
}

/// Sends items until there are none, the window is full or the slice is over.
pub fn pump(world: &World<'_, '_>, me: &Arc<Thread>, stream: &Arc<Stream>, mut job: Box<Job>) {
    let end = match iterator(world, stream, &mut job) {
        Ok(items) => slice(world, stream, &mut job, &items),
        Err(failure) => End::Failed(failure),
    };
    run::leave(world, me, &job);
    match end {
        End::Over => finish(job, Answer::Term(Raw::atom(atoms::done()))),
        End::Failed(failure) => {
            let failure = run::settle_failure(&job, failure);
            let answer = reply::failed(&job, &failure);
            finish(job, answer);
        }
        End::NoCredit | End::TimeUp if !job.ticket.pause() => job.recycle(),
        End::NoCredit => pause(stream, job),
        End::TimeUp => job.pool.clone().resume(job),
        End::Stopped => job.recycle(),
    }
}

/// Keeps the job in its ticket until the reader acknowledges.
fn pause(stream: &Stream, job: Box<Job>) {
    let ticket = job.ticket.clone();
    ticket.park(job);
    let wanted = stream.has_credit() || ticket.is_cancelled();
    if wanted && let Some(job) = ticket.unpark() {
        // Acknowledged or cancelled between the last look and `park`.
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
        if !stream.has_credit() {
            return End::NoCredit;
        }
        let item = match items.next() {
            Ok(Some(item)) => item,
            Ok(None) => return End::Over,
            Err(error) => return End::Failed(error.into()),
        };
        match reply::item(world, job, &item) {
            Ok((bytes, widest)) => {
                if !job.ticket.begin_reply() {
                    return End::Stopped;
                }
                message(job, Answer::Bytes(bytes, widest));
                job.ticket.continue_run();
                stream.credits.fetch_sub(1, Ordering::AcqRel);
            }
            Err(failure) => return End::Failed(failure),
        }
        if start.elapsed() > SLICE {
            return End::TimeUp;
        }
    }
}

/// The last message, and the end.
fn finish(mut job: Box<Job>, answer: Answer) {
    if job.ticket.begin_reply() {
        message(&mut job, answer);
        job.ticket.finish();
    }
    job.recycle();
}

/// `{py_stream, Ref, What}`
fn message(job: &mut Job, answer: Answer) {
    let Reply::Stream { to, reference, .. } = &job.reply else {
        return;
    };
    let (to, head) = (
        *to,
        [Raw::atom(atoms::py_stream()), job.env.resource(reference)],
    );
    let ticket = job.ticket.clone();
    reply::send_to_user(&mut job.env, &ticket, &to, head, answer);
    job.env.clear();
}
