use std::time::SystemTime;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolgate_core::{
    CallContext, FunctionTool, Origin, ToolCall, ToolError, ToolExecutor, ToolManager,
};

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

pub(super) const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn settings(address: &str) -> TelemetrySettings {
    TelemetrySettings {
        otlp: format!("http://{address}"),
    }
}

pub(super) fn traced_executor(traces: &Traces) -> ToolExecutor {
    let broken = async |_: Nothing, _: CallContext| {
        Err::<String, _>(ToolError::failed("broken, password hunter2"))
    };
    let manager = ToolManager::new();
    manager.add(FunctionTool::new("broken", "Does not work", broken).unwrap());
    ToolExecutor::builder(Arc::new(manager))
        .observer(traces.clone())
        .traced()
        .build()
}

/// Answers one request and returns it.
async fn collector(listener: TcpListener) -> Vec<u8> {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = socket.read(&mut part).await.unwrap();
        request.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if request.len() >= head.len() + 4 + length {
            break;
        }
    }
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    socket.write_all(answer).await.unwrap();
    request
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_call_reaches_the_collector_as_a_child_of_its_caller() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let redactor = Redactor::new(["hunter2".to_owned()]);
    let traces = Traces::start(&settings(&address), redactor)
        .unwrap()
        .unwrap();
    let collected = tokio::spawn(collector(listener));
    let call = ToolCall::new("broken", json!({}))
        .origin(Origin::Http)
        .trace_parent(CALLER);
    traced_executor(&traces).execute(call).await;
    traces.flush().await;

    let request = collected.await.unwrap();
    assert!(request.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
    let trace = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    let parent = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();
    for part in [
        &trace[..],
        &parent,
        b"execute_tool broken",
        b"gen_ai.tool.name",
        b"error.type",
        b"tool_error",
        b"service.name",
    ] {
        assert!(
            contains(&request, part),
            "{}",
            String::from_utf8_lossy(part)
        );
    }
    assert!(!contains(&request, b"hunter2"));
}

#[tokio::test]
async fn an_unreachable_collector_delays_no_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let traces = Traces::start(&settings(&address), Redactor::default())
        .unwrap()
        .unwrap();
    let executor = traced_executor(&traces);
    let begun = SystemTime::now();
    for _ in 0..2 * QUEUE_CAPACITY {
        executor.execute(ToolCall::new("broken", json!({}))).await;
    }
    traces.flush().await;
    assert!(begun.elapsed().unwrap() < Duration::from_secs(50));
}

/// Panics a number of times, then counts spans.
#[derive(Debug)]
struct BrokenExporter {
    panics: AtomicU64,
    taken: Arc<AtomicU64>,
}

impl SpanExporter for BrokenExporter {
    async fn export(&self, batch: Vec<TraceSpan>) -> Result<(), String> {
        let less = |left: u64| left.checked_sub(1);
        let left = self
            .panics
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        assert!(left.is_err(), "a bug");
        self.taken.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct RecordingExporter(pub(super) Arc<parking_lot::Mutex<Vec<TraceSpan>>>);

impl SpanExporter for RecordingExporter {
    async fn export(&self, batch: Vec<TraceSpan>) -> Result<(), String> {
        self.0.lock().extend(batch);
        Ok(())
    }
}

#[tokio::test]
async fn a_valid_tracestate_is_passed_on() {
    for (state, expected) in [("a=1,b=2", "a=1,b=2"), ("no entry", "")] {
        let kept = RecordingExporter::default();
        let traces = Traces::with_exporter(kept.clone(), "test".to_owned(), Redactor::default());
        let call = ToolCall::new("broken", json!({})).trace_parent(CALLER);
        traced_executor(&traces)
            .execute(call.trace_state(state))
            .await;
        traces.flush().await;
        let spans = kept.0.lock();
        assert_eq!(spans[0].state, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn j5_a_panicking_exporter_loses_a_batch_and_is_given_up_after_five() {
    for (panics, taken) in [(1, 9), (4, 6), (5, 0)] {
        let counter = Arc::<AtomicU64>::default();
        let broken = BrokenExporter {
            panics: panics.into(),
            taken: Arc::clone(&counter),
        };
        let traces = Traces::with_exporter(broken, "test".to_owned(), Redactor::default());
        let executor = traced_executor(&traces);
        for _ in 0..10 {
            executor.execute(ToolCall::new("broken", json!({}))).await;
            tokio::time::sleep(2 * BATCH_DELAY).await;
        }
        assert_eq!(counter.load(Ordering::Relaxed), taken, "{panics} panics");
    }
}

/// A tool that reports a request to a server.
struct ServerTool(toolgate_core::ToolDefinition);

impl toolgate_core::Tool for ServerTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn invoke<'a>(
        &'a self,
        _: toolgate_core::ValidArguments,
        context: &'a CallContext,
    ) -> toolgate_core::ToolFuture<'a> {
        let revision = "2025-11-25".into();
        context.record_sent(toolgate_core::SentRequest { revision, id: 7 });
        Box::pin(async { Ok(toolgate_core::ToolOutput::text("done")) })
    }
}

#[tokio::test]
async fn only_sent_requests_become_client_spans() {
    let kinds = Arc::<parking_lot::Mutex<Vec<(SpanKind, String)>>>::default();
    let kept = Arc::clone(&kinds);
    let traces = Traces::start(&settings("127.0.0.1:9"), Redactor::default());
    let traces = traces.unwrap().unwrap();
    let seen = traces.clone();
    let look = move |record: &CallRecord| {
        let span = seen.span(record);
        let told = span.attributes.iter().filter_map(|pair| {
            let (key, value) = pair;
            let is_wire = key.starts_with("mcp.") || key.starts_with("jsonrpc.");
            is_wire.then(|| format!("{key}={value}"))
        });
        let told: Vec<String> = told.collect();
        kept.lock().push((span.kind, told.join(" ")));
    };
    let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let definition = ToolDefinition::builder("theirs", "Of a server", parameters);
    let definition = definition.source(ToolSource::Mcp("house".to_owned()));
    let manager = ToolManager::new();
    manager.add(ServerTool(definition.build().unwrap()));
    let executor = ToolExecutor::builder(Arc::new(manager)).observer(InspectingObserver(look));
    let executor = executor.build();
    for arguments in [json!({ "n": 1 }), json!({ "n": "x" })] {
        executor.execute(ToolCall::new("theirs", arguments)).await;
    }
    let seen = kinds.lock().clone();
    let wire = "mcp.method.name=tools/call mcp.protocol.version=2025-11-25 jsonrpc.request.id=7";
    assert_eq!(
        seen,
        [
            (SpanKind::Client, wire.to_owned()),
            (SpanKind::Internal, String::new())
        ]
    );
}

/// Inspects the records of calls.
struct InspectingObserver<F>(F);

impl<F: Fn(&CallRecord) + Send + Sync> Observer for InspectingObserver<F> {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.0(record);
        None
    }
}

#[tokio::test]
async fn a_missing_address_disables_traces_and_a_bad_one_is_an_error() {
    let none = Traces::start(&TelemetrySettings::default(), Redactor::default());
    assert!(none.unwrap().is_none());
    let problem = Traces::start(&settings("not an address"), Redactor::default());
    assert!(problem.err().unwrap().starts_with("telemetry.otlp: "));
}
