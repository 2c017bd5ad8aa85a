//! Figures for the dashboard: how often, how fast, how well. Kept in memory, of the last half hour.

mod latency;
mod series;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;
use toolgate_core::{CallId, CallRecord, CallStarted, Observer, Source, ToolDefinition, ToolError};
use utoipa::ToSchema;

use crate::tool_key::{ToolKey, ToolKeyRef};
use series::{STEP, STEPS, Series, Step};

/// Tools with figures of their own; what comes after them is counted together with all only.
const MOST_TOOLS: usize = 2048;
/// Callers with figures of their own, and the tools of each: there are no more of them than tokens, old and new.
const MOST_CALLERS: usize = 64;
const MOST_TOOLS_OF_CALLER: usize = 256;
/// The status looks back this far for its error rate and its percentile.
const LATELY: Duration = Duration::from_secs(300);

/// Counts calls and knows which are running. Cheap to clone.
#[derive(Clone)]
pub struct Stats(Arc<Shared>);

struct Shared {
    /// Steps are counted from here: the wall clock may jump.
    start: Instant,
    /// Every call needs it, so nothing that takes long is done under it.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    all: Series,
    tools: IndexMap<ToolKey, Counted>,
    /// The same for each caller that has a name: most see their own calls only.
    by_caller: HashMap<Arc<str>, IndexMap<ToolKey, Counted>>,
    running: HashMap<CallId, Running>,
}

type Counted = Arc<Mutex<Series>>;

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) tool: String,
    pub(crate) server: Option<String>,
    caller: Option<Arc<str>>,
    pub(crate) since: Instant,
}

/// All calls together, lately.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    pub(crate) calls_total: u64,
    pub(crate) calls_per_minute: u64,
    /// Of the last five minutes, if there were any calls.
    pub(crate) error_rate: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) in_flight: usize,
}

/// What the tools did in the last half hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatsReport {
    /// Seconds of one step of a series.
    step_s: u64,
    /// The busiest first.
    tools: Vec<ToolStats>,
}

/// What one tool did.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolStats {
    tool: String,
    source: String,
    server: Option<String>,
    #[serde(flatten)]
    figures: series::Figures,
}

impl Default for Stats {
    fn default() -> Self {
        Self(Arc::new(Shared {
            start: Instant::now(),
            inner: Mutex::default(),
        }))
    }
}

impl Stats {
    pub(crate) fn summary(&self) -> Summary {
        let inner = self.0.inner.lock();
        let mut sum = Sum::default();
        sum.add(&inner.all, self.step());
        sum.summary(inner.running.len())
    }

    /// The same of those that may be shown, of one caller or of all.
    pub(crate) fn summary_of(
        &self,
        caller: Option<&str>,
        may_show: impl Fn(&str, Option<&str>) -> bool,
    ) -> Summary {
        let mut sum = Sum::default();
        for (key, counted) in self.counted(caller) {
            if may_show(&key.name, key.server()) {
                sum.add(&counted.lock(), self.step());
            }
        }
        let mut running = self.running();
        running.retain(|(_, call)| {
            caller.is_none_or(|caller| call.caller.as_deref() == Some(caller))
                && may_show(&call.tool, call.server.as_deref())
        });
        sum.summary(running.len())
    }

    /// Tool by tool, the busiest first; only those that may be shown, of one caller or of all.
    pub(crate) fn snapshot(
        &self,
        caller: Option<&str>,
        may_show: impl Fn(&str, Option<&str>) -> bool,
    ) -> StatsReport {
        let wall = SystemTime::now();
        let mut tools = self.counted(caller);
        tools.retain(|(key, _)| may_show(&key.name, key.server()));
        let mut tools: Vec<ToolStats> = tools
            .into_iter()
            .map(|(key, counted)| {
                let series = counted.lock().clone();
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

    fn counted(&self, caller: Option<&str>) -> Vec<(ToolKey, Counted)> {
        let inner = self.0.inner.lock();
        let tools = match caller {
            None => Some(&inner.tools),
            Some(caller) => inner.by_caller.get(caller),
        };
        let tools = tools.into_iter().flatten();
        tools
            .map(|(key, counted)| (key.clone(), Arc::clone(counted)))
            .collect()
    }

    /// The calls that have not ended yet, the oldest first.
    pub(crate) fn running(&self) -> Vec<(CallId, Running)> {
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
        let counted = {
            let mut inner = self.0.inner.lock();
            inner.running.remove(&record.outcome.call_id);
            inner.all.count(self.step(), elapsed, failure);
            // A name that means no tool could be anything.
            record
                .definition()
                .map(|tool| inner.counted(tool, record.caller.as_ref()))
        };
        for counted in counted.into_iter().flatten().flatten() {
            let mut series = counted.lock();
            series.count(self.step(), elapsed, failure);
        }
    }
}

#[derive(Default)]
struct Sum {
    calls: u64,
    minute: Step,
    lately: Step,
}

impl Sum {
    fn add(&mut self, series: &Series, now: u64) {
        self.calls += series.calls();
        let minute = steps_in(Duration::from_secs(60));
        self.minute.merge(&series.recent(now, minute));
        self.lately.merge(&series.recent(now, steps_in(LATELY)));
    }

    fn summary(&self, in_flight: usize) -> Summary {
        let Step {
            calls,
            failures,
            latency,
        } = &self.lately;
        Summary {
            calls_total: self.calls,
            calls_per_minute: self.minute.calls,
            error_rate: (*calls > 0).then(|| *failures as f64 / *calls as f64),
            p95_ms: latency.percentile(0.95),
            in_flight,
        }
    }
}

fn steps_in(time: Duration) -> u64 {
    (time.as_secs() / STEP.as_secs()).min(STEPS)
}

impl Inner {
    /// Of all, and of this caller.
    fn counted(
        &mut self,
        tool: &ToolDefinition,
        caller: Option<&Arc<str>>,
    ) -> [Option<Counted>; 2] {
        let key = ToolKeyRef::of(tool);
        let of_caller = caller.and_then(|caller| {
            let has_room = self.by_caller.len() < MOST_CALLERS;
            if has_room && !self.by_caller.contains_key(caller) {
                self.by_caller.insert(Arc::clone(caller), IndexMap::new());
            }
            counted_in(self.by_caller.get_mut(caller)?, key, MOST_TOOLS_OF_CALLER)
        });
        [counted_in(&mut self.tools, key, MOST_TOOLS), of_caller]
    }
}

fn counted_in(
    tools: &mut IndexMap<ToolKey, Counted>,
    key: ToolKeyRef<'_>,
    most: usize,
) -> Option<Counted> {
    if let Some(counted) = tools.get(&key) {
        return Some(Arc::clone(counted));
    }
    let has_room = tools.len() < most;
    has_room.then(|| Arc::clone(tools.entry(key.to_key()).or_default()))
}

impl Observer for Stats {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        let running = Running {
            tool: call.tool_name.clone(),
            server: match call.tool.definition().source() {
                Source::Mcp(server) => Some(server.clone()),
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
