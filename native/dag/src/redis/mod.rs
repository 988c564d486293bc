//! A Redis client on the loop, and an embedded store that answers the same commands.
//!
//! One connection, or a few; all commands of a turn leave in one write, replies are taken in bulk and go to
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
//!
//! `Redis::open(lanes.io(), Config::parse("redis://localhost")?)` is the same for a server. Reads are
//! nodes of a graph like any other:
//!
//! ```
//! use dag::redis::{Redis, Reply};
//! use dag::{Graph, Lanes, Node, Options, Value};
//! # if dag::MODELLED { return Ok(()); }
//!
//! let redis = Redis::embedded();
//! let mut graph = Graph::builder();
//! for n in 0..300 {
//!     let redis = redis.clone();
//!     graph.add(Node::io(&format!("clicks:{n}"), move |_| {
//!         let redis = redis.clone();
//!         async move { Ok(Value::new(redis.cmd(["INCR".to_owned(), format!("clicks:{n}")]).await?)) }
//!     }));
//! }
//! let total = Node::cpu("total", |given| {
//!     let replies = given.values().iter().filter_map(Value::get::<Reply>);
//!     Ok(Value::new(replies.filter(|reply| **reply == Reply::Int(1)).count()))
//! });
//! graph.add(total.inputs((0..300).map(|n| format!("clicks:{n}"))));
//! let lanes = Lanes::start(2, 10)?;
//! let run = lanes.run(&graph.build()?, [("", Value::absent()); 0], Options::default())?;
//! assert_eq!(run.wait()?.get::<usize>("total"), Some(&300));
//! # Ok::<(), Box<dyn std::error::Error>>(())
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
mod shared;
mod store;
mod tls;
mod typed;
mod url;
mod wire;

pub use client::{Pipeline, Redis};
pub use command::Arg;
pub use config::{Address, Config};
pub use failure::Failure;
pub use resp::Reply;
pub use tls::Tls;
