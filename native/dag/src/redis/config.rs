//! Where Redis is and how it is spoken to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::redis::tls::Tls;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// All that its name has; they are tried in this order.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

#[derive(Clone, Debug)]
pub struct Config {
    pub address: Address,
    /// Encrypted, and the server's certificate checked, where it is there.
    pub tls: Option<Tls>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// RESP3, by `HELLO 3`; else RESP2, which every server speaks.
    pub resp3: bool,
    /// How long a command may wait for its reply.
    pub timeout: Duration,
    /// The first wait before connecting again; twice that the next time, up to `longest_backoff`.
    pub backoff: Duration,
    pub longest_backoff: Duration,
    /// Connections among which commands are shared out; one is fastest unless commands block.
    pub connections: usize,
    /// Commands of a connection that may wait for their reply; more wait for room.
    pub in_flight: usize,
    /// Equal GETs of one turn are sent once.
    pub coalesce: bool,
}

impl Config {
    pub fn new(address: Address) -> Self {
        Config {
            address,
            tls: None,
            user: None,
            password: None,
            database: 0,
            resp3: false,
            timeout: Duration::from_secs(5),
            backoff: Duration::from_millis(10),
            longest_backoff: Duration::from_secs(2),
            connections: 1,
            in_flight: 10_000,
            coalesce: false,
        }
    }
}
