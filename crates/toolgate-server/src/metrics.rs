//! Figures for Prometheus.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use toolgate_core::{CallRecord, ErrorKind, Observer, Source};
use toolgate_mcp::{ServerState, ServerStatus};

use crate::tool_key::{ToolKey, ToolKeyRef};

/// Seconds; from a call inside of the program to one that waits for a slow device.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Tools with figures of their own; the rest is counted as one.
const MOST_TOOLS: usize = 2048;
const OTHERS: &str = "(others)";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTool {
    tool: String,
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOrigin {
    tool: String,
    server: String,
    origin: String,
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

/// How the gateway is at this moment.
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
}

/// Counts calls. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    calls: Family<OfOrigin, Counter>,
    failures: Family<OfKind, Counter>,
    duration: Family<OfTool, Histogram, fn() -> Histogram>,
    queue: Family<OfTool, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    unknown: Counter,
    /// A call finds its figures by the tool, without making labels anew.
    tools: Mutex<IndexMap<ToolKey, Arc<Tool>>>,
}

struct Tool {
    labels: OfTool,
    calls: Mutex<Vec<(toolgate_core::Origin, Counter)>>,
    duration: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolgate");
        let calls = Family::default();
        let failures = Family::default();
        let times = || Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> _);
        let (duration, queue) = (times(), times());
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
        }))
    }
}

impl Metrics {
    /// Everything as Prometheus reads it.
    pub(crate) fn render(&self, now: &Now) -> String {
        self.0.in_flight.set(now.in_flight as i64);
        let mut page = String::with_capacity(16 * 1024);
        // Writing to a string does not fail.
        let written = text::encode_registry(&mut page, &self.0.registry)
            .and_then(|()| text::encode_registry(&mut page, &now.figures()))
            .and_then(|()| text::encode_eof(&mut page));
        debug_assert_eq!(written, fmt::Result::Ok(()));
        page
    }

    fn tool(&self, record: &CallRecord) -> Option<Arc<Tool>> {
        let definition = record.definition()?;
        let mut tools = self.0.tools.lock().unwrap_or_else(PoisonError::into_inner);
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
            tool: key.name.clone(),
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

    fn failed(&self, labels: OfTool, kind: ErrorKind) {
        let OfTool { tool, server } = labels;
        let kind = kind.as_str();
        let labels = OfKind { tool, server, kind };
        self.0.failures.get_or_create(&labels).inc();
    }
}

impl Tool {
    fn called(&self, origin: toolgate_core::Origin, metrics: &Metrics) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let known = calls.iter().find(|(known, _)| *known == origin);
        if let Some((_, counter)) = known {
            counter.inc();
            return;
        }
        let OfTool { tool, server } = self.labels.clone();
        let origin_name = origin.to_string();
        let labels = OfOrigin {
            tool,
            server,
            origin: origin_name,
        };
        let counter = metrics.0.calls.get_or_create(&labels).clone();
        counter.inc();
        calls.push((origin, counter));
    }
}

impl Observer for Metrics {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let Some(tool) = self.tool(record) else {
            self.0.unknown.inc();
            return None;
        };
        tool.called(record.origin, self);
        tool.duration.observe(record.outcome.elapsed.as_secs_f64());
        let waited = record.timings.queue;
        if !waited.is_zero() {
            let queue = self.0.queue.get_or_create(&tool.labels);
            queue.observe(waited.as_secs_f64());
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
        }
        of_servers(&mut registry, &self.servers);
        registry
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
mod tests {
    use serde_json::json;
    use toolgate_core::{FunctionTool, Origin, ToolCall, ToolError, ToolExecutor, ToolManager};

    use super::*;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    fn now(tools: usize) -> Now {
        Now {
            tools,
            ..Now::default()
        }
    }

    #[test]
    fn the_journal_is_told_where_there_is_one() {
        let page = Metrics::default().render(&now(0));
        assert!(!page.contains("journal"), "{page}");
        for is_up in [true, false] {
            let journal = Some(JournalNow { is_up, lost: 7 });
            let page = Metrics::default().render(&Now { journal, ..now(0) });
            let up = format!("toolgate_journal_up {}", i32::from(is_up));
            for line in [up.as_str(), "toolgate_journal_lost_rows_total 7"] {
                assert!(page.lines().any(|found| found == line), "{line}: {page}");
            }
        }
    }

