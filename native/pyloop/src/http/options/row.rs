//! What a row of the table is, and how `options!` reads one.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// What a value must be. Each world checks by it what it is given; `given.rs` says what native code reads.
pub enum Kind {
    /// May be empty.
    Text,
    /// The same, and it is shown nowhere.
    Secret,
    /// Empty, or begins with a slash and does not end with one.
    Prefix,
    /// An address or the name of a host.
    Address,
    Proxies,
    Path,
    Paths,
    OneOf(&'static [&'static str]),
    /// A text that is not empty; these words have a meaning.
    TextOr(&'static [&'static str]),
    /// The same with a path.
    PathOr(&'static [&'static str]),
    Boolean,
    Integer(RangeInclusive<i64>),
    Permissions,
    /// Of a socket.
    Descriptor,
    Time {
        least: i64,
    },
    TimeOrInfinity,
    /// What Erlang registers.
    Name,
    Mounts,
}

pub enum Value {
    None,
    Text(&'static str),
    Number(i64),
    Flag(bool),
}

/// Where an option holds.
#[derive(Clone, Copy)]
pub struct Worlds {
    /// `python -m erlang.serve`
    pub command: bool,
    /// `erlang.serve.Options`
    pub program: bool,
    /// `py_asgi:serve`
    pub node: bool,
}

impl Worlds {
    pub const EVERYWHERE: Self = Self::of(true, true, true);
    pub const WHEEL: Self = Self::of(true, true, false);
    pub const COMMAND_AND_NODE: Self = Self::of(true, false, true);
    pub const COMMAND: Self = Self::of(true, false, false);
    pub const NODE: Self = Self::of(false, false, true);

    const fn of(command: bool, program: bool, node: bool) -> Self {
        Worlds {
            command,
            program,
            node,
        }
    }
}

pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Value,
    pub worlds: Worlds,
    pub help: &'static str,
}

/// What Erlang and Python see of a row, by names.
pub enum Field {
    /// An atom in Erlang.
    Word(&'static str),
    Words(&'static [&'static str]),
    Text(Cow<'static, str>),
    Number(i64),
    Flag(bool),
}

impl Row {
    /// What a value is checked by; what a row does not have is left out.
    pub fn checked(&self) -> Vec<(&'static str, Field)> {
        let mut fields = Vec::with_capacity(10);
        fields.push(("name", Field::Word(self.name)));
        fields.push(("kind", Field::Word(self.kind.name())));
        fields.push(("program", Field::Flag(self.worlds.program)));
        if let Some((least, most)) = self.kind.range() {
            fields.push(("least", Field::Number(least)));
            fields.extend(most.map(|most| ("most", Field::Number(most))));
        }
        fields.extend(
            self.kind
                .words()
                .map(|words| ("words", Field::Words(words))),
        );
        fields.extend(self.default().map(|default| ("default", default)));
        fields
    }

    /// All of it.
    pub fn fields(&self) -> Vec<(&'static str, Field)> {
        let mut fields = self.checked();
        fields.push(("help", Field::Text(self.help.into())));
        fields.push(("command", Field::Flag(self.worlds.command)));
        if self.worlds.program {
            fields.push(("type", Field::Text(self.python_type())));
        }
        fields
    }

    /// The type of its field in Python.
    pub fn python_type(&self) -> Cow<'static, str> {
        match (&self.kind, &self.default) {
            (Kind::OneOf(words), _) => format!("Literal[\"{}\"]", words.join("\", \"")).into(),
            (Kind::Boolean, _) => "bool".into(),
            (Kind::Integer(_) | Kind::Permissions, _) => "int".into(),
            (Kind::Descriptor, _) => "int | None".into(),
            (Kind::Time { .. }, _) => "float".into(),
            (_, Value::None) => "str | None".into(),
            _ => "str".into(),
        }
    }

    fn default(&self) -> Option<Field> {
        Some(match self.default {
            Value::None => return None,
            Value::Text(text) if matches!(self.kind, Kind::OneOf(_)) => Field::Word(text),
            Value::Text(text) => Field::Text(text.into()),
            Value::Number(number) => Field::Number(number),
            Value::Flag(flag) => Field::Flag(flag),
        })
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Secret => "secret",
            Kind::Prefix => "prefix",
            Kind::Address => "address",
            Kind::Proxies => "proxies",
            Kind::Path => "path",
            Kind::Paths => "paths",
            Kind::OneOf(_) => "one_of",
            Kind::TextOr(_) => "text_or",
            Kind::PathOr(_) => "path_or",
            Kind::Boolean => "boolean",
            Kind::Integer(_) => "integer",
            Kind::Permissions => "permissions",
            Kind::Descriptor => "descriptor",
            Kind::Time { .. } => "time",
            Kind::TimeOrInfinity => "time_or_infinity",
            Kind::Name => "name",
            Kind::Mounts => "mounts",
        }
    }

    /// From where to where; a time has no end but that of each world.
    pub fn range(&self) -> Option<(i64, Option<i64>)> {
        match self {
            Kind::Integer(range) => Some((*range.start(), Some(*range.end()))),
            Kind::Permissions => Some((0, Some(0o777))),
            Kind::Time { least } => Some((*least, None)),
            Kind::TimeOrInfinity => Some((0, None)),
            _ => None,
        }
    }

    pub fn words(&self) -> Option<&'static [&'static str]> {
        match self {
            Kind::OneOf(words) | Kind::TextOr(words) | Kind::PathOr(words) => Some(words),
            _ => None,
        }
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

/// Makes of the rows `table()`, for the other worlds, and `Given`, with a field for each.
macro_rules! options {
    ($($worlds:ident { $(
        $name:ident: $kind:ident $(($($range:tt)*))? $({ $($least:tt)* })? $(= $default:expr)?, $help:literal;
    )* })*) => {
        /// Every row, in the order of the page and of `--help`.
        pub fn table() -> Vec<Row> {
            vec![$($(
                Row {
                    name: stringify!($name),
                    kind: Kind::$kind $(($($range)*))? $({ $($least)* })?,
                    default: row::default!($($default)?),
                    worlds: Worlds::$worlds,
                    help: $help,
                },
            )*)*]
        }

        /// What a server was given, for native code.
        #[derive(Clone, Debug)]
        // Some is for Python alone: an option gets here when its row is written, and not when somebody reads it.
        #[allow(dead_code)]
        pub struct Given {
            $($(#[doc = $help] pub $name: given::of!($worlds $kind),)*)*
        }

        impl Given {
            /// From the mapping of all options.
            pub fn from<'py>(options: &pyrt::Obj<'py>) -> pyrt::PyResult<'py, Self> {
                Ok(Given { $($($name: given::Read::read(options, stringify!($name))?,)*)* })
            }
        }
    };
}

macro_rules! default {
    () => {
        Value::None
    };
    ($default:expr) => {
        Value::from($default)
    };
}

pub(super) use {default, options};
