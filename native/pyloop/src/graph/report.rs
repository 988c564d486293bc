//! What a run gave, as Python objects: nodes are named by their place in the graph.
//!
//! Thread: attached.

use dag::redis::Failure;
use dag::{Error, NodeReport, Reason, Report, picture};
use pyrt::container::Filling;
use pyrt::{Attached, Obj, PyResult};

use super::run::Run;
use super::values::{self, Raised};

const DRAW: [fn(&Report) -> String; 3] = [picture::dot, picture::svg, picture::chrome_trace];

/// `(results, timeline, path, error, pictures)`, or `None` while it goes on.
pub fn report<'py>(py: Attached<'py>, run: &Run, pictures: usize) -> PyResult<'py, Obj<'py>> {
    let Some(result) = run.result() else {
        return Ok(Obj::none(py));
    };
    let (report, error) = match &result {
        Ok(report) => (Some(report), report.error.as_ref()),
        Err(error) => (None, Some(error)),
    };
    let empty: &[NodeReport] = &[];
    let nodes = report.map_or(empty, |report| &report.nodes);
    let mut results = Filling::list(py, 0)?;
    let found = run.wanted.iter().filter_map(|index| {
        let value = nodes.get(*index)?.value.as_ref()?;
        Some((*index, value))
    });
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        results = Filling::list(py, found.len())?;
    }
    for (index, value) in found {
        results.push(pair(
            py,
            Obj::int(py, index as i64)?,
            values::to_python(py, value)?,
        )?);
    }
    let mut timeline = Filling::list(py, nodes.len())?;
    for node in nodes {
        timeline.push(event(py, node)?);
    }
    let path = report
        .map(|report| report.critical_path())
        .unwrap_or_default();
    let mut names = Filling::list(py, path.len())?;
    for node in path {
        names.push(Obj::text(py, &node.name)?);
    }
    let mut drawn = Filling::list(py, DRAW.len())?;
    for (bit, draw) in DRAW.iter().enumerate() {
        drawn.push(match report {
            Some(report) if pictures & (1 << bit) != 0 => Obj::text(py, &draw(report))?,
            _ => Obj::none(py),
        });
    }
    let error = match error {
        Some(error) => failed(py, error)?,
        None => Obj::none(py),
    };
    let parts = [
        results.finish()?,
        timeline.finish()?,
        names.finish()?,
        error,
        drawn.finish()?,
    ];
    Obj::tuple(py, parts.into_iter())
}

fn pair<'py>(py: Attached<'py>, first: Obj<'py>, second: Obj<'py>) -> PyResult<'py, Obj<'py>> {
    Obj::tuple(py, [first, second].into_iter())
}

/// `(name, outcome, reason, lane, queued, started, ended)`, times in seconds.
fn event<'py>(py: Attached<'py>, node: &NodeReport) -> PyResult<'py, Obj<'py>> {
    let (outcome, why) = node.told();
    let lane = match node.lane.word() {
        Some(lane) => Obj::text(py, lane)?,
        None => Obj::none(py),
    };
    let why = match why {
        Some(why) => reason(py, why)?,
        None => Obj::none(py),
    };
    let time = |time: Option<u64>| match time {
        Some(time) => Obj::float(py, time as f64 / 1e9),
        None => Ok(Obj::none(py)),
    };
    let parts = [
        Obj::text(py, &node.name)?,
        Obj::text(py, outcome)?,
        why,
        lane,
        time(node.queued)?,
        time(node.started)?,
        time(node.ended)?,
    ];
    Obj::tuple(py, parts.into_iter())
}

/// `(kind, node, reason)`
fn failed<'py>(py: Attached<'py>, error: &Error) -> PyResult<'py, Obj<'py>> {
    let (kind, node, reason) = match error {
        Error::Node { node, reason: why } => ("node", Obj::text(py, node)?, reason(py, why)?),
        Error::Deadline => ("deadline", Obj::none(py), Obj::none(py)),
        Error::Cancelled => ("cancelled", Obj::none(py), Obj::none(py)),
        error => ("other", Obj::none(py), Obj::text(py, &error.to_string())?),
    };
    Obj::tuple(py, [Obj::text(py, kind)?, node, reason].into_iter())
}

/// `(kind, exception or text)`
fn reason<'py>(py: Attached<'py>, reason: &Reason) -> PyResult<'py, Obj<'py>> {
    let (kind, what) = match reason {
        Reason::Foreign(cause) => match (cause.get::<Raised>(), cause.get::<Failure>()) {
            (Some(raised), _) => {
                let raised = raised.0.get(py).unwrap_or_else(|| Obj::none(py));
                ("raised", raised)
            }
            (None, Some(why)) => ("redis", Obj::text(py, &why.to_string())?),
            (None, None) => ("other", Obj::text(py, "failed")?),
        },
        Reason::TimedOut => ("timeout", Obj::none(py)),
        other => ("other", Obj::text(py, &other.to_string())?),
    };
    pair(py, Obj::text(py, kind)?, what)
}
