//! A node that asks Redis.
//!
//! Thread: the loop's.

use std::sync::Arc;

use dag::{Given, Node, Reason, Value};
use etf::Plain;
use pyloop::graph::command::{Commands, Words, no_words, of_reply, of_term};

use crate::dag_run::Context;
use crate::dag_value::{self, NodeValue};

pub fn node(name: &str, commands: Arc<Commands>) -> Node {
    Node::io(name, move |given: Given| {
        let commands = commands.clone();
        async move {
            let context: &Context = given.get(0)?;
            // The first value is the context.
            let words = |input: usize| match given.values().get(input + 1) {
                Some(value) => words_of(value),
                None => Err(Reason::new("an input that is not there")),
            };
            let filled = commands.fill(&words)?;
            let reply = filled.ask(&context.redis).await?;
            Ok(Value::new(NodeValue::Reply(reply)))
        }
    })
}

/// The words of a value; an error says what can't be one.
fn words_of(value: &Value) -> Result<Words, Reason> {
    let term = match dag_value::of(value) {
        Some(NodeValue::Reply(reply)) => return of_reply(reply, 0).ok_or_else(no_words),
        Some(NodeValue::Term(bytes)) => Plain::decode(bytes),
        Some(NodeValue::Python(made)) => made.term().and_then(Plain::inside),
        None => None,
    };
    term.and_then(|term| of_term(&term, 0)).ok_or_else(no_words)
}
