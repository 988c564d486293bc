//! Nodes of a graph that Python runs: its own functions, coroutines, commands of Redis.
//!
//! Thread: handed over by any; run attached, on a thread of Python's.

use std::sync::{Arc, Mutex, PoisonError};

use dag::redis::Redis;
use dag::{Done, Given, Node, Reason, Stop, Value};
use pyrt::{Attached, Kept, Obj, PyError, PyResult, call, class};

use super::command::Commands;
use super::functions::Completion;
use super::queue::{Item, Queue};
use super::values::{self, PyValue, Raised};

/// What the nodes of one run share: their hidden first input.
pub struct Shared {
    pub redis: Redis,
}

pub struct Function {
    pub callable: Kept,
    /// A command takes its value.
    pub as_words: bool,
    /// Calling it gives a coroutine.
    pub is_async: bool,
}

/// What ends a coroutine that nobody waits for.
#[derive(Default)]
enum Ending {
    #[default]
    Unknown,
    Wanted,
    By(Kept),
}

/// A node on its way to a thread of Python's.
pub struct Call {
    function: Arc<Function>,
    given: Given,
    done: Done,
    ending: Arc<Mutex<Ending>>,
    queue: Arc<Queue>,
}

pub fn python(name: &str, function: Function, queue: &Arc<Queue>) -> Node {
    let (function, queue) = (Arc::new(function), queue.clone());
    Node::foreign(name, "python", move |given, done| {
        let ending = Arc::new(Mutex::new(Ending::default()));
        let call = Call {
            function: function.clone(),
            given,
            done,
            ending: ending.clone(),
            queue: queue.clone(),
        };
        queue.push(Item::Node(Box::new(call)));
        let queue = queue.clone();
        let stop: Stop = Box::new(move || {
            let mut ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::replace(&mut *ending, Ending::Wanted);
            drop(ending);
            if let Ending::By(cancel) = before {
                queue.push(Item::Call(cancel));
            }
        });
        Ok(stop)
    })
}

pub fn redis(name: &str, commands: Commands) -> Node {
    let commands = Arc::new(commands);
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
pub fn complete(done: Done, result: PyResult<'_, Obj<'_>>, as_words: bool) {
    done.complete(match result {
        Ok(value) => Ok(Value::new(PyValue::new(value, as_words)).into()),
        Err(error) => {
            let raised = Raised(Kept::new(error.value().clone()));
            Err(Reason::foreign(raised))
        }
    });
}

impl Call {
    pub fn run(self, py: Attached<'_>) {
        if !self.done.start() {
            return;
        }
        let result = self.invoke(py);
        let as_words = self.function.as_words;
        if !self.function.is_async {
            return complete(self.done, result, as_words);
        }
        match result {
            Ok(coroutine) => self.spawn(py, &coroutine),
            Err(error) => complete(self.done, Err(error), as_words),
        }
    }

    fn invoke<'py>(&self, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
        let values = self.given.values().iter().skip(1);
        let args = values.map(|value| values::to_python(py, value));
        let args: Vec<Obj<'py>> = args.collect::<Result<_, _>>()?;
        let Some(callable) = self.function.callable.get(py) else {
            let class = pyrt::error::Builtin::RuntimeError;
            let text = "a function of another interpreter";
            return Err(PyError::new(py, class, text));
        };
        callable.call_owned(&args, None)
    }

    /// Hands the coroutine to the loop of graphs, which completes the node.
    fn spawn<'py>(self, py: Attached<'py>, coroutine: &Obj<'py>) {
        let completion = Completion::new(self.done, self.function.as_words);
        let spawned = spawn(py, coroutine, completion);
        match spawned {
            Ok(cancel) => {
                let cancel = Kept::new(cancel);
                let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*ending, Ending::Wanted) {
                    drop(ending);
                    self.queue.push(Item::Call(cancel));
                } else {
                    *ending = Ending::By(cancel);
                }
            }
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
