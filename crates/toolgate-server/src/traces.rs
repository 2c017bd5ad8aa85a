//! Exports calls as spans over OTLP/HTTP, following the GenAI and MCP semantic conventions.

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
use toolgate_core::text::escape;
use toolgate_core::{
    CallRecord, Observer, Origin, Redactor, ToolDefinition, ToolSource, TraceContext, sanitize,
};
use tracing::{error, info, warn};

use collector::{OtlpCollector, SpanExporter};
use span::{SpanKind, TraceSpan, valid_state};

// How many spans may wait for the collector. Further ones are dropped and counted.
const QUEUE_CAPACITY: usize = 4096;
// Spans in one request.
const MAX_BATCH: usize = 512;
// How long a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);
// How long the program waits at its end for the export.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
// This many panics within `PANIC_WINDOW` end the export.
const MAX_PANICS: u32 = 5;
const PANIC_WINDOW: Duration = Duration::from_secs(60);

/// The `telemetry` section of the configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "Where traces go")]
#[non_exhaustive]
pub struct TelemetrySettings {
    /// The address of an OpenTelemetry collector that speaks OTLP over HTTP, such
    /// as http://localhost:4318. Empty: none.
    pub otlp: String,
}

/// Exports calls as spans to an OpenTelemetry collector (OTLP). Clones share one queue.
///
/// An unreachable collector causes a warning in the log, but never delays a call.
#[derive(Clone)]
pub struct Traces {
    queue: mpsc::Sender<ExportCommand>,
    shared: Arc<TracesState>,
}

struct TracesState {
    redactor: Redactor,
    dropped: AtomicU64,
}

enum ExportCommand {
    Span(Box<TraceSpan>),
    // Exports everything queued before it.
    Flush(oneshot::Sender<()>),
}

impl TelemetrySettings {
    /// What is wrong with these settings, as part of a sentence that says what to do.
    pub fn problem(&self) -> Option<&'static str> {
        self.address().err()
    }

    fn address(&self) -> Result<Option<Url>, &'static str> {
        if self.otlp.is_empty() {
            return Ok(None);
        }
        match Url::parse(&self.otlp) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
            _ => Err("is not an address; write http://host:4318"),
        }
    }
}

impl Traces {
    /// Starts the export, or returns `None` if the settings name no collector. Must be called in a
    /// tokio runtime. Fails if the address is invalid.
    pub fn start(settings: &TelemetrySettings, redactor: Redactor) -> Result<Option<Self>, String> {
        let invalid = |problem: &str| format!("telemetry.otlp: {problem}");
        let Some(address) = settings.address().map_err(invalid)? else {
            return Ok(None);
        };
        let exporter = OtlpCollector::new(&address).map_err(|problem| invalid(&problem))?;
        let shown = address_without_login(&address);
        Ok(Some(Self::with_exporter(exporter, shown, redactor)))
    }

    fn with_exporter(
        exporter: impl SpanExporter + 'static,
        address: String,
        redactor: Redactor,
    ) -> Self {
        let (queue, commands) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(run_exporter(exporter, commands, address));
        let dropped = AtomicU64::new(0);
        let shared = Arc::new(TracesState { redactor, dropped });
        Self { queue, shared }
    }

