//! Commands of Redis as a node has them: words, with the values of its inputs put in.
//!
//! Thread: the loop's.

use dag::Reason;
use dag::redis::{Failure, Redis, Reply};
use etf::Plain;

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

/// A value, as far as a command can say it.
#[derive(Debug, PartialEq)]
pub enum Words {
    One(Vec<u8>),
    Many(Vec<Words>),
}

/// A list of commands, of words, of items of a word: nothing is deeper.
pub const DEEPEST: usize = 3;

type Command = Vec<Vec<u8>>;

/// Commands with every word in its place.
pub enum Filled {
    One(Command),
    Many(Vec<Command>),
}

impl Commands {
    /// `words` gives those of an input.
    pub fn fill(&self, words: &dyn Fn(usize) -> Result<Words, Reason>) -> Result<Filled, Reason> {
        Ok(match self {
            Commands::One(parts) => Filled::One(fill(parts, words)?),
            Commands::Many(list) => {
                let list = list.iter().map(|parts| fill(parts, words));
                Filled::Many(list.collect::<Result<_, _>>()?)
            }
            Commands::Given(input) => Filled::Many(commands(words(*input)?)?),
        })
    }
}

impl Filled {
    /// Of many commands, the server's error about one stands in its place.
    pub async fn ask(self, redis: &Redis) -> Result<Reply, Reason> {
        let commands = match self {
            Filled::One(command) => return redis.cmd(command).await.map_err(failed),
            Filled::Many(commands) => commands,
        };
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
}

fn failed(why: Failure) -> Reason {
    match why {
        Failure::TimedOut => Reason::TimedOut,
        why => Reason::foreign(why),
    }
}

fn fill(parts: &[Part], words: &dyn Fn(usize) -> Result<Words, Reason>) -> Result<Command, Reason> {
    let mut command = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text(text) => command.push(text.clone()),
            Part::Input(input) => match words(*input)? {
                Words::One(word) => command.push(word),
                Words::Many(list) => command.extend(singles(list)?),
            },
            Part::Join(parts) => command.push(fill(parts, words)?.concat()),
        }
    }
    Ok(command)
}

fn singles(list: Vec<Words>) -> Result<Command, Reason> {
    let single = |word| match word {
        Words::One(word) => Ok(word),
        Words::Many(_) => Err(Reason::new("a word of a command is a list")),
    };
    list.into_iter().map(single).collect()
}

fn commands(words: Words) -> Result<Vec<Command>, Reason> {
    let Words::Many(list) = words else {
        return Err(Reason::new("its input is no list of commands"));
    };
    let command = |words| match words {
        Words::Many(list) => singles(list),
        Words::One(_) => Err(Reason::new("a command is a list of words")),
    };
    list.into_iter().map(command).collect()
}

/// The words of an answer, where a command is given one.
pub fn of_reply(reply: &Reply, depth: usize) -> Option<Words> {
    Some(match reply {
        Reply::Bytes(bytes) => Words::One(bytes.clone()),
        Reply::Simple(text) | Reply::BigNumber(text) => Words::One(text.clone().into_bytes()),
        Reply::Int(value) => Words::One(value.to_string().into_bytes()),
        Reply::Double(value) => Words::One(value.to_string().into_bytes()),
        Reply::Array(items) | Reply::Set(items) if depth < DEEPEST => {
            let items = items.iter().map(|item| of_reply(item, depth + 1));
            Words::Many(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The words of a term: text, bytes and numbers, or lists and tuples of them.
pub fn of_term(term: &Plain<'_>, depth: usize) -> Option<Words> {
    let text = |value: &dyn std::fmt::Display| Words::One(value.to_string().into_bytes());
    Some(match term {
        Plain::Int(value) => text(value),
        Plain::Float(value) => text(value),
        Plain::Big { negative, digits } => text(&big(*negative, digits)?),
        Plain::Binary(bytes) => Words::One(bytes.to_vec()),
        Plain::Atom(name) => text(name),
        Plain::List(items) | Plain::Tuple(items) if depth < DEEPEST => {
            let items = items.iter().map(|item| of_term(item, depth + 1));
            Words::Many(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn big(negative: bool, digits: &[u8]) -> Option<i128> {
    let mut word = [0; 16];
    word.get_mut(..digits.len())?.copy_from_slice(digits);
    let value = i128::try_from(u128::from_le_bytes(word)).ok()?;
    Some(if negative { -value } else { value })
}

/// What is said of a value that no command can have.
pub fn no_words() -> Reason {
    Reason::new("its input is no text, number or list of them")
}
