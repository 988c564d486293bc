//! The Python runtime made safe: the one wall around raw Python calls.
//!
//! `Attached` proves that this thread may touch Python objects; `Obj` is an owned reference that
//! can't outlive it; `Kept` is a reference that may be stored and moved, and is released by a
//! thread that is attached (I1).

pub mod args;
pub mod attach;
pub mod attributes;
pub mod awaitable;
pub mod buffer;
pub mod call;
pub mod class;
pub mod contain;
pub mod container;
pub mod context;
pub mod coroutine;
pub mod deferred;
pub mod embed;
pub mod error;
pub mod exit;
pub mod fill;
pub mod flag;
pub mod fork;
pub mod frames;
mod held;
pub mod int;
pub mod interrupt;
pub mod kept;
pub mod kind;
pub mod member;
pub mod memory;
pub mod method;
pub mod module;
pub mod native;
pub mod object;
pub mod running;
pub mod section;
pub mod subinterp;
pub mod text;
pub mod thread;

pub use attach::Attached;
pub use attributes::Attributes;
pub use contain::{Panicked, contain};
pub use error::{PyError, PyResult};
pub use exit::Parks;
pub use flag::{Flag, Number};
pub use kept::Kept;
pub use member::{Member, Place, Visit};
pub use object::{Borrowed, Obj};

/// `(major, minor)` of the Python this library was built for.
pub const BUILT_FOR: (u32, u32) = if cfg!(Py_3_15) {
    (3, 15)
} else if cfg!(Py_3_14) {
    (3, 14)
} else if cfg!(Py_3_13) {
    (3, 13)
} else if cfg!(Py_3_12) {
    (3, 12)
} else {
    (3, 11)
};

/// Whether this library was built for a free-threaded Python.
pub const FREE_THREADED: bool = cfg!(Py_GIL_DISABLED);
