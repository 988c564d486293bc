//! The connection scope of a request: what the application is called with.
//!
//! Thread: the loop's own.

use std::borrow::Cow;
use std::net::SocketAddr;

use httparse::Header;
use pyrt::container::Filling;
use pyrt::{Attached, Obj, PyResult};

use super::connection::Connection;
use super::head::Head;
use super::log::{Asked, Client, Entry};
use super::server::Server;
use crate::event_loop::watch::lend;
use crate::transport::Stream;

/// What a request begins with.
pub struct Begun<'py> {
    pub scope: Obj<'py>,
    /// For the log, if there is one.
    pub entry: Option<Box<Entry>>,
}

/// The scope; `None` if the target is of no form that is served.
pub fn build<'py>(
    connection: &Connection,
    py: Attached<'py>,
    head: &Head<'_>,
) -> PyResult<'py, Option<Begun<'py>>> {
    let Some(Target { path, query, host }) = split(head) else {
        return Ok(None);
    };
    let server = connection.server(py);
    let (names, parts) = (&server.types.names, server.parts(py)?);
    let scope = template(connection, py)?.dict_copy()?;
    if !head.facts.modern {
        scope.dict_set(&names.http_version.get(py), &names.one_zero.get(py))?;
    }
    let method = server.types.method(py, head.method)?;
    scope.dict_set(&names.method.get(py), &method)?;
    let root = parts.config.given.root_path.as_str();
    let (text, raw) = if root.is_empty() {
        (
            Obj::text_fast(py, &decoded(path))?,
            Obj::bytes(py, path.as_bytes())?,
        )
    } else {
        let text = format!("{root}{}", decoded(path));
        (
            Obj::text(py, &text)?,
            Obj::bytes(py, format!("{root}{path}").as_bytes())?,
        )
    };
    scope.dict_set(&names.path.get(py), &text)?;
    scope.dict_set(&names.raw_path.get(py), &raw)?;
    scope.dict_set(
        &names.query_string.get(py),
        &Obj::bytes(py, query.as_bytes())?,
    )?;
    let headers = headers(connection, py, head, host)?;
    scope.dict_set(&names.headers.get(py), &headers)?;
    if !parts.config.trusted.is_empty() {
        look_behind_proxies(connection, &scope, head)?;
    }
    if let Some(state) = parts.state.get(py) {
        scope.dict_set(&names.state.get(py), &state.dict_copy()?)?;
    }
    let entry = match &parts.log {
        None => None,
        Some(log) => {
            let asked = Asked { root, path, query };
            let made = |client: Client<'_>| Box::new(Entry::of(&log.plan, client, head, asked));
            Some(with_client(server, &scope, made)?)
        }
    };
    Ok(Some(Begun { scope, entry }))
}

/// For the log of a request that gets no scope.
#[cold]
pub fn refused<'py>(
    connection: &Connection,
    py: Attached<'py>,
    head: Option<&Head<'_>>,
) -> PyResult<'py, Option<Box<Entry>>> {
    let server = connection.server(py);
    let parts = server.parts(py)?;
    let Some(log) = &parts.log else {
        return Ok(None);
    };
    let scope = template(connection, py)?.dict_copy()?;
    let Some(head) = head else {
        return with_client(server, &scope, |client| {
            Some(Box::new(Entry::unread(client)))
        });
    };
    if !parts.config.trusted.is_empty() {
        look_behind_proxies(connection, &scope, head)?;
    }
    let asked = Asked {
        root: "",
        path: head.target,
        query: "",
    };
    let made = |client: Client<'_>| Box::new(Entry::of(&log.plan, client, head, asked));
    with_client(server, &scope, made).map(Some)
}

/// Gives the client of a scope to `body`.
fn with_client<'py, T>(
    server: &Server,
    scope: &Obj<'py>,
    body: impl FnOnce(Client<'_>) -> T,
) -> PyResult<'py, T> {
    let py = scope.py();
    let client = scope.dict_get(&server.types.names.client.get(py))?;
    let part = |at| client.as_ref().and_then(|client| client.tuple_item(at));
    let (host, port) = (part(0), part(1));
    let port = match port.filter(|port| !port.is_none()) {
        Some(port) => port.as_i64()?.and_then(|port| u16::try_from(port).ok()),
        None => None,
    };
    let host = host.as_ref().and_then(|host| host.as_utf8().ok());
    Ok(body(Client { host, port }))
}

