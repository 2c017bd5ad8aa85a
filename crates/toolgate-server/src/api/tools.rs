//! Lists tools, shows them and calls them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::text::parse_duration;
use toolgate_core::{
    Origin, PolicyDecision, ToolCall, ToolContent, ToolDefinition, ToolError, ToolExecutor,
    ToolOutcome, ToolSource, parse_object, rewrite_block_uris,
};
use toolgate_mcp::CallerTrace;
use utoipa::{IntoParams, ToSchema};

use super::extract::{PathName, QueryParams, ReadBodyError, expect_json, read_body};
use crate::Gateway;
use crate::guard::{self, Caller, MemoryError};
use crate::problem::Problem;

// How long a call of an unknown tool waits while servers are starting.
const STARTUP_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ToolInfo {
    #[serde(flatten)]
    tool: ToolDefinition,
    needs_approval: bool,
    timeout_ms: u64,
}

/// A tool, and how the gateway treats it.
#[derive(ToSchema)]
#[schema(as = ToolInfo)]
#[expect(dead_code, reason = "it describes what a ToolInfo writes")]
pub(crate) struct ToolInfoSchema {
    /// The name to call it by.
    #[schema(example = "echo")]
    name: String,
    /// `builtin`, `mock`, `internal`, `custom` or `mcp:SERVER`.
    #[schema(example = "builtin")]
    source: String,
    /// The MCP server that provides it.
    #[schema(nullable = false, example = "house")]
    server: Option<String>,
    /// A name for people.
    #[schema(nullable = false, example = "Echo")]
    title: Option<String>,
    /// What the tool does.
    #[schema(example = "Answers with its own arguments")]
    description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object, example = json!({ "type": "object" }))]
    parameters: Value,
    /// The JSON Schema of its structured result.
    #[schema(value_type = Object, required = false, example = json!({ "type": "object" }))]
    output_schema: Option<Value>,
    annotations: ToolAnnotationsSchema,
    /// Why it is withheld until somebody agrees to it, as the rest of a sentence that
    /// begins with its name.
    #[schema(nullable = false)]
    withheld: Option<String>,
    /// True if a person must approve each call.
    #[schema(example = false)]
    needs_approval: bool,
    /// The timeout of a call.
    #[schema(example = 30_000)]
    timeout_ms: u64,
}

/// What a tool says about its effects; nothing where it doesn't say.
#[derive(ToSchema)]
#[schema(as = Annotations)]
#[expect(dead_code, reason = "it describes what a tool's annotations write")]
pub(crate) struct ToolAnnotationsSchema {
    /// True if it changes nothing.
    #[schema(example = true)]
    read_only: Option<bool>,
    /// True if calling it twice has the same effect as once.
    #[schema(example = true)]
    idempotent: Option<bool>,
    /// True if it may destroy something.
    #[schema(example = false)]
    destructive: Option<bool>,
    /// True if it interacts with the outside world.
    open_world: Option<bool>,
}

impl ToolInfo {
    pub(crate) fn new(tool: &ToolDefinition, executor: &ToolExecutor) -> Self {
        let timeout = tool.timeout(&executor.rules().limits);
        Self {
            needs_approval: executor.decision(tool) == PolicyDecision::Ask,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            tool: tool.clone(),
        }
    }
}

