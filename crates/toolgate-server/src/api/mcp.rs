//! Serves the tools to MCP clients at `/mcp`, over streamable HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use toolgate_mcp::{HttpOptions, KnownCaller, McpHttp, McpServer, ServeOptions, TaskSummary};

use crate::guard::Caller;
use crate::{Gateway, GatewayParts};

/// One set of sessions for all MCP clients, with a restricted view of the tools for each caller.
pub(crate) struct McpEndpoint {
    whole: McpHttp,
    // The restricted views, by the caller's number, which changes with its rights. There are no
    // more callers than tokens.
    views: Mutex<HashMap<u64, McpHttp>>,
}

impl McpEndpoint {
    pub(crate) fn new(parts: &GatewayParts) -> Self {
        let mut options = ServeOptions::gateway(env!("CARGO_PKG_VERSION"));
        options.tasks = parts.settings.tasks.clone();
        let server = McpServer::new(parts.executor.clone(), options);
        server.wait_for(parts.servers.clone());
        if let Some(journal) = &parts.journal {
            server.keep_tasks(Arc::new(journal.clone()));
        }
        if let Some(traces) = &parts.traces {
            server.observe_requests(traces.clone());
        }
        Self {
            whole: server.http(HttpOptions::default()),
            views: Mutex::default(),
        }
    }

    /// Boxed because the router moves the handler's future several times.
    fn respond(&self, caller: &Caller, request: Request) -> BoxFuture<'static, Response> {
        let mcp = {
            let mut views = self.views.lock();
            let view = || {
                self.whole.for_caller(KnownCaller {
                    scope: caller.scope.clone(),
                    identity: Arc::clone(&caller.identity),
                    may_approve: caller.rights.approve_in_client,
                })
            };
            views.entry(caller.number).or_insert_with(view).clone()
        };
        let number = caller.number;
        Box::pin(async move { mcp.respond(request, number).await.map(Body::new) })
    }

    /// Goes on with tasks that were running when the gateway, or another command, ended.
    pub(crate) async fn restore_tasks(&self) {
        self.whole.restore_tasks().await;
    }

    pub(crate) fn tasks(&self) -> Vec<TaskSummary> {
        self.whole.tasks()
    }

    pub(crate) async fn cancel_task(&self, call: &str) -> bool {
        self.whole.cancel_task(call).await
    }

    pub(crate) async fn close(&self, grace: Duration) {
        self.whole.close(grace).await;
    }
}

/// Receives an MCP message. The answer is JSON or a stream of events.
#[utoipa::path(post, path = "/mcp", tag = "mcp",
    request_body(content = Object, description = "A JSON-RPC message of the Model Context Protocol, revisions up to 2025-11-25 or 2026-07-28", content_type = "application/json",
        example = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })),
    responses((status = 200, description = "The answer, or a stream that ends with it", content((serde_json::Value = "application/json"), (String = "text/event-stream"))),
              (status = 202, description = "A notification or an answer was accepted"),
              (status = 400, description = "The body is not a message, or its revision is unknown", body = Object),
              (status = 404, description = "There is no such session, or no such method", body = Object),
              (status = 406, description = "The client accepts neither JSON nor a stream of events", body = Object),
              (status = 413, description = "The message is too long", body = Object),
              (status = 415, description = "The message is not JSON", body = Object)))]
pub(crate) async fn post(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: Request,
) -> Response {
    gateway.mcp.respond(&caller, request).await
}

/// Opens the server's stream of a session, in revisions up to 2025-11-25.
#[utoipa::path(get, path = "/mcp", tag = "mcp",
    responses((status = 200, description = "Server-sent events, each with a JSON-RPC message as its data", body = String, content_type = "text/event-stream"),
              (status = 400, description = "No session was given, or the revision is unknown", body = Object),
              (status = 404, description = "There is no such session", body = Object),
              (status = 405, description = "Not in revision 2026-07-28"),
              (status = 406, description = "The client does not accept a stream of events", body = Object),
              (status = 409, description = "The session has a stream already", body = Object)))]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: Request,
) -> Response {
    gateway.mcp.respond(&caller, request).await
}

/// Ends a session of a revision up to 2025-11-25.
#[utoipa::path(delete, path = "/mcp", tag = "mcp",
    responses((status = 204, description = "It has ended"),
              (status = 400, description = "No session was given, or the revision is unknown", body = Object),
              (status = 404, description = "There is no such session", body = Object),
              (status = 405, description = "Not in revision 2026-07-28")))]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: Request,
) -> Response {
    gateway.mcp.respond(&caller, request).await
}
