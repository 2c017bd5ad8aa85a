//! Statistics for the dashboard, kept in memory for the last half hour.

mod latency;
mod series;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;
use toolgate_core::{
    CallId, CallRecord, CallStarted, Observer, ToolDefinition, ToolError, ToolSource,
};
use utoipa::ToSchema;

use crate::tool_key::{ToolKey, ToolKeyRef};
use series::{CallSeries, STEP, SeriesStep};

// Tools with statistics of their own. Further ones only count towards the total.
const MAX_TOOLS: usize = 2048;
// Callers with statistics of their own, and tools of each. There are as many callers as
// tokens, old and new.
const MAX_CALLERS: usize = 64;
const MAX_TOOLS_PER_CALLER: usize = 256;
// Steps of the last minute, and of the time over which the status computes its error rate and
// percentile.
const STEPS_PER_MINUTE: u64 = 60 / STEP.as_secs();
const STEPS_IN_SUMMARY: u64 = 300 / STEP.as_secs();

/// The figures that the dashboard shows: counts of calls, and which are running.
/// Clones share their counts.
#[derive(Clone)]
pub struct Stats(Arc<StatsState>);

struct StatsState {
    // Steps are series from here, because the wall clock may jump.
    start: Instant,
    // Every call locks it, so nothing slow is done under the lock.
    inner: Mutex<StatsTables>,
}

#[derive(Default)]
struct StatsTables {
    all: CallSeries,
    tools: IndexMap<ToolKey, SharedSeries>,
    // Statistics by caller, because most callers only see their own calls.
    by_caller: HashMap<Arc<str>, IndexMap<ToolKey, SharedSeries>>,
    running: HashMap<CallId, RunningCall>,
}

type SharedSeries = Arc<Mutex<CallSeries>>;

#[derive(Debug, Clone)]
pub(crate) struct RunningCall {
    pub(crate) tool: String,
    pub(crate) server: Option<String>,
    caller: Option<Arc<str>>,
    pub(crate) since: Instant,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatsSummary {
    pub(crate) calls_total: u64,
    pub(crate) calls_per_minute: u64,
    // Of the last five minutes. `None` if there were no calls.
    pub(crate) error_rate: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) in_flight: usize,
}

/// The statistics of all tools in the last half hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatsReport {
    /// The length of one step of a series, in seconds.
    step_s: u64,
    /// The tools, the busiest first.
    tools: Vec<ToolStats>,
}

/// The statistics of one tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolStats {
    tool: String,
    source: String,
    server: Option<String>,
    #[serde(flatten)]
    figures: series::ToolFigures,
}

impl Default for Stats {
    fn default() -> Self {
        Self(Arc::new(StatsState {
            start: Instant::now(),
            inner: Mutex::default(),
        }))
    }
}

impl Stats {
    pub(crate) fn summary(&self) -> StatsSummary {
        let inner = self.0.inner.lock();
        let mut sum = SummaryBuilder::default();
        sum.add(&inner.all, self.step());
        sum.summary(inner.running.len())
    }

    pub(crate) fn summary_of(
        &self,
        caller: Option<&str>,
        may_show: impl Fn(&str, Option<&str>) -> bool,
    ) -> StatsSummary {
        let mut sum = SummaryBuilder::default();
        for (key, series) in self.tool_series(caller) {
            if may_show(&key.name, key.server()) {
                sum.add(&series.lock(), self.step());
            }
        }
        let mut running = self.running();
        running.retain(|(_, call)| {
            caller.is_none_or(|caller| call.caller.as_deref() == Some(caller))
                && may_show(&call.tool, call.server.as_deref())
        });
        sum.summary(running.len())
    }

