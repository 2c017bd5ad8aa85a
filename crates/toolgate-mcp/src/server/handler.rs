//! Answers a client's requests, of either era and on whatever transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, ListToolsResult, MetaObject, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_core::{Origin, ToolCall, ToolError, ToolOutcome};
use tracing::{debug, info};

use super::answer::answer;
use super::listing::Catalogue;
use super::progress::{Reports, relayed};
use super::request::Unusable;

/// Calls that may wait for an answer at once; the executor runs fewer, and lets the rest wait.
const MOST_CALLS: usize = 1024;
/// The longest `traceparent` the standard allows is 55 characters; later versions may add some.
const LONGEST_TRACE: usize = 128;
/// Methods we know: if rmcp does not recognise one, it is its parameters that are wrong.
const KNOWN: [&str; 4] = [
    "initialize",
    "server/discover",
    "tools/list",
    "subscriptions/listen",
];

/// When a session's work is to end.
#[derive(Clone, Default)]
pub(super) struct Life {
    /// The client asks no more.
    pub(super) ending: CancellationToken,
    /// What still runs is stopped.
    pub(super) calls: CancellationToken,
}

/// One client's session.
pub(super) struct Handler {
    catalogue: Arc<Catalogue>,
    life: Life,
    tells_changes: AtomicBool,
    over: CancellationToken,
    _at_the_end: DropGuard,
}

impl Handler {
    pub(super) fn new(catalogue: Arc<Catalogue>, life: Life) -> Self {
        let over = life.ending.child_token();
        Self {
            catalogue,
            life,
            tells_changes: AtomicBool::new(false),
            _at_the_end: over.clone().drop_guard(),
            over,
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> ToolOutcome {
        let name = request.name.into_owned();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let place = Place::take(&self.catalogue);
        tokio::select! {
            () = self.catalogue.decided(&name) => {}
            () = context.ct.cancelled() => {}
        }
        let offered = self.catalogue.executor.find(&name);
        let offered = offered.is_ok_and(|tool| self.catalogue.offers(tool.definition()));
        let call = match context.extensions.get::<Unusable>() {
            _ if !offered => {
                let error = self.catalogue.not_found(&name);
                ToolCall::refused(name.as_str(), arguments, error)
            }
            Some(Unusable { arguments, error }) => {
                ToolCall::refused(name.as_str(), arguments.clone(), error.clone())
            }
            None if place.is_beyond_the_limit => {
                let (tool, limit) = (name.clone(), MOST_CALLS);
                let error = ToolError::Overloaded { tool, limit };
                ToolCall::refused(name.as_str(), arguments, error)
            }
            None => ToolCall::new(name.as_str(), arguments),
        };
        let mut outcome = self.execute(call, context).await;
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            // The executor may know more tools than this client.
            *error = self.catalogue.not_found(&name);
        }
        outcome
    }

    async fn execute(&self, call: ToolCall, context: &RequestContext<RoleServer>) -> ToolOutcome {
        let stop = context.ct.child_token();
        let mut call = call.origin(Origin::Mcp).cancellation(stop.clone());
        let trace = context.meta.get_traceparent();
        if let Some(trace) = trace.filter(|trace| trace.len() <= LONGEST_TRACE) {
            call = call.trace_parent(trace);
        }
        let executor = &self.catalogue.executor;
        let running = async |call: ToolCall| {
            let mut running = std::pin::pin!(executor.execute(call));
            tokio::select! {
                biased;
                outcome = &mut running => return outcome,
                () = self.life.calls.cancelled() => stop.cancel(),
            }
            running.await
        };
        let Some(token) = context.meta.get_progress_token() else {
            return running(call).await;
        };
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports);
        let call = call.on_progress(move |progress| sink.add(progress));
        relayed(running(call), &reports, &context.peer, token).await
    }

    /// What 2026-07-28 wants to see in every result.
    fn server_info(&self) -> MetaObject {
        let mut meta = MetaObject::new();
        let info = serde_json::to_value(self.implementation()).unwrap_or_default();
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), info);
        meta
    }

    fn implementation(&self) -> Implementation {
        let options = &self.catalogue.options;
        Implementation::new(options.name.as_str(), options.version.as_str())
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = ServerConfig::new(capabilities).with_server_info(self.implementation());
        info.instructions
            .clone_from(&self.catalogue.options.instructions);
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "unknown cursor: all tools are on one page",
                None,
            ));
        }
        self.catalogue.listed().await;
        let mut result = ListToolsResult::with_all_items(self.catalogue.tools().to_vec());
        result.meta = is_modern(&context).then(|| self.server_info());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = is_modern(&context);
        let outcome = self.call(request, &context).await;
        let mut result: CallToolResult = answer(outcome, modern);
        result.meta = modern.then(|| self.server_info());
        Ok(result.into())
    }

    /// Up to 2025-11-25 changes are told to every client, once it is ready.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.tells_changes.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(client) = context.peer.peer_info() {
            let Implementation { name, version, .. } = &client.client_info;
            let (name, version) = (toolgate_core::escape(name), toolgate_core::escape(version));
            info!(client = %name, %version, protocol = %client.protocol_version, "an MCP client is connected");
        }
        let (mut watch, over) = (self.catalogue.watch(), self.over.clone());
        tokio::spawn(async move {
            let telling = async {
                loop {
                    watch.changed().await;
                    if context.peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            };
            over.run_until_cancelled(telling).await;
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    /// In 2026-07-28 changes are told to whoever listens.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut watch = self.catalogue.watch();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.over.cancelled() => return Ok(()),
                () = watch.changed() => {}
            }
            if let Err(error) = context.sink().notify_tool_list_changed().await {
                debug!(%error, "a subscription is over");
                return Ok(());
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = toolgate_core::escape(&request.method);
        Err(if KNOWN.contains(&request.method.as_str()) {
            ErrorData::invalid_params(format!("wrong parameters for {method}"), None)
        } else {
            let text = format!("unknown method '{method}'");
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
        })
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// One of the calls that wait for an answer.
struct Place<'a> {
    catalogue: &'a Catalogue,
    is_beyond_the_limit: bool,
}

impl<'a> Place<'a> {
    fn take(catalogue: &'a Catalogue) -> Self {
        let before = catalogue.running.fetch_add(1, Ordering::Relaxed);
        Self {
            catalogue,
            is_beyond_the_limit: before >= MOST_CALLS,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.catalogue.running.fetch_sub(1, Ordering::Relaxed);
    }
}
