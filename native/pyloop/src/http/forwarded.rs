//! Who the client is behind proxies that are trusted.
//!
//! `x-forwarded-for` is read from its end: each trusted proxy has added the address it saw, so the
//! first one that is not trusted is the client; what stands before it anyone could have written.
//! Knows nothing of Python.

use std::net::IpAddr;

use httparse::Header;

/// Addresses of proxies.
#[derive(Clone, Debug, Default)]
pub struct Trusted {
    everyone: bool,
    /// Peers of a Unix socket.
    unix: bool,
    networks: Vec<(IpAddr, u8)>,
}

impl Trusted {
    /// From `*`, `unix`, addresses and networks; `Err` has the word that is none of these.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut trusted = Trusted::default();
        for word in list
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match word {
                "*" => trusted.everyone = true,
                "unix" => trusted.unix = true,
                _ => trusted
                    .networks
                    .push(network(word).ok_or_else(|| word.to_owned())?),
            }
        }
        Ok(trusted)
    }

    pub fn is_empty(&self) -> bool {
        !self.everyone && !self.unix && self.networks.is_empty()
    }

    /// Whether the peer of a connection is trusted; `None` for a Unix socket.
    pub fn has_peer(&self, host: Option<&str>) -> bool {
        match host {
            None => self.everyone || self.unix,
            Some(host) => self.everyone || host.parse().is_ok_and(|host| self.has(host)),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|(network, bits)| {
            let shared = match (*network, address) {
                (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
                (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
                _ => return false,
            };
            shared >= u32::from(*bits)
        })
    }

    /// The address of the client, as the proxies tell it. Each word is judged by itself: one that is
    /// no text hides none of those beside it.
    pub fn client(&self, headers: &[Header<'_>]) -> Option<String> {
        let all: Vec<_> = words(headers, "x-forwarded-for").collect();
        if self.everyone {
            let first = String::from_utf8_lossy(all.first()?);
            return Some(host(&first).to_owned());
        }
        let is_proxy = |word: &&&[u8]| address(word).is_some_and(|address| self.has(address));
        let client = all
            .iter()
            .rev()
            .find(|word| !is_proxy(word))
            .or(all.first())?;
        // What is no address was not written by a proxy.
        address(client).map(|address| address.to_string())
    }

    /// Whether the client came by https, as the last proxy tells it.
    pub fn is_secure(&self, headers: &[Header<'_>]) -> Option<bool> {
        match words(headers, "x-forwarded-proto").last()? {
            b"https" | b"wss" => Some(true),
            b"http" | b"ws" => Some(false),
            _ => None,
        }
    }
}

/// What stands between the commas of all headers of a name.
fn words<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let own = headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name));
    own.flat_map(|header| header.value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn address(word: &[u8]) -> Option<IpAddr> {
    host(std::str::from_utf8(word).ok()?).parse().ok()
}

fn network(word: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = word.split_once('/').unwrap_or((word, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = if bits.is_empty() {
        most
    } else {
        bits.parse().ok()?
    };
    (bits <= most).then_some((address, bits))
}

/// An address without its port.
fn host(word: &str) -> &str {
    if let Some(inner) = word.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    match word.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &str, value: impl AsRef<[u8]>) -> Option<String> {
        let header = Header {
            name: "X-Forwarded-For",
            value: value.as_ref(),
        };
        Trusted::parse(trusted).ok()?.client(&[header])
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let is = |trusted, value, address: &str| {
            assert_eq!(client(trusted, value).as_deref(), Some(address), "{value}");
        };
        is("127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4");
        is(
            "127.0.0.1, 10.0.0.0/8",
            "6.6.6.6, 1.2.3.4, 10.9.8.7",
            "1.2.3.4",
        );
        is("10.0.0.0/8", "10.1.1.1, 10.2.2.2", "10.1.1.1");
        is("::1", "1.2.3.4:567", "1.2.3.4");
        is("::1", "[2001:db8::1]:80", "2001:db8::1");
        is("*", "1.2.3.4, 5.6.7.8", "1.2.3.4");
        assert_eq!(client("127.0.0.1", "not an address"), None);
        let beside = client("127.0.0.1", b"\xff, 203.0.113.9");
        assert_eq!(beside.as_deref(), Some("203.0.113.9"));
    }

    #[test]
    fn a_peer_is_trusted_by_address_or_network() {
        let has = |trusted: &str, peer| {
            Trusted::parse(trusted).is_ok_and(|trusted| trusted.has_peer(peer))
        };
        assert!(has("10.0.0.0/8", Some("10.200.0.1")));
        assert!(!has("10.0.0.0/8", Some("11.0.0.1")));
        assert!(has("unix", None));
        assert!(!has("127.0.0.1", None));
        assert!(has("127.0.0.1", Some("::ffff:127.0.0.1")));
        assert_eq!(
            Trusted::parse("10.0.0.0/33").err(),
            Some("10.0.0.0/33".to_owned())
        );
    }
}
