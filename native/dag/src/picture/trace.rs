//! The timeline of a run in the trace format of Chrome and Perfetto.

use std::fmt::Write;

use crate::report::Report;
use crate::run::Lane;

pub fn chrome_trace(report: &Report) -> String {
    let mut text = String::from("[\n");
    let mut comma = "";
    for (index, node) in report.nodes.iter().enumerate() {
        let (Some(queued), Some(started), Some(ended)) = (node.queued, node.started, node.ended)
        else {
            continue;
        };
        let name = escape(&node.name);
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let (at, long) = (micros(started), micros(ended.saturating_sub(started)));
        let wait = micros(started.saturating_sub(queued));
        // A thread of the pool does one thing at a time; what waits on the loop overlaps.
        let event = match node.lane {
            Lane::Cpu(lane) => format!(
                "{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":1,\"tid\":{lane},\"ts\":{at:.3},\
                 \"dur\":{long:.3},\"args\":{{\"waited_us\":{wait:.3}}}}}"
            ),
            other => format!(
                "{{\"name\":\"{name}\",\"cat\":\"{0}\",\"ph\":\"b\",\"id\":{index},\"pid\":1,\
                 \"tid\":\"{0}\",\"ts\":{at:.3},\"args\":{{\"waited_us\":{wait:.3}}}}},\n\
                 {{\"name\":\"{name}\",\"cat\":\"{0}\",\"ph\":\"e\",\"id\":{index},\"pid\":1,\
                 \"tid\":\"{0}\",\"ts\":{1:.3}}}",
                super::lane(other),
                at + long
            ),
        };
        // Writing into a `String` can't fail.
        let _ = write!(text, "{comma}{event}");
        comma = ",\n";
    }
    text.push_str("\n]\n");
    text
}

fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", control as u32);
            }
            letter => text.push(letter),
        }
    }
    text
}
