//! `tools/call`: from a client's words to a call of the executor, and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Content, Origin, Tool, ToolCall, ToolError, ToolOutcome, ToolOutput, nearest};

use super::client_message::{RequestMeta, ToolCallParams};
use super::content_block::readable;
use super::methods::{COMPLETE, RequestContext};
use super::progress::{ProgressReports, relay_progress};
use super::service::McpService;

/// Calls that may wait for an answer at once; the executor runs fewer, and lets the rest wait.
const MOST_CALLS: usize = 1024;
/// The longest `traceparent` the standard allows is 55 characters; later versions may add some.
const LONGEST_TRACE: usize = 128;
/// How long a call waits for a tool that is not there yet.
const WAIT_FOR_TOOL: Duration = Duration::from_secs(30);

impl McpService {
    /// The answer to `tools/call`. A call that isn't made goes through the executor too, so that it
    /// is on record.
    pub(super) async fn call_tool(
        &self,
        params: ToolCallParams,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> CallToolResult {
        let permit = CallPermit::take(&self.shared.running);
        let (name, tool) = self.find_or_wait(&params.name, context.stop).await;
        let mut call = match params.arguments {
            Ok(arguments) => ToolCall::new(name, Value::Object(arguments)),
            Err(unusable) => ToolCall::refused(name, unusable.arguments, unusable.error),
        };
        if permit.is_beyond_limit {
            let (tool, limit) = (call.name().to_owned(), MOST_CALLS);
            call = call.refuse(ToolError::Overloaded { tool, limit });
        }
        if let Ok(tool) = tool {
            call = call.found(tool);
        }
        call = call.origin(Origin::Mcp).scope(self.scope.clone());
        call = with_trace(call.cancellation(context.stop.clone()), meta);
        let mut outcome = match meta.progress_token().zip(context.sink) {
            None => self.executor.execute(call).await,
            Some((token, sink)) => {
                let reports = Arc::new(ProgressReports::default());
                let added = Arc::clone(&reports);
                let call = call.on_progress(move |progress| added.add(progress));
                let running = self.executor.execute(call);
                // Boxed like all that few calls need: it would make the future of each one larger.
                Box::pin(relay_progress(running, &reports, &token, sink)).await
            }
        };
        if let Err(error @ ToolError::NotFound { .. }) = &mut outcome.result {
            *error = self.not_found(&outcome.tool_name);
        }
        CallToolResult::new(outcome, self.meta_for(context.lifecycle))
    }

    /// The tool that a client means, and its name here. One that may be on its way is waited for.
    async fn find_or_wait(
        &self,
        asked: &str,
        stop: &CancellationToken,
    ) -> (String, Result<Arc<dyn Tool>, ToolError>) {
        let mut has_waited = false;
        loop {
            let list = self.tool_list();
            let name = list.own_name(asked);
            let tool = self.executor.find_in(name, &self.scope);
            let may_come = matches!(
                tool,
                Err(ToolError::NotFound { .. } | ToolError::Unavailable { .. })
            );
            if has_waited || !may_come {
                return (name.to_owned(), tool);
            }
            let waiting = Box::pin(self.wait_for_tool(asked));
            stop.run_until_cancelled(waiting).await;
            has_waited = true;
        }
    }

    /// Returns when a name finds a tool, or it is decided that there is none, or after a while.
    async fn wait_for_tool(&self, asked: &str) {
        let Some(readiness) = self.shared.readiness.get() else {
            return;
        };
        // Who starts servers knows tools by their names here, and can't tell that for a name that
        // only clients know.
        let found = async {
            let mut changes = self.executor.manager().subscribe();
            let is_there = || {
                let list = self.tool_list();
                let tool = self.executor.find_in(list.own_name(asked), &self.scope);
                tool.is_ok()
            };
            while !is_there() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let decided = async {
            tokio::select! {
                () = readiness.ready_for(asked) => {}
                () = found => {}
            }
        };
        drop(tokio::time::timeout(WAIT_FOR_TOOL, decided).await);
    }

    /// With the names that clients know, which the executor doesn't.
    fn not_found(&self, name: &str) -> ToolError {
        let list = self.tool_list();
        let known: Vec<String> = list.tools.iter().map(|tool| tool.name.clone()).collect();
        ToolError::NotFound {
            name: name.to_owned(),
            nearest: nearest(name, known.iter().map(String::as_str), 3),
            known,
        }
    }
}

fn with_trace(call: ToolCall, meta: &RequestMeta) -> ToolCall {
    match meta.trace() {
        (Some(parent), state) if parent.len() <= LONGEST_TRACE => {
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
    content: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Arc<Value>>,
    #[serde(skip)]
    pub(super) error_kind: Option<&'static str>,
}

impl CallToolResult {
    /// A failure is a result with `isError`, so that a model reads it and does better; also where
    /// there is no such tool, which MCP would let us answer with an error of the protocol that most
    /// clients keep from the model. `meta` is set for clients of 2026-07-28.
    pub(super) fn new(outcome: ToolOutcome, meta: Option<Arc<Value>>) -> Self {
        let is_modern = meta.is_some();
        let result = match outcome.result {
            Ok(output) => Self::success(output, is_modern),
            Err(ref error) => Self {
                content: vec![Content::text(failure_text(&outcome, error))],
                is_error: true,
                error_kind: Some(error.kind().as_str()),
                ..Self::default()
            },
        };
        Self {
            result_type: is_modern.then_some(COMPLETE),
            meta,
            ..result
        }
    }

    fn success(output: ToolOutput, is_modern: bool) -> Self {
        let as_text = (output.content.is_empty() && output.structured.is_some())
            .then(|| Content::text(output.to_text()));
        let content = output.content.into_iter().map(readable).chain(as_text);
        Self {
            content: content.collect(),
            // Up to 2025-11-25 it is an object; clients of that time refuse the whole result otherwise.
            structured_content: output
                .structured
                .filter(|value| is_modern || value.is_object()),
            ..Self::default()
        }
    }
}

/// The error as it stands in the envelope, and what helps beyond it: a model's text says the same of
/// an unknown tool in other words, and of an approval nothing at all.
fn failure_text(outcome: &ToolOutcome, error: &ToolError) -> String {
    let advice = outcome.to_model_text();
    let beyond = match error {
        ToolError::NotFound { name, .. } => {
            let same = format!("Unknown tool: '{name}'. ");
            Some(advice.strip_prefix(&same).unwrap_or(&advice).to_owned())
        }
        ToolError::Denied { .. } | ToolError::Withheld { .. } => error.hint(),
        _ => return advice,
    };
    match beyond {
        Some(beyond) => format!("{error}. {beyond}"),
        None => error.to_string(),
    }
}

/// One of the calls that wait for an answer.
struct CallPermit<'a> {
    running: &'a AtomicUsize,
    is_beyond_limit: bool,
}

impl<'a> CallPermit<'a> {
    fn take(running: &'a AtomicUsize) -> Self {
        let before = running.fetch_add(1, Ordering::Relaxed);
        Self {
            running,
            is_beyond_limit: before >= MOST_CALLS,
        }
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}
