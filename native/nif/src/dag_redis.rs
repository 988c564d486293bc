//! A node that asks Redis.
//!
//! Thread: the loop's.

use std::sync::Arc;

use dag::{Given, Node, Reason, Value};
use pyloop::graph::command::Commands;

use crate::dag_run::Context;
use crate::dag_value::NodeValue;
use crate::dag_words;

pub fn node(name: &str, commands: Arc<Commands>) -> Node {
    Node::io(name, move |given: Given| {
        let commands = commands.clone();
        async move {
            let context: &Context = given.get(0)?;
            // The first value is the context.
            let words = |input: usize| match given.values().get(input + 1) {
                Some(value) => dag_words::of(value),
                None => Err(Reason::new("an input that is not there")),
            };
            let filled = commands.fill(&words)?;
            let reply = filled.ask(&context.redis).await?;
            Ok(Value::new(NodeValue::Reply(reply)))
        }
    })
}
