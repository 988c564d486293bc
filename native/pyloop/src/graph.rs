//! Graphs, for the node and for the wheel: the lanes and the Redis clients of this process, and
//! what Redis answers as Python objects.
//!
//! Thread: any.

mod clients;
mod lanes;
pub mod reply;

pub use clients::{close, open, redis};
pub use lanes::lanes;
