//! Graphs for Erlang: the functions of `py_nif` that build, run, cancel and answer.
//!
//! Thread: the caller's scheduler, save those marked dirty. None runs a node (I9): runs begin, go on
//! and end on the loop.

use std::sync::Arc;
use std::time::Duration;

use dag::{Done, Expansion, Limit, Output, Reason, Value};
use rustler::types::atom::Atom;
use rustler::{Encoder, Env, LocalPid, NifMap, NifResult, ResourceArc, Term};

use crate::atoms;
use crate::dag_graph::{self, CONTEXT, GraphRef};
use crate::dag_run::{Context, RunRef, RunState, Wish};
use crate::dag_value::{Needs, NodeValue, TermReason};
use crate::erts::{MsgEnv, binary_of};
use crate::event_loop;
use crate::slot::Slot;
use crate::submit::pool_of;

const BAD: rustler::Error = rustler::Error::BadArg;

/// `{ok, Graph, Leaves}`, or `{error, Sentence}`. The nodes are a list of `{Name, Keys}` in External Term
/// Format; in their keys, a place in `limits` stands for a limit.
#[rustler::nif]
fn dag_new<'a>(
    env: Env<'a>,
    inputs: Vec<String>,
    nodes: Term<'a>,
    limits: Vec<Term<'a>>,
) -> NifResult<Term<'a>> {
    built(env, inputs, nodes, limits)
}

/// For many nodes.
#[rustler::nif(schedule = "DirtyCpu")]
fn dag_new_large<'a>(
    env: Env<'a>,
    inputs: Vec<String>,
    nodes: Term<'a>,
    limits: Vec<Term<'a>>,
) -> NifResult<Term<'a>> {
    built(env, inputs, nodes, limits)
}

fn built<'a>(
    env: Env<'a>,
    inputs: Vec<String>,
    nodes: Term<'a>,
    limits: Vec<Term<'a>>,
) -> NifResult<Term<'a>> {
    let limit = |term: &Term<'_>| Some(term.decode::<ResourceArc<LimitRef>>().ok()?.0.clone());
    let limits: Vec<Option<Limit>> = limits.iter().map(limit).collect();
    let nodes = binary_of(nodes).ok_or(BAD)?;
    Ok(match dag_graph::build(inputs, nodes, &limits) {
        Ok(graph) => {
            let leaves: Vec<usize> = graph.graph.leaves().collect();
            (atoms::ok(), ResourceArc::new(graph), leaves).encode(env)
        }
        Err(text) => (atoms::error(), text).encode(env),
    })
}

/// Makes the client for a URL. Dirty: a name is looked up.
#[rustler::nif(schedule = "DirtyIo")]
fn dag_redis(url: String) -> Result<Atom, String> {
    match pyloop::graph::open(&url) {
        Ok(_) => Ok(atoms::ok()),
        Err(why) => Err(why.to_string()),
    }
}

/// Forgets the clients and what the embedded store holds; sets the server of those who name none.
#[rustler::nif]
fn dag_default(url: String) -> Atom {
    pyloop::graph::close();
    pyloop::graph::set_default(&url);
    atoms::ok()
}

/// What a run is asked for with: `py_nif:dag_opts()`.
#[derive(NifMap)]
struct DagOpts<'a> {
    /// Milliseconds, or -1 for none.
    deadline: i64,
    partial: bool,
    /// Only what the wanted nodes need is run.
    restrict: bool,
    wanted: Vec<usize>,
    /// Bits: dot, svg, Chrome trace.
    pictures: u32,
    flags: u32,
    /// A URL; empty for the server of those who name none.
    redis: String,
    /// Where coroutines run, or `none`.
    event_loop: Term<'a>,
}

