//! Tools: listed, shown, called.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{
    Decision, Origin, ToolCall, ToolDefinition, ToolError, ToolExecutor, ToolOutcome,
    parse_duration, parse_object,
};
use toolgate_mcp::CallerTrace;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Asked, BodyError, Named, expect_json, read};
use crate::Gateway;
use crate::guard::{self, Caller, MemoryError};
use crate::problem::Problem;

/// How long a call waits for its tool while the servers are starting.
const COMING: Duration = Duration::from_secs(30);

/// A tool, and how it is treated here.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ToolInfo {
    #[serde(flatten)]
    tool: ToolDefinition,
    needs_approval: bool,
    timeout_ms: u64,
}

/// A tool, and how it is treated here.
#[derive(ToSchema)]
#[schema(as = ToolInfo)]
#[expect(dead_code, reason = "it describes what a ToolInfo writes")]
pub(crate) struct ToolForm {
    /// The name it is called by.
    #[schema(example = "echo")]
    name: String,
    /// `builtin`, `mock`, `internal`, `custom` or `mcp:SERVER`.
    #[schema(example = "builtin")]
    source: String,
    /// The MCP server behind it.
    #[schema(nullable = false, example = "house")]
    server: Option<String>,
    /// A name for people.
    #[schema(nullable = false, example = "Echo")]
    title: Option<String>,
    /// What it does.
    #[schema(example = "Answers with its own arguments")]
    description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object, example = json!({ "type": "object" }))]
    parameters: Value,
    /// The JSON Schema of its structured answer.
    #[schema(value_type = Object, required = false, example = json!({ "type": "object" }))]
    output_schema: Option<Value>,
    annotations: Habits,
    /// Why it may not be used until somebody agrees to it: the rest of a sentence that begins with its name.
    #[schema(nullable = false)]
    withheld: Option<String>,
    /// True if a person is asked before it runs.
    #[schema(example = false)]
    needs_approval: bool,
    /// How long a call may take.
    #[schema(example = 30_000)]
    timeout_ms: u64,
}

/// What a tool says of its effects; nothing where it does not say.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what a tool's annotations write")]
pub(crate) struct Habits {
    /// It changes nothing.
    #[schema(example = true)]
    read_only: Option<bool>,
    /// Twice is as good as once.
    #[schema(example = true)]
    idempotent: Option<bool>,
    /// It may destroy something.
    #[schema(example = false)]
    destructive: Option<bool>,
    /// It deals with the world outside.
    open_world: Option<bool>,
}

impl ToolInfo {
    pub(crate) fn of(tool: &ToolDefinition, executor: &ToolExecutor) -> Self {
        let timeout = tool.timeout(&executor.rules().limits);
        Self {
            needs_approval: executor.decision(tool) == Decision::Ask,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            tool: tool.clone(),
        }
    }
}

/// How a call ended: what `/call` answers, whether the tool succeeded or failed.
#[derive(ToSchema)]
#[schema(as = Envelope)]
#[expect(dead_code, reason = "it describes what a ToolOutcome writes")]
pub(crate) struct Envelope {
    /// Whether the tool did what was asked.
    #[schema(example = true)]
    success: bool,
    /// What it answered, if it succeeded: any JSON.
    #[schema(required = false, example = json!({ "echo": { "text": "hello" } }))]
    result: Value,
    /// The sentence for a person, if it failed.
    #[schema(nullable = false)]
    error: Option<String>,
    /// The name that was asked for.
    #[schema(example = "echo")]
    tool_name: String,
    /// Validation and execution, not the wait for a person.
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
    /// For an operator: the end of a server's stderr, the words of a panic. Only for a token without a list of tools.
    #[schema(nullable = false)]
    details: Option<String>,
}

/// Which tools.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolsQuery {
    /// True adds those that are withheld until somebody agrees to them: each then says why.
    #[serde(default)]
    #[param(example = false)]
    withheld: bool,
}

