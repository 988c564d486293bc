//! The HTTP/1.1 and WebSocket server: a protocol of the loop, in Rust, that calls an ASGI application.
//!
//! Way E: transport → `connection` → `incoming` (`head`, `chunked`) → `scope` → `run` calls the
//! application → `request` (`receive`, `send`, `wait`) → `respond` or `ws` → transport.
//! Thread: the loop's own (`home`); others may ask a server for its numbers, and call `receive` and `send`.

mod chunked;
mod config;
mod connection;
mod forwarded;
#[cfg(test)]
mod fuzz;
mod head;
mod home;
mod incoming;
mod log;
pub mod options;
mod request;
mod respond;
mod run;
mod scope;
mod server;
mod share;
mod status;
mod types;
mod wait;
mod ws;

pub(crate) use types::Types;
