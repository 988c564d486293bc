//! What surrounds the codec: a node, or nothing.

use std::sync::Arc;

use pyrt::buffer::Memory;
use pyrt::{Attached, Obj};

use crate::error::{Error, Res};

pub const DEFAULT_MAX_DEPTH: usize = 1000;

/// The stack that one level of nesting takes at most, measured: a mapping within a mapping.
const STACK_PER_LEVEL: usize = if cfg!(debug_assertions) { 3072 } else { 1024 };

/// Whatever the host says, deeper than this is not safe on the 8 MiB of a usual thread, where the
/// system does not tell how much there is.
const HARD_MAX_DEPTH: usize = (6 << 20) / STACK_PER_LEVEL;

/// Stack for the Python code that a conversion may call at its deepest; half of what is left, where
/// there is less.
const RESERVE: usize = 512 << 10;

/// How deep a conversion on the calling thread may nest.
fn depth_of_stack() -> usize {
    let left = pyrt::thread::stack_left();
    let room = left - RESERVE.min(left / 2);
    (room / STACK_PER_LEVEL).min(HARD_MAX_DEPTH)
}

/// How many values are converted between two looks at `Host::cancelled`.
const TICKS: u32 = 4096;

/// A node as terms name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeId {
    /// UTF-8
    pub name: Vec<u8>,
    pub creation: u32,
}

impl Default for NodeId {
    /// A node that is none.
    fn default() -> Self {
        NodeId {
            name: b"nonode@nohost".to_vec(),
            creation: 0,
        }
    }
}

/// What the codec asks while it converts. The defaults are those of a process that is no node.
pub trait Host {
    /// The node of *now*; asked at most once per conversion, when a pid or the like is met.
    fn node(&self) -> NodeId {
        NodeId::default()
    }

    /// The object that `{'$py_ref', Interp, Index, Generation, _}` stands for.
    fn object<'py>(
        &self,
        _py: Attached<'py>,
        _interp: u64,
        _index: u64,
        _generation: u64,
    ) -> Option<Obj<'py>> {
        None
    }

    /// The owner of an input segment's memory, for `{view, Bin}`.
    fn segment_owner(&self, _segment: usize) -> Option<Arc<dyn Memory>> {
        None
    }

    /// Looked at every 4096 values, in both directions.
    fn cancelled(&self) -> bool {
        false
    }

    /// The bound that was set; the stack of the calling thread may set a lower one.
    fn max_depth(&self) -> usize {
        DEFAULT_MAX_DEPTH
    }

    /// Whether the node can read this `fun M:F/A` (without the 131). It refuses a function of a module
    /// that is not loaded, which can be handed to Python all the same.
    fn knows(&self, _fun: &[u8]) -> bool {
        true
    }
}

/// Outside a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNode;

impl Host for NoNode {}

/// The bounds of one conversion: its depth, and its cancellation.
pub(crate) struct Limits<'h> {
    pub host: &'h dyn Host,
    ticks: u32,
    depth: usize,
    node: Option<NodeId>,
}

impl<'h> Limits<'h> {
    pub fn new(host: &'h dyn Host) -> Self {
        Limits {
            host,
            ticks: TICKS,
            depth: host.max_depth().min(depth_of_stack()),
            node: None,
        }
    }

    /// One more value.
    #[inline]
    pub fn tick<'py>(&mut self) -> Res<'py, ()> {
        self.ticks -= 1;
        if self.ticks == 0 {
            return self.look();
        }
        Ok(())
    }

    #[cold]
    fn look<'py>(&mut self) -> Res<'py, ()> {
        self.ticks = TICKS;
        if self.host.cancelled() {
            return Err(Box::new(Error::Cancelled));
        }
        Ok(())
    }

    /// Into a container. After an error nobody leaves: the conversion is over.
    #[inline]
    pub fn enter<'py>(&mut self) -> Res<'py, ()> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(Box::new(Error::TooDeep)),
        }
    }

    #[inline]
    pub fn leave(&mut self) {
        self.depth += 1;
    }

    pub fn node(&mut self) -> &NodeId {
        self.node.get_or_insert_with(|| self.host.node())
    }
}
