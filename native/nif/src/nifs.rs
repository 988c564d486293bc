//! The rest of `py_nif`: small functions, one per subject, each a line or two over its module.
//!
//! Thread: the caller's scheduler, save those marked dirty. None takes the GIL on a normal one (I9).

use std::ffi::c_void;
use std::time::Duration;

use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, NifResult, OwnedBinary, ResourceArc, Term};

use crate::atoms;
use crate::callback::{self, Answer};
use crate::erts::binary_of;
use crate::executor::{self, Next};
use crate::failure::BUILT_IN;
use crate::job::TicketRef;
use crate::leader::{self, Leader};
use crate::refs::ObjectRef;
use crate::resource::{PoolOpts, PoolRef, WorkerRef};
use crate::runtime::{self, Settings};
use crate::slot::Slot;
use crate::ticket::Why;
use crate::{courier, event_loop, given, lanes, log, raw_loop, stopper, story, subinterp, watch};

/// Makes the atoms of the closed tables, and pins the library: its threads run in it. The Erlang modules give their
/// version: functions of the same names need not mean the same in another one.
pub fn load<'a>(env: Env<'a>, version: Term<'a>) -> bool {
    if version
        .decode::<String>()
        .is_ok_and(|it| it != env!("CARGO_PKG_VERSION"))
    {
        return false;
    }
    for name in BUILT_IN.iter().chain(&story::KEYS) {
        if Atom::from_str(env, name).is_err() {
            return false;
        }
    }
    pin();
    raw_loop::resource::open_type(env)
}

fn pin() {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: an address in this library, and memory for the answer.
    let found = unsafe { libc::dladdr(pin as *const c_void, info.as_mut_ptr()) };
    if found != 0 {
        // SAFETY: filled, since it was found; the name lives as long as the library.
        let name = unsafe { info.assume_init() }.dli_fname;
        // SAFETY: a path that ends in NUL; opened once more and never closed.
        unsafe { libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_NODELETE) };
    }
}

/// Starts Python. Dirty: takes tens of milliseconds.
#[rustler::nif(schedule = "DirtyIo")]
fn start(
    env: Env<'_>,
    program: String,
    package: String,
    max_depth: usize,
    switch_us: u64,
    leader: LocalPid,
) -> Result<(), String> {
    runtime::set_home(env.pid(), leader::of(env, leader));
    runtime::start(Settings {
        program,
        package,
        max_depth,
        switch_interval: Duration::from_micros(switch_us),
    })
}

/// Lets Python programs end. Dirty: waits up to `limit_ms`.
#[rustler::nif(schedule = "DirtyIo")]
fn finish(limit_ms: u64) -> bool {
    runtime::finish(Duration::from_millis(limit_ms))
}

#[rustler::nif]
fn built_for() -> (u32, u32, bool) {
    let (major, minor) = pyrt::BUILT_FOR;
    (major, minor, pyrt::FREE_THREADED)
}

#[rustler::nif]
fn has_gil() -> bool {
    crate::interp::has_gil()
}

#[rustler::nif]
fn python_version() -> String {
    pyrt::embed::version()
}

/// The manager of callbacks may be gone, and so may be who hears of output: `undefined`.
#[rustler::nif]
fn set_process(env: Env<'_>, what: Term<'_>, pid: Term<'_>) -> NifResult<Atom> {
    match what.atom_to_string()?.as_str() {
        "courier" => courier::set(env, pid.decode()?),
        "logger" => log::set(pid.decode()?),
        "printer" if pid.is_atom() => leader::set_printer(None),
        "printer" => leader::set_printer(Some(pid.decode()?)),
        "callback" if pid.is_atom() => executor::set_manager(None),
        "callback" => executor::set_manager(Some(pid.decode()?)),
        _ => return Err(rustler::Error::BadArg),
    }
    Ok(atoms::ok())
}

#[rustler::nif]
fn slot_new(env: Env<'_>, leader: LocalPid) -> NifResult<ResourceArc<Slot>> {
    Slot::new(env, leader).ok_or(rustler::Error::BadArg)
}

/// The process has another group leader.
#[rustler::nif]
fn slot_leader(env: Env<'_>, slot: ResourceArc<Slot>, leader: LocalPid) -> Atom {
    slot.set_leader(leader::of(env, leader));
    atoms::ok()
}

/// A group leader has answered a text of so many bytes.
#[rustler::nif]
fn printed(env: Env<'_>, leader: ResourceArc<Leader>, bytes: usize) -> Atom {
    leader::answered(env, &leader, bytes);
    atoms::ok()
}

/// The courier has sent the message of that number.
#[rustler::nif]
fn delivered(number: u64) -> Atom {
    lanes::delivered(number);
    atoms::ok()
}

/// A log record was handed over; gives the number of those that were dropped before it.
#[rustler::nif]
fn logged() -> usize {
    log::logged()
}

#[rustler::nif]
fn pool_new(env: Env<'_>, opts: PoolOpts) -> NifResult<ResourceArc<PoolRef>> {
    let interp = runtime::started_interp().ok_or(rustler::Error::BadArg)?;
    PoolRef::new(env, interp, opts).ok_or(rustler::Error::BadArg)
}