    #[tokio::test]
    async fn calls_failures_and_unknown_tools_are_counted_apart() {
        let metrics = Metrics::default();
        let manager = ToolManager::new();
        let fine = async |_: Nothing, _: toolgate_core::CallContext| Ok::<_, ToolError>("fine");
        let broken = async |_: Nothing, _: toolgate_core::CallContext| {
            Err::<String, _>(ToolError::failed("broken"))
        };
        manager.add(FunctionTool::new("fine", "Works", fine).unwrap());
        manager.add(FunctionTool::new("broken", "Does not", broken).unwrap());
        let executor = ToolExecutor::builder(Arc::new(manager))
            .observer(metrics.clone())
            .build();
        for name in ["fine", "fine", "broken", "evil\"name\n"] {
            let call = ToolCall::new(name, json!({})).origin(Origin::Http);
            executor.execute(call).await;
        }
        let page = metrics.render(&now(2));
        for line in [
            r#"toolgate_calls_total{tool="fine",server="custom",origin="http"} 2"#,
            r#"toolgate_calls_total{tool="broken",server="custom",origin="http"} 1"#,
            r#"toolgate_failures_total{tool="broken",server="custom",kind="tool_error"} 1"#,
            r#"toolgate_call_duration_seconds_count{tool="fine",server="custom"} 2"#,
            "toolgate_unknown_tool_calls_total 1",
            "toolgate_calls_in_flight 0",
            "toolgate_tools 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        assert!(!page.contains("evil"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_slot_is_counted_where_there_was_one() {
        let (metrics, manager) = (Metrics::default(), ToolManager::new());
        let slow = async |_: Nothing, _: toolgate_core::CallContext| {
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            Ok::<_, ToolError>("done")
        };
        manager.add(FunctionTool::new("slow", "Takes its time", slow).unwrap());
        let mut limits = toolgate_core::Limits::default();
        limits.concurrency = 1;
        let executor = ToolExecutor::builder(Arc::new(manager))
            .limits(limits)
            .observer(metrics.clone())
            .build();
        let call = || executor.execute(ToolCall::new("slow", json!({})));
        let (..) = tokio::join!(call(), call());
        let page = metrics.render(&now(1));
        for line in [
            r#"toolgate_call_queue_seconds_count{tool="slow",server="custom"} 1"#,
            r#"toolgate_call_queue_seconds_sum{tool="slow",server="custom"} 3.0"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }

    struct Of(toolgate_core::ToolDefinition);

    impl toolgate_core::Tool for Of {
        fn definition(&self) -> &toolgate_core::ToolDefinition {
            &self.0
        }

        fn invoke<'a>(
            &'a self,
            _: toolgate_core::ValidArguments,
            _: &'a toolgate_core::CallContext,
        ) -> toolgate_core::ToolFuture<'a> {
            Box::pin(async { Ok(toolgate_core::ToolOutput::text("on")) })
        }
    }

    #[tokio::test]
    async fn a_name_that_moves_to_another_server_is_counted_there() {
        let (metrics, stats) = (Metrics::default(), crate::Stats::default());
        for server in ["old", "new"] {
            let source = Source::Mcp(server.to_owned());
            let tool =
                toolgate_core::ToolDefinition::builder("lamp", "Lamp", json!({ "type": "object" }));
            let manager = ToolManager::new();
            manager.add(Of(tool.source(source).build().unwrap()));
            let executor = ToolExecutor::builder(Arc::new(manager))
                .observer(metrics.clone())
                .observer(stats.clone())
                .build();
            executor.execute(ToolCall::new("lamp", json!({}))).await;
        }
        let page = metrics.render(&now(1));
        let report = json!(stats.snapshot(|_, _| true));
        let mut servers = Vec::new();
        for (index, server) in ["old", "new"].into_iter().enumerate() {
            let line = format!(
                r#"toolgate_calls_total{{tool="lamp",server="{server}",origin="library"}} 1"#
            );
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
            servers.push(report["tools"][index]["server"].as_str());
        }
        assert_eq!(servers, [Some("old"), Some("new")], "{report}");
    }
}
