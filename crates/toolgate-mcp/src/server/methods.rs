//! The MCP methods we answer. Both transports send every request to
//! [`dispatch`](McpService::dispatch), the only place where methods are listed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_core::text::escape;
use toolgate_core::{ClientId, ContentMethod};

use super::client_log::ClientLogLevel;
use super::client_message::{ClientRequest, RequestMeta, RequestParams};
use super::handshake::InitializeResult;
use super::jsonrpc::RequestError;
use super::resource_updates::ClientSubscriptions;
use super::service::McpService;
use super::session_notices::SessionNotices;
use super::session_questions::SessionQuestions;
use super::tool_call::CallToolResult;
use super::tool_list::ListedTool;
use crate::era::{MODERN, REVISIONS};

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
            Some(version) if missing.is_empty() => {
                meta.log_level()?;
                Ok(Self::SelfContained {
                    is_modern: version >= MODERN,
                })
            }
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
    // Cancelled when the calls of all clients must end.
    pub(super) shutdown: &'a CancellationToken,
    // The resources that a client with a session watches. `None` for other clients.
    pub(super) subscriptions: Option<&'a ClientSubscriptions>,
    // What a client with a session wants to be logged.
    pub(super) log_level: Option<&'a Arc<ClientLogLevel>>,
    // The questions to a client with a session.
    pub(super) questions: Option<&'a SessionQuestions>,
    // What a client with a session is told between its requests.
    pub(super) notices: Option<&'a Arc<SessionNotices>>,
    // Tells clients apart. A client of 2026-07-28 over HTTP is a new one with every request.
    pub(super) client: ClientId,
    // What a shutdown waits for.
    pub(super) tasks: &'a TaskTracker,
    // Tells clients with different tokens apart.
    pub(super) owner: u64,
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

    /// True if a tool has failed.
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::CallTool(result) if result.is_error)
    }
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
    tools: Arc<Vec<ListedTool>>,
    // The list without what belongs to one revision, to notice changes.
    #[serde(skip)]
    pub(super) known: Arc<Vec<ListedTool>>,
}

