//! The MCP methods we answer. Both transports send every request to
//! [`dispatch`](McpService::dispatch), the only place where methods are listed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::escape;

use super::client_message::{
    ClientRequest, InitializeParams, ListenParams, RequestMeta, RequestParams,
};
use super::jsonrpc::{RequestError, RequestId, notification};
use super::service::McpService;
use super::tool_call::CallToolResult;
use super::tool_list::{ListedTool, ToolListWatch};
use crate::era::{LEGACY, LEGACY_REVISIONS, MODERN, REVISIONS};

pub(super) const COMPLETE: &str = "complete";
/// The key in `_meta` where results of 2026-07-28 name the server.
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// How long a list waits for servers that are starting. Later tools are announced as a change.
const WAIT_FOR_TOOLS: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestLifecycle {
    // Belongs to a session that begins with `initialize`.
    Session,
    // Stands alone. `is_modern` if its result has the form of 2026-07-28.
    SelfContained { is_modern: bool },
}

impl RequestLifecycle {
    pub(super) fn from_meta(meta: &RequestMeta) -> Result<Self, RequestError> {
        let mut missing = Vec::new();
        let version = meta.protocol_version();
        match version {
            None => missing.push(RequestMeta::PROTOCOL_VERSION),
            Some(version) if REVISIONS.contains(&version) => {}
            Some(version) => return Err(unsupported_revision(version)),
        }
        if !meta.has_capabilities() {
            missing.push(RequestMeta::CLIENT_CAPABILITIES);
        }
        match version {
            Some(version) if missing.is_empty() => Ok(Self::SelfContained {
                is_modern: version >= MODERN,
            }),
            _ => Err(RequestError::invalid_params(format!(
                "request _meta is missing or has malformed required fields: {}",
                missing.join(", ")
            ))),
        }
    }

    pub(super) fn is_modern(self) -> bool {
        self == Self::SelfContained { is_modern: true }
    }
}

pub(super) fn unsupported_revision(version: &str) -> RequestError {
    let text = "Unsupported protocol version";
    let mut error = RequestError::new(RequestError::UNSUPPORTED_REVISION, text);
    error.data = Some(json!({ "requested": version, "supported": REVISIONS }));
    error
}

/// Sends notifications to the client while its request is running.
pub(super) trait ClientSink: Send + Sync {
    /// Returns when another message can be sent, or false if the client has disconnected.
    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, bool>;
}

pub(super) struct RequestContext<'a> {
    pub(super) lifecycle: RequestLifecycle,
    // Cancelled when the client no longer wants a result, or at the end of a shutdown.
    pub(super) stop: &'a CancellationToken,
    // Cancelled when the session starts to close, which ends subscriptions.
    pub(super) ending: &'a CancellationToken,
    // `None` if the client gets nothing but the response.
    pub(super) sink: Option<&'a dyn ClientSink>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum MethodResult {
    Initialize(InitializeResult),
    ListTools(ListToolsResult),
    CallTool(CallToolResult),
    Json(Value),
}

impl MethodResult {
    pub(super) fn error_kind(&self) -> Option<&'static str> {
        match self {
            Self::CallTool(result) => result.error_kind,
            _ => None,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: &'static str,
    capabilities: Value,
    server_info: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListToolsResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Arc<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    pub(super) tools: Arc<Vec<ListedTool>>,
}

impl McpService {
    pub(super) async fn dispatch(
        self: &Arc<Self>,
        request: ClientRequest,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let ClientRequest { id, params, meta } = request;
        let (method, params) = match params {
            RequestParams::CallTool(params) => {
                let result = self.call_tool(params, &meta, context).await;
                return Ok(MethodResult::CallTool(result));
            }
            RequestParams::Initialize(params) => {
                return Ok(MethodResult::Initialize(self.initialize(&params)));
            }
            RequestParams::Listen(params) => {
                return Box::pin(self.listen(&id, params, context)).await;
            }
            RequestParams::Json { method, params } => (method, params),
        };
        let is_modern = context.lifecycle.is_modern();
        let json_result = |result| Ok(MethodResult::Json(result));
        match (&*method, context.lifecycle) {
            ("initialize", RequestLifecycle::Session) | ("subscriptions/listen", _) => {
                Err(RequestError::wrong_params(&method))
            }
            ("initialize", _) => Err(other_revision_error()),
            ("server/discover", _) => Ok(MethodResult::Json(self.discover())),
            ("ping", RequestLifecycle::Session) => json_result(json!({})),
            ("ping", _) => Err(other_revision_error()),
            ("tools/list", lifecycle) => Box::pin(self.list_tools(&params, lifecycle)).await,
            // Older clients request these lists even though we don't advertise them, so they get
            // empty ones. Clients of 2026-07-28 request only what `server/discover` advertises.
            ("prompts/list", _) if !is_modern => json_result(json!({ "prompts": [] })),
            ("resources/list", _) if !is_modern => json_result(json!({ "resources": [] })),
            ("resources/templates/list", _) if !is_modern => {
                json_result(json!({ "resourceTemplates": [] }))
            }
            ("completion/complete", _) if !is_modern => {
                json_result(json!({ "completion": { "values": [] } }))
            }
            _ => {
                let text = format!("unknown method '{}'", escape(&method));
                Err(RequestError::new(RequestError::METHOD_NOT_FOUND, text))
            }
        }
    }

