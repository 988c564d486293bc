//! A node that asks Redis: its commands, with the values of its inputs put in.
//!
//! Thread: the loop's.

use dag::redis::{Failure, Redis, Reply};
use dag::{Given, Node, Reason, Value};

use crate::dag_run::Context;
use crate::dag_value::NodeValue;
use crate::dag_words::{self, Words};

/// A place in a command.
pub enum Part {
    Text(Vec<u8>),
    /// The value of an input: a list is as many words.
    Input(usize),
    /// One word made of several.
    Join(Vec<Part>),
}

pub enum Commands {
    One(Vec<Part>),
    Many(Vec<Vec<Part>>),
    /// The value of an input: a list of commands.
    Given(usize),
}

type Command = Vec<Vec<u8>>;

pub fn node(name: &str, commands: Commands) -> Node {
    let commands = std::sync::Arc::new(commands);
    Node::io(name, move |given: Given| {
        let commands = commands.clone();
        async move {
            let context: &Context = given.get(0)?;
            let redis = context.redis.clone();
            let reply = match &*commands {
                Commands::One(parts) => one(&redis, fill(parts, &given)?).await?,
                Commands::Many(list) => {
                    let list = list.iter().map(|parts| fill(parts, &given));
                    many(&redis, list.collect::<Result<_, _>>()?).await?
                }
                Commands::Given(input) => many(&redis, given_commands(&given, *input)?).await?,
            };
            Ok(Value::new(NodeValue::Reply(reply)))
        }
    })
}

async fn one(redis: &Redis, command: Command) -> Result<Reply, Reason> {
    redis.cmd(command).await.map_err(failed)
}

/// The server's error about one command stands in its place; without a server there is no answer.
async fn many(redis: &Redis, commands: Vec<Command>) -> Result<Reply, Reason> {
    let pipeline = redis.pipeline();
    let pipeline = commands.into_iter().fold(pipeline, |all, one| all.cmd(one));
    let mut replies = Vec::new();
    for answer in pipeline.run().await {
        replies.push(match answer {
            Err(Failure::Server(text)) => Reply::Error(text),
            answer => answer.map_err(failed)?,
        });
    }
    Ok(Reply::Array(replies))
}

fn failed(why: Failure) -> Reason {
    match why {
        Failure::TimedOut => Reason::TimedOut,
        why => Reason::foreign(why),
    }
}

fn fill(parts: &[Part], given: &Given) -> Result<Command, Reason> {
    let mut command = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text(text) => command.push(text.clone()),
            Part::Input(input) => match words(given, *input)? {
                Words::One(word) => command.push(word),
                Words::Many(list) => command.extend(singles(list)?),
            },
            Part::Join(parts) => command.push(fill(parts, given)?.concat()),
        }
    }
    Ok(command)
}

/// The first value is the context.
fn words(given: &Given, input: usize) -> Result<Words, Reason> {
    let value = given.values().get(input + 1);
    dag_words::of(value.ok_or_else(|| Reason::new("an input that is not there"))?)
}

fn singles(list: Vec<Words>) -> Result<Command, Reason> {
    let single = |word| match word {
        Words::One(word) => Ok(word),
        Words::Many(_) => Err(Reason::new("a word of a command is a list")),
    };
    list.into_iter().map(single).collect()
}

fn given_commands(given: &Given, input: usize) -> Result<Vec<Command>, Reason> {
    let Words::Many(list) = words(given, input)? else {
        return Err(Reason::new("its input is no list of commands"));
    };
    let command = |words| match words {
        Words::Many(list) => singles(list),
        Words::One(_) => Err(Reason::new("a command is a list of words")),
    };
    list.into_iter().map(command).collect()
}
