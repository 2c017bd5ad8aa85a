//! Counts calls, and renders all metrics for Prometheus.

mod process;

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use toolgate_core::{
    CallRecord, ErrorKind, Observer, Origin, ToolDefinition, ToolSource, wire_names,
};
use toolgate_mcp::{ServerState, ServerStatus};

use crate::tool_key::{ToolKey, ToolKeyRef};

// In seconds, from a call inside the program to one that waits for a slow device.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

// Tools with metrics of their own. Further ones are counted as one.
const MAX_TOOLS: usize = 2048;
const OTHERS: &str = "(others)";
// Callers with metrics of their own. Normally there are as many as tokens.
const MAX_CALLERS: usize = 64;
const OTHER_CALLERS: &str = "other";
// The label of local tools, which share their concurrency slots.
const LOCAL: &str = "local";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallerLabels {
    tool: String,
    server: String,
    origin: String,
    caller: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    tool: String,
    server: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabels {
    server: String,
}

#[derive(Default)]
pub(crate) struct MetricsSnapshot {
    pub(crate) servers: Vec<ServerStatus>,
    pub(crate) tools: usize,
    pub(crate) in_flight: usize,
    pub(crate) requests: usize,
    // `None` where calls are not meant to be recorded.
    pub(crate) journal: Option<JournalSnapshot>,
}

#[derive(Default)]
pub(crate) struct JournalSnapshot {
    pub(crate) is_up: bool,
    pub(crate) lost: u64,
    // Calls that were deleted early because the journal was full.
    pub(crate) evicted: u64,
}

/// The metrics that Prometheus reads from `/metrics`. Clones share their counters.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsState>);

struct MetricsState {
    registry: Registry,
    calls: Family<CallerLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    duration: Family<ToolLabels, Histogram, fn() -> Histogram>,
    queue: Family<ServerLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    unknown: Counter,
    // Finds a tool's metrics without building labels for every call.
    tools: Mutex<IndexMap<ToolKey, Arc<ToolMetrics>>>,
    // Callers with a label of their own.
    callers: Mutex<HashSet<Arc<str>>>,
}

struct ToolMetrics {
    labels: ToolLabels,
    calls: Mutex<Vec<CallCounter>>,
    duration: Histogram,
}

// The calls of one tool by one caller and origin.
struct CallCounter {
    origin: Origin,
    caller: Arc<str>,
    counter: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolgate");
        let calls = Family::default();
        let failures = Family::default();
        let times = (|| Histogram::new(BUCKETS)) as fn() -> _;
        let duration = Family::new_with_constructor(times);
        let queue = Family::new_with_constructor(times);
        let (in_flight, unknown) = (Gauge::default(), Counter::default());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Which Toolgate this is", version);
        registry.register("calls", "Calls of tools", Family::clone(&calls));
        let by_kind = Family::clone(&failures);
        registry.register("failures", "Calls that failed, by kind", by_kind);
        let times = Family::clone(&duration);
        registry.register_with_unit("call_duration", "How long calls took", Unit::Seconds, times);
        let help = "How long calls waited for a free slot, of those that had to";
        registry.register_with_unit("call_queue", help, Unit::Seconds, Family::clone(&queue));
        registry.register("calls_in_flight", "Calls that run now", in_flight.clone());
        let help = "Calls of unknown tools";
        registry.register("unknown_tool_calls", help, unknown.clone());
        Self(Arc::new(MetricsState {
            registry,
            calls,
            failures,
            duration,
            queue,
            in_flight,
            unknown,
            tools: Mutex::default(),
            callers: Mutex::default(),
        }))
    }
}

impl Metrics {
    pub(crate) fn render(&self, now: &MetricsSnapshot) -> String {
        self.0.in_flight.set(now.in_flight as i64);
        // Created before the first call, so that an alert can refer to them.
        let servers = now.servers.iter().map(|status| status.name.as_str());
        for server in servers.chain([LOCAL]) {
            drop(self.queue_histogram(server));
        }
        let mut page = String::with_capacity(16 * 1024);
        // Writing to a string can't fail.
        let written = text::encode_registry(&mut page, &self.0.registry)
            .and_then(|()| text::encode_registry(&mut page, &now.registry()))
            .and_then(|()| text::encode_registry(&mut page, &process::registry()))
            .and_then(|()| text::encode_eof(&mut page));
        debug_assert_eq!(written, fmt::Result::Ok(()));
        page
    }

    fn tool(&self, record: &CallRecord) -> Option<Arc<ToolMetrics>> {
        let definition = record.definition()?;
        let mut tools = self.0.tools.lock();
        let key = ToolKeyRef::new(definition);
        if let Some(tool) = tools.get(&key) {
            return Some(Arc::clone(tool));
        }
        let key = match tools.len() < MAX_TOOLS {
            true => key.to_key(),
            false => ToolKey {
                name: OTHERS.to_owned(),
                source: ToolSource::Custom,
            },
        };
        let labels = ToolLabels {
            tool: label(&key.name),
            server: match &key.source {
                _ if key.name == OTHERS => String::new(),
                ToolSource::Mcp(server) => server.clone(),
                local => local.to_string(),
            },
        };
        let metrics = tools.entry(key).or_insert_with(|| {
            Arc::new(ToolMetrics {
                duration: self.0.duration.get_or_create(&labels).clone(),
                calls: Mutex::default(),
                labels,
            })
        });
        Some(Arc::clone(metrics))
    }