impl RequestContext<'_> {
    /// True for a session of 2025-11-25, whose clients may ask for tasks.
    pub(super) fn has_legacy_tasks(&self) -> bool {
        self.lifecycle == RequestLifecycle::Session
            && self.questions.is_some_and(SessionQuestions::has_tasks)
    }
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
                return self.call_tool(params, &meta, context).await;
            }
            RequestParams::Initialize(params) => {
                return Ok(MethodResult::Initialize(self.initialize(&params)));
            }
            RequestParams::Listen(params) => {
                return Box::pin(self.listen(&id, params, &meta, context)).await;
            }
            RequestParams::Json { method, params } => (method, params),
        };
        if let Some(content) = ContentMethod::from_name(&method) {
            self.check_offers_content(&method, context)?;
            return self.use_content(content, params, &meta, context).await;
        }
        let json_result = |result| Ok(MethodResult::Json(result));
        match (&*method, context.lifecycle) {
            ("initialize", RequestLifecycle::Session) | ("subscriptions/listen", _) => {
                Err(RequestError::wrong_params(&method))
            }
            ("initialize", _) => Err(other_revision_error()),
            ("server/discover", _) => Ok(MethodResult::Json(self.discover())),
            ("ping", RequestLifecycle::Session) => json_result(json!({})),
            ("ping", _) => Err(other_revision_error()),
            ("tools/list", _) => Box::pin(self.list_tools(&params, context)).await,
            (
                "tasks/get" | "tasks/update" | "tasks/cancel",
                RequestLifecycle::SelfContained { is_modern: true },
            ) => Box::pin(self.use_task(&method, &params, &meta, context)).await,
            ("tasks/get" | "tasks/cancel" | "tasks/result", RequestLifecycle::Session)
                if context.has_legacy_tasks() =>
            {
                Box::pin(self.use_task(&method, &params, &meta, context)).await
            }
            ("resources/list" | "resources/templates/list" | "prompts/list" | "skills/list", _) => {
                self.check_offers_content(&method, context)?;
                Box::pin(self.list_content(&method, &params, context.lifecycle)).await
            }
            ("logging/setLevel", RequestLifecycle::Session) => {
                let level = context.log_level.ok_or_else(other_revision_error)?;
                level.set_from_params(&params).map(MethodResult::Json)
            }
            ("resources/subscribe" | "resources/unsubscribe", RequestLifecycle::Session) => {
                self.subscribe(&method, &params, context)
            }
            _ => Box::pin(self.use_extension(&method, params, &meta, context)).await,
        }
    }

    // In 2026-07-28, a server without resources and prompts doesn't know their methods.
    fn check_offers_content(
        &self,
        method: &str,
        context: &RequestContext<'_>,
    ) -> Result<(), RequestError> {
        match context.lifecycle.is_modern() && !self.offers_content() {
            true => Err(unknown_method_error(method)),
            false => Ok(()),
        }
    }

    pub(super) fn meta_for(&self, lifecycle: RequestLifecycle) -> Option<Arc<Value>> {
        let meta = || Arc::clone(&self.result_meta);
        lifecycle.is_modern().then(meta)
    }

    async fn list_tools(
        &self,
        params: &Value,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        check_page("tools/list", params)?;
        self.wait_for_lists().await;
        let meta = self.meta_for(context.lifecycle);
        let lists = self.lists();
        Ok(MethodResult::ListTools(ListToolsResult {
            result_type: meta.as_ref().map(|_| COMPLETE),
            ttl_ms: meta.as_ref().map(|_| 0),
            cache_scope: meta.as_ref().map(|_| "private"),
            meta,
            tools: match context.has_legacy_tasks() {
                true => lists.tools_with_tasks(),
                false => Arc::clone(&lists.tools),
            },
            known: Arc::clone(&lists.tools),
        }))
    }

    async fn list_content(
        &self,
        method: &str,
        params: &Value,
        lifecycle: RequestLifecycle,
    ) -> Result<MethodResult, RequestError> {
        check_page(method, params)?;
        self.wait_for_lists().await;
        let lists = self.lists();
        let (key, list) = match method {
            "resources/list" => ("resources", &lists.content.resources),
            "resources/templates/list" => ("resourceTemplates", &lists.content.templates),
            "skills/list" => ("skills", &lists.content.skills),
            _ => ("prompts", &lists.content.prompts),
        };
        let mut result = json!({ key: **list });
        if let Some(meta) = self.meta_for(lifecycle) {
            result["resultType"] = json!(COMPLETE);
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
            result["_meta"] = json!(meta);
        }
        Ok(MethodResult::Json(result))
    }

    /// Waits a few seconds for servers that are starting. What they list later is announced.
    pub(super) async fn wait_for_lists(&self) {
        self.executor.manager().refresh_lists().await;
        if let Some(readiness) = self.shared.readiness.get() {
            drop(tokio::time::timeout(WAIT_FOR_TOOLS, readiness.ready()).await);
        }
    }

    fn subscribe(
        &self,
        method: &str,
        params: &Value,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let wrong = || RequestError::wrong_params(method);
        let uri = params
            .get("uri")
            .and_then(Value::as_str)
            .ok_or_else(wrong)?;
        let subscriptions = context.subscriptions.ok_or_else(other_revision_error)?;
        match method {
            "resources/subscribe" => subscriptions.subscribe(self, uri)?,
            _ => subscriptions.unsubscribe(uri),
        }
        Ok(MethodResult::Json(json!({})))
    }
}

/// All lists are on one page.
fn check_page(method: &str, params: &Value) -> Result<(), RequestError> {
    match params.get("cursor") {
        None | Some(Value::Null) if params.is_object() || params.is_null() => Ok(()),
        Some(Value::String(_)) => Err(RequestError::invalid_params(
            "unknown cursor: the whole list is on one page",
        )),
        _ => Err(RequestError::wrong_params(method)),
    }
}

fn unknown_method_error(method: &str) -> RequestError {
    let text = format!("unknown method '{}'", escape(method));
    RequestError::new(RequestError::METHOD_NOT_FOUND, text)
}

pub(super) fn other_revision_error() -> RequestError {
    let text = "this method belongs to another revision of MCP";
    RequestError::new(RequestError::METHOD_NOT_FOUND, text)
}