    /// Waits until all spans so far are exported, for two seconds at most.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let flush = async {
            if self.queue.send(ExportCommand::Flush(done)).await.is_ok() {
                drop(sent.await);
            }
        };
        drop(tokio::time::timeout(FLUSH_TIMEOUT, flush).await);
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            warn!(
                dropped,
                "spans were dropped: the queue is full, or the exporter has stopped"
            );
        }
    }

    fn span(&self, record: &CallRecord) -> TraceSpan {
        let tool = sanitize::name(&self.shared.redactor, &record.outcome.tool_name);
        let server = match record.definition().map(ToolDefinition::source) {
            Some(ToolSource::Mcp(server)) => Some(server.clone()),
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
        // A call may be rejected before it reaches its server.
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
        let duration = record.outcome.elapsed + record.timings.approval;
        // The parent of an MCP client's call is its request, which is a local span.
        let is_remote = record.origin != Origin::Mcp;
        TraceSpan {
            name,
            kind,
            attributes,
            error,
            ..span_at(&record.trace, is_remote, (record.started_at, duration))
        }
    }

    fn send(&self, span: TraceSpan) {
        let command = ExportCommand::Span(Box::new(span));
        if self.queue.try_send(command).is_err() {
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

fn span_at(
    trace: &TraceContext,
    is_remote: bool,
    (started_at, duration): (SystemTime, Duration),
) -> TraceSpan {
    let (trace_id, span_id, parent_id) = trace.ids();
    TraceSpan {
        trace_id,
        span_id,
        parent_id,
        parent_is_remote: parent_id.is_some() && is_remote,
        state: valid_state(trace.state().unwrap_or_default()).to_owned(),
        kind: SpanKind::Internal,
        name: String::new(),
        started_at,
        ended_at: started_at + duration,
        attributes: Vec::new(),
        error: None,
    }
}

// Leaves out a login or key that may be part of the URL.
fn address_without_login(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    let port = address.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", address.scheme())
}

/// Exports until all senders are dropped. A panic loses the current batch. After too many panics
/// the export ends, and later spans are dropped and counted.
async fn run_exporter(
    exporter: impl SpanExporter,
    mut commands: mpsc::Receiver<ExportCommand>,
    address: String,
) {
    let is_healthy = AtomicBool::new(true);
    let mut since = Instant::now();
    let mut panics = 0;
    loop {
        let work = export(&exporter, &mut commands, &address, &is_healthy);
        if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
            return;
        }
        if since.elapsed() > PANIC_WINDOW {
            (since, panics) = (Instant::now(), 0);
        }
        panics += 1;
        if panics >= MAX_PANICS {
            error!(collector = %address, "exporting traces failed repeatedly because of an internal error; no more are sent until Toolgate is restarted");
            return;
        }
        warn!(collector = %address, "exporting traces failed because of an internal error; continuing");
    }
}

async fn export(
    exporter: &impl SpanExporter,
    commands: &mut mpsc::Receiver<ExportCommand>,
    address: &str,
    is_healthy: &AtomicBool,
) {
    while let Some(first) = commands.recv().await {
        let (spans, waiting) = next_batch(first, commands).await;
        if !spans.is_empty() {
            let sent = exporter.export(spans).await;
            log_export(is_healthy, sent.err(), address);
        }
        for done in waiting {
            done.send(()).ok();
        }
    }
}

/// Collects spans until the batch is full, `BATCH_DELAY` is over, or a flush is requested.
async fn next_batch(
    first: ExportCommand,
    commands: &mut mpsc::Receiver<ExportCommand>,
) -> (Vec<TraceSpan>, Vec<oneshot::Sender<()>>) {
    let (mut spans, mut waiting) = (Vec::new(), Vec::new());
    let mut take = |command| match command {
        ExportCommand::Span(span) => {
            spans.push(*span);
            spans.len() >= MAX_BATCH
        }
        ExportCommand::Flush(done) => {
            waiting.push(done);
            true
        }
    };
    let mut is_full = take(first);
    let end = tokio::time::sleep(BATCH_DELAY);
    tokio::pin!(end);
    while !is_full {
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => is_full = take(command),
                None => break,
            },
            () = &mut end => break,
        }
    }
    (spans, waiting)
}

/// Logs when exporting begins to fail and when it recovers, not every attempt.
fn log_export(is_healthy: &AtomicBool, problem: Option<String>, address: &str) {
    let was_healthy = is_healthy.swap(problem.is_none(), Ordering::Relaxed);
    match problem {
        Some(problem) if was_healthy => {
            warn!(collector = %address, problem = %escape(&problem), "the collector does not accept traces; calls continue without them");
        }
        None if !was_healthy => info!(collector = %address, "the collector accepts traces again"),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
