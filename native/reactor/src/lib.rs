//! Readiness, timers, posting and stopping of one loop. Knows neither Python nor the BEAM.
//!
//! `Reactor::turn` runs one turn for a `Host`: it waits for descriptors, timers and posts, and
//! hands what is ready to the host, which decides what a work item is (a Python callback, a Rust
//! future). Sources and timers belong to the loop's thread; everyone else has a `Poster` (I5).
#![forbid(unsafe_code)]

pub mod clock;
pub mod event_loop;
pub mod inbox;
pub mod key;
pub mod poller;
pub mod sync;
pub mod timer;
pub mod turn;

pub use event_loop::EventLoop;
pub use inbox::{Poster, Refused};
pub use key::Key;
pub use poller::Readiness;
pub use timer::TimerKey;
pub use turn::{Host, Outcome, Reactor};
