//! Graphs, for the node and for the wheel: the lanes and the Redis clients of this process, the
//! commands of nodes, what Redis answers as Python objects; and graphs that Python itself runs.
//!
//! Thread: any.

mod arguments;
mod build;
mod clients;
pub mod command;
pub mod describe;
pub(crate) mod functions;
mod key;
mod lanes;
pub mod more;
mod nodes;
pub(crate) mod py_node;
mod queue;
pub mod reply;
mod report;
mod run;
mod stop;
mod values;

pub use clients::{close, open, redis, set_default};
pub(crate) use functions::Classes;
pub use lanes::lanes;
pub use py_node::PyNode;
