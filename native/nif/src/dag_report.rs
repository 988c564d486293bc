//! What a run gave, as one term: nodes are named by their place in the graph.
//!
//! Thread: whoever ended the run.

use std::collections::HashMap;

use dag::redis::Failure;
use dag::{Error, NodeReport, Reason, Report, picture};

use crate::dag_run::Context;
use crate::dag_value::{self, TermReason};
use etf::write::{write_atom, write_binary, write_int, write_list_header, write_nil, write_tuple};

const DOT: u32 = 1;
const SVG: u32 = 2;
const TRACE: u32 = 4;

/// `{ok, Results, Timeline, CriticalPath, Error, Pictures}` or `{error, Why}`, encoded.
pub fn write(
    names: &[String],
    context: &Context,
    result: &Result<Report, Error>,
    pictures: u32,
) -> Vec<u8> {
    let mut out = vec![etf::tag::VERSION];
    match result {
        Ok(report) => write_report(&mut out, names, context, report, pictures),
        Err(error) => {
            write_tuple(&mut out, 2);
            write_atom(&mut out, "error");
            write_error(&mut out, names, error);
        }
    }
    out
}

fn write_report(
    out: &mut Vec<u8>,
    names: &[String],
    context: &Context,
    report: &Report,
    pictures: u32,
) {
    write_tuple(out, 6);
    write_atom(out, "ok");
    let results = context.wanted.iter().filter_map(|index| {
        let value = report.nodes.get(*index)?.value.as_ref()?;
        let mut term = Vec::new();
        dag_value::write(&mut term, value).ok()?;
        Some((*index, term))
    });
    write_list(out, results.collect(), |out, (index, term)| {
        write_tuple(out, 2);
        write_int(out, index as i64);
        out.extend_from_slice(&term);
    });
    let nodes = report.nodes.iter().enumerate().collect();
    write_list(out, nodes, |out, (index, node)| {
        write_tuple(out, 7);
        match index < names.len() {
            true => write_int(out, index as i64),
            // Asked for by a node; it has only the name of pictures.
            false => write_binary(out, node.name.as_bytes()),
        }
        write_node(out, node);
    });
    let path = report.critical_path().into_iter();
    let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let path = path.filter_map(|node| places.get(&*node.name).copied());
    write_list(out, path.collect(), |out, index| {
        write_int(out, index as i64)
    });
    match &report.error {
        Some(error) => write_error(out, names, error),
        None => write_atom(out, "none"),
    }
    let wanted = |bit: u32| pictures & bit != 0;
    let drawn = [
        wanted(DOT).then(|| picture::dot(report)),
        wanted(SVG).then(|| picture::svg(report)),
        wanted(TRACE).then(|| picture::chrome_trace(report)),
    ];
    write_list(out, drawn.into_iter().collect(), |out, drawn| {
        write_binary(out, drawn.unwrap_or_default().as_bytes());
    });
}

fn write_list<T>(out: &mut Vec<u8>, items: Vec<T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    if !items.is_empty() {
        write_list_header(out, items.len());
        items.into_iter().for_each(|item| write(out, item));
    }
    write_nil(out);
}

/// `Outcome, Reason, Lane, Queued, Started, Ended`
fn write_node(out: &mut Vec<u8>, node: &NodeReport) {
    let (outcome, reason) = node.told();
    write_atom(out, outcome);
    match reason {
        Some(reason) => write_reason(out, reason),
        None => write_atom(out, "none"),
    }
    write_atom(out, node.lane.word().unwrap_or("none"));
    for time in [node.queued, node.started, node.ended] {
        match time {
            Some(time) => write_int(out, time as i64),
            None => write_atom(out, "none"),
        }
    }
}

fn write_error(out: &mut Vec<u8>, names: &[String], error: &Error) {
    match error {
        Error::Node { node, reason } => {
            write_tuple(out, 3);
            write_atom(out, "node");
            let index = names.iter().position(|name| name == node);
            write_int(out, index.unwrap_or_default() as i64);
            write_reason(out, reason);
        }
        Error::Deadline => write_atom(out, "timeout"),
        Error::Cancelled => write_atom(out, "cancelled"),
        Error::Stopped => write_atom(out, "not_running"),
        Error::Full => write_atom(out, "overload"),
        error => write_bad(out, &error.to_string()),
    }
}

fn write_reason(out: &mut Vec<u8>, reason: &Reason) {
    match reason {
        Reason::Foreign(cause) => {
            if let Some(TermReason(term)) = cause.get() {
                out.extend_from_slice(term);
            } else {
                let why = cause.get::<Failure>().map(ToString::to_string);
                write_tuple(out, 2);
                write_binary(out, b"redis");
                write_binary(out, why.unwrap_or_default().as_bytes());
            }
        }
        Reason::TimedOut => write_atom(out, "timeout"),
        Reason::Stopped => write_atom(out, "not_running"),
        reason => write_bad(out, &reason.to_string()),
    }
}

fn write_bad(out: &mut Vec<u8>, what: &str) {
    write_tuple(out, 2);
    write_atom(out, "bad_argument");
    write_binary(out, what.as_bytes());
}
