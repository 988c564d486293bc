//! A pool or a loop that closes answers what it had accepted (I4).
//!
//! Thread: the watch, or a loop's own.

use crate::atoms;
use crate::dag_python;
use crate::erts::Raw;
use crate::here::here;
use crate::job::{Job, Reply};
use crate::log;

/// Answers a job that will not run: `{error, {context_died, stopped}}`.
pub fn refuse(job: Box<Job>) {
    // Queued → running → replying, as if it had run.
    if !job.ticket.start(&here(), &job.pool.interp, &job) {
        return job.recycle();
    }
    stop(job);
}

/// The same for one that runs, and will not go on.
pub fn stop(job: Box<Job>) {
    let reason = job.env.tuple(&[
        Raw::atom(atoms::context_died()),
        Raw::atom(atoms::stopped()),
    ]);
    fail(job, reason);
}

/// Answers a running job with an error; the reason is of its own environment, or an atom.
pub fn fail(mut job: Box<Job>, reason: Raw) {
    if !job.ticket.begin_reply() {
        return job.recycle();
    }
    let answer = job.env.tuple(&[Raw::atom(atoms::error()), reason]);
    let message = match &job.reply {
        Reply::Key(key) => Some((*job.slot.pid(), job.env.tuple(&[*key, answer]))),
        Reply::Message { to, tag, name } => {
            let name = name.term(&job.env);
            Some((*to, job.env.tuple(&[Raw::atom(*tag), name, answer])))
        }
        Reply::Part(part) => {
            part.put(None, true, job.ticket.is_couriered(), |env| {
                env.copy_from(&job.env, answer)
            });
            None
        }
        Reply::Stream { to, reference, .. } => {
            let reference = job.env.resource(reference);
            let tag = Raw::atom(atoms::py_stream());
            Some((*to, job.env.tuple(&[tag, reference, answer])))
        }
        Reply::Node(_) => None,
        Reply::Nobody => {
            log::failure("py:cast failed: its pool or context has ended before it");
            None
        }
    };
    if let Some((to, message)) = message {
        job.env.send(&to, message);
    }
    job.ticket.finish();
    let reply = std::mem::replace(&mut job.reply, Reply::Nobody);
    job.recycle();
    if let Reply::Node(call) = reply {
        dag_python::refuse(*call);
    }
}