/// All tools this caller may use.
#[utoipa::path(get, path = "/api/tools", tag = "tools", params(ToolsQuery),
    responses((status = 200, description = "All tools, in their order", body = Vec<ToolForm>),
              (status = 400, description = "The query cannot be read", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Asked(query): Asked<ToolsQuery>,
) -> Json<Vec<ToolInfo>> {
    let executor = gateway.executor();
    let rules = executor.rules();
    let tools = executor.manager().tools();
    let visible = tools
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| match query.withheld {
            true => rules.admits(tool, &caller.scope),
            false => rules.shows(tool, &caller.scope),
        });
    Json(visible.map(|tool| ToolInfo::of(tool, executor)).collect())
}

/// One tool.
#[utoipa::path(get, path = "/api/tools/{name}", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo")),
    responses((status = 200, description = "The tool", body = ToolForm),
              (status = 400, description = "The path can not be read", body = Problem),
              (status = 404, description = "No such tool; the nearest names are told", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(name): Named,
) -> Result<Json<ToolInfo>, Problem> {
    let executor = gateway.executor();
    match executor.find_in(&name, &caller.scope) {
        Ok(tool) => Ok(Json(ToolInfo::of(tool.definition(), executor))),
        Err(error) => Err(no_such_tool(&error)),
    }
}

pub(crate) fn no_such_tool(error: &ToolError) -> Problem {
    let text = toolgate_core::escape(&error.to_string());
    Problem::not_found(match error.hint() {
        Some(hint) => format!("{text}. {hint}"),
        None => text,
    })
}

/// How to call.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallQuery {
    /// Give up after this long, such as 500ms or 5s.
    #[param(example = "5s")]
    timeout: Option<String>,
}

/// Runs a tool once; the body is its arguments, the answer an envelope.
#[utoipa::path(post, path = "/api/tools/{name}/call", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo"), CallQuery,
           ("traceparent" = Option<String>, Header, description = "The W3C trace the call belongs to"),
           ("tracestate" = Option<String>, Header, description = "What others keep beside that trace; it is handed on")),
    request_body(content = Object, description = "The arguments", content_type = "application/json", example = json!({ "text": "hello" })),
    responses((status = 200, description = "The tool ran, or was refused with its reason; `success` says whether it did what was asked", body = Envelope),
              (status = 400, description = "The body is no JSON object, `timeout` no duration, or the path can not be read (an envelope); or the request itself can not be read (a problem)", content((Envelope = "application/json"), (Problem = "application/problem+json"))),
              (status = 404, description = "No such tool; the nearest names are told", body = Envelope),
              (status = 413, description = "The arguments are too large", body = Envelope),
              (status = 415, description = "The body is not JSON", body = Envelope),
              (status = 503, description = "As many calls run as may run, or the gateway is stopping; `retry-after` says when to come back", body = Envelope)))]
pub(crate) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    name: Result<Named, Problem>,
    query: Result<Asked<CallQuery>, Problem>,
    request: Request,
) -> Response {
    let is_json = expect_json(request.headers());
    let (Named(name), Asked(query)) = match (name, query, is_json) {
        (Ok(name), Ok(query), Ok(())) => (name, query),
        (Err(problem), _, _) | (_, Err(problem), _) | (_, _, Err(problem)) => {
            return unfit(request.uri(), &problem);
        }
    };
    let (Parts { mut headers, .. }, body) = request.into_parts();
    let trace = CallerTrace::of(&headers);
    headers.clear();
    let limit = gateway.executor().rules().limits.max_arguments;
    let (call, refused) = match read(body, limit).await {
        Ok(body) => arguments(name, &body),
        Err(error) => (unread(name, &error, limit), None),
    };
    let (call, is_timeless) = timeout(call, query.timeout.as_deref());
    let refused = refused.or(is_timeless.then_some(StatusCode::BAD_REQUEST));
    // Boxed, since the router moves the handler's future several times.
    let outcome = Box::pin(run(&gateway, &caller, traced(call, trace))).await;
    let mut response = envelope(&outcome, refused);
    // The request's map has room for all that the guard adds; a new one would have to grow.
    headers.extend(std::mem::take(response.headers_mut()));
    *response.headers_mut() = headers;
    response
}

