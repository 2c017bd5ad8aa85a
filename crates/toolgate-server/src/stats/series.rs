//! Counts the calls of one tool in steps of time.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use toolgate_core::ErrorKind;
use utoipa::ToSchema;

use super::latency::{BOUNDS_MS, LatencyBuckets};

pub(super) const STEP: Duration = Duration::from_secs(10);
// Half an hour.
pub(super) const STEPS: u64 = 180;

/// Totals since the start, and steps of the last half hour. Steps without calls are not stored.
#[derive(Debug, Clone, Default)]
pub(super) struct CallSeries {
    pub(super) calls: u64,
    failures: u64,
    errors: BTreeMap<&'static str, u64>,
    longest: Duration,
    steps: VecDeque<(u64, SeriesStep)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SeriesStep {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) latency: LatencyBuckets,
}

/// Statistics of one tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Figures)]
pub(super) struct ToolFigures {
    /// Calls since the gateway started.
    pub(super) calls: u64,
    failures: u64,
    /// The number of failures of each kind.
    errors: BTreeMap<&'static str, u64>,
    /// The median duration. Like the other percentiles and the histogram, of the last half hour.
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// The longest duration since the start.
    max_ms: f64,
    histogram: LatencyHistogram,
    /// The steps, the oldest first, including those without calls.
    series: Vec<SeriesPoint>,
}

/// The number of calls by duration.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Histogram)]
struct LatencyHistogram {
    bounds_ms: Vec<f64>,
    /// One more than bounds: the last count is beyond them.
    counts: Vec<u64>,
}

/// One step of a series.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Point)]
struct SeriesPoint {
    /// The start of the step.
    #[schema(format = DateTime)]
    at: String,
    calls: u64,
    failures: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
}

impl SeriesStep {
    pub(super) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.latency.merge(&other.latency);
    }
}

impl CallSeries {
    pub(super) fn count(&mut self, now: u64, elapsed: Duration, failure: Option<ErrorKind>) {
        self.calls += 1;
        self.longest = self.longest.max(elapsed);
        if let Some(kind) = failure {
            self.failures += 1;
            *self.errors.entry(kind.as_str()).or_default() += 1;
        }
        if self.steps.back().is_none_or(|(step, _)| *step != now) {
            self.steps.push_back((now, SeriesStep::default()));
            while self
                .steps
                .front()
                .is_some_and(|(step, _)| step + STEPS <= now)
            {
                self.steps.pop_front();
            }
        }
        if let Some((_, step)) = self.steps.back_mut() {
            step.calls += 1;
            step.failures += u64::from(failure.is_some());
            step.latency.count(elapsed);
        }
    }

    pub(super) fn recent(&self, now: u64, steps: u64) -> SeriesStep {
        let mut sum = SeriesStep::default();
        let recent = self.steps.iter().filter(|(step, _)| step + steps > now);
        for (_, step) in recent {
            sum.merge(step);
        }
        sum
    }

    pub(super) fn figures(&self, now: u64, wall: SystemTime) -> ToolFigures {
        let recent = self.recent(now, STEPS).latency;
        ToolFigures {
            calls: self.calls,
            failures: self.failures,
            errors: self.errors.clone(),
            p50_ms: recent.percentile(0.5),
            p95_ms: recent.percentile(0.95),
            p99_ms: recent.percentile(0.99),
            max_ms: self.longest.as_micros() as f64 / 1e3,
            histogram: LatencyHistogram {
                bounds_ms: BOUNDS_MS.to_vec(),
                counts: recent.histogram(),
            },
            series: self.points(now, wall),
        }
    }

    fn points(&self, now: u64, wall: SystemTime) -> Vec<SeriesPoint> {
        let wall = jiff::Timestamp::try_from(wall).unwrap_or_default();
        let begin_of = |step: u64| {
            let age = (now - step) * STEP.as_secs();
            let begin = wall.checked_sub(Duration::from_secs(age)).unwrap_or(wall);
            format!("{begin:.3}")
        };
        let mut kept = self.steps.iter().peekable();
        (now.saturating_sub(STEPS - 1)..=now)
            .map(|at| {
                while kept.peek().is_some_and(|(step, _)| *step < at) {
                    kept.next();
                }
                let step = kept.next_if(|(step, _)| *step == at).map(|(_, step)| step);
                SeriesPoint {
                    at: begin_of(at),
                    calls: step.map_or(0, |step| step.calls),
                    failures: step.map_or(0, |step| step.failures),
                    p50_ms: step.and_then(|step| step.latency.percentile(0.5)),
                    p95_ms: step.and_then(|step| step.latency.percentile(0.95)),
                }
            })
            .collect()
    }
}
