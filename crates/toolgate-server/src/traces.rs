//! Calls as spans, for whoever collects traces: OTLP over HTTP, in the words of the GenAI and MCP conventions.

mod collector;
mod protobuf;
mod requests;
mod span;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolgate_core::{
    CallRecord, Observer, Origin, Redactor, Source, ToolDefinition, Trace, escape, kept,
};
use tracing::{error, info, warn};

use collector::{Collector, SpanExport};
use span::{Span, SpanKind, valid_state};

/// Spans that wait for the collector; more are dropped and counted.
const WAITING: usize = 4096;
/// Spans in one request.
const BATCH: usize = 512;
/// A span waits for others this long.
const GATHER: Duration = Duration::from_secs(1);
/// The end of the program waits for it this long.
const FLUSH: Duration = Duration::from_secs(2);
/// So many panics within [`WINDOW`] are too many.
const MOST_PANICS: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// Where traces go.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "Where traces go")]
#[non_exhaustive]
pub struct TelemetrySettings {
    /// The address of an OpenTelemetry collector that speaks OTLP over HTTP, such as http://localhost:4318. Empty: none.
    pub otlp: String,
}

/// Hands calls to a collector as spans. A collector that is away costs one line in the log, and no call anything. Cheap to clone.
#[derive(Clone)]
pub struct Traces {
    queue: mpsc::Sender<Order>,
    shared: Arc<Shared>,
}

struct Shared {
    redactor: Redactor,
    dropped: AtomicU64,
}

enum Order {
    Span(Box<Span>),
    /// Everything before it is to be sent now.
    Flush(oneshot::Sender<()>),
}

impl TelemetrySettings {
    /// Why nothing can be sent with these settings, as a sentence that says what to do.
    ///
    /// ```
    /// let mut settings = toolgate_server::TelemetrySettings::default();
    /// assert_eq!(settings.problem(), None);
    /// settings.otlp = "localhost:4318".to_owned();
    /// assert!(settings.problem().is_some_and(|problem| problem.contains("http://")));
    /// ```
    pub fn problem(&self) -> Option<&'static str> {
        self.address().err()
    }

    /// None if there is nothing to send to.
    fn address(&self) -> Result<Option<Url>, &'static str> {
        if self.otlp.is_empty() {
            return Ok(None);
        }
        let address = Url::parse(&self.otlp).ok();
        let address = address.filter(|url| matches!(url.scheme(), "http" | "https"));
        address
            .map(Some)
            .ok_or("no address; write http://host:4318")
    }
}

impl Traces {
    /// Starts to export; none where the settings name no collector. Call it inside of a runtime.
    pub fn start(settings: &TelemetrySettings, redactor: Redactor) -> Result<Option<Self>, String> {
        let wrong = |problem: &str| format!("telemetry.otlp: {problem}");
        let Some(address) = settings.address().map_err(wrong)? else {
            return Ok(None);
        };
        let exporter = Collector::new(&address).map_err(|problem| wrong(&problem))?;
        Ok(Some(Self::through(exporter, shown(&address), redactor)))
    }

    fn through(exporter: impl SpanExport + 'static, address: String, redactor: Redactor) -> Self {
        let (queue, orders) = mpsc::channel(WAITING);
        tokio::spawn(endure(exporter, orders, address));
        let shared = Shared {
            redactor,
            dropped: AtomicU64::new(0),
        };
        Self {
            queue,
            shared: Arc::new(shared),
        }
    }

