//! One client's session as rmcp's service loop runs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, DiscoverResult, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::listing::Catalogue;
use super::progress::{Reports, relayed};
use super::service::{self, Call, Life, Unusable};

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

    async fn call(&self, call: Box<Call>, context: &RequestContext<RoleServer>) -> CallToolResult {
        let modern = is_modern(context);
        let stop = context.ct.child_token();
        let token = call.meta.get_progress_token();
        let reports = token.as_ref().map(|_| Arc::new(Reports::default()));
        let running = async {
            let call = self.catalogue.call(call, modern, &stop, reports.as_ref());
            let mut running = std::pin::pin!(call);
            tokio::select! {
                biased;
                result = &mut running => return result,
                () = self.life.calls.cancelled() => stop.cancel(),
            }
            running.await
        };
        let (Some(token), Some(reports)) = (token, &reports) else {
            return running.await;
        };
        let peer = &context.peer;
        relayed(running, reports, token, |told| async {
            peer.notify_progress(told).await.is_ok()
        })
        .await
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.catalogue.info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.catalogue.initialize(&request.protocol_version);
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Ok(self.catalogue.discover())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.catalogue.list(request, is_modern(&context)).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call {
            name: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            unusable: context.extensions.remove::<Unusable>(),
            meta: context.meta.clone(),
            watched: None,
        };
        Ok(self.call(Box::new(call), &context).await.into())
    }

    /// Up to 2025-11-25 changes are told to every client, once it is ready.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.tells_changes.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(client) = context.peer.peer_info() {
            connected(&client.client_info, &client.protocol_version);
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
        Some(Catalogue::accepted(requested))
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

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        service::nothing("prompts/list", is_modern(&context))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        service::nothing("resources/list", is_modern(&context))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        service::nothing("resources/templates/list", is_modern(&context))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        service::nothing("completion/complete", is_modern(&context))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(service::unknown(&request.method))
    }
}

/// Says in the log who is there.
pub(super) fn connected(client: &Implementation, protocol: &ProtocolVersion) {
    let name = toolgate_core::escape(&client.name);
    let version = toolgate_core::escape(&client.version);
    tracing::info!(client = %name, %version, %protocol, "an MCP client is connected");
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}
