//! Where Redis is and how it is spoken to.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::redis::failure::Failure;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Clone, Debug)]
pub struct Config {
    pub address: Address,
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
    /// Commands that may wait for their reply; more wait for room.
    pub in_flight: usize,
    /// Equal GETs of one turn are sent once.
    pub coalesce: bool,
}

impl Config {
    pub fn new(address: Address) -> Self {
        Config {
            address,
            user: None,
            password: None,
            database: 0,
            resp3: false,
            timeout: Duration::from_secs(5),
            backoff: Duration::from_millis(10),
            longest_backoff: Duration::from_secs(2),
            in_flight: 10_000,
            coalesce: false,
        }
    }

    /// `redis://[user:password@]host[:port][/database]` or `unix:/path`. A name is looked up here,
    /// on the caller's thread.
    pub fn parse(url: &str) -> Result<Self, Failure> {
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Config::new(Address::Unix(path.into())));
        }
        let Some(rest) = url.strip_prefix("redis://") else {
            // Never plain text where `rediss:` was asked for.
            return Err(bad("it must begin with redis:// or unix:"));
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let mut config = Config::new(Address::Tcp(look_up(host)?));
        if !database.is_empty() {
            let number = database.parse();
            config.database = number.map_err(|_| bad("the database is a number"))?;
        }
        if let Some((user, password)) = login.map(|l| l.split_once(':').unwrap_or(("", l))) {
            config.user = (!user.is_empty()).then(|| user.to_owned());
            config.password = Some(password.to_owned());
        }
        Ok(config)
    }
}

fn look_up(host: &str) -> Result<SocketAddr, Failure> {
    let named_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = match named_port {
        true => host.to_socket_addrs(),
        false => (host, 6379).to_socket_addrs(),
    };
    let found = found
        .map_err(|error| bad(&format!("{host}: {error}")))?
        .next();
    found.ok_or_else(|| bad(&format!("{host} has no address")))
}

fn bad(what: &str) -> Failure {
    Failure::Config(what.to_owned())
}