#[rustler::nif]
fn pool_close(pool: ResourceArc<PoolRef>) -> Atom {
    watch::close(pool.pool.clone());
    atoms::ok()
}

/// Forgets the names of a context.
#[rustler::nif]
fn pool_wipe(pool: ResourceArc<PoolRef>) -> Atom {
    if let Some(namespace) = &pool.pool.namespace {
        namespace.forget();
    }
    atoms::ok()
}

#[rustler::nif]
fn set_main_pool(pool: ResourceArc<PoolRef>) -> Atom {
    runtime::set_main_pool(Some(pool.pool.clone()));
    atoms::ok()
}

#[rustler::nif]
fn clear_main_pool() -> Atom {
    runtime::set_main_pool(None);
    atoms::ok()
}

/// `{Queued, Threads, Idle, Waiting}`
#[rustler::nif]
fn pool_info(pool: ResourceArc<PoolRef>) -> (usize, usize, usize, usize) {
    let (all, idle, waiting) = pool.pool.crew.counts();
    (pool.pool.crew.queued(), all, idle, waiting)
}

/// Whether a thread of it is in a job, or one waits.
#[rustler::nif]
fn pool_busy(pool: ResourceArc<PoolRef>) -> bool {
    is_busy(&pool.pool)
}

fn is_busy(pool: &crate::pool::Pool) -> bool {
    !pool.crew.is_empty() || pool.threads().iter().any(|thread| thread.depth() > 0)
}

/// Whether it works, or Erlang has references to objects of its interpreter.
#[rustler::nif]
fn pool_in_use(pool: ResourceArc<PoolRef>) -> bool {
    is_busy(&pool.pool) || pool.pool.interp.exported.held() > 0
}

#[rustler::nif]
fn pool_interrupt(pool: ResourceArc<PoolRef>) -> Atom {
    let stopped = pool
        .pool
        .threads()
        .iter()
        .flat_map(|thread| thread.running())
        .filter(|ticket| ticket.stop(Why::Interrupted))
        .count();
    if event_loop::interrupt_tasks(&pool) || stopped > 0 {
        atoms::ok()
    } else {
        atoms::not_running()
    }
}

/// A sub-interpreter with its thread. Dirty: takes tens of milliseconds.
#[rustler::nif(schedule = "DirtyIo")]
fn subinterp_new(
    env: Env<'_>,
    max_queue: usize,
    max_memory: usize,
) -> Result<(ResourceArc<PoolRef>, ResourceArc<WorkerRef>), String> {
    subinterp::make(env, max_queue, Some(max_memory).filter(|limit| *limit > 0))
}

/// `{Used, Limit}` in bytes, for a pool in an interpreter with a bound; else `none`.
#[rustler::nif]
fn pool_memory<'a>(env: Env<'a>, pool: ResourceArc<PoolRef>) -> Term<'a> {
    match pool.pool.interp.memory.get() {
        Some((budget, true)) => budget.figures().encode(env),
        _ => atoms::none().encode(env),
    }
}

/// 0 is the main interpreter.
#[rustler::nif]
fn pool_interp(pool: ResourceArc<PoolRef>) -> u64 {
    pool.pool.interp.number()
}

/// `{Made, Ended, LeftBehind, KeptBytes}`
#[rustler::nif]
fn subinterp_counts() -> (u64, u64, u64, u64) {
    subinterp::counts()
}

#[rustler::nif]
fn worker_start(env: Env<'_>, pool: ResourceArc<PoolRef>) -> NifResult<ResourceArc<WorkerRef>> {
    WorkerRef::start(env, &pool).ok_or(rustler::Error::BadArg)
}

/// Whether its thread has ended, or hangs in C code and ends when that returns.
#[rustler::nif]
fn worker_is_down(worker: ResourceArc<WorkerRef>) -> bool {
    worker.is_down()
}

#[rustler::nif]
fn worker_retire(worker: ResourceArc<WorkerRef>) -> Atom {
    worker.retire();
    atoms::ok()
}

/// After this nothing is sent for the job (I4). `shut_out`: somebody keeps a GIL.
#[rustler::nif]
fn cancel(slot: ResourceArc<Slot>, id: u64) -> Atom {
    if let Some(ticket) = slot.job(id) {
        ticket.cancel();
    }
    if stopper::is_shut_out() {
        atoms::shut_out()
    } else {
        atoms::ok()
    }
}

/// By what `spawn_call` and its kin gave out, or by the reference that the caller gave. One that names no job
/// (any more) is fine.
#[rustler::nif]
fn cancel_ref(reference: Term<'_>) -> Atom {
    match reference.decode::<ResourceArc<TicketRef>>() {
        Ok(reference) => _ = reference.ticket.cancel(),
        Err(_) => given::find(reference).iter().for_each(|ticket| {
            ticket.cancel();
        }),
    }
    atoms::ok()
}

#[rustler::nif]
fn stream_ack(reference: ResourceArc<TicketRef>, count: u32) -> NifResult<Atom> {
    let stream = reference.stream.as_ref().ok_or(rustler::Error::BadArg)?;
    stream.acknowledge(&reference.ticket, count);
    Ok(atoms::ok())
}

