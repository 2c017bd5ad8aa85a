//! Runs `tools/call`, from a client's request to the executor and back.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    ErrorKind, Origin, ServerFailure, Tool, ToolCall, ToolContent, ToolError, ToolOutcome,
    ToolOutput, ToolSource, nearest_names, rewrite_block_uris,
};

use super::client_message::{RequestMeta, ToolCallParams};
use super::content_block::make_readable;
use super::methods::{COMPLETE, RequestContext};
use super::progress::{ProgressReports, relay_progress};
use super::service::McpService;

// Calls that may be unanswered at once. The executor runs fewer of them and queues the rest.
pub(super) const MAX_CALLS: usize = 1024;
// The standard allows 55 characters; later versions may add some.
const MAX_TRACE_LEN: usize = 128;
// How long a call waits for a tool whose server is starting.
const WAIT_FOR_TOOL: Duration = Duration::from_secs(30);

impl McpService {
    /// Answers `tools/call`. Rejected calls go through the executor too, so that they are recorded.
    pub(super) async fn call_tool(
        &self,
        params: ToolCallParams,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> CallToolResult {
        let permit = self.shared.calls.try_acquire();
        let (name, tool) = self.find_or_wait(&params.name, context.stop).await;
        let mut call = match params.arguments {
            Ok(arguments) => ToolCall::new(name, Value::Object(arguments)),
            Err(invalid) => ToolCall::from_invalid(name, invalid.arguments, invalid.error),
        };
        if permit.is_err() {
            let (tool, limit) = (call.name().to_owned(), MAX_CALLS);
            call = call.reject(ToolError::Overloaded { tool, limit });
        }
        let source = tool
            .as_ref()
            .ok()
            .map(|tool| tool.definition().source().clone());
        if let Ok(tool) = tool {
            call = call.resolved_tool(tool);
        }
        let mut outcome = self.execute_for_client(call, meta, context).await;
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            *error = self.not_found(&outcome.tool_name);
        }
        let mut result = CallToolResult::new(outcome, self.meta_for(context.lifecycle));
        if let Some(source) = source {
            self.rewrite_links(&mut result.content, &source);
        }
        result
    }

    /// Makes links to resources lead back through us.
    fn rewrite_links(&self, blocks: &mut [ToolContent], source: &ToolSource) {
        let mut all = None;
        for block in blocks {
            if matches!(block.kind(), "resource_link" | "resource") {
                let content = all.get_or_insert_with(|| self.executor.manager().content());
                let mut value = std::mem::replace(block, ToolContent::text("")).into_value();
                rewrite_block_uris(&mut value, content, source);
                *block = value.into();
            }
        }
    }

