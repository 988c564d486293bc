//! A node as it is described: a map with named keys, from Erlang or from Python, read once.
//!
//! Thread: any.

use std::fmt;
use std::sync::Arc;

use dag::{Limit, Policy, Value};
use etf::Plain;

use super::command::{Commands, Part};
use super::key::{Given, KEYS, Side};

/// What runs.
#[derive(Default)]
pub enum Body {
    #[default]
    Nothing,
    /// A function of Python, by its names. What a node of the kind `io` gives may be awaited.
    Named {
        module: String,
        name: String,
    },
    /// A function of Python, which is not in the description; calling it may give a coroutine.
    Function {
        is_async: bool,
    },
    /// A function of Erlang, by the number that the run's process knows it by.
    Erlang(u64),
    Redis(Arc<Commands>),
}

/// A node, read.
#[derive(Default)]
pub struct Described {
    pub name: String,
    pub body: Body,
    pub kind: Option<String>,
    /// What it is given, and whether that may be missing.
    pub inputs: Vec<(String, bool)>,
    /// The node or input that must be true.
    pub condition: Option<String>,
    /// The external form of the value that it has if it fails.
    pub default: Option<Box<[u8]>>,
    pub policy: Policy,
}

/// Why a description is refused, in a sentence.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has a key that nodes don't have.
    Unknown(String),
    Wrong(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unknown(text) | Refused::Wrong(text) => f.write_str(text),
        }
    }
}

/// The nodes of a graph of Erlang: a list of pairs, a name and a map.
pub fn all(nodes: &[u8], limits: &[Option<Limit>]) -> Result<Vec<Described>, Refused> {
    let wrong = || Refused::Wrong("not the description of a graph".into());
    let nodes = Plain::decode(nodes).ok_or_else(wrong)?;
    let node = |node: &Plain<'_>| match node.elements() {
        Some([name, keys]) => {
            let name = name.text().ok_or_else(wrong)?.to_owned();
            Described::of(name, keys, Side::Erlang, limits)
        }
        _ => Err(wrong()),
    };
    nodes.items().ok_or_else(wrong)?.iter().map(node).collect()
}

impl Described {
    pub fn of(
        name: String,
        keys: &Plain<'_>,
        side: Side,
        limits: &[Option<Limit>],
    ) -> Result<Self, Refused> {
        let Plain::Map(pairs) = keys else {
            return Err(Refused::Wrong(format!("node {name} is no map")));
        };
        if name.is_empty() {
            return Err(Refused::Wrong("a node needs a name".into()));
        }
        let mut node = Described::default();
        for (key, value) in pairs {
            let known = KEYS.iter().find(|(own, _)| key.text() == Some(own));
            // The same name in two forms would be two keys.
            if known.is_some() && side == Side::Erlang && !matches!(key, Plain::Atom(_)) {
                let text = format!("the key {key} of node {name} is no atom");
                return Err(Refused::Wrong(text));
            }
            let Some((key, set)) = known else {
                let text = format!("node {name} has an unknown key {key}");
                return Err(Refused::Unknown(text));
            };
            let given = Given {
                value,
                side,
                limits,
            };
            if let Err(wrong) = set(&mut node, &given) {
                let text = format!("the {key} of node {name} {wrong}");
                return Err(Refused::Wrong(text));
            }
        }
        node.name = name;
        node.check_kind()?;
        Ok(node)
    }

    fn check_kind(&self) -> Result<(), Refused> {
        let is_redis = matches!(self.body, Body::Redis(_));
        match self.kind.as_deref() {
            None => Ok(()),
            Some("redis") if is_redis => Ok(()),
            Some("cpu" | "io") if !is_redis => Ok(()),
            Some(kind) => {
                let text = format!("node {} can't be of kind {kind}", self.name);
                Err(Refused::Wrong(text))
            }
        }
    }

    pub fn is_io(&self) -> bool {
        self.kind.as_deref() == Some("io")
    }

    /// Whether its function is one of Python.
    pub fn is_python(&self) -> bool {
        matches!(self.body, Body::Named { .. } | Body::Function { .. })
    }

    /// Puts what stands around the function of a node around it. `shared` is the hidden input that every
    /// node has first, `is_true` what conditions ask.
    pub fn around(&self, node: dag::Node, shared: &str, is_true: fn(&Value) -> bool) -> dag::Node {
        let mut node = node.inputs([shared]).policy(self.policy.clone());
        for (name, maybe) in &self.inputs {
            node = match maybe {
                true => node.maybe([name]),
                false => node.inputs([name]),
            };
        }
        match &self.condition {
            None => node,
            Some(condition) => {
                // The last of the values, which no function is given.
                let holds = move |values: &[Value]| values.last().is_some_and(is_true);
                node.inputs([condition]).when(holds)
            }
        }
    }
}

impl Body {
    /// `{python, Module, Name}`, `{function, IsAsync}`, `{erlang, Number}` or `{redis, How, What}`.
    pub fn of(value: &Plain<'_>) -> Result<Self, &'static str> {
        Body::read(value).ok_or("is no function and no command")
    }

    fn read(value: &Plain<'_>) -> Option<Self> {
        let (how, rest) = value.elements()?.split_first()?;
        Some(match (how.text()?, rest) {
            ("python", [module, name]) => Body::Named {
                module: module.text()?.to_owned(),
                name: name.text()?.to_owned(),
            },
            ("function", [is_async]) => Body::Function {
                is_async: is_async.is_atom("true"),
            },
            ("erlang", [Plain::Int(number)]) => Body::Erlang(u64::try_from(*number).ok()?),
            ("redis", [how, what]) => Body::Redis(Arc::new(commands(how.text()?, what)?)),
            _ => return None,
        })
    }
}

fn commands(how: &str, what: &Plain<'_>) -> Option<Commands> {
    Some(match (how, what) {
        ("one", what) => Commands::One(parts(what)?),
        ("many", what) => {
            let list = what.items()?.iter().map(parts);
            Commands::Many(list.collect::<Option<_>>()?)
        }
        ("given", Plain::Int(place)) => Commands::Given(usize::try_from(*place).ok()?),
        _ => return None,
    })
}

/// A binary is itself, a number an input, a list one word of several parts.
fn parts(list: &Plain<'_>) -> Option<Vec<Part>> {
    let part = |part: &Plain<'_>| match part {
        Plain::Binary(text) => Some(Part::Text(text.to_vec())),
        Plain::Int(place) => usize::try_from(*place).ok().map(Part::Input),
        list => parts(list).map(Part::Join),
    };
    list.items()?.iter().map(part).collect()
}