/// What the next job with the flag for it is told: `{TraceId, ReplyTo}`, encoded.
#[rustler::nif]
fn slot_about(slot: ResourceArc<Slot>, about: Term<'_>) -> NifResult<Atom> {
    slot.set_about(binary_of(about).ok_or(rustler::Error::BadArg)?);
    Ok(atoms::ok())
}

#[rustler::nif]
fn last_error<'a>(env: Env<'a>, slot: ResourceArc<Slot>) -> Term<'a> {
    match slot.last_error() {
        Some(bytes) => binary(env, &bytes),
        None => atoms::undefined().encode(env),
    }
}

fn binary<'a>(env: Env<'a>, bytes: &[u8]) -> Term<'a> {
    let mut owned = OwnedBinary::new(bytes.len());
    owned.as_mut_slice().copy_from_slice(bytes);
    owned.release(env).encode(env)
}

#[rustler::nif]
fn executor_ready(env: Env<'_>, slot: ResourceArc<Slot>) -> Atom {
    executor::ready(env.pid(), slot);
    atoms::ok()
}

#[rustler::nif]
fn executor_leaves(env: Env<'_>, slot: ResourceArc<Slot>) -> bool {
    executor::leaves(&env.pid(), &slot)
}

/// Room for one executor more: one that waits for its caller ends. `false`: none does.
#[rustler::nif]
fn executor_evict() -> bool {
    executor::evict()
}

#[rustler::nif]
fn executor_takes(slot: ResourceArc<Slot>, id: u64) -> bool {
    executor::takes(id, &slot)
}

#[rustler::nif]
fn executor_died(pid: LocalPid) -> Atom {
    executor::died(&pid);
    atoms::ok()
}

/// In place of an answer to callback `id`, for which there is no executor.
#[rustler::nif]
fn callback_refuse(id: u64, raised: Term<'_>) -> NifResult<Atom> {
    let raised = binary_of(raised).ok_or(rustler::Error::BadArg)?.to_vec();
    callback::refuse(id, raised);
    Ok(atoms::ok())
}

/// The answer to callback `id`. `_value` is the term whose encoding it is: as an argument it keeps the
/// objects that the bytes name until the answer does. `clean`: the process may run another callback of the same
/// caller. Returns whether it shall stay for the next one, or the next one itself where it comes at once.
#[rustler::nif]
fn callback_reply<'a>(
    env: Env<'a>,
    slot: ResourceArc<Slot>,
    id: u64,
    ok: bool,
    bytes: Term<'a>,
    _value: Term<'a>,
    clean: bool,
) -> NifResult<Term<'a>> {
    let bytes = binary_of(bytes).ok_or(rustler::Error::BadArg)?.to_vec();
    let answer = if ok {
        Answer::Value(bytes)
    } else {
        Answer::Raised(bytes)
    };
    Ok(
        match executor::answers(env.pid(), id, &slot, answer, clean) {
            Next::Callback(next) => next.term(env),
            Next::Stay => true.encode(env),
            Next::Leave => false.encode(env),
        },
    )
}

#[rustler::nif]
fn is_object_ref(term: Term<'_>) -> bool {
    term.decode::<ResourceArc<ObjectRef>>().is_ok()
}

/// `{ThreadsInCallbacks, CoroutinesInCallbacks, Callbacks, ExportedObjects}`
#[rustler::nif]
fn counts() -> (usize, usize, usize, usize) {
    let (threads, coroutines, calls) = callback::counts();
    let exported = runtime::started_interp().map_or(0, |interp| interp.exported.count());
    (threads, coroutines, calls, exported)
}

/// For the floors of the benchmark: a NIF that does nothing.
#[rustler::nif]
fn nothing() -> Atom {
    atoms::ok()
}

#[rustler::nif(schedule = "DirtyIo")]
fn nothing_dirty() -> Atom {
    atoms::ok()
}

/// Nanoseconds to copy a binary into memory that no one has touched before: a floor.
#[rustler::nif(schedule = "DirtyIo")]
fn copy_fresh(bytes: Term<'_>) -> NifResult<u64> {
    let bytes = binary_of(bytes).ok_or(rustler::Error::BadArg)?;
    let start = std::time::Instant::now();
    let mut fresh = Fresh::new(bytes.len()).ok_or(rustler::Error::BadArg)?;
    fresh.as_mut_slice().copy_from_slice(bytes);
    std::hint::black_box(&fresh.as_mut_slice());
    Ok(start.elapsed().as_nanos() as u64)
}

/// Pages straight from the kernel.
struct Fresh {
    data: *mut u8,
    len: usize,
}

impl Fresh {
    fn new(len: usize) -> Option<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new private mapping, nothing of ours is replaced.
        let data = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        (data != libc::MAP_FAILED).then(|| Fresh {
            data: data.cast(),
            len,
        })
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `len` readable and writable bytes, ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`, unmapped once.
        unsafe { libc::munmap(self.data.cast(), self.len) };
    }
}