    /// Sends what waits; returns when it is sent, or the collector does not take it.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let flush = async {
            if self.queue.send(Order::Flush(done)).await.is_ok() {
                drop(sent.await);
            }
        };
        drop(tokio::time::timeout(FLUSH, flush).await);
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            warn!(dropped, "spans were not sent: the collector is too slow");
        }
    }

    fn span(&self, record: &CallRecord) -> Span {
        let tool = kept::name(&self.shared.redactor, &record.outcome.tool_name);
        let server = match record.definition().map(ToolDefinition::source) {
            Some(Source::Mcp(server)) => Some(server.clone()),
            _ => None,
        };
        let mut attributes = vec![
            ("gen_ai.operation.name", "execute_tool".to_owned()),
            ("gen_ai.tool.name", tool.clone()),
            ("gen_ai.tool.call.id", record.outcome.call_id.to_string()),
            ("gen_ai.tool.type", "function".to_owned()),
            ("toolgate.origin", record.origin.to_string()),
        ];
        if let Some(server) = server {
            attributes.push(("toolgate.server", server));
        }
        // Not every call of a server's tool reaches the server: it may be refused before.
        let (name, kind) = match &record.sent {
            Some(sent) => {
                attributes.extend([
                    ("mcp.method.name", "tools/call".to_owned()),
                    ("mcp.protocol.version", sent.revision.to_string()),
                    ("jsonrpc.request.id", sent.id.to_string()),
                ]);
                (format!("tools/call {tool}"), SpanKind::Client)
            }
            None => (format!("execute_tool {tool}"), SpanKind::Internal),
        };
        let error = record.outcome.result.as_ref().err().map(|error| {
            attributes.push(("error.type", error.kind().as_str().to_owned()));
            self.shared.redactor.line(&error.to_string(), 500)
        });
        let took = record.outcome.elapsed + record.timings.approval;
        // The parent of an MCP client's call is its request, which is a span of our own.
        let is_remote = record.origin != Origin::Mcp;
        Span {
            name,
            kind,
            attributes,
            error,
            ..span_at(&record.trace, is_remote, (record.started_at, took))
        }
    }

    fn send(&self, span: Span) {
        if self.queue.try_send(Order::Span(Box::new(span))).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Observer for Traces {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        if record.trace.is_sampled() {
            self.send(self.span(record));
        }
        None
    }
}

/// A span at its place in a trace, with nothing said of it yet.
fn span_at(trace: &Trace, is_remote: bool, (started_at, took): (SystemTime, Duration)) -> Span {
    let (trace_id, span_id, parent_id) = trace.ids();
    Span {
        trace_id,
        span_id,
        parent_id,
        parent_is_remote: parent_id.is_some() && is_remote,
        state: valid_state(trace.state().unwrap_or_default()).to_owned(),
        kind: SpanKind::Internal,
        name: String::new(),
        started_at,
        ended_at: started_at + took,
        attributes: Vec::new(),
        error: None,
    }
}

/// Without a login or a key that may be part of it.
fn shown(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    let port = address.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", address.scheme())
}

/// Exports until nobody makes spans any more. A panic costs the spans at hand; after too many, spans are dropped and counted.
async fn endure(exporter: impl SpanExport, mut orders: mpsc::Receiver<Order>, address: String) {
    let is_well = AtomicBool::new(true);
    let mut since = Instant::now();
    let mut panics = 0;
    loop {
        let work = export(&exporter, &mut orders, &address, &is_well);
        if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
            return;
        }
        if since.elapsed() > WINDOW {
            (since, panics) = (Instant::now(), 0);
        }
        panics += 1;
        if panics >= MOST_PANICS {
            error!(collector = %address, "sending traces failed again and again inside of Toolgate; no more are sent until it is started anew");
            return;
        }
        warn!(collector = %address, "sending traces failed inside of Toolgate, and goes on");
    }
}

async fn export(
    exporter: &impl SpanExport,
    orders: &mut mpsc::Receiver<Order>,
    address: &str,
    is_well: &AtomicBool,
) {
    while let Some(first) = orders.recv().await {
        let (spans, waiting) = gather(first, orders).await;
        if !spans.is_empty() {
            let sent = exporter.export(spans).await;
            tell(is_well, sent.err(), address);
        }
        for done in waiting {
            done.send(()).ok();
        }
    }
}

/// What comes within a moment, up to a batch, or until somebody wants it sent.
async fn gather(
    first: Order,
    orders: &mut mpsc::Receiver<Order>,
) -> (Vec<Span>, Vec<oneshot::Sender<()>>) {
    let (mut spans, mut waiting) = (Vec::new(), Vec::new());
    let mut take = |order| match order {
        Order::Span(span) => {
            spans.push(*span);
            spans.len() >= BATCH
        }
        Order::Flush(done) => {
            waiting.push(done);
            true
        }
    };
    let mut is_full = take(first);
    let end = tokio::time::sleep(GATHER);
    tokio::pin!(end);
    while !is_full {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => is_full = take(order),
                None => break,
            },
            () = &mut end => break,
        }
    }
    (spans, waiting)
}

/// Once when it begins to fail, once when it is well again.
fn tell(is_well: &AtomicBool, problem: Option<String>, address: &str) {
    let was_well = is_well.swap(problem.is_none(), Ordering::Relaxed);
    match problem {
        Some(problem) if was_well => {
            warn!(collector = %address, problem = %escape(&problem), "traces are not taken; calls go on without them");
        }
        None if !was_well => info!(collector = %address, "traces are taken again"),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
