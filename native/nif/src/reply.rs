//! Hop 5 of a call: encodes the outcome and sends the one message (I4).
//!
//! Thread: attached, the job's own.
//! Never: sends for a cancelled job; builds a large map (`erts`).

use pyrt::kind::Kind;
use pyrt::{Attached, Kept, Obj};
use rustler::types::atom::Atom;
use rustler::{LocalPid, ResourceArc};

use crate::atoms;
use crate::courier::{self, Wanted};
use crate::dag_python;
use crate::erts::{MsgEnv, Raw};
use crate::failure::Failure;
use crate::interp::World;
use crate::job::{Flags, Job, Op, Reply};
use crate::refs::ObjectRef;
use crate::run::JobHost;
use crate::slot::Slot;
use crate::ticket::{Answered, Ticket};
use crate::{lanes, log, stream};
use etf::tag::{SMALL_ATOM_UTF8, SMALL_TUPLE, VERSION};
use etf::write;

/// Python memory lent to Erlang as a binary, released with it.
pub struct Lender(#[expect(dead_code, reason = "held, not read")] Kept);

#[rustler::resource_impl]
impl rustler::Resource for Lender {}

impl Drop for Lender {
    fn drop(&mut self) {
        // The `Kept` goes to the release list by itself; somebody must look at it soon.
        crate::release::soon();
    }
}

/// An outcome in a form that can be sent, from any environment.
pub enum Answer {
    /// That atom alone.
    Atom(Atom),
    /// `{ok, V}`, where the value is not encoded.
    Value(etf::Value),
    /// `{ok, Reference}`, and the number of its interpreter.
    Object(u64, ResourceArc<ObjectRef>),
    /// `{ok, V}` or `{error, R}`, encoded; and the widest map in it.
    Bytes(Vec<u8>, usize),
}

/// `{ok, `: how every encoded success begins.
const OK: &[u8] = &[VERSION, SMALL_TUPLE, 2, SMALL_ATOM_UTF8, 2, b'o', b'k'];
/// And a failure, and an item of a stream.
#[rustfmt::skip]
const ERROR: &[u8] = &[VERSION, SMALL_TUPLE, 2, SMALL_ATOM_UTF8, 5, b'e', b'r', b'r', b'o', b'r'];
const DATA: &[u8] = &[
    VERSION,
    SMALL_TUPLE,
    2,
    SMALL_ATOM_UTF8,
    4,
    b'd',
    b'a',
    b't',
    b'a',
];

/// Answers a job and ends it.
pub fn answer(world: &World<'_, '_>, mut job: Box<Job>, outcome: Result<Obj<'_>, Failure<'_>>) {
    if matches!(job.reply, Reply::Node(_)) {
        return dag_python::answer(world, job, outcome);
    }
    if matches!(job.reply, Reply::Stream { .. }) {
        return stream::over(job, outcome.map(drop));
    }
    // Freed after the reply: ten thousand objects take as long as their conversion.
    let _freed_last = outcome
        .as_ref()
        .ok()
        .filter(|value| is_large(value))
        .cloned();
    let outcome = outcome.and_then(|value| value_answer(world, &job, value));
    // Once a reply has begun nobody can cancel: the slow parts come first.
    let answer = outcome.unwrap_or_else(|failure| failed(&job, &failure));
    if let (Reply::Message { .. }, Answer::Bytes(_, widest)) = (&job.reply, &answer) {
        courier_room(world.py, &job.ticket, *widest);
    }
    if !job.ticket.begin_reply() {
        return job.recycle();
    }
    if matches!(job.reply, Reply::Key(_)) && !job.ticket.is_couriered() {
        let body = body(&job.env, answer);
        return hand_over(job, body);
    }
    send(&mut job, answer);
    job.ticket.finish();
    job.recycle();
}

/// Waits, detached, while too much is in the way of a message that goes by the courier.
pub fn courier_room(py: Attached<'_>, ticket: &Ticket, widest: usize) {
    if !courier::may_build(widest) || ticket.is_couriered() {
        py.detach(|| lanes::wait(|| ticket.must_stop()));
    }
}

fn is_large(value: &Obj<'_>) -> bool {
    matches!(value.kind(), Kind::List | Kind::Tuple | Kind::Dict)
}

/// To the caller that waits for it: at once if it is still awake, else by message.
fn hand_over(job: Box<Job>, body: Raw) {
    let ticket = job.ticket.clone();
    let Err(Answered { mut job, body }) = ticket.meet.give(Answered { job, body }) else {
        return;
    };
    if let Reply::Key(key) = job.reply {
        let message = job.env.tuple(&[key, body]);
        let to = *job.slot.pid();
        job.env.send(&to, message);
    }
    ticket.finish();
    job.recycle();
}

/// What a process of our own gets: `py_call` decodes it.
fn body(env: &MsgEnv, answer: Answer) -> Raw {
    match answer {
        Answer::Atom(atom) => Raw::atom(atom),
        Answer::Value(value) => ok_tuple(env, term(env, value)),
        Answer::Object(interp, reference) => ok_tuple(env, exported(env, interp, &reference)),
        Answer::Bytes(bytes, _) => env.binary(&bytes),
    }
}

fn value_answer<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    value: Obj<'py>,
) -> Result<Answer, Failure<'py>> {
    if matches!(job.reply, Reply::Nobody) {
        return Ok(Answer::Atom(atoms::ok()));
    }
    match job.op {
        Op::Exec => return Ok(Answer::Atom(atoms::ok())),
        Op::Collect | Op::CollectEval => return collect(world, job, &value),
        _ => {}
    }
    if job.flags.return_ref() {
        let reference = world.interp.exported.export(value);
        return Ok(Answer::Object(world.interp.number(), reference));
    }
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(OK);
    let host = JobHost { world, job };
    let value =
        etf::into_value(&world.bound, &host, value, &mut out).map_err(|(error, _object)| error)?;
    Ok(match value {
        etf::Value::Encoded(summary) => Answer::Bytes(out, summary.widest_map),
        value => Answer::Value(value),
    })
}

