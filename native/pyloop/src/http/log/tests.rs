//! Whole lines, from a head to their end.

use std::cell::Cell;
use std::mem::MaybeUninit;

use super::entry::{Asked, Client, Entry};
use super::field;
use super::plan::{JSON, LINE, Outcome, Plan};
use super::stamp::{Moment, Stamp};
use crate::http::head::{self, Limits, MOST_HEADERS};

const LIMITS: Limits = Limits {
    bytes: 65536,
    headers: 100,
};
const AT: Moment = Moment {
    second: 784_111_777,
    millis: 7,
};
const CLIENT: Client<'_> = Client {
    host: Some("192.0.2.7"),
    port: Some(4711),
};

/// The line of a request, which was answered with 200 and 5 bytes.
fn line(format: &str, request: &[u8]) -> String {
    let plan = Plan::parse(format).unwrap();
    let mut room = [MaybeUninit::uninit(); MOST_HEADERS];
    let head = head::parse(request, LIMITS, &mut room, &Cell::new(0))
        .unwrap()
        .unwrap();
    let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
    let asked = Asked {
        root: "",
        path,
        query,
    };
    written(&plan, &Entry::of(&plan, CLIENT, &head, asked), 200, 5)
}

fn written(plan: &Plan, entry: &Entry, status: u16, bytes: u64) -> String {
    let (mut out, end) = (Vec::new(), Outcome { status, bytes });
    plan.line(&mut out, entry, end, AT, &mut Stamp::default());
    assert!(out.len() <= LINE, "{}", out.len());
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches('\n').count(), 1);
    text.strip_suffix('\n').unwrap().to_owned()
}

const TRACED: &[u8] = b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/8\r\nReferer: http://r/\r\n\
    X-Request-ID: r-1\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";

