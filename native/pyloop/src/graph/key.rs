//! The keys of a node: the one table of them, for graphs of Erlang and of Python.
//!
//! Thread: any.

use std::time::Duration;

use dag::Limit;
use etf::Plain;

use super::describe::{Body, Described};

/// What a key makes of its node. What it refuses ends the sentence "the KEY of node NAME …".
type Set = fn(&mut Described, &Given<'_>) -> Result<(), &'static str>;

/// A new key is a row here, its meaning in `dag`, and a row of the table in docs/dag.md.
#[rustfmt::skip]
pub static KEYS: &[(&str, Set)] = &[
    ("run", |node, given| Body::of(given.value).map(|body| node.body = body)),
    ("kind", |node, given| given.kind().map(|kind| node.kind = Some(kind))),
    ("inputs", |node, given| given.inputs().map(|inputs| node.inputs = inputs)),
    ("condition", |node, given| given.name().map(|name| node.condition = name)),
    ("default", |node, given| given.term().map(|term| node.default = Some(term))),
    ("timeout", |node, given| given.time().map(|time| node.policy.timeout = time)),
    ("retries", |node, given| given.count().map(|count| node.policy.retries = count)),
    ("backoff", |node, given| given.time().map(|time| node.policy.backoff = time.unwrap_or_default())),
    ("hedge", |node, given| given.time().map(|time| node.policy.hedge = time)),
    ("limit", |node, given| given.limit().map(|limit| node.policy.limit = limit)),
    ("weight", |node, given| given.weight().map(|weight| node.policy.weight = weight)),
];

/// Who has written a description: times are in milliseconds in Erlang, in seconds in Python.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Erlang,
    Python,
}

/// The value of a key, as it was written.
pub struct Given<'a> {
    pub value: &'a Plain<'a>,
    pub side: Side,
    /// What the description names by a number; nothing for what is no limit.
    pub limits: &'a [Option<Limit>],
}

/// The longest time in milliseconds, and above the highest count.
const LONGEST: i64 = 1 << 40;

const HEAVIEST: f64 = 1e9;

impl Given<'_> {
    /// Nothing stands for no bound.
    fn time(&self) -> Result<Option<Duration>, &'static str> {
        let seconds = |value| Duration::try_from_secs_f64(value).ok();
        let time = match (self.side, self.value) {
            (Side::Erlang, value) if value.is_atom("infinity") => return Ok(None),
            (Side::Python, value) if value.is_atom("none") => return Ok(None),
            (Side::Erlang, Plain::Int(value)) if (0..LONGEST).contains(value) => {
                Some(Duration::from_millis(value.unsigned_abs()))
            }
            (Side::Python, Plain::Int(value)) => seconds(*value as f64),
            (Side::Python, Plain::Float(value)) => seconds(*value),
            _ => None,
        };
        let wrong = match self.side {
            Side::Erlang => "is no number of milliseconds",
            Side::Python => "is no time in seconds",
        };
        time.map(Some).ok_or(wrong)
    }

    fn count(&self) -> Result<u32, &'static str> {
        let count = match self.value {
            Plain::Int(value) => u32::try_from(*value).ok(),
            _ => None,
        };
        count.ok_or("are no count")
    }

    fn weight(&self) -> Result<f64, &'static str> {
        let weight = match self.value {
            Plain::Int(value) => *value as f64,
            Plain::Float(value) => *value,
            _ => f64::NAN,
        };
        let is_weight = weight > 0.0 && weight <= HEAVIEST;
        is_weight
            .then_some(weight)
            .ok_or("is no number above 0, at most 1000000000")
    }

    fn limit(&self) -> Result<Option<Limit>, &'static str> {
        let found = match self.value {
            Plain::Int(place) => usize::try_from(*place).ok(),
            value if value.is_atom("none") => return Ok(None),
            _ => None,
        };
        let limit = found.and_then(|place| self.limits.get(place)?.clone());
        let wrong = match self.side {
            Side::Erlang => "is not from py_dag:limit/1",
            Side::Python => "is no dag.Limit",
        };
        limit.map(Some).ok_or(wrong)
    }

    fn kind(&self) -> Result<String, &'static str> {
        let kind = self.value.text().ok_or("is no word")?;
        Ok(kind.to_owned())
    }

    /// The name of a node or of an input; nothing for `None`.
    fn name(&self) -> Result<Option<String>, &'static str> {
        match self.value {
            value @ Plain::Binary(_) => Ok(Some(named(value).ok_or("is no name")?)),
            value if value.is_atom("none") => Ok(None),
            _ => Err("is no name"),
        }
    }

    /// Names, each with whether it may be missing.
    fn inputs(&self) -> Result<Vec<(String, bool)>, &'static str> {
        let input = |item: &Plain<'_>| match item.elements()? {
            [name, maybe] => Some((named(name)?, maybe.is_atom("true"))),
            _ => None,
        };
        let inputs = self.value.items().ok_or("are no list")?.iter();
        inputs
            .map(input)
            .collect::<Option<_>>()
            .ok_or("are no list of names")
    }

    /// The external form of a term.
    fn term(&self) -> Result<Box<[u8]>, &'static str> {
        match self.value {
            Plain::Binary(bytes) => Ok(bytes.as_ref().into()),
            _ => Err("is no term"),
        }
    }
}

