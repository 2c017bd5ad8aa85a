//! Lists resources and prompts, reads resources and fills in prompts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::{
    ContentMethod, ContentRequest, OfferedEntry, Origin, Tool, ToolCall, ToolError, ToolOutcome,
    ToolSource, display_name,
};
use toolgate_journal::CallSummary;
use toolgate_mcp::CallerTrace;
use utoipa::ToSchema;

use super::extract::{ArgumentsBody, QueryParams};
use super::tools::{CallQuery, EnvelopeSchema, envelope, with_timeout, with_trace};
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

// How long a request for unknown content waits while servers are starting.
const STARTUP_WAIT: Duration = Duration::from_secs(30);

/// The resources and the resource templates that this caller may read.
#[derive(Serialize, ToSchema)]
#[schema(as = Resources)]
pub(crate) struct ResourceList {
    /// As MCP lists them, with the URIs to read them by, and with `server`, which offers them.
    #[schema(value_type = Vec<Object>, example = json!([{ "uri": "notes:1", "name": "Shopping", "server": "notes" }]))]
    resources: Vec<Value>,
    /// URI templates of further resources, with the same additions.
    #[schema(value_type = Vec<Object>, example = json!([{ "uriTemplate": "notes:{id}", "name": "Note", "server": "notes" }]))]
    templates: Vec<Value>,
}

/// The prompts that this caller may get.
#[derive(Serialize, ToSchema)]
#[schema(as = Prompts)]
pub(crate) struct PromptList {
    /// As MCP lists them, with the names to get them by, and with `server`, which offers them.
    #[schema(value_type = Vec<Object>, example = json!([{ "name": "review", "arguments": [], "server": "notes" }]))]
    prompts: Vec<Value>,
}

/// Lists all resources and resource templates that this caller may read.
#[utoipa::path(get, path = "/api/resources", tag = "resources",
    responses((status = 200, description = "All resources and templates, in the order of their servers", body = ResourceList)))]
pub(crate) async fn resources(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Json<ResourceList> {
    let executor = gateway.executor();
    executor.manager().refresh_lists().await;
    let (content, rules) = (executor.manager().content(), executor.rules());
    Json(ResourceList {
        resources: list_with_servers(content.offered_resources(&rules, &caller.scope)),
        templates: list_with_servers(content.offered_templates(&rules, &caller.scope)),
    })
}

/// Lists all prompts that this caller may get.
#[utoipa::path(get, path = "/api/prompts", tag = "prompts",
    responses((status = 200, description = "All prompts, in the order of their servers", body = PromptList)))]
pub(crate) async fn prompts(State(gateway): State<Gateway>, caller: Caller) -> Json<PromptList> {
    let executor = gateway.executor();
    executor.manager().refresh_lists().await;
    let (content, rules) = (executor.manager().content(), executor.rules());
    Json(PromptList {
        prompts: list_with_servers(content.offered_prompts(&rules, &caller.scope)),
    })
}

fn list_with_servers<'a>(offered: impl Iterator<Item = OfferedEntry<'a>>) -> Vec<Value> {
    let with_server = |OfferedEntry {
                           source, mut entry, ..
                       }: OfferedEntry<'a>| {
        entry["server"] = match source {
            ToolSource::Mcp(server) => server.as_str().into(),
            local => local.to_string().into(),
        };
        entry
    };
    offered.map(with_server).collect()
}

/// The resource to read.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ResourceRead)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadRequest {
    /// Its URI as it is listed, made from a template, or as a result links to it.
    #[schema(example = "notes:1")]
    uri: String,
}

