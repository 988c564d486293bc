//! The typed way to build a graph: a node's inputs are ports of other nodes, so that neither an
//! unknown input nor a cycle nor a wrong type can be written down.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Error, Reason};
use crate::graph::{Builder, Graph};
use crate::node::{Given, Node};
use crate::report::Report;
use crate::value::Value;

/// The value of an input or of a node, to come.
pub struct Port<T> {
    name: Arc<str>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Port<T> {
    fn clone(&self) -> Self {
        Port {
            name: self.name.clone(),
            of: PhantomData,
        }
    }
}

impl<T> Port<T> {
    fn new(name: &str) -> Self {
        Port {
            name: name.into(),
            of: PhantomData,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Taken as `None` where the node was skipped, failed or gave nothing.
    pub fn maybe(&self) -> Maybe<T> {
        Maybe(self.clone())
    }
}

/// A port whose value may be absent.
pub struct Maybe<T>(Port<T>);

/// One input of a typed node.
pub trait Wired {
    type Item;
    fn wire(&self, node: Node) -> Node;
    fn take(value: &Value, index: usize) -> Result<Self::Item, Reason>;
}

impl<T: Any + Send + Sync> Wired for &Port<T> {
    type Item = Arc<T>;

    fn wire(&self, node: Node) -> Node {
        node.inputs([&*self.name])
    }

    fn take(value: &Value, index: usize) -> Result<Arc<T>, Reason> {
        let found = value.share();
        found.ok_or(Reason::Input(index, std::any::type_name::<T>()))
    }
}

impl<T: Any + Send + Sync> Wired for Maybe<T> {
    type Item = Option<Arc<T>>;

    fn wire(&self, node: Node) -> Node {
        node.maybe([&*self.0.name])
    }

    fn take(value: &Value, _: usize) -> Result<Option<Arc<T>>, Reason> {
        Ok(value.share())
    }
}

/// The inputs of a typed node: a tuple of ports.
pub trait Ports {
    type Args;
    fn wire(&self, node: Node) -> Node;
    fn take(values: &[Value]) -> Result<Self::Args, Reason>;
}

macro_rules! ports {
    ($($port:ident $index:tt),*) => {
        impl<$($port: Wired),*> Ports for ($($port,)*) {
            type Args = ($($port::Item,)*);

            fn wire(&self, node: Node) -> Node {
                $(let node = self.$index.wire(node);)*
                node
            }

            fn take(values: &[Value]) -> Result<Self::Args, Reason> {
                let absent = Value::absent();
                let _ = (&absent, values);
                Ok(($($port::take(values.get($index).unwrap_or(&absent), $index)?,)*))
            }
        }
    };
}

ports!();
ports!(A 0);
ports!(A 0, B 1);
ports!(A 0, B 1, C 2);
ports!(A 0, B 1, C 2, D 3);
ports!(A 0, B 1, C 2, D 3, E 4);
ports!(A 0, B 1, C 2, D 3, E 4, F 5);

/// Builds a graph from typed nodes.
///
/// ```
/// use dag::{Lanes, Options, Typed, Value};
/// # if dag::MODELLED { return Ok(()); }
///
/// let mut graph = Typed::new();
/// let word = graph.input::<String>("word");
/// let length = graph.cpu("length", (&word,), |(word,)| Ok(word.len()));
/// let shown = graph.io("shown", (&word, &length), |(word, length)| async move {
///     Ok(format!("{word} has {length} letters"))
/// });
/// let graph = graph.build()?;
/// let lanes = Lanes::start(1, 10)?;
/// let run = lanes.run(&graph, [("word", Value::new("seven".to_owned()))], Options::default())?;
/// assert_eq!(run.wait()?.of_port(&shown).as_deref().map(String::as_str), Some("seven has 5 letters"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Typed(Builder);

impl Typed {
    pub fn new() -> Self {
        Typed::default()
    }

    pub fn input<T>(&mut self, name: &str) -> Port<T> {
        self.0.add_input(name);
        Port::new(name)
    }

    pub fn cpu<P: Ports, T: Any + Send + Sync>(
        &mut self,
        name: &str,
        from: P,
        run: impl Fn(P::Args) -> Result<T, Reason> + Send + Sync + 'static,
    ) -> Port<T> {
        self.cpu_with(name, from, run, |node| node)
    }

    /// As `cpu`; `shape` adds what the node needs around it: a timeout, a condition.
    pub fn cpu_with<P: Ports, T: Any + Send + Sync>(
        &mut self,
        name: &str,
        from: P,
        run: impl Fn(P::Args) -> Result<T, Reason> + Send + Sync + 'static,
        shape: impl FnOnce(Node) -> Node,
    ) -> Port<T> {
        let body = move |given: &Given| run(P::take(given.values())?).map(Value::new);
        let node = from.wire(Node::cpu(name, body));
        self.0.add(shape(node));
        Port::new(name)
    }

    pub fn io<P: Ports, T: Any + Send + Sync, F>(
        &mut self,
        name: &str,
        from: P,
        run: impl Fn(P::Args) -> F + Send + Sync + 'static,
    ) -> Port<T>
    where
        F: Future<Output = Result<T, Reason>> + Send + 'static,
    {
        self.io_with(name, from, run, |node| node)
    }

    pub fn io_with<P: Ports, T: Any + Send + Sync, F>(
        &mut self,
        name: &str,
        from: P,
        run: impl Fn(P::Args) -> F + Send + Sync + 'static,
        shape: impl FnOnce(Node) -> Node,
    ) -> Port<T>
    where
        F: Future<Output = Result<T, Reason>> + Send + 'static,
    {
        let body = move |given: Given| {
            let doing = P::take(given.values()).map(&run);
            async move { doing?.await.map(Value::new) }
        };
        let node = from.wire(Node::io(name, body));
        self.0.add(shape(node));
        Port::new(name)
    }

    /// Only a name used twice can be wrong.
    pub fn build(self) -> Result<Graph, Error> {
        self.0.build()
    }
}

impl Report {
    /// The value of a typed node.
    pub fn of_port<T: Any + Send + Sync>(&self, port: &Port<T>) -> Option<Arc<T>> {
        self.value(&port.name)?.share()
    }
}