    pub(super) fn meta_for(&self, lifecycle: RequestLifecycle) -> Option<Arc<Value>> {
        let meta = || Arc::clone(&self.result_meta);
        lifecycle.is_modern().then(meta)
    }

    /// Answers in the requested revision if it is a known one with a handshake, otherwise in the
    /// newest one with a handshake.
    fn initialize(&self, params: &InitializeParams) -> InitializeResult {
        let mut known = LEGACY_REVISIONS.into_iter();
        let protocol_version = known.find(|known| *known == params.protocol_version);
        let protocol_version = protocol_version.unwrap_or(LEGACY);
        let client = escape(&params.client_info.name);
        let version = escape(&params.client_info.version);
        tracing::info!(%client, %version, protocol = %protocol_version, "an MCP client is connected");
        InitializeResult {
            protocol_version,
            capabilities: capabilities(),
            server_info: json!({ "name": self.options.name, "version": self.options.version }),
            instructions: self.options.instructions.clone(),
        }
    }

    fn discover(&self) -> Value {
        let mut result = json!({
            "resultType": COMPLETE,
            "supportedVersions": REVISIONS,
            "capabilities": capabilities(),
        });
        if let Some(instructions) = &self.options.instructions {
            result["instructions"] = json!(instructions);
        }
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        result["_meta"] = json!(self.result_meta);
        result
    }

    async fn list_tools(
        &self,
        params: &Value,
        lifecycle: RequestLifecycle,
    ) -> Result<MethodResult, RequestError> {
        match params.get("cursor") {
            None | Some(Value::Null) if params.is_object() || params.is_null() => {}
            Some(Value::String(_)) => {
                let text = "unknown cursor: all tools are on one page";
                return Err(RequestError::invalid_params(text));
            }
            _ => return Err(RequestError::wrong_params("tools/list")),
        }
        if let Some(readiness) = self.shared.readiness.get() {
            drop(tokio::time::timeout(WAIT_FOR_TOOLS, readiness.ready()).await);
        }
        let meta = self.meta_for(lifecycle);
        Ok(MethodResult::ListTools(ListToolsResult {
            result_type: meta.as_ref().map(|_| COMPLETE),
            ttl_ms: meta.as_ref().map(|_| 0),
            cache_scope: meta.as_ref().map(|_| "private"),
            meta,
            tools: Arc::clone(&self.tool_list().tools),
        }))
    }

    async fn listen(
        self: &Arc<Self>,
        id: &RequestId,
        params: ListenParams,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let (RequestLifecycle::SelfContained { .. }, Some(sink)) =
            (context.lifecycle, context.sink)
        else {
            return Err(other_revision_error());
        };
        let accepted = params.notifications;
        let watch = ToolListWatch::new(self);
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let params = json!({ "_meta": &meta, "notifications": &accepted });
        let acknowledged = notification("notifications/subscriptions/acknowledged", params);
        sink.send(acknowledged).await;
        let announcing = async {
            if accepted.tools_list_changed == Some(true) {
                send_list_changes(watch, json!({ "_meta": &meta }), sink).await;
            }
            // A subscription without any notification still lasts until it is cancelled.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = context.stop.cancelled() => {}
            () = context.ending.cancelled() => {}
            () = announcing => {}
        }
        let mut meta = meta;
        meta[SERVER_INFO] = self.result_meta[SERVER_INFO].clone();
        let result = json!({ "resultType": COMPLETE, "_meta": meta });
        Ok(MethodResult::Json(result))
    }
}

pub(super) async fn send_list_changes(
    mut watch: ToolListWatch,
    params: Value,
    sink: &dyn ClientSink,
) {
    loop {
        watch.changed().await;
        if !sink.send(list_changed(params.clone())).await {
            return;
        }
    }
}

pub(super) fn list_changed(params: Value) -> Vec<u8> {
    notification("notifications/tools/list_changed", params)
}

fn other_revision_error() -> RequestError {
    let text = "this method belongs to another revision of MCP";
    RequestError::new(RequestError::METHOD_NOT_FOUND, text)
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true } })
}
