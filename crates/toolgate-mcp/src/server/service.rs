//! What a client is answered, of either era and whatever its requests travel on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::{
    CacheScope, CallToolResult, DiscoverResult, ErrorCode, ErrorData, Implementation,
    InitializeResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion,
    RequestMetaObject, ServerCapabilities, ServerConfig, ServerResult, SubscriptionFilter,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Origin, Tool, ToolCall, ToolError, ToolOutcome};

use super::answer::answer;
use super::listing::Catalogue;
use super::progress::Reports;
use super::watched::Watched;

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

/// A `tools/call` as it was asked.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// Set where the arguments are unusable: the call is recorded, and ends in this error.
    pub(super) unusable: Option<Unusable>,
    pub(super) meta: RequestMetaObject,
    /// Set where somebody wants to hear of the request.
    pub(super) watched: Option<Box<Watched>>,
}

/// Arguments as they came, and what is wrong with them.
#[derive(Debug, Clone)]
pub(super) struct Unusable {
    pub(super) arguments: Value,
    pub(super) error: ToolError,
}

/// When a session's work is to end.
#[derive(Clone, Default)]
pub(super) struct Life {
    /// The client asks no more.
    pub(super) ending: CancellationToken,
    /// What still runs is stopped.
    pub(super) calls: CancellationToken,
}

impl Catalogue {
    /// How the server presents itself.
    pub(super) fn info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = ServerConfig::new(capabilities).with_server_info(self.implementation());
        info.instructions.clone_from(&self.options.instructions);
        info
    }

    /// The answer to `initialize`: the revision that was asked for, if it has a handshake and is known.
    pub(super) fn initialize(&self, asked: &ProtocolVersion) -> InitializeResult {
        let mut info = self.info();
        let spoken = asked.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(asked);
        info.protocol_version = if spoken {
            asked.clone()
        } else {
            ProtocolVersion::V_2025_11_25
        };
        info
    }

    /// The answer to `server/discover`.
    pub(super) fn discover(&self) -> DiscoverResult {
        DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), self.info())
    }

    /// The answer to `tools/list`.
    pub(super) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        modern: bool,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "unknown cursor: all tools are on one page",
                None,
            ));
        }
        self.listed().await;
        let mut result = ListToolsResult::with_all_items(self.tools().to_vec());
        if modern {
            result.meta = Some(self.server_info());
            result.ttl_ms = Some(0);
            result.cache_scope = Some(CacheScope::Private);
        } else {
            result.result_type = None;
        }
        Ok(result)
    }

    /// The answer to `tools/call`. Reports of the tool go to `reports`, if the client wants them.
    pub(super) async fn call(
        &self,
        call: Box<Call>,
        modern: bool,
        stop: &CancellationToken,
        reports: Option<&Arc<Reports>>,
    ) -> CallToolResult {
        let outcome = self.run(call, stop, reports).await;
        let mut result = answer(outcome, modern);
        if modern {
            result.meta = Some(self.server_info());
        } else {
            result.result_type = None;
        }
        result
    }

    async fn run(
        &self,
        mut call: Box<Call>,
        stop: &CancellationToken,
        reports: Option<&Arc<Reports>>,
    ) -> ToolOutcome {
        let place = Place::take(self);
        let asked = std::mem::take(&mut call.name);
        call.name = self.name_here(&asked).into_owned();
        let mut tool = self.find(&call.name);
        if matches!(
            tool,
            Err(ToolError::NotFound { .. } | ToolError::Unavailable { .. })
        ) {
            tokio::select! {
                () = self.decided(&asked) => {}
                () = stop.cancelled() => {}
            }
            call.name = self.name_here(&asked).into_owned();
            tool = self.find(&call.name);
        }
        let watched = call.watched.take();
        let asked = self.asked(*call, tool, place.is_beyond_the_limit);
        let mut asked = asked.cancellation(stop.clone());
        if let Some(reports) = reports {
            let sink = Arc::clone(reports);
            asked = asked.on_progress(move |progress| sink.add(progress));
        }
        let mut outcome = self.executor.execute(asked).await;
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            // The executor may know more tools than this client.
            *error = self.not_found(&outcome.tool_name);
        }
        if let Some(mut watched) = watched {
            match &outcome.result {
                Ok(_) => watched.succeeded(),
                Err(error) => watched.failed(error.kind().as_str()),
            }
        }
        outcome
    }

    pub(super) fn find(&self, name: &str) -> Result<Arc<dyn Tool>, ToolError> {
        self.executor.find_in(name, &self.scope())
    }

    /// What the executor gets. Also a call that is not made goes through it, so that it is on record.
    fn asked(
        &self,
        call: Call,
        tool: Result<Arc<dyn Tool>, ToolError>,
        is_too_much: bool,
    ) -> ToolCall {
        let name = call.name.as_str();
        let refusal = match tool {
            Ok(tool) if self.offers(tool.definition()) => None,
            Err(error) if self.is_withheld(name, &error) => Some(error),
            _ => Some(self.not_found(name)),
        };
        let arguments = Value::Object(call.arguments);
        let asked = match (refusal, call.unusable) {
            (Some(error), _) => ToolCall::refused(name, arguments, error),
            (None, Some(Unusable { arguments, error })) => {
                ToolCall::refused(name, arguments, error)
            }
            (None, None) if is_too_much => {
                let (tool, limit) = (name.to_owned(), MOST_CALLS);
                ToolCall::refused(name, arguments, ToolError::Overloaded { tool, limit })
            }
            (None, None) => ToolCall::new(name, arguments),
        };
        let mut asked = asked.origin(Origin::Mcp).scope(self.scope());
        let trace = call.meta.get_traceparent();
        if let Some(trace) = trace.filter(|trace| trace.len() <= LONGEST_TRACE) {
            asked = asked.trace_parent(trace);
            if let Some(state) = call.meta.get_tracestate() {
                asked = asked.trace_state(state);
            }
        }
        asked
    }

    /// True if a tool of the clients is withheld; of others they learn nothing.
    fn is_withheld(&self, name: &str, error: &ToolError) -> bool {
        let tool = self.executor.manager().find(name);
        let is_theirs = tool.is_some_and(|tool| self.is_for_clients(tool.definition()));
        is_theirs && matches!(error, ToolError::Withheld { .. })
    }

    /// Of what a client wants to hear, that which we can tell.
    pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted
    }

    /// What 2026-07-28 wants to see in every result.
    pub(super) fn server_info(&self) -> MetaObject {
        let mut meta = MetaObject::new();
        let info = serde_json::to_value(self.implementation()).unwrap_or_default();
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), info);
        meta
    }

    pub(super) fn implementation(&self) -> Implementation {
        let options = &self.options;
        Implementation::new(options.name.as_str(), options.version.as_str())
    }
}

