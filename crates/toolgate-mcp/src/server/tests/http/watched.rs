//! Requests as an observer that records traces sees them.

use parking_lot::Mutex;

use toolgate_core::{CallRecord, Observer};

use super::*;
use crate::{FinishedRequest, RequestObserver};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Records requests, and the parent spans of calls.
#[derive(Clone, Default)]
struct RecordedRequests(Arc<Mutex<Vec<FinishedRequest>>>, Arc<Mutex<Vec<String>>>);

impl RequestObserver for RecordedRequests {
    fn answered(&self, request: &FinishedRequest) {
        self.0.lock().push(request.clone());
    }
}

impl Observer for RecordedRequests {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.1.lock().extend(record.trace.parent_id());
        None
    }
}

impl RecordedRequests {
    fn take(&self) -> Vec<FinishedRequest> {
        std::mem::take(&mut self.0.lock())
    }
}

fn watched() -> (McpHttp, RecordedRequests) {
    let requests = RecordedRequests::default();
    let executor = ToolExecutor::builder(manager()).observer(requests.clone());
    let server = McpServer::new(executor.build(), ServeOptions::new("test", "1.2.3"));
    server.observe_requests(Arc::new(requests.clone()));
    (server.http(HttpOptions::default()), requests)
}

#[tokio::test]
async fn every_request_is_reported_with_its_outcome() {
    let (mcp, requests) = watched();
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let caller = caller.with("mcp-protocol-version", "2025-11-25");
    let stranger = caller.with("mcp-session-id", &"0".repeat(32));
    let call = |name: &str| json!({ "name": name });
    let table = [
        (&caller, "tools/list", json!({}), None),
        (&caller, "tools/call", call("echo"), None),
        (&caller, "tools/call", call("fail"), Some("tool_error")),
        (&caller, "tools/call", call("nope"), Some("not_found")),
        (&caller, "no/such", json!({}), Some("-32601")),
        (&stranger, "tools/list", json!({}), Some("-32001")),
        (&stranger, "tools/call", call("echo"), Some("-32001")),
    ];
    let first = requests.take();
    assert_eq!(first[0].method, "initialize");
    assert_eq!((first.len(), first[0].error.as_deref()), (1, None));
    for (who, method, params, error) in table {
        drop(text_of(who.post(request_message(method, params.clone())).await).await);
        let request = requests.take();
        assert_eq!(request.len(), 1, "{method} {params}");
        let request = &request[0];
        assert_eq!(
            (&*request.method, request.error.as_deref()),
            (method, error)
        );
        assert_eq!(request.tool.as_deref(), params["name"].as_str());
        assert_eq!(
            (&*request.id, request.revision.as_deref()),
            ("1", Some("2025-11-25"))
        );
    }
}

#[tokio::test]
async fn a_call_belongs_to_the_trace_of_its_request_and_caller() {
    let (mcp, requests) = watched();
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    requests.take();
    let in_headers = caller.with("traceparent", TRACE).with("tracestate", "a=1");
    let in_meta = json!({ "traceparent": OTHER, "tracestate": "b=2" });
    for (who, meta, trace, state) in [
        (&caller, json!({}), None, None),
        (&in_headers, json!({}), Some(TRACE), Some("a=1")),
        (&caller, in_meta.clone(), Some(OTHER), Some("b=2")),
        (&in_headers, in_meta, Some(OTHER), Some("b=2")),
    ] {
        let params = json!({ "name": "trace", "_meta": meta });
        let answer = who.ask("tools/call", params).await;
        let header = answer["result"]["content"][0]["text"].as_str().unwrap();
        let request = requests.take().remove(0).trace;
        assert_eq!(requests.1.lock().pop(), Some(request.span_id()));
        assert_eq!(request.trace_id(), header[3..35]);
        assert_eq!(request.trace_id(), trace.unwrap_or(header)[3..35]);
        assert_eq!(
            request.parent_id().as_deref(),
            trace.map(|trace| &trace[36..52])
        );
        assert_eq!(request.state(), state);
        assert!(header.ends_with(state.unwrap_or("mcp")), "{header}");
    }
}

#[tokio::test]
async fn trace_headers_work_without_an_observer() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let caller = caller.with("traceparent", TRACE).with("tracestate", "a=1");
    let answer = caller.ask("tools/call", json!({ "name": "trace" })).await;
    let header = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        header.starts_with(&TRACE[..36]) && header.ends_with(" mcp a=1"),
        "{header}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_client_is_reported_as_cancelled_and_a_stream_when_it_ends() {
    let (mcp, requests) = watched();
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    requests.take();
    let call = request_message("tools/call", json!({ "name": "sleep" }));
    let gone = tokio::time::timeout(Duration::from_secs(1), caller.post(call)).await;
    assert!(gone.is_err());
    let request = requests.take().remove(0);
    assert_eq!(request.error.as_deref(), Some("cancelled"));
    assert_eq!(request.elapsed, Duration::from_secs(1));

    let params = json!({ "name": "sleep", "_meta": { "progressToken": 1 } });
    let stream = caller.post(request_message("tools/call", params)).await;
    assert!(requests.take().is_empty(), "it has only begun");
    assert!(text_of(stream).await.contains("slept"));
    let request = requests.take().remove(0);
    assert_eq!(
        (request.error, request.elapsed),
        (None, Duration::from_secs(20))
    );
}