/// How a call ended. `/call` answers with it whether the tool succeeded or failed.
#[derive(ToSchema)]
#[schema(as = Envelope)]
#[expect(dead_code, reason = "it describes what a ToolOutcome writes")]
pub(crate) struct EnvelopeSchema {
    /// Whether the tool succeeded.
    #[schema(example = true)]
    success: bool,
    /// The result of the tool, if it succeeded: any JSON.
    #[schema(required = false, example = json!({ "echo": { "text": "hello" } }))]
    result: Value,
    /// A sentence for a person, if it failed.
    #[schema(nullable = false)]
    error: Option<String>,
    /// The name that was called.
    #[schema(example = "echo")]
    tool_name: String,
    /// The time of validation and execution, without the wait for approval.
    #[schema(example = 0.125)]
    execution_time_ms: f64,
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    call_id: String,
    /// The stable name of the failure, such as `timeout`.
    #[schema(nullable = false)]
    error_kind: Option<String>,
    /// A next step for the caller.
    #[schema(nullable = false)]
    hint: Option<String>,
    /// For an operator: the end of a server's stderr, or the message of a panic. Only for a token
    /// without a list of tools.
    #[schema(nullable = false)]
    details: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolsQuery {
    /// True adds tools that are withheld until somebody agrees to them; each then says why.
    #[serde(default)]
    #[param(example = false)]
    withheld: bool,
}

/// Lists all tools that this caller may use.
#[utoipa::path(get, path = "/api/tools", tag = "tools", params(ToolsQuery),
    responses((status = 200, description = "All tools, in their order", body = Vec<ToolInfoSchema>),
              (status = 400, description = "The query cannot be read", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<ToolsQuery>,
) -> Json<Vec<ToolInfo>> {
    let executor = gateway.executor();
    let rules = executor.rules();
    let tools = executor.manager().tools();
    let all = tools.iter().map(|tool| tool.definition());
    let visible = all.filter(|tool| match query.withheld {
        true => rules.admits(tool, &caller.scope),
        false => rules.offers(tool, &caller.scope),
    });
    Json(visible.map(|tool| ToolInfo::new(tool, executor)).collect())
}

/// Shows one tool by name.
#[utoipa::path(get, path = "/api/tools/{name}", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo")),
    responses((status = 200, description = "The tool", body = ToolInfoSchema),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 404, description = "No such tool; similar names are listed", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(name): PathName,
) -> Result<Json<ToolInfo>, Problem> {
    let executor = gateway.executor();
    match executor.find_in_scope(&name, &caller.scope) {
        Ok(tool) => Ok(Json(ToolInfo::new(tool.definition(), executor))),
        Err(error) => Err(no_such_tool(&error)),
    }
}

pub(crate) fn no_such_tool(error: &ToolError) -> Problem {
    let text = toolgate_core::text::escape(&error.to_string());
    Problem::not_found(match error.hint() {
        Some(hint) => format!("{text}. {hint}"),
        None => text,
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallQuery {
    /// Give up after this time, such as 500ms or 5s.
    #[param(example = "5s")]
    pub(crate) timeout: Option<String>,
}

/// Calls a tool. The body holds its arguments; the answer is an envelope.
#[utoipa::path(post, path = "/api/tools/{name}/call", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo"), CallQuery,
           ("traceparent" = Option<String>, Header, description = "The W3C trace the call belongs to"),
           ("tracestate" = Option<String>, Header, description = "Vendor data of that trace, which is passed on")),
    request_body(content = Object, description = "The arguments", content_type = "application/json", example = json!({ "text": "hello" })),
    responses((status = 200, description = "The tool ran, or was refused with its reason; `success` says whether it did what was asked", body = EnvelopeSchema),
              (status = 400, description = "The body is not a JSON object, `timeout` is not a duration, or the path can't be read (an envelope); or the request itself can't be read (a problem)", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json"))),
              (status = 404, description = "No such tool; similar names are listed", body = EnvelopeSchema),
              (status = 413, description = "The arguments are too large", body = EnvelopeSchema),
              (status = 415, description = "The body is not JSON", body = EnvelopeSchema),
              (status = 503, description = "Too many calls are running, or the gateway is stopping; `retry-after` says when to try again", body = EnvelopeSchema)))]
pub(crate) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    name: Result<PathName, Problem>,
    query: Result<QueryParams<CallQuery>, Problem>,
    request: Request,
) -> Response {
    let is_json = expect_json(request.headers());
    let (PathName(name), QueryParams(query)) = match (name, query, is_json) {
        (Ok(name), Ok(query), Ok(())) => (name, query),
        (Err(problem), _, _) | (_, Err(problem), _) | (_, _, Err(problem)) => {
            return unreadable_call(request.uri(), &problem);
        }
    };
    let (Parts { mut headers, .. }, body) = request.into_parts();
    let trace = CallerTrace::from_headers(&headers);
    headers.clear();
    let limit = gateway.executor().rules().limits.max_arguments;
    let (call, refused) = match read_body(body, limit).await {
        Ok(body) => call_from_body(name, &body),
        Err(error) => (unreadable_body(name, &error, limit), None),
    };
    let (call, has_invalid_timeout) = with_timeout(call, query.timeout.as_deref());
    let refused = refused.or(has_invalid_timeout.then_some(StatusCode::BAD_REQUEST));
    // Boxed because the router moves the handler's future several times.
    let outcome = Box::pin(run_call(&gateway, &caller, with_trace(call, trace))).await;
    let mut response = envelope(&outcome, refused);
    // The request's map has room for all headers that the guard adds; a new one would have to grow.
    headers.extend(std::mem::take(response.headers_mut()));
    *response.headers_mut() = headers;
    response
}

// Answers with an envelope although no call was made, because that is what callers of this route
// parse.
fn unreadable_call(uri: &Uri, problem: &Problem) -> Response {
    let tool = guard::decoded_tool_in_path(uri.path()).unwrap_or_default();
    let error = ToolError::invalid("", problem.detail());
    let outcome = ToolOutcome::rejected(&ToolCall::new(tool, Value::Null), error);
    envelope(&outcome, Some(problem.status()))
}

pub(crate) async fn run_call(gateway: &Gateway, caller: &Caller, call: ToolCall) -> ToolOutcome {
    let executor = gateway.executor();
    let mut found = executor.find_in_scope(call.name(), &caller.scope);
    if found.is_err() {
        let decided = gateway.parts.servers.wait_for_tool(call.name());
        // Boxed because few calls need it, and it would make the future of each one larger.
        drop(Box::pin(tokio::time::timeout(STARTUP_WAIT, decided)).await);
        found = executor.find_in_scope(call.name(), &caller.scope);
    }
    let tool = found.ok();
    let call = match &tool {
        Some(tool) => call.resolved_tool(Arc::clone(tool)),
        None => call,
    };
    let call = call
        .origin(Origin::Http)
        .scope(caller.scope.clone())
        .cancellation(gateway.calls.clone());
    let mut outcome = executor.execute(call).await;
    if let (Some(tool), Ok(output)) = (&tool, &mut outcome.result) {
        rewrite_links(&mut output.content, executor, tool.definition().source());
    }
    if !caller.rights.see_all {
        outcome.result = outcome.result.map_err(ToolError::without_details);
    }
    outcome
}

// Makes links to a server's resources lead to that server, as in lists of resources.
fn rewrite_links(blocks: &mut [ToolContent], executor: &ToolExecutor, source: &ToolSource) {
    let mut all = None;
    for block in blocks {
        if matches!(block.kind(), "resource_link" | "resource") {
            let content = all.get_or_insert_with(|| executor.manager().content());
            let mut value = std::mem::replace(block, ToolContent::text("")).into_value();
            rewrite_block_uris(&mut value, content, source);
            *block = value.into();
        }
    }
}

pub(crate) fn envelope(outcome: &ToolOutcome, refused: Option<StatusCode>) -> Response {
    let status = match &outcome.result {
        Err(ToolError::NotFound { .. }) => StatusCode::NOT_FOUND,
        Err(ToolError::TooLarge { what, .. }) if *what == "arguments" => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Err(ToolError::Overloaded { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        Err(_) => refused.unwrap_or(StatusCode::OK),
        Ok(_) => StatusCode::OK,
    };
    // Avoids `Json`, whose buffer takes each piece of the text separately.
    let body = serde_json::to_vec(outcome).unwrap_or_default();
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
    }
    response
}

// A body that is not an object still makes a call, so that it is recorded and
// answered with an envelope.
fn call_from_body(name: String, body: &[u8]) -> (ToolCall, Option<StatusCode>) {
    match parse_object(body) {
        Ok(object) => (ToolCall::new(name, Value::Object(object)), None),
        Err(_) => (
            ToolCall::from_json(name, body),
            Some(StatusCode::BAD_REQUEST),
        ),
    }
}

fn unreadable_body(name: String, error: &ReadBodyError, limit: usize) -> ToolCall {
    let error = match error {
        ReadBodyError::TooLarge => ToolError::TooLarge {
            tool: name.clone(),
            what: "arguments",
            problem: format!("take more than {limit} bytes, which is the limit"),
        },
        ReadBodyError::Memory(MemoryError::TooManyValues { limit }) => {
            ToolError::too_many_values(&name, *limit)
        }
        ReadBodyError::Memory(error) => ToolError::unavailable(&name, error.to_string()),
        ReadBodyError::Broken(_) => ToolError::Cancelled { tool: name.clone() },
    };
    ToolCall::from_invalid(name, Value::Null, error)
}

// Returns true if the timeout is invalid and the call is therefore rejected.
pub(crate) fn with_timeout(call: ToolCall, timeout: Option<&str>) -> (ToolCall, bool) {
    match timeout.map(parse_duration).transpose() {
        Ok(None) => (call, false),
        Ok(Some(timeout)) => (call.timeout(timeout), false),
        Err(error) => {
            let error = ToolError::invalid("", format!("timeout: {error}"));
            (call.reject(error), true)
        }
    }
}

pub(crate) fn with_trace(call: ToolCall, trace: Option<CallerTrace>) -> ToolCall {
    let Some(CallerTrace { parent, state }) = trace else {
        return call;
    };
    let call = call.trace_parent(parent);
    match state {
        Some(state) => call.trace_state(state),
        None => call,
    }
}
