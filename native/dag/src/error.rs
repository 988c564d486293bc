//! What can go wrong: with a graph, with a run, with a node.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::run::DEEPEST;

/// Why a graph was refused or a run gave no report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Two nodes, or a node and an input, of one name.
    Duplicate(String),
    /// `node` asks for what the graph does not have.
    UnknownInput {
        node: String,
        input: String,
    },
    /// The nodes of a circle, the first one again at the end.
    Cycle(Vec<String>),
    /// The run was started without this input.
    MissingInput(String),
    /// The run was given an input that the graph does not take.
    UnusedInput(String),
    /// The run was asked for a node that the graph does not have.
    UnknownNode(String),
    /// A node failed, and with it the run.
    Node {
        node: String,
        reason: Reason,
    },
    /// The run took longer than it was given.
    Deadline,
    Cancelled,
    /// The lanes have stopped.
    Stopped,
    /// As many runs wait as the bound allows.
    Full,
    /// The system gave no thread or no descriptor.
    System(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Duplicate(name) => write!(f, "the name {name} is used twice"),
            Error::UnknownInput { node, input } => {
                write!(
                    f,
                    "node {node} needs {input}, which is neither a node nor an input"
                )
            }
            Error::Cycle(path) => write!(f, "the graph has a cycle: {}", path.join(" -> ")),
            Error::MissingInput(name) => write!(f, "the run has no input {name}"),
            Error::UnusedInput(name) => write!(f, "the graph takes no input {name}"),
            Error::UnknownNode(name) => write!(f, "the graph has no node {name}"),
            Error::Node { node, reason } => write!(f, "node {node}: {reason}"),
            Error::Deadline => f.write_str("the run's deadline has passed"),
            Error::Cancelled => f.write_str("the run was cancelled"),
            Error::Stopped => f.write_str("the lanes have stopped"),
            Error::Full => f.write_str("too many runs at once"),
            Error::System(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// Why a node failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// What its function said.
    Failed(String),
    Panicked(String),
    TimedOut,
    /// An input is not there, or of another type.
    Input(usize, &'static str),
    /// A lane stopped under it.
    Stopped,
    /// It asks for more nodes, as those have that it stands for, and so on.
    TooDeep,
    /// What the other side of a foreign node said, in a form of its own.
    Foreign(Cause),
}

/// A failure that only the side it came from can read. Equal if it is the same one.
#[derive(Clone)]
pub struct Cause(Arc<dyn Any + Send + Sync>);

impl Cause {
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause(..)")
    }
}

impl Reason {
    pub fn new(what: impl fmt::Display) -> Self {
        Reason::Failed(what.to_string())
    }

    pub fn foreign<T: Any + Send + Sync>(cause: T) -> Self {
        Reason::Foreign(Cause(Arc::new(cause)))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Failed(what) => f.write_str(what),
            Reason::Panicked(what) => write!(f, "panicked: {what}"),
            Reason::TimedOut => f.write_str("timed out"),
            Reason::Input(index, wanted) => write!(f, "input {index} is not a {wanted}"),
            Reason::Stopped => f.write_str("the lane has stopped"),
            Reason::TooDeep => write!(f, "nodes ask for more nodes over {DEEPEST} levels deep"),
            Reason::Foreign(_) => f.write_str("failed"),
        }
    }
}

// `Reason` is no `Error` itself, so that `?` turns every error of a node's function into one.
impl<E: std::error::Error> From<E> for Reason {
    fn from(error: E) -> Self {
        Reason::Failed(error.to_string())
    }
}
