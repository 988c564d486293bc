//! The options of a server: the one table of them.
//!
//! From it come `erlang.serve.Options` and the command line with its `--help` (`serve/_table.py`), what `py_asgi:serve`
//! takes (`py_asgi_options.erl`), `Given`, which native code reads, and the reference in docs/serving-asgi.md.
//! A row is `name: Kind(its range) = default, "help";`, in the world it holds in. Times are milliseconds here and in a
//! node, seconds in Python.

mod given;
#[cfg(test)]
mod page;
mod row;
mod shown;

pub use given::{Read, want};
pub use row::{Field, Row};
pub use shown::server_options;

use super::head::MOST_HEADERS;
use row::{Kind, Value, Worlds, options};

/// For a limit that has no upper end.
const ANY: i64 = i64::MAX;

options! {
    // Of the wheel, on its command line and in programs, and of a node.
    EVERYWHERE {
        host: Address = "127.0.0.1", "the address to listen on";
        port: Integer(0..=65535) = 8000, "the port; 0 for any free one";
        uds: Path, "the path of a Unix socket, in place of host and port";
        uds_mode: Permissions = 0o666, "who may connect to it: the permissions of that path, in octal";
        backlog: Integer(1..=65535) = 2048, "connections that may wait to be accepted";
        reuse_port: Boolean = false, "let several listen on the same port; the kernel spreads connections by chance";
        root_path: Prefix = "", "the path under which a proxy shows the application";
        lifespan: OneOf(&["auto", "on", "off"]) = "auto", "whether the application has a lifespan; auto: not if it raises on it";
        access_log: Boolean = true, "one line per request";
        access_log_format: TextOr(&["common", "json"]) = "common", "common, json, or a text with fields such as %(status)s";
        access_log_file: PathOr(&["stdout", "stderr"]), "where the lines go: a file, stdout or stderr";
        pathsend: Boolean = false, "tell applications that they may send files by path, past all middleware";
        server_header: Text = "", "the value of the header `server`; none if empty";
        max_header_size: Integer(1..=ANY) = 65536, "bytes of a request line with its headers; more is 414 or 431";
        max_headers: Integer(1..=MOST_HEADERS as i64) = 100, "headers of a request; more is 431";
        max_body_size: Integer(0..=ANY) = 0, "bytes of a request body, 0 for any; more is 413";
        max_connections: Integer(0..=ANY) = 0, "connections at a time, 0 for any; the next one's request is 503";
        max_in_flight: Integer(0..=ANY) = 0, "requests at a time, 0 for any; the next one is 503";
        header_timeout: Time { least: 1 } = 30_000, "time for a head to be complete; then 408";
        idle_timeout: Time { least: 1 } = 60_000, "time without a request, or without progress in one";
        stop_timeout: Time { least: 0 } = 30_000, "time for requests to be answered at the end";
        trusted_proxies: Proxies = "", "addresses, networks, `unix` or `*`: whose forwarded headers are believed";
        ws_max_size: Integer(1..=ANY) = 16 * 1024 * 1024, "bytes of a WebSocket message; more is closed with 1009";
        ws_deflate: Boolean = true, "compress WebSocket messages where the client can";
        ws_ping_interval: Time { least: 0 } = 20_000, "time of silence before a WebSocket is pinged, 0 for never";
        ws_ping_timeout: Time { least: 1 } = 20_000, "time for the answer to a ping";
        certificate: Path, "a file with the certificate chain, for TLS";
        private_key: Path, "a file with the private key, if it is not with the certificate";
        private_key_password: Secret, "the password of the private key";
    }
    WHEEL {
        fd: Descriptor, "the descriptor of a listening socket, in place of host and port";
    }
    COMMAND_AND_NODE {
        workers: Integer(1..=4096) = 1, "how many serve at the same time; limits are for each";
        app_dir: Path, "where to look for the module first";
    }
    COMMAND {
        factory: Boolean = false, "call the attribute for the app";
        log_level: OneOf(&["debug", "info", "warning", "error", "critical"]) = "info", "what the server logs; access is info";
        worker_kind: OneOf(&["auto", "threads", "interpreters", "processes"]) = "auto", "what a worker is";
        reload: Boolean = false, "start again when a file changes";
        reload_dir: Paths, "what to watch instead of --app-dir";
    }
    NODE {
        name: Name, "registers the server";
        mode: OneOf(&["loop", "subinterp"]) = "loop", "subinterp: each worker in a sub-interpreter with a GIL of its own";
        mounts: Mounts, "other applications, by path: `#{<<\"/old\">> => {wsgi, <<\"old:app\">>}}`";
        start_timeout: TimeOrInfinity = 60_000, "time for the application to start";
    }
}