#[test]
fn the_common_format_is_that_of_other_servers() {
    let request = b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(
        line("common", request),
        r#"192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] "GET /a?b=1 HTTP/1.1" 200 5"#
    );
    let old = b"POST / HTTP/1.0\r\n\r\n";
    assert!(line("common", old).ends_with(r#""POST / HTTP/1.0" 200 5"#));
}

#[test]
fn a_trace_follows_the_common_format() {
    assert!(line("common", TRACED).ends_with(" 200 5 trace_id=4bf92f3577b34da6a3ce929d0e0e4736"));
    let bad = b"GET / HTTP/1.1\r\nHost: x\r\ntraceparent: x\" 500 1\r\n\r\n";
    assert!(line("common", bad).ends_with(" 200 5"));
}

#[test]
fn an_empty_body_and_an_unread_head_are_dashes() {
    let plan = Plan::parse("common").unwrap();
    let entry = Entry::unread(Client::default());
    let text = written(&plan, &entry, 400, 0);
    assert_eq!(text, r#"- - - [06/Nov/1994:08:49:37 +0000] "-" 400 -"#);
    let plan = Plan::parse("json").unwrap();
    let text = written(&plan, &entry, 400, 0);
    assert!(
        text.contains(r#""client":null,"port":null,"method":null,"target":null,"protocol":null"#)
    );
    assert!(text.contains(r#""status":400,"bytes":0,"ms":0.000,"referer":null"#));
}

#[test]
fn json_has_every_member() {
    let text = line("json", TRACED);
    let (before, after) = text.split_once("\"ms\":").unwrap();
    assert_eq!(
        before,
        r#"{"time":"1994-11-06T08:49:37.007Z","client":"192.0.2.7","port":4711,"method":"GET","#
            .to_owned()
            + r#""target":"/a?b=1","protocol":"HTTP/1.1","status":200,"bytes":5,"#
    );
    let (ms, rest) = after.split_once(',').unwrap();
    assert!(ms.parse::<f64>().unwrap() >= 0.0);
    assert_eq!(
        rest,
        r#""referer":"http://r/","user_agent":"curl/8","request_id":"r-1","#.to_owned()
            + r#""trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}"#
    );
}

#[test]
fn a_format_string_has_the_fields_it_names() {
    assert_eq!(
        line(
            "%(client)s %(method)s %(path)s %(query)s %(status)s 100%%",
            TRACED
        ),
        "192.0.2.7:4711 GET /a b=1 200 100%"
    );
    assert_eq!(
        line(
            r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s""#,
            TRACED
        ),
        r#"192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] "GET /a?b=1 HTTP/1.1" 200 5 "http://r/" "curl/8""#
    );
    assert_eq!(
        line(
            "%(trace_id)s %(request_id)s %({Host}i)s %({x-none}i)s",
            TRACED
        ),
        "4bf92f3577b34da6a3ce929d0e0e4736 r-1 x -"
    );
    assert_eq!(
        line("%(iso_time)s %(time)s", TRACED),
        "1994-11-06T08:49:37.007Z 06/Nov/1994:08:49:37 +0000"
    );
    let pid = std::process::id();
    assert_eq!(line("%(pid)s %(p)s", TRACED), format!("{pid} {pid}"));
    let times = line("%(seconds)s %(L)s %(T)s %(ms)s %(M)s %(us)s %(D)s", TRACED);
    assert_eq!(times.split(' ').count(), 7);
    assert!(times.split(' ').all(|time| time.parse::<f64>().is_ok()));
}

#[test]
fn a_format_that_can_not_be_read_is_told_in_a_sentence() {
    let error = |format| Plan::parse(format).map(|_| ()).unwrap_err();
    assert!(error("combined").contains("'combined' is not common or json"));
    assert!(error("").contains("is not common or json"));
    assert!(error("%(nothing)s").contains("there is no field %(nothing)s; the fields are host, h"));
    assert!(error("%({x}o)s").contains("there is no field"));
    assert!(error("%({}i)s").contains("there is no field"));
    assert!(error("%(status)d").contains("is written %(status)s"));
    assert!(error("100% %(status)s").contains("or is doubled"));
    assert!(error("%(status").contains("or is doubled"));
    assert!(error("%(status)s\n%(host)s").contains("control characters"));
}

#[test]
fn the_page_about_the_log_has_every_field_and_every_member() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving-asgi.md");
    let page = std::fs::read_to_string(path).unwrap();
    let fields = field::NAMES.iter().map(|(name, _)| *name);
    let headers = field::HEADERS.iter().map(|(name, _)| *name);
    for name in fields.chain(headers).chain([field::TRACE]) {
        assert!(page.contains(&format!("`%({name})s`")), "{name}");
    }
    let (_, members) = page.split_once("with the members").unwrap();
    let (members, _) = members.split_once(';').unwrap();
    for (member, _) in JSON {
        assert!(members.contains(&format!("`{member}`")), "{member}");
    }
}

/// A request of which every part is made to leave its field.
fn hostile(target: &str, value: &[u8]) -> Vec<u8> {
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n").into_bytes();
    for name in ["User-Agent", "Referer", "X-Request-ID"] {
        request.extend_from_slice(name.as_bytes());
        request.extend_from_slice(b": ");
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

#[test]
fn what_a_client_sends_stays_in_its_field() {
    let request = hostile("/\"\\a", b"\" 200 1 \\ \xff\xc3\xa9\t");
    let text = line(
        "%(request)s|%(user_agent)s|%(referer)s|%(request_id)s",
        &request,
    );
    let value = r"\x22 200 1 \x5c \xff\xc3\xa9";
    assert_eq!(
        text,
        format!(r"GET /\x22\x5ca HTTP/1.1|{value}|{value}|{value}")
    );
    let text = line("json", &request);
    assert!(text.contains(r#""target":"/\"\\a""#));
    assert!(text.contains("\"user_agent\":\"\\\" 200 1 \\\\ \u{ff}\u{c3}\u{a9}\""));
}

#[test]
fn a_line_is_never_longer_than_a_pipe_takes_as_a_whole() {
    let request = hostile(&format!("/{}", "\"".repeat(9000)), &[0xff; 9000]);
    for format in ["common", "json", "%(target)s%(target)s%(target)s%(target)s"] {
        let text = line(format, &request);
        assert!(text.contains("..."), "{text}");
    }
    assert!(line("json", &request).ends_with("\"trace_id\":null}"));
}
