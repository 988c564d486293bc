//! Pictures of a graph and of a run: DOT, SVG, and a trace that Chrome and Perfetto open.

mod dot;
mod svg;
mod trace;

pub use dot::dot;
pub use svg::svg;
pub use trace::chrome_trace;

use crate::report::{NodeReport, Outcome};
use crate::run::Lane;

fn colour(node: &NodeReport) -> &'static str {
    match (&node.outcome, node.lane) {
        (Some(Outcome::Failed(_)), _) => "#d9534f",
        (Some(Outcome::Skipped), _) => "#cccccc",
        (Some(Outcome::Cancelled), _) => "#999999",
        (_, Lane::Cpu(_)) => "#5b8ff9",
        (_, Lane::Foreign(_)) => "#f6bd16",
        _ => "#61ddaa",
    }
}

fn lane(lane: Lane) -> String {
    match lane {
        Lane::Cpu(index) => format!("cpu {index}"),
        other => other.word().unwrap_or("-").to_owned(),
    }
}