/// Reads a resource. The answer is an envelope, whose result is the one of MCP's `resources/read`.
///
/// A read is a call like any other: permitted, limited and recorded as `resources/read`.
#[utoipa::path(post, path = "/api/resources/read", tag = "resources", request_body = ReadRequest,
    params(CallQuery,
           ("traceparent" = Option<String>, Header, description = "The W3C trace the call belongs to"),
           ("tracestate" = Option<String>, Header, description = "Vendor data of that trace, which is passed on")),
    responses((status = 200, description = "The server was asked, or the call was refused with its reason; `success` says whether `result` holds `contents`", body = EnvelopeSchema),
              (status = 400, description = "`timeout` is not a duration (an envelope), or the request can't be read (a problem)", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json"))),
              (status = 404, description = "No server offers the resource to this caller", body = EnvelopeSchema),
              (status = 413, description = "The body is too large", body = Problem),
              (status = 415, description = "The body is not JSON", body = Problem),
              (status = 422, description = "The body has no `uri`", body = Problem),
              (status = 503, description = "Too many calls are running (an envelope), or too many requests (a problem)", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json")))))]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<CallQuery>,
    headers: HeaderMap,
    ArgumentsBody(body): ArgumentsBody<ReadRequest>,
) -> Response {
    let find = || gateway.executor().find_resource(&body.uri, &caller.scope);
    respond(&gateway, &caller, &query, &headers, find).await
}

/// The prompt to get.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = PromptGet)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetRequest {
    /// Its name as it is listed.
    #[schema(example = "review")]
    name: String,
    /// The values of its arguments, which are strings.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({ "language": "Rust" }))]
    arguments: Map<String, Value>,
}

/// Fills in a prompt. The answer is an envelope, whose result is the one of MCP's `prompts/get`.
///
/// It is a call like any other: permitted, limited and recorded as `prompts/get`.
#[utoipa::path(post, path = "/api/prompts/get", tag = "prompts", request_body = GetRequest,
    params(CallQuery,
           ("traceparent" = Option<String>, Header, description = "The W3C trace the call belongs to"),
           ("tracestate" = Option<String>, Header, description = "Vendor data of that trace, which is passed on")),
    responses((status = 200, description = "The server was asked, or the call was refused with its reason; `success` says whether `result` holds `messages`", body = EnvelopeSchema),
              (status = 400, description = "`timeout` is not a duration (an envelope), or the request can't be read (a problem)", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json"))),
              (status = 404, description = "No server offers the prompt to this caller", body = EnvelopeSchema),
              (status = 413, description = "The body (a problem) or the arguments (an envelope) are too large", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json"))),
              (status = 415, description = "The body is not JSON", body = Problem),
              (status = 422, description = "The body has no `name`", body = Problem),
              (status = 503, description = "Too many calls are running (an envelope), or too many requests (a problem)", content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json")))))]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<CallQuery>,
    headers: HeaderMap,
    ArgumentsBody(body): ArgumentsBody<GetRequest>,
) -> Response {
    let find = || {
        let arguments = body.arguments.clone();
        let executor = gateway.executor();
        executor.find_prompt(&body.name, arguments, &caller.scope)
    };
    respond(&gateway, &caller, &query, &headers, find).await
}

async fn respond(
    gateway: &Gateway,
    caller: &Caller,
    query: &CallQuery,
    headers: &HeaderMap,
    find: impl Fn() -> ContentRequest,
) -> Response {
    let mut request = find();
    if request.owner().is_none() {
        let known = gateway.parts.servers.wait_for_known_tools();
        drop(tokio::time::timeout(STARTUP_WAIT, known).await);
        request = find();
    }
    let call = with_trace(request.to_call(), CallerTrace::from_headers(headers));
    let (call, has_invalid_timeout) = with_timeout(call, query.timeout.as_deref());
    let refused = match request.owner() {
        None => Some(StatusCode::NOT_FOUND),
        Some(_) => has_invalid_timeout.then_some(StatusCode::BAD_REQUEST),
    };
    let outcome = run_content(gateway, caller, &request, call).await;
    envelope(&outcome, refused)
}

/// The tool that does what is requested. `None` if nobody offers it to the caller.
pub(crate) fn tool_of(request: &ContentRequest) -> Option<Arc<dyn Tool>> {
    let access = &request.owner()?.content.access;
    access.tool(request.method()).cloned()
}

/// Runs a call that was made from `request`.
pub(crate) async fn run_content(
    gateway: &Gateway,
    caller: &Caller,
    request: &ContentRequest,
    call: ToolCall,
) -> ToolOutcome {
    let call = call
        .origin(Origin::Http)
        .cancellation(gateway.calls.clone());
    let mut outcome = gateway.executor().execute(call).await;
    request.finish(&mut outcome);
    if let Ok(output) = &mut outcome.result
        && let Some(Value::Object(result)) = &mut output.structured
    {
        // It only belongs to the protocol of the server.
        result.shift_remove("resultType");
    }
    if !caller.rights.see_all {
        outcome.result = outcome.result.map_err(ToolError::without_details);
    }
    outcome
}

/// The request that a recorded read of a resource or use of a prompt was. `None` for other calls,
/// and if the server no longer offers it to this caller.
pub(crate) fn recorded_content(
    gateway: &Gateway,
    caller: &Caller,
    call: &CallSummary,
    arguments: &Value,
) -> Option<ContentRequest> {
    let server = call.server.as_deref()?;
    let source = ToolSource::Mcp(server.to_owned());
    let executor = gateway.executor();
    let request = if call.tool == ContentMethod::ReadResource.as_str() {
        let content = executor.manager().content();
        let uri = content.offered_uri(&source, arguments["uri"].as_str()?);
        executor.find_resource(&uri, &caller.scope)
    } else if call.tool == ContentMethod::GetPrompt.as_str() {
        let own = arguments["name"].as_str()?;
        let name = format!("{}__{own}", display_name(server));
        let given = arguments["arguments"].as_object().cloned();
        executor.find_prompt(&name, given.unwrap_or_default(), &caller.scope)
    } else {
        return None;
    };
    let is_same = |request: &ContentRequest| {
        let owner = request.owner();
        owner.is_some_and(|owner| owner.source == source)
    };
    Some(request).filter(is_same)
}
