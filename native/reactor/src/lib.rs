//! Readiness, timers, posting and stopping of one loop. Knows neither Python nor the BEAM.
//!
//! `Reactor::turn` runs one turn for a `Host`: it waits for descriptors, timers and posts, and
//! hands what is ready to the host, which decides what a work item is (a Python callback, a Rust
//! future). Sources and timers belong to the loop's thread; everyone else has a `Poster` (I5).
//!
//! `TaskLoop` is the loop most people want: functions and futures on a thread of its own.
//!
//! ```
//! use std::time::Duration;
//! use reactor::{TaskLoop, block_on};
//! # if reactor::MODELLED { return Ok(()); }
//!
//! let tasks = TaskLoop::start("example", 100)?;
//! let clock = tasks.handle().clone();
//! let waiting: Vec<_> = (0..50)
//!     .map(|n| {
//!         let clock = clock.clone();
//!         tasks.handle().spawn_admitted(async move {
//!             clock.sleep(Duration::from_millis(1)).await?;
//!             Ok::<_, reactor::Stopped>(n)
//!         })
//!     })
//!     .collect::<Result<_, _>>()?;
//! // Fifty futures wait on one thread, and any thread may wait for them.
//! for (n, future) in waiting.into_iter().enumerate() {
//!     assert_eq!(block_on(future)??, n);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod block_on;
pub mod clock;
mod desk;
pub mod event_loop;
pub mod inbox;
pub mod key;
pub mod own;
pub mod poller;
mod runner;
pub mod signal;
pub mod sleep;
mod source;
pub mod sync;
pub mod task_loop;
pub mod timer;
pub mod turn;
pub mod watch;

pub use block_on::block_on;
pub use clock::Moment;
pub use desk::Call;
pub use event_loop::EventLoop;
pub use inbox::{Poster, Refused};
pub use key::Key;
pub use poller::Readiness;
pub use sleep::{Sleep, Stopped};
pub use task_loop::{Cancelled, Handle, Spawned, TaskLoop};
pub use timer::TimerKey;
pub use turn::{Host, Outcome, Reactor};
pub use watch::Watch;

/// Whether this is the build for loom's models, where nothing else can run: examples end at once.
#[doc(hidden)]
pub const MODELLED: bool = cfg!(loom);
