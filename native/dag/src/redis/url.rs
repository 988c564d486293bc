//! Addresses as users write them, with the options of the client behind the question mark.
//!
//! Thread: the caller's: a name may be looked up and a file read.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use crate::redis::config::{Address, Config};
use crate::redis::failure::Failure;
use crate::redis::tls::Tls;

/// As many connections as one client may have.
const MOST_CONNECTIONS: usize = 64;

impl Config {
    /// `redis://[user:password@]host[:port][/database]`, the login with `%40` for `@`; the same with
    /// `rediss:` for TLS, or `unix:/path`. Options follow as `?name=value&name=value`:
    /// `connections`, `timeout` in milliseconds, `protocol` (2 or 3), `coalesce` (true or false),
    /// and with `rediss:` the file `cacert` of the authorities in place of the system's.
    pub fn parse(url: &str) -> Result<Self, Failure> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let options: Vec<_> = query.split('&').filter(|part| !part.is_empty()).collect();
        let mut config = match place.strip_prefix("unix:") {
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                Config::new(Address::Unix(path.into()))
            }
            None => server(place, authorities(&options))?,
        };
        for option in options {
            config.set(option)?;
        }
        Ok(config)
    }

    fn set(&mut self, option: &str) -> Result<(), Failure> {
        match option.split_once('=') {
            Some(("connections", count)) => {
                let count = count.parse().ok();
                let count = count.filter(|count| (1..=MOST_CONNECTIONS).contains(count));
                self.connections = count.ok_or_else(|| bad("connections are 1 to 64"))?;
            }
            Some(("timeout", millis)) => {
                let millis = millis.parse().ok().filter(|n| (1..=3_600_000).contains(n));
                let millis = millis.ok_or_else(|| bad("the timeout is in milliseconds"))?;
                self.timeout = Duration::from_millis(millis);
            }
            Some(("protocol", version)) => match version {
                "2" | "3" => self.resp3 = version == "3",
                _ => return Err(bad("the protocol is 2 or 3")),
            },
            Some(("coalesce", wanted)) => {
                let wanted = wanted.parse();
                self.coalesce = wanted.map_err(|_| bad("coalesce is true or false"))?;
            }
            Some(("cacert", _)) if self.tls.is_some() => {}
            Some(("cacert", _)) => return Err(bad("cacert goes with rediss://")),
            _ => {
                let known = "connections, timeout, protocol, coalesce or cacert";
                return Err(bad(&format!("{option} is none of {known}")));
            }
        }
        Ok(())
    }
}

fn authorities<'a>(options: &[&'a str]) -> Option<&'a Path> {
    let mut named = options.iter();
    named.find_map(|option| option.strip_prefix("cacert=").map(Path::new))
}

fn server(place: &str, authorities: Option<&Path>) -> Result<Config, Failure> {
    let (encrypted, rest) = match (
        place.strip_prefix("redis://"),
        place.strip_prefix("rediss://"),
    ) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Err(bad("it must begin with redis://, rediss:// or unix:")),
    };
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let (host, database) = place.split_once('/').unwrap_or((place, ""));
    let mut config = Config::new(Address::Tcp(look_up(host)?));
    if encrypted {
        config.tls = Some(Tls::new(name_of(host), authorities)?);
    }
    if !database.is_empty() {
        let number = database.parse();
        config.database = number.map_err(|_| bad("the database is a number"))?;
    }
    if let Some((user, password)) = login.map(|l| l.split_once(':').unwrap_or(("", l))) {
        config.user = match user {
            "" => None,
            user => Some(decoded(user)?),
        };
        config.password = Some(decoded(password)?);
    }
    Ok(config)
}

/// With `%40` as what it stands for. A `%` without two digits is one, as others have it.
fn decoded(text: &str) -> Result<String, Failure> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_err(|_| bad("the user and the password are UTF-8"))
}

/// Without the port, and an IPv6 address without its brackets.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    name.trim_start_matches('[').trim_end_matches(']')
}

fn look_up(host: &str) -> Result<Vec<SocketAddr>, Failure> {
    let named_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // An IPv6 address ends like a port: it has brackets then.
    let found = match named_port && !host.ends_with(']') {
        true => host.to_socket_addrs(),
        false => (name_of(host), 6379).to_socket_addrs(),
    };
    let found: Vec<_> = found
        .map_err(|error| bad(&format!("{host}: {error}")))?
        .collect();
    match found.is_empty() {
        true => Err(bad(&format!("{host} has no address"))),
        false => Ok(found),
    }
}

fn bad(what: &str) -> Failure {
    Failure::Config(what.to_owned())
}
