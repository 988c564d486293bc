//! The functions of `erlang._native` for graphs, and the classes they give out.
//!
//! Thread: attached, the caller's.

use std::sync::{Arc, Mutex, PoisonError};

use dag::{Done, Error, Limit, Options, Value};
use pyrt::error::Builtin;
use pyrt::module::Args;
use pyrt::{Attached, Kept, Member, Obj, PyError, PyResult, class};

use super::arguments::{items, seconds, text, wrong};
use super::build::{Built, SHARED, build};
use super::more::More;
use super::nodes::{self, Shared, Wish};
use super::py_node::NodeBody;
use super::queue::{Duty, Queue};
use super::run::Run;
use super::values::PyValue;
use super::{clients, report as reports};
use crate::own;

/// What graphs need in each interpreter.
pub(crate) struct Classes {
    graph: Member,
    run: Member,
    pub node: Member,
    pub limit: Member,
    pub completion: Member,
    pub queue: Arc<Queue>,
}

impl Classes {
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Self> {
        let queue = Queue::default();
        let more = Kept::new(class::make::<More>(module)?);
        let _ = queue.more.set(more);
        Ok(Classes {
            graph: Member::new(class::make::<GraphBody>(module)?),
            run: Member::new(class::make::<RunBody>(module)?),
            node: Member::new(class::make::<NodeBody>(module)?),
            limit: Member::new(class::make::<LimitBody>(module)?),
            completion: Member::new(class::make::<Completion>(module)?),
            queue: Arc::new(queue),
        })
    }
}

/// Declares a class that is only handed about.
macro_rules! handed {
    ($body:ident, $name:expr, $doc:expr) => {
        impl class::Class for $body {
            const NAME: &'static std::ffi::CStr = $name;
            const DOC: &'static std::ffi::CStr = $doc;

            fn repr(&self) -> String {
                format!("<{}>", $name.to_string_lossy())
            }

            fn hash(&self) -> u64 {
                std::ptr::from_ref(self) as u64
            }

            fn equal(&self, other: &Self) -> bool {
                std::ptr::eq(self, other)
            }
        }
    };
}

struct GraphBody(Arc<Built>);
struct RunBody(Run);
pub struct LimitBody(pub Limit);
/// The end of a node that is in the hands of Python.
pub(crate) struct Completion {
    done: Mutex<Option<Done>>,
    wish: Wish,
}

handed!(GraphBody, c"erlang._native.DagGraph", c"A graph, checked.");
handed!(RunBody, c"erlang._native.DagRun", c"A run of a graph.");
handed!(
    LimitBody,
    c"erlang._native.DagLimit",
    c"How many nodes run at once."
);
handed!(
    Completion,
    c"erlang._native.DagCompletion",
    c"The end of a node."
);

impl Completion {
    pub fn new(done: Done, wish: Wish) -> Self {
        let done = Mutex::new(Some(done));
        Completion { done, wish }
    }

    fn end<'py>(&self, result: PyResult<'py, Obj<'py>>) {
        let done = self
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(done) = done {
            nodes::complete(done, result, &self.wish);
        }
    }
}

type Given<'a, 'py> = (&'a Obj<'py>, &'a Args<'a, 'py>);

/// Runs `body` with the run that is the first argument.
fn with_run<'py, T>(
    (module, args): Given<'_, 'py>,
    body: impl FnOnce(&Run) -> PyResult<'py, T>,
) -> PyResult<'py, T> {
    let run = args.want(0, "run")?;
    let class = own(module)?.graphs.run.get(args.py());
    match class::body::<RunBody>(&run, &class) {
        Some(run) => body(&run.0),
        None => Err(wrong(args.py())),
    }
}

/// Gives the graph, the names of its inputs, and the places of the nodes that no other one takes.
pub(crate) fn new<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let graphs = &own(module)?.graphs;
    let built = build(
        &*args.want(0, "inputs")?,
        &*args.want(1, "nodes")?,
        &graphs.node.get(py),
    )?;
    let inputs = built.inputs.iter().map(|name| Obj::text(py, name));
    let inputs: Vec<Obj<'py>> = inputs.collect::<Result<_, _>>()?;
    let leaves = Obj::list_new(py)?;
    for place in built.graph.leaves() {
        leaves.list_append(&Obj::int(py, place as i64)?)?;
    }
    let graph = class::instance(&graphs.graph.get(py), GraphBody(Arc::new(built)))?;
    let inputs = Obj::tuple(py, inputs.into_iter())?;
    Obj::tuple(py, [graph, inputs, leaves].into_iter())
}

/// A bound that nodes may share.
pub(crate) fn limit<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let count = args.want(0, "at_once")?.as_i64()?;
    let count = count.and_then(|count| usize::try_from(count).ok());
    let Some(count) = count.filter(|count| *count > 0) else {
        let text = "a limit is a number above zero";
        return Err(PyError::new(py, Builtin::ValueError, text));
    };
    let limit = LimitBody(Limit::new(count));
    class::instance(&own(module)?.graphs.limit.get(py), limit)
}

/// What a run was asked for with: `(timeout, partial, restrict, wanted, redis, threads)`.
struct Asked {
    options: Options,
    wanted: Vec<usize>,
    redis: String,
    threads: usize,
}