/// The client and its scheme are what trusted proxies say.
fn look_behind_proxies<'py>(
    connection: &Connection,
    scope: &Obj<'py>,
    head: &Head<'_>,
) -> PyResult<'py, ()> {
    let py = scope.py();
    let server = connection.server(py);
    let (names, trusted) = (&server.types.names, &server.parts(py)?.config.trusted);
    let peer = scope.dict_get(&names.client.get(py))?;
    // A path in place of a host is of a Unix socket, which has no port: whoever binds it chose its name.
    let peer = peer.filter(|peer| peer.tuple_item(1).is_some_and(|port| !port.is_none()));
    let host = peer.as_ref().and_then(|peer| peer.tuple_item(0));
    let host = host.as_ref().and_then(|host| host.as_utf8().ok());
    if !trusted.has_peer(host) {
        return Ok(());
    }
    if let Some(client) = trusted.client(head.headers) {
        let client = [Obj::text(py, &client)?, Obj::int(py, 0)?];
        let client = Obj::tuple(py, client.into_iter())?;
        scope.dict_set(&names.client.get(py), &client)?;
    }
    if let Some(secure) = trusted.is_secure(head.headers) {
        let scheme = if secure { &names.https } else { &names.http };
        scope.dict_set(&names.scheme.get(py), &scheme.get(py))?;
    }
    Ok(())
}

/// Makes the scope one of a WebSocket.
pub fn for_socket<'py>(
    connection: &Connection,
    scope: &Obj<'py>,
    subprotocols: &[String],
) -> PyResult<'py, ()> {
    let py = scope.py();
    let server = connection.server(py);
    let (names, parts) = (&server.types.names, server.parts(py)?);
    scope.dict_set(&names.kind.get(py), &names.websocket.get(py))?;
    let scheme = scope.dict_get(&names.scheme.get(py))?;
    let secure = scheme.is_some_and(|scheme| names.https.is(&scheme));
    let scheme = if secure { &names.wss } else { &names.ws };
    scope.dict_set(&names.scheme.get(py), &scheme.get(py))?;
    let list = Obj::list_new(py)?;
    for name in subprotocols {
        list.list_append(&Obj::text(py, name)?)?;
    }
    scope.dict_set(&names.subprotocols.get(py), &list)?;
    for (name, place) in [
        (&names.asgi, &parts.socket_asgi),
        (&names.extensions, &parts.socket_extensions),
    ] {
        if let Some(value) = place.get(py) {
            scope.dict_set(&name.get(py), &value)?;
        }
    }
    scope.dict_remove(&names.method.get(py))
}

/// The headers; `host` is that of the target, which counts instead of the header (RFC 9112, 3.2.2).
fn headers<'py>(
    connection: &Connection,
    py: Attached<'py>,
    head: &Head<'_>,
    host: Option<&str>,
) -> PyResult<'py, Obj<'py>> {
    let types = &connection.server(py).types;
    let known = |header: &Header<'_>| header.name.eq_ignore_ascii_case("host");
    let added = host.filter(|_| !head.headers.iter().any(known));
    let mut list = Filling::list(py, head.headers.len() + usize::from(added.is_some()))?;
    let mut push = |name: &str, value: &[u8]| {
        let mut pair = Filling::tuple(py, 2)?;
        pair.push(types.header_name(py, name)?);
        pair.push(Obj::bytes(py, value)?);
        list.push(pair.finish()?);
        Ok(())
    };
    for header in head.headers {
        let value = match host {
            Some(host) if known(header) => host.as_bytes(),
            _ => header.value,
        };
        push(header.name, value)?;
    }
    if let Some(host) = added {
        push("host", host.as_bytes())?;
    }
    list.finish()
}

/// The parts of a target.
#[derive(PartialEq, Eq, Debug)]
struct Target<'a> {
    path: &'a str,
    query: &'a str,
    /// Where it is of the absolute form.
    host: Option<&'a str>,
}

/// `None` for a target that names no path here.
fn split<'a>(head: &Head<'a>) -> Option<Target<'a>> {
    let target = head.target;
    if target.contains('#') || (target == "*" && head.method != "OPTIONS") {
        return None;
    }
    if target.starts_with('/') || target == "*" {
        return Some(origin(target, None));
    }
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        let start = target.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let rest = &target[scheme.len()..];
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // A name or password before the host is for whoever wants to look like another (RFC 9110, 4.2.4).
    if host.is_empty() || host.starts_with(':') || !host.bytes().all(is_of_host) {
        return None;
    }
    Some(match rest.strip_prefix('?') {
        Some(query) => Target {
            path: "/",
            query,
            host: Some(host),
        },
        None if rest.is_empty() => origin("/", Some(host)),
        None => origin(rest, Some(host)),
    })
}

/// Whether a host with its port may have this byte (RFC 3986, 3.2.2).
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte)
}

fn origin<'a>(target: &'a str, host: Option<&'a str>) -> Target<'a> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Target { path, query, host }
}

/// Percent-decoded; what is not UTF-8 then is replaced.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let (bytes, mut out, mut at) = (path.as_bytes(), Vec::new(), 0);
    let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// What is the same for all requests of a connection.
