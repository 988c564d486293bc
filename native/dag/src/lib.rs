//! Graphs of CPU and I/O nodes: CPU nodes use every core, hundreds of I/O nodes wait on one loop.
//!
//! `admit → run → complete`: a node whose inputs are there is admitted to its lane, runs, and its
//! completion counts its children down. Knows neither Python nor the BEAM.
//!
//! ```
//! use dag::{Graph, Lanes, Node, Options, Value};
//! # if dag::MODELLED { return Ok(()); }
//!
//! let lanes = Lanes::start(2, 1000)?;
//! let graph = Graph::builder()
//!     .input("a")
//!     .node(Node::cpu("double", |given| Ok(Value::new(given.get::<u32>(0)? * 2))).inputs(["a"]))
//!     .build()?;
//! let run = lanes.run(&graph, [("a", Value::new(21_u32))], Options::default())?;
//! assert_eq!(run.wait()?.get::<u32>("double"), Some(&42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod admit;
mod attempt;
mod cancel;
mod complete;
mod contain;
mod cpu_lane;
mod error;
mod foreign;
mod graph;
mod lanes;
mod limit;
#[cfg(all(test, loom))]
mod models;
mod node;
mod oneshot;
pub mod picture;
mod queued;
mod ready;
pub mod redis;
mod report;
mod run;
mod since;
mod sleepers;
mod state;
mod sync;
mod ticket;
mod typed;
mod value;

pub use error::{Cause, Error, Reason};
pub use foreign::{Done, Place, Refusal, Stop};
pub use graph::{Bound, Builder, Graph};
pub use lanes::Lanes;
pub use limit::Limit;
pub use node::{Expansion, Given, Kind, Node, Output, Policy};
pub use queued::{NoTurn, Queue, Taken, Turn};
pub use report::{NodeReport, Outcome, Report};
pub use run::{Lane, Options, RunHandle};
pub use typed::{Maybe, Port, Ports, Typed};
pub use value::Value;

/// Whether this is the build for loom's models, where nothing else can run: examples end at once.
#[doc(hidden)]
pub const MODELLED: bool = cfg!(loom);
