//! Statistics about the calls of a tool, from the journal.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use toolgate_journal::{CallSummary, JournalError, JournalFilter, JournalReader};

use crate::config::Config;
use crate::journal;

const DAYS: i64 = 30;
// More calls wouldn't change the picture.
const MAX_CALLS: usize = 20_000;
const PAGE: usize = 1000;

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct CallStatistics {
    days: i64,
    calls: usize,
    failures: usize,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// `None` without a readable journal: the rest of the tool is still shown.
pub(super) fn for_tool(config: &Config, tool: &str) -> Option<CallStatistics> {
    let calls = journal::reader(config)
        .ok()
        .map(|reader| read(&reader, tool));
    calls?.ok()
}

fn read(reader: &JournalReader, tool: &str) -> Result<CallStatistics, JournalError> {
    let mut filter = JournalFilter::default();
    filter.tool = Some(tool.to_owned());
    filter.limit = PAGE;
    let first = Timestamp::now().checked_sub(SignedDuration::from_hours(24 * DAYS));
    filter.since = first.ok();
    let mut calls: Vec<CallSummary> = Vec::new();
    loop {
        let page = reader.calls(&filter)?;
        let is_last = page.len() < PAGE;
        filter.before = page.last().map(|call| call.id.clone());
        calls.extend(page);
        if is_last || calls.len() >= MAX_CALLS {
            return Ok(CallStatistics::new(&calls, !is_last));
        }
    }
}

impl CallStatistics {
    fn new(calls: &[CallSummary], cut: bool) -> Self {
        let failed = calls.iter().filter(|call| call.success == Some(false));
        let mut times: Vec<f64> = calls.iter().filter_map(|call| call.duration_ms).collect();
        times.sort_by(f64::total_cmp);
        Self {
            days: DAYS,
            calls: calls.len(),
            failures: failed.count(),
            p50_ms: percentile(&times, 50),
            p95_ms: percentile(&times, 95),
            cut,
        }
    }
}

fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied()
}

impl fmt::Display for CallStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { days, calls, .. } = self;
        if *calls == 0 {
            return write!(f, "Calls in the last {days} days: none");
        }
        let more = if self.cut { "more than " } else { "" };
        let failures = match self.failures {
            0 => "none failed".to_owned(),
            failures => format!("{failures} failed"),
        };
        write!(
            f,
            "Calls in the last {days} days: {more}{calls}, {failures}"
        )?;
        if let (Some(half), Some(most)) = (self.p50_ms, self.p95_ms) {
            write!(f, "; median {half} ms, 95th percentile {most} ms")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_sorted_times() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (times, percent, expected) in [
            (&[][..], 50, None),
            (&[7.0], 95, Some(7.0)),
            (&hundred, 50, Some(50.0)),
            (&hundred, 95, Some(95.0)),
            (&[1.0, 2.0, 3.0], 50, Some(2.0)),
        ] {
            assert_eq!(percentile(times, percent), expected);
        }
    }
}