/// The empty name is that of the hidden input.
fn named(value: &Plain<'_>) -> Option<String> {
    let text = value.text().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::describe::Refused;

    fn text(text: &str) -> Plain<'_> {
        Plain::Binary(text.as_bytes().into())
    }

    fn atom(name: &str) -> Plain<'_> {
        Plain::Atom(name.into())
    }

    fn described(side: Side, key: &str, value: Plain<'_>) -> Result<Described, Refused> {
        let run = Plain::Tuple(vec![atom("erlang"), Plain::Int(1)]);
        let own = |name| match side {
            Side::Erlang => atom(name),
            Side::Python => text(name),
        };
        let keys = Plain::Map(vec![(own("run"), run), (own(key), value)]);
        Described::of("n".into(), &keys, side, &[None, Some(Limit::new(1))])
    }

    fn refusal(side: Side, key: &str, value: Plain<'_>) -> String {
        described(side, key, value).err().unwrap().to_string()
    }

    #[test]
    fn times_are_milliseconds_in_erlang_and_seconds_in_python() {
        let half = Some(Duration::from_millis(500));
        let erlang = described(Side::Erlang, "timeout", Plain::Int(500)).unwrap();
        assert_eq!(erlang.policy.timeout, half);
        let python = described(Side::Python, "timeout", Plain::Float(0.5)).unwrap();
        assert_eq!(python.policy.timeout, half);
        let endless = described(Side::Erlang, "hedge", atom("infinity")).unwrap();
        assert_eq!(endless.policy.hedge, None);
        assert!(described(Side::Python, "hedge", atom("none")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_told_with_the_key_and_the_node() {
        let (erlang, python) = (Side::Erlang, Side::Python);
        for value in [
            Plain::Int(-1),
            Plain::Int(LONGEST),
            Plain::Float(0.5),
            atom("none"),
        ] {
            let told = refusal(erlang, "timeout", value);
            assert_eq!(told, "the timeout of node n is no number of milliseconds");
        }
        for value in [
            Plain::Float(-0.5),
            Plain::Float(f64::NAN),
            atom("infinity"),
            text("1"),
        ] {
            let told = refusal(python, "backoff", value);
            assert_eq!(told, "the backoff of node n is no time in seconds");
        }
        for value in [Plain::Int(-1), Plain::Int(1 << 32), Plain::Float(1.0)] {
            let told = refusal(erlang, "retries", value);
            assert_eq!(told, "the retries of node n are no count");
        }
        for value in [
            Plain::Int(0),
            Plain::Float(1.1e9),
            Plain::Float(f64::NAN),
            atom("heavy"),
        ] {
            let told = refusal(python, "weight", value);
            assert_eq!(
                told,
                "the weight of node n is no number above 0, at most 1000000000"
            );
        }
        for value in [Plain::Int(0), Plain::Int(2), atom("what")] {
            let told = refusal(erlang, "limit", value);
            assert_eq!(told, "the limit of node n is not from py_dag:limit/1");
        }
        assert_eq!(
            refusal(python, "limit", Plain::Int(0)),
            "the limit of node n is no dag.Limit"
        );
        assert_eq!(
            refusal(python, "inputs", Plain::Int(0)),
            "the inputs of node n are no list"
        );
        assert_eq!(
            refusal(erlang, "kind", text("redis")),
            "node n can't be of kind redis"
        );
        assert_eq!(
            refusal(erlang, "kind", text("what")),
            "node n can't be of kind what"
        );
    }

    #[test]
    fn a_key_of_erlang_is_an_atom() {
        let keys = Plain::Map(vec![(text("run"), Plain::Int(1))]);
        let told = Described::of("n".into(), &keys, Side::Erlang, &[]).err();
        let expected = Refused::Wrong("the key run of node n is no atom".into());
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn nothing_has_the_name_of_the_hidden_input() {
        let inputs = Plain::List(vec![Plain::Tuple(vec![text(""), atom("false")])]);
        for side in [Side::Erlang, Side::Python] {
            assert_eq!(
                refusal(side, "inputs", inputs.clone()),
                "the inputs of node n are no list of names"
            );
            assert_eq!(
                refusal(side, "condition", text("")),
                "the condition of node n is no name"
            );
        }
        let told = Described::of(String::new(), &Plain::Map(Vec::new()), Side::Python, &[]).err();
        assert_eq!(told, Some(Refused::Wrong("a node needs a name".into())));
    }

    #[test]
    fn a_key_that_is_not_in_the_table_is_unknown() {
        let told = described(Side::Erlang, "colour", atom("red")).err();
        let expected = Refused::Unknown("node n has an unknown key colour".into());
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn the_documentation_has_a_row_for_each_key() {
        let page = include_str!("../../../../docs/dag.md");
        let first = |line: &'static str| {
            line.strip_prefix("| `")
                .and_then(|row| row.split('|').next())
        };
        let nodes = page
            .split("## ")
            .find(|part| part.starts_with("Nodes"))
            .unwrap();
        let told: Vec<&str> = nodes.lines().filter_map(first).collect();
        let told: Vec<&str> = told.iter().flat_map(|names| names.split(", ")).collect();
        let mut told: Vec<&str> = told
            .iter()
            .map(|name| name.trim().trim_matches('`'))
            .collect();
        let mut known: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        told.sort_unstable();
        known.sort_unstable();
        assert_eq!(told, known);
    }
}
