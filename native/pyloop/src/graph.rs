//! Graphs, for the node and for the wheel: the lanes and the Redis clients of this process, the
//! commands of nodes, what Redis answers as Python objects; and graphs that Python itself runs.
//!
//! Thread: any.

mod build;
mod clients;
pub mod command;
pub(crate) mod functions;
mod lanes;
pub mod line;
pub mod more;
mod nodes;
mod queue;
pub mod reply;
mod report;
mod run;
pub mod shape;
mod stop;
mod values;

pub use clients::{close, open, redis, set_default};
pub(crate) use functions::Classes;
pub use lanes::lanes;
