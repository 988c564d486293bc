//! The timeline of a run as a picture: one row per node, its wait pale, its run in colour.

use std::fmt::Write;

use crate::picture::{colour, lane};
use crate::report::Report;

const ROW: usize = 18;
const LEFT: f64 = 180.0;
const WIDTH: f64 = 800.0;

pub fn svg(report: &Report) -> String {
    let last = report.nodes.iter().filter_map(|node| node.ended).max();
    let scale = WIDTH / last.unwrap_or(1).max(1) as f64;
    let critical: Vec<_> = report
        .critical_path()
        .iter()
        .map(|n| n.name.clone())
        .collect();
    let height = ROW * (report.nodes.len() + 2);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n",
        LEFT + WIDTH + 20.0
    );
    for (row, node) in report.nodes.iter().enumerate() {
        let y = ROW * (row + 1);
        let bold = if critical.contains(&node.name) {
            "bold"
        } else {
            "normal"
        };
        // Writing into a `String` can't fail.
        let _ = writeln!(
            text,
            "<text x=\"4\" y=\"{}\" font-weight=\"{bold}\">{} ({})</text>",
            y + 12,
            escape(&node.name),
            lane(node.lane)
        );
        let (Some(queued), Some(ended)) = (node.queued, node.ended) else {
            continue;
        };
        let started = node.started.unwrap_or(ended);
        bar(
            &mut text,
            y,
            queued as f64 * scale,
            started as f64 * scale,
            "#eeeeee",
        );
        bar(
            &mut text,
            y,
            started as f64 * scale,
            ended as f64 * scale,
            colour(node),
        );
    }
    let total = last.unwrap_or(0) as f64 / 1e6;
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"12\">0 to {total:.3} ms</text>\n</svg>"
    );
    text
}

fn bar(text: &mut String, y: usize, from: f64, to: f64, fill: &str) {
    let x = LEFT + from;
    let width = (to - from).max(0.5);
    let height = ROW - 4;
    let _ = writeln!(
        text,
        "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{fill}\"/>"
    );
}

fn escape(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;")
}
