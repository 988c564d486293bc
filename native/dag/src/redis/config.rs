//! Where Redis is and how it is spoken to.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::redis::failure::Failure;
use crate::redis::tls::Tls;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp(SocketAddr),
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
    /// Commands that may wait for their reply; more wait for room.
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
            in_flight: 10_000,
            coalesce: false,
        }
    }

    /// `redis://[user:password@]host[:port][/database]`, the same with `rediss:` for TLS, or
    /// `unix:/path`. `?cacert=/path` names the authorities of the server's certificate, in place of
    /// the system's. Names are looked up and files read here, on the caller's thread.
    pub fn parse(url: &str) -> Result<Self, Failure> {
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Config::new(Address::Unix(path.into())));
        }
        let (encrypted, rest) = match (url.strip_prefix("redis://"), url.strip_prefix("rediss://"))
        {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(bad("it must begin with redis://, rediss:// or unix:")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let mut config = Config::new(Address::Tcp(look_up(host)?));
        let authorities = query.strip_prefix("cacert=");
        if !query.is_empty() && (authorities.is_none() || !encrypted) {
            return Err(bad(
                "only cacert=/path may follow the question mark, with rediss://",
            ));
        }
        if encrypted {
            config.tls = Some(Tls::new(name_of(host), authorities.map(Path::new))?);
        }
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

/// Without the port, and an IPv6 address without its brackets.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    name.trim_start_matches('[').trim_end_matches(']')
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
