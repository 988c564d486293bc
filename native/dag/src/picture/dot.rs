//! The graph of a run for Graphviz: what waited for what, coloured by how it ended.

use std::fmt::Write;

use crate::picture::colour;
use crate::report::Report;

pub fn dot(report: &Report) -> String {
    let critical: Vec<_> = report
        .critical_path()
        .iter()
        .map(|n| n.name.clone())
        .collect();
    let mut text =
        String::from("digraph run {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
    for (index, node) in report.nodes.iter().enumerate() {
        let time = match (node.started, node.ended) {
            (Some(started), Some(ended)) => format!("{:.1} µs", (ended - started) as f64 / 1e3),
            _ => "did not run".to_owned(),
        };
        let pen = if critical.contains(&node.name) { 3 } else { 1 };
        let name = escape(&node.name);
        let fill = colour(node);
        // Writing into a `String` can't fail.
        let _ = writeln!(
            text,
            "  n{index} [label=\"{name}\\n{time}\", fillcolor=\"{fill}\", penwidth={pen}];"
        );
        for parent in &node.parents {
            let _ = writeln!(text, "  n{parent} -> n{index};");
        }
    }
    text.push_str("}\n");
    text
}

fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}
