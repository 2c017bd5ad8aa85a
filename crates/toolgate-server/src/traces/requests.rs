//! Exports requests of MCP clients as spans of kind SERVER, the parents of their calls.

use toolgate_core::sanitize;
use toolgate_mcp::{FinishedRequest, RequestObserver};

use super::span::{SpanKind, TraceSpan};
use super::{Traces, span_at};

// Bounds text that a client may choose freely.
const MAX_VALUE_LEN: usize = 64;

impl RequestObserver for Traces {
    fn answered(&self, request: &FinishedRequest) {
        if request.trace.is_sampled() {
            self.send(self.request_span(request));
        }
    }
}

impl Traces {
    pub(super) fn request_span(&self, request: &FinishedRequest) -> TraceSpan {
        let redactor = &self.shared.redactor;
        let method = redactor.line(&request.method, MAX_VALUE_LEN);
        let mut attributes = vec![
            ("mcp.method.name", method.clone()),
            (
                "jsonrpc.request.id",
                redactor.line(&request.id, MAX_VALUE_LEN),
            ),
            ("network.transport", "tcp".to_owned()),
            ("network.protocol.name", "http".to_owned()),
        ];
        let mut name = method;
        if let Some(tool) = &request.tool {
            let tool = sanitize::name(redactor, tool);
            name = format!("{name} {tool}");
            attributes.extend([
                ("gen_ai.operation.name", "execute_tool".to_owned()),
                ("gen_ai.tool.name", tool),
            ]);
        }
        if let Some(revision) = &request.revision {
            let revision = redactor.line(revision, MAX_VALUE_LEN);
            attributes.push(("mcp.protocol.version", revision));
        }
        let error = request.error.as_ref().map(|error| {
            attributes.push(("error.type", error.clone()));
            String::new()
        });
        TraceSpan {
            name,
            kind: SpanKind::Server,
            attributes,
            error,
            ..span_at(&request.trace, true, (request.started_at, request.elapsed))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolgate_core::Redactor;
    use toolgate_mcp::{HttpOptions, McpServer, ServeOptions};

    use super::*;
    use crate::traces::tests::{CALLER, RecordingExporter, traced_executor};

    fn said(span: &TraceSpan, key: &str) -> String {
        let mut pairs = span.attributes.iter();
        let pair = pairs.find(|pair| pair.0 == key);
        pair.map_or(String::new(), |pair| pair.1.clone())
    }

    #[tokio::test]
    async fn a_request_is_a_server_span_between_its_client_and_its_call() {
        let kept = RecordingExporter::default();
        let traces = Traces::with_exporter(kept.clone(), "test".to_owned(), Redactor::default());
        let server = McpServer::new(traced_executor(&traces), ServeOptions::new("test", "1"));
        server.observe_requests(Arc::new(traces.clone()));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "traceparent": CALLER,
            "tracestate": "a=1",
        });
        let params = json!({ "name": "broken", "arguments": {}, "_meta": meta });
        let message =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let request = http::Request::post("/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "broken")
            .body(message.to_string());
        let mcp = server.http(HttpOptions::default());
        assert_eq!(mcp.respond(request.unwrap(), 1).await.status(), 200);
        traces.flush().await;

        let spans = kept.0.lock();
        let [call, request] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!(request.kind, SpanKind::Server);
        assert_eq!(request.name, "tools/call broken");
        let client = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();
        assert_eq!(request.parent_id, Some(client));
        assert!(request.parent_is_remote && !call.parent_is_remote);
        assert_eq!(call.parent_id, Some(request.span_id));
        for span in [call, request] {
            let trace = u128::from_be_bytes(span.trace_id);
            assert_eq!(format!("{trace:032x}"), CALLER[3..35]);
            assert_eq!(span.state, "a=1");
            assert_eq!(said(span, "error.type"), "tool_error");
        }
        for (key, expected) in [
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2026-07-28"),
            ("jsonrpc.request.id", "7"),
            ("gen_ai.tool.name", "broken"),
            ("network.protocol.name", "http"),
        ] {
            assert_eq!(said(request, key), expected, "{key}");
        }
    }
}
