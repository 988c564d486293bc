//! Why a command has no reply.

use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// What the server answered: its error, word for word.
    Server(String),
    /// The connection was lost, or could not be made; the command may have been carried out.
    Lost(String),
    TimedOut,
    /// The client or its loop has ended.
    Closed,
    /// The server did not speak the protocol.
    Protocol(&'static str),
    /// The reply is not of the kind that the helper expects.
    Unexpected(&'static str),
    /// A command that must not be sent; nothing was.
    Refused(String),
    /// The address or an option is wrong.
    Config(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Server(text) => f.write_str(text),
            Failure::Lost(why) => write!(f, "connection to Redis lost: {why}"),
            Failure::TimedOut => f.write_str("Redis did not answer in time"),
            Failure::Closed => f.write_str("the Redis client is closed"),
            Failure::Protocol(what) => write!(f, "not the Redis protocol: {what}"),
            Failure::Unexpected(wanted) => write!(f, "the reply is not {wanted}"),
            Failure::Refused(why) => write!(f, "Redis command refused: {why}"),
            Failure::Config(what) => write!(f, "Redis address: {what}"),
        }
    }
}

impl std::error::Error for Failure {}