    pub(crate) fn snapshot(
        &self,
        caller: Option<&str>,
        may_show: impl Fn(&str, Option<&str>) -> bool,
    ) -> StatsReport {
        let wall = SystemTime::now();
        let mut tools = self.tool_series(caller);
        tools.retain(|(key, _)| may_show(&key.name, key.server()));
        let mut tools: Vec<ToolStats> = tools
            .into_iter()
            .map(|(key, series)| {
                let series = series.lock().clone();
                ToolStats {
                    source: key.source.to_string(),
                    server: key.server().map(str::to_owned),
                    tool: key.name,
                    figures: series.figures(self.step(), wall),
                }
            })
            .collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.figures.calls));
        StatsReport {
            step_s: STEP.as_secs(),
            tools,
        }
    }

    fn tool_series(&self, caller: Option<&str>) -> Vec<(ToolKey, SharedSeries)> {
        let inner = self.0.inner.lock();
        let tools = match caller {
            None => Some(&inner.tools),
            Some(caller) => inner.by_caller.get(caller),
        };
        let tools = tools.into_iter().flatten();
        tools
            .map(|(key, series)| (key.clone(), Arc::clone(series)))
            .collect()
    }

    pub(crate) fn running(&self) -> Vec<(CallId, RunningCall)> {
        let inner = self.0.inner.lock();
        let mut running: Vec<_> = inner
            .running
            .iter()
            .map(|(id, call)| (*id, call.clone()))
            .collect();
        running.sort_unstable_by_key(|(id, _)| *id);
        running
    }

    fn step(&self) -> u64 {
        self.0.start.elapsed().as_secs() / STEP.as_secs()
    }

    fn count(&self, record: &CallRecord) {
        let elapsed = record.outcome.elapsed;
        let failure = record.outcome.result.as_ref().err().map(ToolError::kind);
        let series = {
            let mut inner = self.0.inner.lock();
            inner.running.remove(&record.outcome.call_id);
            inner.all.count(self.step(), elapsed, failure);
            // A name that belongs to no tool could be anything, so it gets no statistics.
            record
                .definition()
                .map(|tool| inner.series_of_call(tool, record.caller.as_ref()))
        };
        for series in series.into_iter().flatten().flatten() {
            let mut series = series.lock();
            series.count(self.step(), elapsed, failure);
        }
    }
}

#[derive(Default)]
struct SummaryBuilder {
    calls: u64,
    minute: SeriesStep,
    lately: SeriesStep,
}

impl SummaryBuilder {
    fn add(&mut self, series: &CallSeries, now: u64) {
        self.calls += series.calls;
        self.minute.merge(&series.recent(now, STEPS_PER_MINUTE));
        self.lately.merge(&series.recent(now, STEPS_IN_SUMMARY));
    }

    fn summary(&self, in_flight: usize) -> StatsSummary {
        let SeriesStep {
            calls,
            failures,
            latency,
        } = &self.lately;
        StatsSummary {
            calls_total: self.calls,
            calls_per_minute: self.minute.calls,
            error_rate: (*calls > 0).then(|| *failures as f64 / *calls as f64),
            p95_ms: latency.percentile(0.95),
            in_flight,
        }
    }
}

impl StatsTables {
    fn series_of_call(
        &mut self,
        tool: &ToolDefinition,
        caller: Option<&Arc<str>>,
    ) -> [Option<SharedSeries>; 2] {
        let key = ToolKeyRef::new(tool);
        let of_caller = caller.and_then(|caller| {
            let has_room = self.by_caller.len() < MAX_CALLERS;
            if has_room && !self.by_caller.contains_key(caller) {
                self.by_caller.insert(Arc::clone(caller), IndexMap::new());
            }
            series_in(self.by_caller.get_mut(caller)?, key, MAX_TOOLS_PER_CALLER)
        });
        [series_in(&mut self.tools, key, MAX_TOOLS), of_caller]
    }
}

fn series_in(
    tools: &mut IndexMap<ToolKey, SharedSeries>,
    key: ToolKeyRef<'_>,
    most: usize,
) -> Option<SharedSeries> {
    if let Some(series) = tools.get(&key) {
        return Some(Arc::clone(series));
    }
    let has_room = tools.len() < most;
    has_room.then(|| Arc::clone(tools.entry(key.to_key()).or_default()))
}

impl Observer for Stats {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        let running = RunningCall {
            tool: call.tool_name.clone(),
            server: match call.tool.definition().source() {
                ToolSource::Mcp(server) => Some(server.clone()),
                _ => None,
            },
            caller: call.caller.clone(),
            since: Instant::now(),
        };
        self.0.inner.lock().running.insert(call.id, running);
        None
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.count(record);
        None
    }
}

#[cfg(test)]
mod tests;