/// Simple values and large buffers are terms at once.
fn term(env: &MsgEnv, value: etf::Value) -> Raw {
    match value {
        etf::Value::Int(value) => env.int(value),
        etf::Value::Float(value) => env.float(value),
        etf::Value::Atom(name) => Raw::atom(constant(name)),
        etf::Value::Bytes(buffer) => lend(env, buffer),
        etf::Value::Array { dtype, shape, data } => {
            let shape: Vec<Raw> = shape.iter().map(|&n| env.int(n as i64)).collect();
            env.tuple(&[
                Raw::atom(atoms::ndarray()),
                env.binary(dtype.as_bytes()),
                env.list(&shape),
                lend(env, data),
            ])
        }
        // Its bytes are an `Answer` of their own.
        etf::Value::Encoded(_) => Raw::atom(atoms::none()),
    }
}

fn constant(name: &'static str) -> Atom {
    match name {
        "true" => atoms::r#true(),
        "false" => atoms::r#false(),
        "infinity" => atoms::infinity(),
        "neg_infinity" => atoms::neg_infinity(),
        "nan" => atoms::nan(),
        _ => atoms::none(),
    }
}

fn lend(env: &MsgEnv, buffer: etf::Buffer) -> Raw {
    let (data, len, owner) = buffer.into_parts();
    let lender = ResourceArc::new(Lender(owner));
    // SAFETY: the owner keeps the memory, and what it is made of (`bytes`, `str`, an exported
    // buffer) does not change while it is kept.
    unsafe { env.lent(&lender, data, len) }
}

fn exported(env: &MsgEnv, interp: u64, reference: &ResourceArc<ObjectRef>) -> Raw {
    env.tuple(&[
        Raw::atom(atoms::py_ref()),
        env.int(interp as i64),
        env.int(reference.index as i64),
        env.int(reference.generation as i64),
        env.resource(reference),
    ])
}

/// All items of an iterator, as one encoded list.
fn collect<'py>(
    world: &World<'_, 'py>,
    job: &Job,
    items: &Obj<'py>,
) -> Result<Answer, Failure<'py>> {
    let host = JobHost { world, job };
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(OK);
    let header = out.len();
    write::write_list_header(&mut out, 0);
    let (mut count, mut widest) = (0usize, 0);
    while let Some(item) = items.next()? {
        widest = widest.max(etf::encode(&world.bound, &host, &item, &mut out)?.widest_map);
        count += 1;
        if count % 256 == 0 && job.ticket.must_stop() {
            return Err(Failure::Cancelled);
        }
    }
    if count == 0 {
        out.truncate(header);
    } else {
        let Ok(count) = u32::try_from(count) else {
            let text = "more items than a list can be sent with".to_owned();
            return Err(Failure::BadArgument(text));
        };
        out[header + 1..header + 5].copy_from_slice(&count.to_be_bytes());
    }
    write::write_nil(&mut out);
    Ok(Answer::Bytes(out, widest))
}