/// The answer to what is no business of tools.
pub(super) fn beside_tools(method: &str, modern: bool) -> Result<ServerResult, ErrorData> {
    let mut result = match method {
        "prompts/list" => nothing(method, modern).map(ServerResult::ListPromptsResult),
        "resources/list" => nothing(method, modern).map(ServerResult::ListResourcesResult),
        "resources/templates/list" => {
            nothing(method, modern).map(ServerResult::ListResourceTemplatesResult)
        }
        "completion/complete" => nothing(method, modern).map(ServerResult::CompleteResult),
        _ => Err(unknown(method)),
    }?;
    result.strip_result_type_for_legacy_peer();
    Ok(result)
}

/// Older clients ask for lists of anything, whatever a server says it has: those are empty. In 2026-07-28 nobody asks for
/// what `server/discover` does not name.
pub(super) fn nothing<T: Default>(method: &str, modern: bool) -> Result<T, ErrorData> {
    if modern {
        Err(unknown(method))
    } else {
        Ok(T::default())
    }
}

/// For a method that rmcp does not recognise.
pub(super) fn unknown(method: &str) -> ErrorData {
    let shown = toolgate_core::escape(method);
    if KNOWN.contains(&method) {
        ErrorData::invalid_params(format!("wrong parameters for {shown}"), None)
    } else {
        let text = format!("unknown method '{shown}'");
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
    }
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
