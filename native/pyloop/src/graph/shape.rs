//! What stands around the function of a node, whoever describes the graph.
//!
//! Thread: any.

use std::time::Duration;

use dag::{Limit, Node, Value};

#[derive(Default)]
pub struct Shape {
    /// What it is given, and whether that may be missing.
    pub inputs: Vec<(String, bool)>,
    pub timeout: Option<Duration>,
    pub retries: u32,
    pub backoff: Duration,
    pub hedge: Option<Duration>,
    /// The node or input that must be true.
    pub condition: Option<String>,
    pub limit: Option<Limit>,
}

impl Shape {
    /// `shared` is the hidden input that every node has first, `is_true` what conditions ask.
    pub fn give(&self, node: Node, shared: &str, is_true: fn(&Value) -> bool) -> Node {
        let mut node = node.inputs([shared]);
        for (name, maybe) in &self.inputs {
            node = match maybe {
                true => node.maybe([name]),
                false => node.inputs([name]),
            };
        }
        if let Some(condition) = &self.condition {
            // The last of the values, which no function is given.
            let holds = move |values: &[Value]| values.last().is_some_and(is_true);
            node = node.inputs([condition]).when(holds);
        }
        if let Some(limit) = &self.limit {
            node = node.limit(limit);
        }
        if let Some(time) = self.timeout {
            node = node.timeout(time);
        }
        if self.retries > 0 {
            node = node.retries(self.retries, self.backoff);
        }
        if let Some(time) = self.hedge {
            node = node.hedge(time);
        }
        node
    }
}
