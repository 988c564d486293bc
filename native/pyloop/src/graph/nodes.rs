//! Nodes of a graph that Python runs: its own functions, coroutines, commands of Redis.
//!
//! Thread: handed over by any; run attached, on a thread of Python's.

use std::sync::Arc;

use dag::redis::Redis;
use dag::{Done, Given, NoTurn, Node, Reason, Turn, Value};
use pyrt::{Attached, Kept, Obj, PyError, PyResult, call, class};

use super::command::Commands;
use super::functions::Completion;
use super::more;
use super::queue::{Item, Queue};
use super::stop::Stopping;
use super::values::{self, Needs, PyValue, Raised};

/// What the nodes of one run share: their hidden first input.
#[derive(Clone)]
pub struct Shared {
    pub redis: Redis,
    /// Where its functions run.
    pub queue: Arc<Queue>,
    /// Of a graph that a node asked for: the node whose value becomes that one's, and as what it is
    /// taken there.
    pub result: Option<(usize, Needs)>,
}

impl Shared {
    fn needs(&self, index: usize, own: Needs) -> Needs {
        match self.result {
            Some((result, outer)) if result == index => Needs {
                words: own.words || outer.words,
                condition: own.condition || outer.condition,
            },
            _ => own,
        }
    }
}

pub struct Function {
    pub callable: Arc<Kept>,
    /// The place of the node in its graph.
    pub index: usize,
    /// How many of the values it is given are its arguments.
    pub inputs: usize,
    pub needs: Needs,
    /// Calling it gives a coroutine.
    pub is_async: bool,
}

/// A node that runs.
struct Call {
    function: Arc<Function>,
    given: Given,
    done: Done,
    stopping: Stopping,
    shared: Shared,
}

/// Enough to keep the threads busy; of a wide graph the rest waits where it keeps no other run
/// from them.
static PYTHON: dag::Queue = dag::Queue {
    name: "python",
    at_once: 64,
    enter,
};

pub fn python(name: &str, function: Function) -> Node {
    Node::queued(name, &PYTHON, function)
}

fn enter(turn: Turn) -> Result<(), NoTurn> {
    let shared = turn.inputs().first().and_then(Value::share::<Shared>);
    let Some(shared) = shared else {
        return Err(NoTurn::Fails(turn, Reason::new("no threads")));
    };
    shared.queue.push(Item::Node(turn));
    Ok(())
}

/// Runs the node that is the most urgent now.
pub fn run(py: Attached<'_>, turn: Turn) {
    let Some(taken) = turn.take() else { return };
    let function = taken.function::<Function>();
    let shared = taken.given.get::<Shared>(0).cloned();
    let (Some(function), Ok(shared)) = (function, shared) else {
        return;
    };
    let stopping = Stopping::default();
    let (stops, queue) = (stopping.clone(), shared.queue.clone());
    taken.done.stops_by(Box::new(move || stops.stop(&queue)));
    let call = Call {
        function,
        given: taken.given,
        done: taken.done,
        stopping,
        shared,
    };
    call.run(py);
}

pub fn redis(name: &str, commands: Arc<Commands>) -> Node {
    Node::io(name, move |given: Given| {
        let commands = commands.clone();
        async move {
            let shared: &Shared = given.get(0)?;
            let words = |input: usize| match given.values().get(input + 1) {
                Some(value) => values::to_words(value),
                None => Err(Reason::new("an input that is not there")),
            };
            let filled = commands.fill(&words)?;
            Ok(Value::new(filled.ask(&shared.redis).await?))
        }
    })
}

/// Ends a node by what its function gave or raised.
pub fn complete<'py>(done: Done, result: PyResult<'py, Obj<'py>>, wish: &Wish) {
    let result = result.and_then(|value| match more::of(&value, wish) {
        Some(more) => Ok(more.into()),
        None => Ok(Value::new(PyValue::new(value, wish.needs)?).into()),
    });
    done.complete(result.map_err(|error| {
        let raised = Raised(Kept::new(error.value().clone()));
        Reason::foreign(raised)
    }));
}

/// What becomes of the value of a node.
pub struct Wish {
    pub needs: Needs,
    pub shared: Shared,
}

impl Call {
    fn run(self, py: Attached<'_>) {
        let Some(result) = self.stopping.watch(py, || self.invoke(py)) else {
            return;
        };
        let wish = Wish {
            needs: self.shared.needs(self.function.index, self.function.needs),
            shared: self.shared.clone(),
        };
        match result {
            Ok(coroutine) if self.function.is_async => self.spawn(py, &coroutine, wish),
            result => complete(self.done, result, &wish),
        }
    }

    fn invoke<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        let values = self.given.values().iter().skip(1);
        let args = values.take(self.function.inputs);
        let args = args.map(|value| values::to_python(py, value));
        let args: Vec<Obj<'py>> = args.collect::<Result<_, _>>()?;
        let Some(callable) = self.function.callable.get(py) else {
            let class = pyrt::error::Builtin::RuntimeError;
            let text = "a function of another interpreter";
            return Err(PyError::new(py, class, text));
        };
        callable.call_owned(&args, None)
    }

    /// Hands the coroutine to the loop of graphs, which completes the node.
    fn spawn<'py>(mut self, py: Attached<'py>, coroutine: &Obj<'py>, wish: Wish) {
        self.done.waits();
        let completion = Completion::new(self.done, wish);
        match spawn(py, coroutine, completion) {
            Ok(cancel) => self.stopping.awaits(Kept::new(cancel), &self.shared.queue),
            // The completion went with it, and so the node has ended.
            Err(error) => error.unraisable(c"a coroutine of a graph"),
        }
    }
}

fn spawn<'py>(
    py: Attached<'py>,
    coroutine: &Obj<'py>,
    completion: Completion,
) -> PyResult<'py, Obj<'py>> {
    let native = call::import_c(py, c"erlang._native")?;
    let class = crate::own(&native)?.graphs.completion.obj(py);
    let completion = class::instance(&class, completion)?;
    let module = call::import_c(py, c"erlang._dag_loop")?;
    module.call_method(c"spawn", &[coroutine, &completion])
}