fn template<'py>(connection: &Connection, py: Attached<'py>) -> PyResult<'py, Obj<'py>> {
    if let Some(template) = connection.template.get(py) {
        return Ok(template);
    }
    let server = connection.server(py);
    let (names, parts) = (&server.types.names, server.parts(py)?);
    let template = Obj::dict(py)?;
    template.dict_set(&names.kind.get(py), &names.http.get(py))?;
    for (name, place) in [
        (&names.asgi, &parts.asgi),
        (&names.extensions, &parts.extensions),
    ] {
        if let Some(value) = place.get(py) {
            template.dict_set(&name.get(py), &value)?;
        }
    }
    template.dict_set(&names.http_version.get(py), &names.one_one.get(py))?;
    let (client, own, secure) = ends(connection, py)?;
    template.dict_set(&names.client.get(py), &client)?;
    template.dict_set(&names.server.get(py), &own)?;
    let scheme = if secure { &names.https } else { &names.http };
    template.dict_set(&names.scheme.get(py), &scheme.get(py))?;
    let root = Obj::text(py, &parts.config.given.root_path)?;
    template.dict_set(&names.root_path.get(py), &root)?;
    connection.template.set(Some(template.clone()));
    Ok(template)
}

/// The addresses of the peer and of this side, and whether the connection is encrypted.
fn ends<'py>(
    connection: &Connection,
    py: Attached<'py>,
) -> PyResult<'py, (Obj<'py>, Obj<'py>, bool)> {
    let Some(transport) = connection.transport.get(py) else {
        return Ok((Obj::none(py), Obj::none(py), false));
    };
    if connection.flags.direct.get()
        && let (fd, Some(peer)) = Stream::alone(&transport, Stream::ends)
    {
        let own = rustix::net::getsockname(lend(fd)).ok();
        let own = own.and_then(|own| SocketAddr::try_from(own).ok());
        let own = match own {
            Some(own) => pair(py, own)?,
            None => Obj::none(py),
        };
        return Ok((pair(py, peer)?, own, false));
    }
    let ask = |name| transport.call_method(c"get_extra_info", &[&Obj::text(py, name)?]);
    let secure = !ask("sslcontext")?.is_none();
    Ok((
        host_and_port(&ask("peername")?)?,
        host_and_port(&ask("sockname")?)?,
        secure,
    ))
}

fn pair(py: Attached<'_>, address: SocketAddr) -> PyResult<'_, Obj<'_>> {
    let host = Obj::text(py, &address.ip().to_string())?;
    let port = Obj::int(py, i64::from(address.port()))?;
    Obj::tuple(py, [host, port].into_iter())
}

/// What Python calls an address, as `(host, port)`; a Unix socket has a path and no port.
fn host_and_port<'py>(address: &Obj<'py>) -> PyResult<'py, Obj<'py>> {
    let py = address.py();
    if let (Some(host), Some(port)) = (address.tuple_item(0), address.tuple_item(1)) {
        return Obj::tuple(py, [host.clone(), port.clone()].into_iter());
    }
    if address.is_text() && address.text_len() > 0 {
        return Obj::tuple(py, [address.clone(), Obj::none(py)].into_iter());
    }
    Ok(Obj::none(py))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{Facts, Framing};

    fn parts<'a>(method: &'a str, target: &'a str) -> Option<(&'a str, &'a str, Option<&'a str>)> {
        let facts = Facts {
            framing: Framing::None,
            modern: true,
            keep_alive: true,
            expects: false,
            websocket: false,
            is_head: false,
            trailers: false,
        };
        let head = Head {
            method,
            target,
            headers: &[],
            facts,
            len: 0,
        };
        split(&head).map(|target| (target.path, target.query, target.host))
    }

    #[test]
    fn a_target_has_a_path_and_a_query() {
        let get = |target| parts("GET", target);
        assert_eq!(get("/a/b?c=d?e"), Some(("/a/b", "c=d?e", None)));
        assert_eq!(
            get("http://host:80/a?b"),
            Some(("/a", "b", Some("host:80")))
        );
        assert_eq!(get("HTTP://host"), Some(("/", "", Some("host"))));
        assert_eq!(get("http://host?q/r"), Some(("/", "q/r", Some("host"))));
        assert_eq!(parts("OPTIONS", "*"), Some(("*", "", None)));
        for bad in [
            "host:443",
            "/a#b",
            "*",
            "http://",
            "http:///a",
            "http://:80/",
            "http://u@h/",
            "http://h\\a/b",
            "http://h\"/",
        ] {
            assert_eq!(get(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_path_is_decoded_once() {
        assert_eq!(decoded("/a%20b%2Fc%2520"), "/a b/c%20");
        assert_eq!(decoded("/caf%C3%A9"), "/caf\u{e9}");
        assert_eq!(decoded("/%zz%4"), "/%zz%4");
        assert_eq!(decoded("/%ff"), "/\u{fffd}");
    }
}