/// What can not be read as a call is no call, and is answered like one all the same.
fn unfit(uri: &Uri, problem: &Problem) -> Response {
    let tool = guard::called_tool(uri.path()).unwrap_or_default();
    let error = ToolError::invalid("", problem.detail());
    let outcome = ToolOutcome::refused(&ToolCall::new(tool, Value::Null), error);
    envelope(&outcome, Some(problem.status()))
}

pub(crate) async fn run(gateway: &Gateway, caller: &Caller, call: ToolCall) -> ToolOutcome {
    let executor = gateway.executor();
    let call = match executor.find_in(call.name(), &caller.scope) {
        Ok(tool) => call.found(tool),
        Err(_) => {
            let decided = gateway.parts().servers.settled_for(call.name());
            // Boxed like all that few calls need: it would make the future of each one larger.
            drop(Box::pin(tokio::time::timeout(COMING, decided)).await);
            call
        }
    };
    let call = call
        .origin(Origin::Http)
        .scope(caller.scope.clone())
        .cancellation(gateway.calls().clone());
    let mut outcome = executor.execute(call).await;
    if !caller.rights.see_all {
        outcome.result = outcome.result.map_err(ToolError::without_details);
    }
    outcome
}

/// An outcome as a response. `refused` is for a request that could be no call at all.
pub(crate) fn envelope(outcome: &ToolOutcome, refused: Option<StatusCode>) -> Response {
    let status = match &outcome.result {
        Err(ToolError::NotFound { .. }) => StatusCode::NOT_FOUND,
        Err(ToolError::TooLarge {
            what: "arguments", ..
        }) => StatusCode::PAYLOAD_TOO_LARGE,
        Err(ToolError::Overloaded { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        Err(_) => refused.unwrap_or(StatusCode::OK),
        Ok(_) => StatusCode::OK,
    };
    // Not by `Json`: its buffer takes each piece of the text by itself.
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

/// A call of this body. What is no object is a call too: it ends in an envelope, and on record.
fn arguments(name: String, body: &[u8]) -> (ToolCall, Option<StatusCode>) {
    match parse_object(body) {
        Ok(object) => (ToolCall::new(name, Value::Object(object)), None),
        Err(_) => (
            ToolCall::from_json(name, body),
            Some(StatusCode::BAD_REQUEST),
        ),
    }
}

fn unread(name: String, error: &BodyError, limit: usize) -> ToolCall {
    let error = match error {
        BodyError::TooLarge => ToolError::TooLarge {
            tool: name.clone(),
            what: "arguments",
            problem: format!("take more than {limit} bytes, which is the limit"),
        },
        BodyError::Memory(MemoryError::TooManyValues { limit }) => {
            ToolError::too_many_values(&name, *limit)
        }
        BodyError::Memory(error) => ToolError::unavailable(&name, error.to_string()),
        BodyError::Broken(_) => ToolError::Cancelled { tool: name.clone() },
    };
    ToolCall::refused(name, Value::Null, error)
}

/// The call with its limit; or one that is refused because that is none, and true.
fn timeout(call: ToolCall, timeout: Option<&str>) -> (ToolCall, bool) {
    match timeout.map(parse_duration).transpose() {
        Ok(None) => (call, false),
        Ok(Some(timeout)) => (call.timeout(timeout), false),
        Err(error) => {
            let error = ToolError::invalid("", format!("timeout: {error}"));
            (call.refuse(error), true)
        }
    }
}

/// The call in the trace of its caller, if there is one.
pub(crate) fn traced(call: ToolCall, trace: Option<CallerTrace>) -> ToolCall {
    let Some(CallerTrace { parent, state }) = trace else {
        return call;
    };
    let call = call.trace_parent(parent);
    match state {
        Some(state) => call.trace_state(state),
        None => call,
    }
}