/// Remembers the whole story in the caller's slot and gives the short one.
pub fn failed(job: &Job, failure: &Failure<'_>) -> Answer {
    if matches!(job.reply, Reply::Nobody) {
        log::cast_failed(failure);
    }
    reason(&job.slot, &job.ticket, job.flags, failure)
}

/// The same for whoever has no job at hand. Nobody is told of what a cancelled job makes of its end.
pub fn reason(slot: &Slot, ticket: &Ticket, flags: Flags, failure: &Failure<'_>) -> Answer {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(ERROR);
    if flags.fallback() && failure.is_refusal() {
        write::write_atom(&mut out, "refused");
        return Answer::Bytes(out, 0);
    }
    let story = failure.write(&mut out, flags.traceback());
    if !ticket.is_cancelled()
        && let Some(story) = story
    {
        slot.set_last_error(story);
    }
    Answer::Bytes(out, 0)
}

fn ok_tuple(env: &MsgEnv, term: Raw) -> Raw {
    env.tuple(&[Raw::atom(atoms::ok()), term])
}

fn send(job: &mut Job, answer: Answer) {
    match &job.reply {
        Reply::Key(key) => {
            let message = job.env.tuple(&[*key, body(&job.env, answer)]);
            let to = *job.slot.pid();
            let owed = courier::owed(&job.env, &to, &[*key]);
            courier::forward(None, &mut job.env, Raw::pid(&to), message, Some(owed));
        }
        Reply::Message { to, tag, name } => {
            let head = [Raw::atom(*tag), name.term(&job.env)];
            let to = *to;
            let ticket = job.ticket.clone();
            send_to_user(&mut job.env, &ticket, &to, head, answer, Wanted::Answer);
        }
        Reply::Part(part) => {
            let failed = matches!(&answer, Answer::Bytes(bytes, _) if bytes.starts_with(ERROR));
            part.put(None, failed, job.ticket.is_couriered(), |env| {
                body(env, answer)
            });
        }
        Reply::Stream { .. } | Reply::Node(_) | Reply::Nobody => {}
    }
}

/// A message that users receive themselves: `{Tag, Ref, Answer}` with the answer as a term.
pub fn send_to_user(
    env: &mut MsgEnv,
    ticket: &Ticket,
    to: &LocalPid,
    head: [Raw; 2],
    answer: Answer,
    wanted: Wanted,
) -> bool {
    let body = match answer {
        Answer::Bytes(bytes, widest) => {
            if !courier::may_build(widest) {
                ticket.set_couriered();
                return courier::relay(env, to, &head, &bytes, wanted);
            }
            match env.decode(&bytes) {
                Some(term) => term,
                // What is known to be refused was an error when it was encoded; this is the last resort.
                None => unreadable(env),
            }
        }
        answer => body(env, answer),
    };
    let message = env.tuple(&[head[0], head[1], body]);
    if ticket.is_couriered() {
        let owed = (wanted == Wanted::Answer).then(|| courier::owed(env, to, &head));
        return courier::forward(None, env, Raw::pid(to), message, owed);
    }
    env.send(to, message)
}

/// The answer in place of one that this node can't read.
fn unreadable(env: &MsgEnv) -> Raw {
    let text = b"that this node cannot read";
    let reason = env.tuple(&[Raw::atom(atoms::not_convertible()), env.binary(text)]);
    env.tuple(&[Raw::atom(atoms::error()), reason])
}

/// One item of a stream, ready to be sent.
pub fn item<'py>(
    world: &World<'_, 'py>,
    host: &impl etf::Host,
    value: &Obj<'py>,
) -> Result<(Vec<u8>, usize), Failure<'py>> {
    let mut out = DATA.to_vec();
    let summary = etf::encode(&world.bound, host, value, &mut out)?;
    Ok((out, summary.widest_map))
}