impl Asked {
    fn of<'py>(given: &Obj<'py>, built: &Built) -> PyResult<'py, Self> {
        let py = given.py();
        let option = |index: usize| {
            let item = given.is_tuple().then(|| given.tuple_item(index)).flatten();
            item.map(|item| item.clone()).ok_or_else(|| wrong(py))
        };
        let number = |object: Obj<'py>| {
            let number = object.as_i64()?.and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| wrong(py))
        };
        let wanted = items(&option(3)?)?.into_iter().map(number);
        let wanted: Vec<usize> = wanted.collect::<Result<_, _>>()?;
        let mut options = Options::default();
        if let Some(time) = seconds(&option(0)?)? {
            options = options.deadline(time);
        }
        if option(1)?.is_truthy()? {
            options = options.partial();
        }
        if option(2)?.is_truthy()? {
            options = options.want(wanted.iter().filter_map(|index| built.name(*index)));
        }
        Ok(Asked {
            options,
            wanted,
            redis: text(&option(4)?)?,
            threads: number(option(5)?)?,
        })
    }
}

pub fn inputs_of<'py>(list: &Obj<'py>, built: &Built) -> PyResult<'py, Vec<(String, Value)>> {
    let mut inputs = Vec::new();
    for pair in items(list)? {
        let (Some(name), Some(value)) = (pair.tuple_item(0), pair.tuple_item(1)) else {
            return Err(wrong(list.py()));
        };
        let name = text(&name)?;
        let value = PyValue::new(value.clone(), built.needs(&name))?;
        inputs.push((name, Value::new(value)));
    }
    Ok(inputs)
}

/// The graph that is the first argument.
pub fn graph_of<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Arc<Built>> {
    let graph = args.want(0, "graph")?;
    let class = own(module)?.graphs.graph.get(args.py());
    match class::body::<GraphBody>(&graph, &class) {
        Some(graph) => Ok(graph.0.clone()),
        None => Err(wrong(args.py())),
    }
}

/// Gives the run, and how many threads the caller is to start: for nodes, for errands.
pub(crate) fn run<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    let graphs = &own(module)?.graphs;
    let built = &graph_of(module, args)?;
    let wish = Asked::of(&*args.want(2, "options")?, built)?;
    // A name may be looked up.
    let redis = py.detach(|| clients::open(&wish.redis));
    let redis = redis.map_err(|why| PyError::new(py, Builtin::ValueError, &why.to_string()))?;
    let mut inputs = inputs_of(&*args.want(1, "inputs")?, built)?;
    let shared = Shared {
        redis,
        queue: graphs.queue.clone(),
        result: None,
    };
    inputs.push((SHARED.to_owned(), Value::new(shared)));
    let queue = &graphs.queue;
    let more = queue.enter(wish.threads);
    let started = py.detach(|| Run::start(built, inputs, wish.options, wish.wanted, queue));
    let run = started.map_err(|error| {
        queue.leave();
        for (duty, count) in [Duty::Nodes, Duty::Errands].into_iter().zip(more) {
            (0..count).for_each(|_| queue.lost(duty));
        }
        refused(py, &error)
    })?;
    let run = class::instance(&graphs.run.get(py), RunBody(run))?;
    let [nodes, errands] = more.map(|count| Obj::int(py, count as i64));
    Obj::tuple(py, [run, nodes?, errands?].into_iter())
}

fn refused<'py>(py: Attached<'py>, error: &Error) -> PyError<'py> {
    let class = match error {
        Error::MissingInput(_) | Error::UnusedInput(_) | Error::UnknownNode(_) => {
            Builtin::ValueError
        }
        _ => Builtin::RuntimeError,
    };
    PyError::new(py, class, &error.to_string())
}

pub(crate) fn wait<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let py = args.py();
    with_run((module, args), |run| {
        let time = seconds(&*args.want(1, "seconds")?)?;
        Ok(Obj::bool(py, py.detach(|| run.wait(time))))
    })
}

pub(crate) fn notify<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    with_run((module, args), |run| {
        run.notify(Kept::new(args.want(1, "fn")?.clone()));
        Ok(Obj::none(args.py()))
    })
}

pub(crate) fn cancel<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    with_run((module, args), |run| {
        args.py().detach(|| run.cancel());
        Ok(Obj::none(args.py()))
    })
}

pub(crate) fn report<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    with_run((module, args), |run| {
        let pictures = args.want(1, "pictures")?.as_i64()?.unwrap_or_default();
        reports::report(args.py(), run, pictures as usize)
    })
}

/// The first argument: whether it is about errands, or about nodes.
fn duty<'py>(args: &Args<'_, 'py>) -> PyResult<'py, Duty> {
    Ok(match args.want(0, "errands")?.is_truthy()? {
        true => Duty::Errands,
        false => Duty::Nodes,
    })
}

pub(crate) fn work<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let queue = own(module)?.graphs.queue.clone();
    queue.work(args.py(), duty(args)?);
    Ok(Obj::none(args.py()))
}

pub(crate) fn lost<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    own(module)?.graphs.queue.lost(duty(args)?);
    Ok(Obj::none(args.py()))
}

pub(crate) fn close_queue<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    own(module)?.graphs.queue.close();
    Ok(Obj::none(args.py()))
}

/// Runs `body` with the end of a node that is the first argument.
fn with_completion<'py>(
    (module, args): Given<'_, 'py>,
    body: impl FnOnce(&Completion),
) -> PyResult<'py, Obj<'py>> {
    let completion = args.want(0, "completion")?;
    let class = own(module)?.graphs.completion.get(args.py());
    match class::body::<Completion>(&completion, &class) {
        Some(completion) => body(completion),
        None => return Err(wrong(args.py())),
    }
    Ok(Obj::none(args.py()))
}

pub(crate) fn complete<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let value = args.want(1, "value")?.clone();
    with_completion((module, args), |completion| completion.end(Ok(value)))
}

pub(crate) fn fail<'py>(module: &Obj<'py>, args: &Args<'_, 'py>) -> PyResult<'py, Obj<'py>> {
    let error = PyError::from_value(args.want(1, "error")?.clone());
    with_completion((module, args), |completion| completion.end(Err(error)))
}
