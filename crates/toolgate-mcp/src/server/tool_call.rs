//! Runs `tools/call`, from a client's request to the executor and back.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::text::nearest_names;
use toolgate_core::{
    ErrorKind, ServerFailure, Tool, ToolCall, ToolContent, ToolError, ToolOutcome, ToolOutput,
    rewrite_block_uris,
};

use super::client_call::{ClientOutcome, RequestIdentity};
use super::client_message::{RequestMeta, ToolCallParams, WantedTask};
use super::content_block::make_readable;
use super::extension_result::unknown_result_members;
use super::jsonrpc::RequestError;
use super::methods::{COMPLETE, MethodResult, RequestContext, RequestLifecycle};
use super::service::McpService;
use super::tasks::TaskOffer;

// Calls that may be unanswered at once. The executor runs fewer of them and queues the rest.
pub(super) const MAX_CALLS: usize = 1024;
/// The key in `_meta` of a failed result for the JSON-RPC error that it was.
const RPC_ERROR: &str = "toolgate/jsonRpcError";
// How long a call waits for a tool whose server is starting.
const WAIT_FOR_TOOL: Duration = Duration::from_secs(30);

impl McpService {
    /// Answers `tools/call`. Rejected calls go through the executor too, so that they are recorded.
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        params: ToolCallParams,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let permit = self.shared.calls.try_acquire();
        let ToolCallParams {
            name: requested,
            arguments,
            mut answers,
            task,
        } = params;
        let identity = tool_identity(&requested, arguments.as_ref().ok());
        let mut offer = self.task_offer(task, &requested, &identity, meta, context);
        let resumed = self
            .resume_for_client(&mut answers, &identity, meta, context, offer.as_ref())
            .await?;
        if let Some(outcome) = resumed {
            return self.finish_call(outcome, &requested, context);
        }
        let (name, tool) = self.find_or_wait(&requested, context.stop).await;
        // Kept only where the client may come back with the same request.
        let kept = match (&arguments, context.lifecycle.is_modern()) {
            (Ok(arguments), true) => Some(arguments.clone()),
            _ => None,
        };
        if let Some(offer) = &mut offer {
            offer.tool.clone_from(&name);
        }
        let mut call = match arguments {
            Ok(arguments) => ToolCall::new(name, Value::Object(arguments)),
            Err(invalid) => ToolCall::from_invalid(name, invalid.arguments, invalid.error),
        };
        if permit.is_err() {
            let (tool, limit) = (call.name().to_owned(), MAX_CALLS);
            call = call.reject(ToolError::Overloaded { tool, limit });
        }
        if let Ok(tool) = tool {
            call = call.resolved_tool(tool);
        }
        if let (Some(offer), false) = (&offer, context.lifecycle.is_modern()) {
            let started = Box::pin(self.call_as_task(call, meta, context, offer));
            return started.await.map(MethodResult::Json);
        }
        let identity = tool_identity(&requested, kept.as_ref());
        let running =
            self.execute_for_client(call, answers, &identity, meta, context, offer.as_ref());
        self.finish_call(running.await, &requested, context)
    }

    /// The task that this call may become: in 2025-11-25 if the client wants one, in 2026-07-28 if
    /// the client supports it.
    fn task_offer(
        &self,
        wanted: Option<WantedTask>,
        requested: &str,
        identity: &RequestIdentity<'_>,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Option<TaskOffer> {
        let settings = &self.shared.tasks.settings;
        let (after, keep) = match context.lifecycle {
            RequestLifecycle::SelfContained { is_modern: true } if meta.declares_tasks() => {
                (settings.after, settings.keep)
            }
            RequestLifecycle::Session if context.has_legacy_tasks() => {
                let keep = wanted?.ttl.map(Duration::from_millis);
                (
                    Duration::ZERO,
                    keep.unwrap_or(settings.keep).min(settings.keep),
                )
            }
            _ => return None,
        };
        Some(TaskOffer {
            after,
            keep,
            tool: requested.to_owned(),
            requested: requested.to_owned(),
            arguments: identity.arguments.cloned().into(),
        })
    }

    fn finish_call(
        &self,
        outcome: ClientOutcome,
        requested: &str,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        match outcome {
            ClientOutcome::Interim(result) => Ok(MethodResult::Json(result)),
            ClientOutcome::Finished(outcome) => {
                self.call_result(outcome, requested, context.lifecycle)
            }
        }
    }

    /// The answer to a call of a tool that the client knows as `requested`.
    pub(super) fn call_result(
        &self,
        mut outcome: ToolOutcome,
        requested: &str,
        lifecycle: RequestLifecycle,
    ) -> Result<MethodResult, RequestError> {
        if let Err(error) = &outcome.result
            && let Some(error) = client_must_act(error)
        {
            return Err(error);
        }
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            *error = self.not_found(&outcome.tool_name);
        }
        if let Ok(output) = &mut outcome.result
            && output.is_extension_result
        {
            let result = output.structured.take().unwrap_or_default();
            return Ok(self.extension_result(result, lifecycle));
        }
        let mut result = CallToolResult::new(outcome, self.meta_for(lifecycle));
        self.rewrite_links(&mut result.content, requested);
        Ok(MethodResult::CallTool(result))
    }

    /// Makes links to resources lead back through us.
    fn rewrite_links(&self, blocks: &mut [ToolContent], requested: &str) {
        let has_uri = |block: &ToolContent| matches!(block.kind(), "resource_link" | "resource");
        if !blocks.iter().any(has_uri) {
            return;
        }
        let manager = self.executor.manager();
        let lists = self.lists();
        let Some(tool) = manager.find(lists.local_name(requested)) else {
            return;
        };
        let content = manager.content();
        for block in blocks.iter_mut().filter(|block| has_uri(block)) {
            let mut value = std::mem::replace(block, ToolContent::text("")).into_value();
            rewrite_block_uris(&mut value, &content, tool.definition().source());
            *block = value.into();
        }
    }

    /// Finds the tool and its local name. Waits once for a tool whose server may be starting.
    pub(super) async fn find_or_wait(
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

/// Errors that a client handles itself, before its model: it lacks a capability, or a person has to
/// open a page first.
fn client_must_act(error: &ToolError) -> Option<RequestError> {
    let ToolError::Failed {
        answer, message, ..
    } = error
    else {
        return None;
    };
    let ServerFailure::Rpc { code, data } = answer.as_deref()? else {
        return None;
    };
    let code = i32::try_from(*code).ok()?;
    let known = [
        RequestError::MISSING_CAPABILITY,
        RequestError::PAGE_REQUIRED,
    ];
    let mut passed_on = RequestError::new(code, message.clone());
    passed_on.data.clone_from(data);
    known.contains(&code).then_some(passed_on)
}

fn tool_identity<'a>(
    target: &'a str,
    arguments: Option<&'a Map<String, Value>>,
) -> RequestIdentity<'a> {
    RequestIdentity {
        method: "tools/call",
        target,
        arguments,
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
    pub(super) is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Arc<Value>>,
    #[serde(flatten)]
    extra: Option<Box<Map<String, Value>>>,
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
            ServerFailure::Result(mut output) => {
                if output.content.is_empty() && output.structured.is_none() {
                    output.content.push(ToolContent::text(message));
                }
                Self::from_output(output, is_modern)
            }
            ServerFailure::Rpc { code, data } => {
                let mut output = ToolOutput::text(message);
                output.meta = Some(rpc_error_meta(code, data));
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
            extra: unknown_result_members(output.extra),
            ..Self::default()
        }
    }
}

/// A JSON-RPC error of a server becomes a failed result, because the model doesn't see an error.
/// Its code and data stay here, for the client.
fn rpc_error_meta(code: i64, data: Option<Value>) -> Map<String, Value> {
    let mut error = json!({ "code": code });
    if let Some(data) = data {
        error["data"] = data;
    }
    Map::from_iter([(RPC_ERROR.to_owned(), error)])
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
        ToolError::Denied { .. } | ToolError::NeedsApproval { .. } | ToolError::Withheld { .. } => {
            error.hint()
        }
        _ => return model_text,
    };
    match advice {
        Some(advice) => format!("{error}. {advice}"),
        None => error.to_string(),
    }
}
