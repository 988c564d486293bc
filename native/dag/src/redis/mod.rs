//! A Redis client on the loop, and an embedded store that answers the same commands.
//!
//! One connection; all commands of a turn leave in one write, replies are taken in bulk and go to
//! their waiters in order. It always reads while it writes: a peer whose buffer is full gets room.
//!
//! ```
//! use dag::redis::Redis;
//! # if dag::MODELLED { return Ok(()); }
//!
//! let redis = Redis::embedded();
//! reactor::block_on(async {
//!     redis.set("colour", "red").await?;
//!     assert_eq!(redis.get("colour").await?.as_deref(), Some(&b"red"[..]));
//!     Ok::<(), dag::redis::Failure>(())
//! })?;
//! # Ok::<(), dag::redis::Failure>(())
//! ```

mod answer;
mod client;
mod command;
mod config;
mod connect;
mod drive;
mod failure;
mod link;
pub mod resp;
mod store;
mod tls;
mod typed;
mod wire;

pub use client::{Pipeline, Redis};
pub use command::Arg;
pub use config::{Address, Config};
pub use failure::Failure;
pub use resp::Reply;
pub use tls::Tls;