/// `{Key, Answer}` will come. Returns `{ok, Run}` or why not.
#[rustler::nif]
#[expect(
    clippy::too_many_arguments,
    reason = "one argument per word of the request"
)]
fn dag_run<'a>(
    env: Env<'a>,
    slot: ResourceArc<Slot>,
    key: Term<'a>,
    graph: ResourceArc<GraphRef>,
    pool: Term<'a>,
    runner: Term<'a>,
    inputs: Vec<(String, Term<'a>)>,
    opts: DagOpts<'a>,
) -> NifResult<Term<'a>> {
    let Some(pool) = pool_of(pool) else {
        return Ok(atoms::not_running().encode(env));
    };
    let Some(redis) = pyloop::graph::redis(&opts.redis) else {
        return Ok(atoms::no_client().encode(env));
    };
    let mut values = values_of(inputs)?;
    let mut wanted = opts.wanted;
    wanted.sort_unstable();
    let runner: Option<LocalPid> = runner.decode().ok();
    let context = Context {
        slot,
        pool,
        flags: opts.flags,
        runner,
        calls: Arc::default(),
        redis,
        event_loop: event_loop::loop_of(opts.event_loop),
        wanted,
        wanted_as: Needs::TERM,
    };
    let own = MsgEnv::new();
    let key = own.copy(key);
    let run = RunState::new(env.pid(), own, key, context);
    values.push((CONTEXT.to_owned(), Value::shared(run.context.clone())));
    let bound = match graph.graph.bind(values) {
        Ok(bound) => bound,
        Err(error) => return Ok((atoms::error(), error.to_string()).encode(env)),
    };
    let reference = ResourceArc::new(RunRef(run.clone()));
    for pid in [Some(env.pid()), runner].into_iter().flatten() {
        if reference.monitor(Some(env), &pid).is_none() {
            return Ok(atoms::not_running().encode(env));
        }
    }
    let wish = Wish {
        deadline: u64::try_from(opts.deadline).ok().map(Duration::from_millis),
        partial: opts.partial,
        restrict: opts.restrict,
        pictures: opts.pictures,
        bound,
    };
    let begun = match pyloop::graph::lanes() {
        Ok(lanes) => lanes.io().post(move || run.begin(&graph, wish)).is_ok(),
        Err(_) => false,
    };
    Ok(match begun {
        true => (atoms::ok(), reference).encode(env),
        false => atoms::overload().encode(env),
    })
}

fn values_of(inputs: Vec<(String, Term<'_>)>) -> NifResult<Vec<(String, Value)>> {
    let value = |(name, term)| {
        let bytes = encoded(term)?;
        Ok((name, Value::new(NodeValue::Term(bytes.into()))))
    };
    inputs.into_iter().map(value).collect()
}

/// A term with its version byte.
fn encoded(term: Term<'_>) -> NifResult<&[u8]> {
    let bytes = binary_of(term).ok_or(BAD)?;
    match bytes {
        [131, _, ..] => Ok(bytes),
        _ => Err(BAD),
    }
}

/// Ends a run soon; `silent`: its caller is not told, and nothing is sent once this has returned.
#[rustler::nif]
fn dag_cancel(run: ResourceArc<RunRef>, silent: bool) -> Atom {
    run.0.cancel(silent);
    atoms::ok()
}

/// What a function of Erlang gave: a value, or the reason why there is none.
#[rustler::nif]
fn dag_reply<'a>(run: ResourceArc<RunRef>, id: u64, ok: bool, bytes: Term<'a>) -> NifResult<Atom> {
    let bytes = encoded(bytes)?;
    let Some(done) = run.0.context.calls.take(id) else {
        return Ok(atoms::ok());
    };
    let result = match ok {
        true => Ok(Value::new(NodeValue::Term(bytes.into())).into()),
        // Without the version byte, as it stands inside of an answer.
        false => Err(Reason::foreign(TermReason(
            bytes.get(1..).unwrap_or_default().into(),
        ))),
    };
    complete(done, result);
    Ok(atoms::ok())
}

/// The children start where a node ends: not on a scheduler.
fn complete(done: Done, result: Result<Output, Reason>) {
    if let Ok(lanes) = pyloop::graph::lanes()
        && let Ok(task) = lanes
            .io()
            .spawn_admitted(async move { done.complete(result) })
    {
        task.detach();
    }
}

/// A function of Erlang asks for more nodes: the value of one of them becomes that of its own.
#[rustler::nif]
fn dag_more<'a>(
    run: ResourceArc<RunRef>,
    id: u64,
    graph: ResourceArc<GraphRef>,
    inputs: Vec<(String, Term<'a>)>,
    result: usize,
    event_loop: Term<'a>,
) -> NifResult<Atom> {
    let mut inputs = values_of(inputs)?;
    let name = graph.names.get(result).ok_or(BAD)?.clone();
    let Some(done) = run.0.context.calls.take(id) else {
        return Ok(atoms::ok());
    };
    let asked = Context {
        wanted: vec![result],
        wanted_as: Needs::TERM,
        event_loop: event_loop::loop_of(event_loop),
        ..Context::clone(&run.0.context)
    };
    inputs.push((CONTEXT.to_owned(), Value::new(asked)));
    let more = Expansion {
        graph: graph.graph.clone(),
        inputs,
        result: name,
    };
    complete(done, Ok(more.into()));
    Ok(atoms::ok())
}

/// A bound that nodes of any graph may share.
pub struct LimitRef(pub Limit);

#[rustler::resource_impl]
impl rustler::Resource for LimitRef {}

#[rustler::nif]
fn dag_limit(at_once: usize) -> ResourceArc<LimitRef> {
    ResourceArc::new(LimitRef(Limit::new(at_once)))
}
