//! External Term Format to Python objects and back, straight: no tree in between.
//!
//! Thread: any attached one. Never: makes an atom, trusts a length, waits.
//!
//! What becomes what is the table of API.md, section 2. The way in: `input` (bytes) → `decode`
//! (values, containers) → `tagged` (tuples that mean something else), `structure` (structs of
//! Elixir) → `handle` (pids and the like). The way out: `value` (the top) → `encode` (exact built-in types) → `other` (all other
//! classes) → `array` (numpy). `plain` is for terms that no Python is to see.
#![forbid(unsafe_code)]

mod array;
mod atom;
mod call;
mod decode;
mod encode;
mod error;
mod handle;
mod host;
mod input;
mod names;
mod other;
mod peek;
mod plain;
mod repr;
mod structure;
pub mod tag;
mod tagged;
mod types;
mod value;
pub mod write;

pub use call::{Call, Named, decode_call};
pub use decode::{decode, decode_plain};
pub use encode::{Summary, encode};
pub use error::Error;
pub use host::{DEFAULT_MAX_DEPTH, Host, NoNode, NodeId};
pub use input::Input;
pub use peek::{callee, is_destination, node_of_destination, node_of_pid};
pub use plain::{Plain, is_false};
pub use pyrt::buffer::Held as Buffer;
pub use types::{Bound, Types};
pub use value::{LENT_FROM, Value, into_value, to_value};