    fn queue_histogram(&self, server: &str) -> impl Deref<Target = Histogram> {
        let server = server.to_owned();
        self.0.queue.get_or_create(&ServerLabels { server })
    }

    /// The label of a caller; empty for callers without a name.
    fn caller_label(&self, caller: &str) -> Arc<str> {
        let mut callers = self.0.callers.lock();
        if let Some(known) = callers.get(caller) {
            return Arc::clone(known);
        }
        if callers.len() >= MAX_CALLERS {
            return OTHER_CALLERS.into();
        }
        let label: Arc<str> = caller.into();
        callers.insert(Arc::clone(&label));
        label
    }

    fn count_failure(&self, labels: ToolLabels, kind: ErrorKind) {
        let ToolLabels { tool, server } = labels;
        let kind = kind.as_str();
        let labels = FailureLabels { tool, server, kind };
        self.0.failures.get_or_create(&labels).inc();
    }
}

impl ToolMetrics {
    fn count_call(&self, origin: Origin, caller: &str, metrics: &Metrics) {
        let mut calls = self.calls.lock();
        let find = |calls: &[CallCounter], caller: &str| {
            let is_known =
                |calls: &&CallCounter| calls.origin == origin && *calls.caller == *caller;
            calls.iter().find(is_known).map(|calls| calls.counter.inc())
        };
        if find(&calls, caller).is_some() {
            return;
        }
        let caller = metrics.caller_label(caller);
        if find(&calls, &caller).is_some() {
            return;
        }
        let ToolLabels { tool, server } = self.labels.clone();
        let labels = CallerLabels {
            tool,
            server,
            origin: origin.to_string(),
            caller: Arc::clone(&caller),
        };
        let counter = metrics.0.calls.get_or_create(&labels).clone();
        counter.inc();
        calls.push(CallCounter {
            origin,
            caller,
            counter,
        });
    }
}

impl Observer for Metrics {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let Some(tool) = self.tool(record) else {
            self.0.unknown.inc();
            return None;
        };
        let caller = record.caller.as_deref().unwrap_or_default();
        tool.count_call(record.origin, caller, self);
        tool.duration.observe(record.outcome.elapsed.as_secs_f64());
        let waited = record.timings.queue;
        if !waited.is_zero() {
            let server = match record.definition().map(ToolDefinition::source) {
                Some(ToolSource::Mcp(server)) => server,
                _ => LOCAL,
            };
            self.queue_histogram(server).observe(waited.as_secs_f64());
        }
        if let Err(error) = &record.outcome.result {
            self.count_failure(tool.labels.clone(), error.kind());
        }
        None
    }
}

impl MetricsSnapshot {
    fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("toolgate");
        let gauge = |number: usize| ConstGauge::new(number as i64);
        registry.register("tools", "Tools that can be called", gauge(self.tools));
        let help = "Running requests that may be calls; serve.concurrency limits them";
        registry.register("requests_under_way", help, gauge(self.requests));
        if let Some(journal) = &self.journal {
            let is_up = gauge(usize::from(journal.is_up));
            registry.register("journal_up", "1 if calls are recorded", is_up);
            let lost = ConstCounter::new(journal.lost);
            registry.register("journal_lost_rows", "Journal rows that were lost", lost);
            let help = "Calls deleted early because the journal was full";
            let evicted = ConstCounter::new(journal.evicted);
            registry.register("journal_evicted_calls", help, evicted);
        }
        register_servers(&mut registry, &self.servers);
        registry
    }
}

/// Shortens a long name and adds a suffix, so that names with the same beginning stay distinct.
fn label(name: &str) -> String {
    const MAX_NAME_BYTES: usize = 200;
    match name.len() > MAX_NAME_BYTES {
        true => wire_names::to_legal(name, MAX_NAME_BYTES).into_owned(),
        false => name.to_owned(),
    }
}

/// Registers the metrics that servers count themselves.
fn register_servers(registry: &mut Registry, servers: &[ServerStatus]) {
    let (up, restarts, polluted) = (
        Family::<ServerLabels, Gauge>::default(),
        Family::<ServerLabels, Counter>::default(),
        Family::<ServerLabels, Counter>::default(),
    );
    for status in servers {
        let server = ServerLabels {
            server: status.name.clone(),
        };
        let is_up = status.state == ServerState::Connected;
        up.get_or_create(&server).set(i64::from(is_up));
        restarts.get_or_create(&server).inc_by(status.restarts);
        polluted
            .get_or_create(&server)
            .inc_by(status.stray_line_count);
    }
    registry.register("server_up", "1 if the server's tools can be called", up);
    registry.register("server_restarts", "How often a server ended", restarts);
    let help = "Lines on a server's stdout that were not messages";
    registry.register("server_polluted_lines", help, polluted);
}

#[cfg(test)]
mod tests;