    /// Runs a call under the client's scope, trace and cancellation, and relays its progress.
    pub(super) async fn execute_for_client(
        &self,
        call: ToolCall,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> ToolOutcome {
        let call = call.origin(Origin::Mcp).scope(self.scope.clone());
        let call = call
            .cancellation(context.stop.clone())
            .meta(meta.for_server());
        let call = with_trace(call, meta);
        match meta.progress_token().zip(context.sink) {
            None => self.executor.execute(call).await,
            Some((token, sink)) => {
                let reports = Arc::new(ProgressReports::default());
                let added = Arc::clone(&reports);
                let call = call.on_progress(move |progress| added.add(progress));
                let running = self.executor.execute(call);
                // Boxed because few calls need it, and it would make the future of each one larger.
                Box::pin(relay_progress(running, &reports, &token, sink)).await
            }
        }
    }

    /// Finds the tool and its local name. Waits once for a tool whose server may be starting.
    async fn find_or_wait(
        &self,
        requested: &str,
        stop: &CancellationToken,
    ) -> (String, Result<Arc<dyn Tool>, ToolError>) {
        let mut has_waited = false;
        loop {
            let list = self.lists();
            let name = list.local_name(requested);
            let tool = self.executor.find_in_scope(name, &self.scope);
            let may_appear = matches!(
                tool,
                Err(ToolError::NotFound { .. } | ToolError::Unavailable { .. })
            );
            if has_waited || !may_appear {
                return (name.to_owned(), tool);
            }
            let waiting = Box::pin(self.wait_for_tool(requested));
            stop.run_until_cancelled(waiting).await;
            has_waited = true;
        }
    }

    /// Returns when there is a tool of this name, when no server can provide it any
    /// more, or after [`WAIT_FOR_TOOL`].
    async fn wait_for_tool(&self, requested: &str) {
        let Some(readiness) = self.shared.readiness.get() else {
            return;
        };
        // `readiness` knows tools by their local names only. If clients use another name, just
        // the tool list can tell.
        let appears = async {
            let mut changes = self.executor.manager().subscribe();
            let exists = || {
                let list = self.lists();
                let name = list.local_name(requested);
                self.executor.find_in_scope(name, &self.scope).is_ok()
            };
            while !exists() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let decided = async {
            tokio::select! {
                () = readiness.ready_for(requested) => {}
                () = appears => {}
            }
        };
        drop(tokio::time::timeout(WAIT_FOR_TOOL, decided).await);
    }

    fn not_found(&self, name: &str) -> ToolError {
        let list = self.lists();
        let known: Vec<String> = list.tools.iter().map(|tool| tool.name.clone()).collect();
        ToolError::NotFound {
            name: name.to_owned(),
            nearest: nearest_names(name, known.iter().map(String::as_str), 3),
            known,
        }
    }
}

fn with_trace(call: ToolCall, meta: &RequestMeta) -> ToolCall {
    match meta.trace() {
        (Some(parent), state) if parent.len() <= MAX_TRACE_LEN => {
            let call = call.trace_parent(parent);
            match state {
                Some(state) => call.trace_state(state),
                None => call,
            }
        }
        _ => call,
    }
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: Vec<ToolContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Arc<Value>>,
    #[serde(skip)]
    pub(super) error_kind: Option<&'static str>,
}

impl CallToolResult {
    /// A failure becomes a result with `isError`, so that the model reads it and can correct
    /// itself. That includes unknown tools: MCP would allow a protocol error, but most clients
    /// don't show those to the model. `meta` is set for clients of 2026-07-28.
    pub(super) fn new(outcome: ToolOutcome, meta: Option<Arc<Value>>) -> Self {
        let is_modern = meta.is_some();
        let result = match outcome.result {
            Ok(output) => Self::from_output(output, is_modern),
            Err(ToolError::Failed {
                answer: Some(answer),
                message,
                ..
            }) => Self::from_failure(*answer, message, is_modern),
            Err(ref error) => Self {
                content: vec![ToolContent::text(failure_text(&outcome, error))],
                is_error: true,
                error_kind: Some(error.kind().as_str()),
                ..Self::default()
            },
        };
        let meta = match (result.meta.as_deref(), meta) {
            (Some(Value::Object(own)), Some(ours)) => {
                let ours = ours.as_object().into_iter().flatten();
                let ours = ours.map(|(key, value)| (key.clone(), value.clone()));
                let mut both = own.clone();
                both.extend(ours);
                Some(Arc::new(Value::Object(both)))
            }
            (_, ours) => ours.or(result.meta),
        };
        Self {
            result_type: is_modern.then_some(COMPLETE),
            meta,
            ..result
        }
    }

    /// Passes a server's own failure on, because it may say more than its text.
    fn from_failure(answer: ServerFailure, message: String, is_modern: bool) -> Self {
        let mut result = match answer {
            ServerFailure::Result(output) if !output.content.is_empty() => {
                Self::from_output(output, is_modern)
            }
            _ => Self::from_output(ToolOutput::text(message), is_modern),
        };
        result.is_error = true;
        result.error_kind = Some(ErrorKind::ToolError.as_str());
        result
    }

    fn from_output(output: ToolOutput, is_modern: bool) -> Self {
        let as_text = (output.content.is_empty() && output.structured.is_some())
            .then(|| ToolContent::text(output.to_text()));
        let content = output.content.into_iter().map(make_readable).chain(as_text);
        Self {
            content: content.collect(),
            // Up to 2025-11-25 it must be an object, or clients reject the whole result.
            structured_content: (output.structured).filter(|value| is_modern || value.is_object()),
            meta: output.meta.map(|meta| Arc::new(Value::Object(meta))),
            ..Self::default()
        }
    }
}

/// Combines the error's message with its advice. The text for models is not used as it is: for an
/// unknown tool it would repeat the message, and about approvals it says nothing.
fn failure_text(outcome: &ToolOutcome, error: &ToolError) -> String {
    let model_text = outcome.to_model_text();
    let advice = match error {
        ToolError::NotFound { name, .. } => {
            let repeated = format!("Unknown tool: '{name}'. ");
            Some(
                model_text
                    .strip_prefix(&repeated)
                    .unwrap_or(&model_text)
                    .to_owned(),
            )
        }
        ToolError::Denied { .. } | ToolError::Withheld { .. } => error.hint(),
        _ => return model_text,
    };
    match advice {
        Some(advice) => format!("{error}. {advice}"),
        None => error.to_string(),
    }
}
