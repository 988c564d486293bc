//! The classes, names and constants of the server, one set per interpreter.

use std::sync::Arc;

use pyrt::module::add;
use pyrt::{Attached, Member, Obj, PyResult, awaitable, native};

use super::connection::Connection;
use super::request::Request;
use super::server::Server;
use super::wait::{Need, Wait};

/// Declares `Names`: one interned `str` per key, event or method that is used.
macro_rules! names {
    ($($name:ident = $text:expr),* $(,)?) => {
        pub struct Names { $(pub $name: Member),* }

        impl Names {
            fn make(py: Attached<'_>) -> PyResult<'_, Self> {
                Ok(Names { $($name: Member::new(Obj::interned(py, $text)?)),* })
            }
        }
    };
}

names! {
    // Keys.
    kind = "type", asgi = "asgi", version = "version", spec_version = "spec_version",
    http_version = "http_version", server = "server", client = "client", scheme = "scheme",
    root_path = "root_path", path = "path", raw_path = "raw_path", query_string = "query_string",
    headers = "headers", method = "method", state = "state", extensions = "extensions",
    body = "body", more_body = "more_body", status = "status", trailers = "trailers",
    subprotocols = "subprotocols", subprotocol = "subprotocol", text = "text", bytes = "bytes",
    code = "code", reason = "reason",
    // Values.
    websocket = "websocket", ws = "ws", wss = "wss", websocket_connect = "websocket.connect",
    websocket_receive = "websocket.receive", websocket_disconnect = "websocket.disconnect",
    http = "http", https = "https", one_zero = "1.0", one_one = "1.1",
    http_request = "http.request", http_disconnect = "http.disconnect",
    // Methods.
    receive = "receive", send = "send", done = "done", set_result = "set_result",
    add_done_callback = "add_done_callback", app_done = "_app_done", write = "write",
    close = "close", pump = "_pump", call_soon = "call_soon", exception = "exception",
    cancelled = "cancelled", create_task = "create_task",
}

/// Header names that come often; their `bytes` are shared by all requests.
const COMMON: [&[u8]; 48] = [
    b"accept",
    b"accept-charset",
    b"accept-encoding",
    b"accept-language",
    b"access-control-request-headers",
    b"access-control-request-method",
    b"age",
    b"authorization",
    b"cache-control",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-type",
    b"cookie",
    b"date",
    b"dnt",
    b"expect",
    b"forwarded",
    b"from",
    b"host",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"keep-alive",
    b"origin",
    b"pragma",
    b"priority",
    b"range",
    b"referer",
    b"sec-fetch-dest",
    b"sec-fetch-mode",
    b"sec-fetch-site",
    b"sec-fetch-user",
    b"sec-websocket-extensions",
    b"sec-websocket-key",
    b"sec-websocket-protocol",
    b"sec-websocket-version",
    b"te",
    b"traceparent",
    b"transfer-encoding",
    b"upgrade",
    b"upgrade-insecure-requests",
    b"user-agent",
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"x-real-ip",
    b"x-request-id",
];

const METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE",
];

/// No common name is longer.
const LONGEST: usize = 32;

pub struct Types {
    pub connection: Member,
    pub request: Member,
    pub wait: Member,
    /// An awaitable that is done: what `send` gives where nothing has to be waited for.
    pub done: Member,
    pub names: Names,
    /// Common header names by length.
    common: Vec<Vec<(&'static [u8], Member)>>,
    methods: Vec<(&'static str, Member)>,
    /// `("loop", "eager_start")`
    pub eager: Member,
}

// SAFETY: filled once, then only read, and only by threads attached to its interpreter (I1).
unsafe impl Send for Types {}
// SAFETY: as above.
unsafe impl Sync for Types {}

impl Types {
    pub fn make<'py>(module: &Obj<'py>) -> PyResult<'py, Arc<Self>> {
        let py = module.py();
        let server = native::make::<Server>(module)?;
        add(module, c"HttpServer", &server)?;
        let connection = native::make::<Connection>(module)?;
        let wait = awaitable::make::<Wait>(module)?;
        let done = Wait::make(&wait, None, Need::Nothing)?;
        let mut common: Vec<Vec<(&[u8], Member)>> = Vec::new();
        common.resize_with(LONGEST, Vec::new);
        for name in COMMON {
            common[name.len()].push((name, Member::new(Obj::bytes(py, name)?)));
        }
        let mut methods = Vec::new();
        for method in METHODS {
            methods.push((method, Member::new(Obj::interned(py, method)?)));
        }
        let eager = [
            Obj::interned(py, "loop")?,
            Obj::interned(py, "eager_start")?,
        ];
        Ok(Arc::new(Types {
            connection: Member::new(connection),
            request: Member::new(native::make::<Request>(module)?),
            wait: Member::new(wait),
            done: Member::new(done),
            names: Names::make(py)?,
            common,
            methods,
            eager: Member::new(Obj::tuple(py, eager.into_iter())?),
        }))
    }

    /// The `bytes` of a header name, in lower case.
    pub fn header_name<'py>(&self, py: Attached<'py>, name: &str) -> PyResult<'py, Obj<'py>> {
        if let Some(same_length) = self.common.get(name.len()) {
            for (text, object) in same_length {
                if name.as_bytes().eq_ignore_ascii_case(text) {
                    return Ok(object.obj(py));
                }
            }
        }
        Obj::bytes(py, name.to_ascii_lowercase().as_bytes())
    }

    pub fn method<'py>(&self, py: Attached<'py>, method: &str) -> PyResult<'py, Obj<'py>> {
        match self.methods.iter().find(|(known, _)| *known == method) {
            Some((_, object)) => Ok(object.obj(py)),
            None => Obj::text(py, &method.to_ascii_uppercase()),
        }
    }
}
