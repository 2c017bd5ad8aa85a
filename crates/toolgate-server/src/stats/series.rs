//! One tool's calls over time.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use toolgate_core::ErrorKind;
use utoipa::ToSchema;

use super::latency::{BOUNDS_MS, Latency};

pub(super) const STEP: Duration = Duration::from_secs(10);
/// How many there are: half an hour.
pub(super) const STEPS: u64 = 180;

/// Counts since the start, and in steps of the last half hour. Steps without calls are not kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    calls: u64,
    failures: u64,
    errors: BTreeMap<&'static str, u64>,
    longest: Duration,
    steps: VecDeque<(u64, Step)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) latency: Latency,
}

/// Everything about one tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Figures {
    /// Since the gateway started.
    pub(super) calls: u64,
    failures: u64,
    /// Failures by their kind.
    errors: BTreeMap<&'static str, u64>,
    /// Of the last half hour, as all that follows.
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// The longest since the start.
    max_ms: f64,
    histogram: Histogram,
    /// The oldest first, steps without calls included.
    series: Vec<Point>,
}

/// Calls by duration.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Histogram {
    bounds_ms: Vec<f64>,
    /// One more than bounds: the last is beyond them.
    counts: Vec<u64>,
}

/// One step.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Point {
    /// When it began.
    #[schema(format = DateTime)]
    at: String,
    calls: u64,
    failures: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
}

impl Step {
    pub(super) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.latency.merge(&other.latency);
    }
}

impl Series {
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn count(&mut self, now: u64, elapsed: Duration, failure: Option<ErrorKind>) {
        self.calls += 1;
        self.longest = self.longest.max(elapsed);
        if let Some(kind) = failure {
            self.failures += 1;
            *self.errors.entry(kind.as_str()).or_default() += 1;
        }
        if self.steps.back().is_none_or(|(step, _)| *step != now) {
            self.steps.push_back((now, Step::default()));
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

    /// The last steps together, the one under way included.
    pub(super) fn recent(&self, now: u64, steps: u64) -> Step {
        let mut sum = Step::default();
        let recent = self.steps.iter().filter(|(step, _)| step + steps > now);
        for (_, step) in recent {
            sum.merge(step);
        }
        sum
    }

    pub(super) fn figures(&self, now: u64, wall: SystemTime) -> Figures {
        let recent = self.recent(now, STEPS).latency;
        Figures {
            calls: self.calls,
            failures: self.failures,
            errors: self.errors.clone(),
            p50_ms: recent.percentile(0.5),
            p95_ms: recent.percentile(0.95),
            p99_ms: recent.percentile(0.99),
            max_ms: self.longest.as_micros() as f64 / 1e3,
            histogram: Histogram {
                bounds_ms: BOUNDS_MS.to_vec(),
                counts: recent.histogram(),
            },
            series: self.points(now, wall),
        }
    }

    fn points(&self, now: u64, wall: SystemTime) -> Vec<Point> {
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
                Point {
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
