//! Figures for Prometheus.

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
use toolgate_core::{CallRecord, ErrorKind, Observer, Origin, Source, ToolDefinition, wire_names};
use toolgate_mcp::{ServerState, ServerStatus};

use crate::tool_key::{ToolKey, ToolKeyRef};

/// Seconds; from a call inside of the program to one that waits for a slow device.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Tools with figures of their own; the rest is counted as one.
const MOST_TOOLS: usize = 2048;
const OTHERS: &str = "(others)";
/// Callers with figures of their own. There are as many as tokens, unless somebody makes one for every user.
const MOST_CALLERS: usize = 64;
const OTHER_CALLERS: &str = "other";
/// All local tools share the slots that calls may have to wait for.
const LOCAL: &str = "local";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTool {
    tool: String,
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCaller {
    tool: String,
    server: String,
    origin: String,
    caller: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    tool: String,
    server: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfServer {
    server: String,
}

#[derive(Default)]
pub(crate) struct Now {
    pub(crate) servers: Vec<ServerStatus>,
    pub(crate) tools: usize,
    pub(crate) in_flight: usize,
    pub(crate) requests: usize,
    /// None where no calls are to be recorded.
    pub(crate) journal: Option<JournalNow>,
}

pub(crate) struct JournalNow {
    pub(crate) is_up: bool,
    pub(crate) lost: u64,
    /// Calls that made room for others before their time.
    pub(crate) evicted: u64,
}

/// Counts calls. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    calls: Family<OfCaller, Counter>,
    failures: Family<OfKind, Counter>,
    duration: Family<OfTool, Histogram, fn() -> Histogram>,
    queue: Family<OfServer, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    unknown: Counter,
    /// A call finds its figures by the tool, without making labels anew.
    tools: Mutex<IndexMap<ToolKey, Arc<Tool>>>,
    /// Callers that have a label of their own.
    callers: Mutex<HashSet<Arc<str>>>,
}

struct Tool {
    labels: OfTool,
    calls: Mutex<Vec<Calls>>,
    duration: Histogram,
}

/// Calls of one tool by one caller in one way.
struct Calls {
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
        registry.register(
            "failures",
            "Calls that failed, by kind",
            Family::clone(&failures),
        );
        registry.register_with_unit(
            "call_duration",
            "How long calls took",
            Unit::Seconds,
            Family::clone(&duration),
        );
        registry.register_with_unit(
            "call_queue",
            "How long calls waited for a free slot, of those that had to",
            Unit::Seconds,
            Family::clone(&queue),
        );
        registry.register("calls_in_flight", "Calls that run now", in_flight.clone());
        registry.register(
            "unknown_tool_calls",
            "Calls of tools that do not exist",
            unknown.clone(),
        );
        Self(Arc::new(Inner {
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
    pub(crate) fn render(&self, now: &Now) -> String {
        self.0.in_flight.set(now.in_flight as i64);
        // From the start, so that an alert on them is not about figures that do not exist.
        let servers = now.servers.iter().map(|status| status.name.as_str());
        for server in servers.chain([LOCAL]) {
            drop(self.queue_of(server));
        }
        let mut page = String::with_capacity(16 * 1024);
        // Writing to a string does not fail.
        let written = text::encode_registry(&mut page, &self.0.registry)
            .and_then(|()| text::encode_registry(&mut page, &now.figures()))
            .and_then(|()| text::encode_registry(&mut page, &process::figures()))
            .and_then(|()| text::encode_eof(&mut page));
        debug_assert_eq!(written, fmt::Result::Ok(()));
        page
    }

    fn tool(&self, record: &CallRecord) -> Option<Arc<Tool>> {
        let definition = record.definition()?;
        let mut tools = self.0.tools.lock();
        let key = ToolKeyRef::of(definition);
        if let Some(tool) = tools.get(&key) {
            return Some(Arc::clone(tool));
        }
        let key = match tools.len() < MOST_TOOLS {
            true => key.to_key(),
            false => ToolKey {
                name: OTHERS.to_owned(),
                source: Source::Custom,
            },
        };
        let labels = OfTool {
            tool: label(&key.name),
            server: match &key.source {
                _ if key.name == OTHERS => String::new(),
                Source::Mcp(server) => server.clone(),
                local => local.to_string(),
            },
        };
        let made = tools.entry(key).or_insert_with(|| {
            Arc::new(Tool {
                duration: self.0.duration.get_or_create(&labels).clone(),
                calls: Mutex::default(),
                labels,
            })
        });
        Some(Arc::clone(made))
    }

    fn queue_of(&self, server: &str) -> impl Deref<Target = Histogram> {
        let server = server.to_owned();
        self.0.queue.get_or_create(&OfServer { server })
    }

    /// What a caller is called here: nothing where callers are not told apart.
    fn label_of(&self, caller: &str) -> Arc<str> {
        let callers = &self.0.callers;
        let mut callers = callers.lock();
        if let Some(known) = callers.get(caller) {
            return Arc::clone(known);
        }
        if callers.len() >= MOST_CALLERS {
            return OTHER_CALLERS.into();
        }
        let label: Arc<str> = caller.into();
        callers.insert(Arc::clone(&label));
        label
    }

    fn failed(&self, labels: OfTool, kind: ErrorKind) {
        let OfTool { tool, server } = labels;
        let kind = kind.as_str();
        let labels = OfKind { tool, server, kind };
        self.0.failures.get_or_create(&labels).inc();
    }
}

impl Tool {
    fn called(&self, origin: Origin, caller: &str, metrics: &Metrics) {
        let mut calls = self.calls.lock();
        let find = |calls: &[Calls], caller: &str| {
            let is_known = |calls: &&Calls| calls.origin == origin && *calls.caller == *caller;
            calls.iter().find(is_known).map(|calls| calls.counter.inc())
        };
        if find(&calls, caller).is_some() {
            return;
        }
        let caller = metrics.label_of(caller);
        if find(&calls, &caller).is_some() {
            return;
        }
        let OfTool { tool, server } = self.labels.clone();
        let labels = OfCaller {
            tool,
            server,
            origin: origin.to_string(),
            caller: Arc::clone(&caller),
        };
        let counter = metrics.0.calls.get_or_create(&labels).clone();
        counter.inc();
        calls.push(Calls {
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
        tool.called(record.origin, caller, self);
        tool.duration.observe(record.outcome.elapsed.as_secs_f64());
        let waited = record.timings.queue;
        if !waited.is_zero() {
            let server = match record.definition().map(ToolDefinition::source) {
                Some(Source::Mcp(server)) => server,
                _ => LOCAL,
            };
            self.queue_of(server).observe(waited.as_secs_f64());
        }
        if let Err(error) = &record.outcome.result {
            self.failed(tool.labels.clone(), error.kind());
        }
        None
    }
}

impl Now {
    fn figures(&self) -> Registry {
        let mut registry = Registry::with_prefix("toolgate");
        let gauge = |number: usize| ConstGauge::new(number as i64);
        registry.register("tools", "Tools that can be called", gauge(self.tools));
        registry.register(
            "requests_under_way",
            "Requests under way that may be calls; serve.concurrency bounds them",
            gauge(self.requests),
        );
        if let Some(journal) = &self.journal {
            registry.register(
                "journal_up",
                "1 if calls are recorded",
                gauge(usize::from(journal.is_up)),
            );
            registry.register(
                "journal_lost_rows",
                "Rows of the journal that were lost",
                ConstCounter::new(journal.lost),
            );
            registry.register(
                "journal_evicted_calls",
                "Calls deleted before their time because the journal was full",
                ConstCounter::new(journal.evicted),
            );
        }
        of_servers(&mut registry, &self.servers);
        registry
    }
}

/// The name of a tool as a label. A long one is cut, with a number that tells it from others that begin like it.
fn label(name: &str) -> String {
    const LONGEST: usize = 200;
    match name.len() > LONGEST {
        true => wire_names::legal(name, LONGEST).into_owned(),
        false => name.to_owned(),
    }
}

/// What the servers count themselves.
fn of_servers(registry: &mut Registry, servers: &[ServerStatus]) {
    let (up, restarts, polluted) = (
        Family::<OfServer, Gauge>::default(),
        Family::<OfServer, Counter>::default(),
        Family::<OfServer, Counter>::default(),
    );
    for status in servers {
        let server = OfServer {
            server: status.name.clone(),
        };
        let is_up = status.state == ServerState::Connected;
        up.get_or_create(&server).set(i64::from(is_up));
        restarts.get_or_create(&server).inc_by(status.restarts);
        polluted.get_or_create(&server).inc_by(status.polluted);
    }
    registry.register("server_up", "1 if the server's tools can be called", up);
    registry.register("server_restarts", "How often a server ended", restarts);
    registry.register(
        "server_polluted_lines",
        "Lines on a server's stdout that were no messages",
        polluted,
    );
}

#[cfg(test)]
mod tests;
