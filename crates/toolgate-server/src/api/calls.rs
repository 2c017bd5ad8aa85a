//! Lists recorded calls, shows them, makes them again and turns them into mocks.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_core::{FunctionTool, ToolCall, ToolDefinition, ToolSource, is_redacted};
use toolgate_journal::{CallSummary, JournalFilter, OUTCOME_NAMES};
use toolgate_mcp::CallerTrace;
use utoipa::{IntoParams, ToSchema};

use super::content::{recorded_content, run_content, tool_of};
use super::extract::{JsonBody, PathName, QueryParams, UnreadableResponses, parse_full_id};
use super::tools::{
    EnvelopeSchema, ToolInfo, ToolInfoSchema, envelope, no_such_tool, run_call, with_trace,
};
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::history::{CallHistory, FoundCall};
use crate::problem::Problem;
use crate::{ConfigWriter, Gateway, Right};

// The default length of a list.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallsQuery {
    /// Only of this tool.
    #[param(example = "echo")]
    tool: Option<String>,
    /// Only of tools of this MCP server.
    server: Option<String>,
    /// Only of this origin: `cli`, `chat`, `voice`, `http`, `mcp`, `library` or `worker`.
    origin: Option<String>,
    /// Only by this caller: the name of a token, or the command that made calls without a
    /// token, such as `chat`.
    #[param(example = "kitchen")]
    caller: Option<String>,
    /// Only with this outcome: `success`, an error kind, `running`, `interrupted`, or
    /// `failed` for every failure.
    #[param(example = "failed")]
    outcome: Option<String>,
    /// Only with this text in the name, the arguments or the error.
    search: Option<String>,
    /// Only calls that started at this time or later, such as 2026-11-16T05:30:00Z.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only calls that started before this time.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only calls older than the call with this id, to get the next page.
    before: Option<String>,
    /// The maximum number of calls, from 1 to 1000; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl CallsQuery {
    fn filter(self) -> Result<JournalFilter, Problem> {
        let time = |name: &str, text: Option<String>| {
            let time = text.map(|text| text.parse::<jiff::Timestamp>()).transpose();
            let detail = || format!("'{name}' is not a time; write it like 2026-11-16T05:30:00Z");
            time.map_err(|_| Problem::bad_request(detail()))
        };
        if let Some(outcome) = &self.outcome
            && !OUTCOME_NAMES.contains(&outcome.as_str())
        {
            let known = OUTCOME_NAMES.join(", ");
            let detail = format!("'outcome' must be one of {known}");
            return Err(Problem::bad_request(detail));
        }
        if self
            .limit
            .is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit))
        {
            let detail = format!("'limit' must be from 1 to {MAX_LIMIT}");
            return Err(Problem::bad_request(detail));
        }
        let mut filter = JournalFilter::default();
        filter.tool = self.tool;
        filter.server = self.server;
        filter.origin = self.origin;
        filter.caller = self.caller.filter(|name| !name.is_empty());
        filter.outcome = self.outcome;
        filter.search = self.search.filter(|text| !text.is_empty());
        filter.since = time("since", self.since)?;
        filter.until = time("until", self.until)?;
        filter.before = parse_full_id("before", self.before)?;
        filter.limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        Ok(filter)
    }
}

/// Lists calls, newest first.
#[utoipa::path(get, path = "/api/calls", tag = "calls", params(CallsQuery),
    responses((status = 200, description = "Calls, newest first; without the right to see all, the caller's own", body = Vec<CallSummary>),
              (status = 400, description = "A parameter is not valid", body = Problem),
              (status = 403, description = "The caller has no name, so that no calls are its own", body = Problem),
              (status = 503, description = "The journal can't be read, is busy, or the query takes too long", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<CallsQuery>,
) -> Result<Json<Vec<CallSummary>>, Problem> {
    let filter = query.filter()?;
    let view = CallerView::new(&gateway, &caller);
    expect_some_calls(&caller, &view)?;
    Ok(Json(CallHistory(&gateway).list(filter, view).await?))
}

/// Shows everything that is known about one call.
#[utoipa::path(get, path = "/api/calls/{id}", tag = "calls",
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 200, description = "The call", body = CallPage),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 403, description = "The caller has no name, so that no calls are its own", body = Problem),
              (status = 404, description = "No such call", body = Problem),
              (status = 503, description = "The journal can't be read, is busy, or the query takes too long", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<Json<CallPage>, Problem> {
    // Others could learn from an ambiguous prefix that more calls exist.
    let may_be_prefix = caller.rights.see_all;
    let mut call = find(&gateway, &caller, id, may_be_prefix).await?.detail;
    if !caller.rights.see_all {
        call.details = None;
    }
    let executor = gateway.executor();
    let tool = match recorded_content(&gateway, &caller, &call.summary, &call.requested) {
        Some(request) => tool_of(&request),
        None => executor
            .find_in_scope(&call.summary.tool, &caller.scope)
            .ok(),
    };
    let tool_definition = tool.map(|tool| ToolInfo::new(tool.definition(), executor));
    Ok(Json(CallPage {
        call,
        tool_definition,
    }))
}

/// Everything that is known about one call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CallDetail)]
pub(crate) struct CallPage {
    #[serde(flatten)]
    call: toolgate_journal::CallDetail,
    /// The tool's current definition, if it still exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ToolInfoSchema>)]
    tool_definition: Option<ToolInfo>,
}

/// Confirms that a call is to be made again.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Replay)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// Required unless the tool is read-only.
    #[schema(example = true)]
    #[serde(default)]
    confirm: bool,
    /// Required if the recorded call doesn't match the journal's hash chain, or is
    /// older than the chain.
    #[schema(example = false)]
    #[serde(default)]
    unverified: bool,
}

/// Makes a call again, with the arguments of the original request.
#[utoipa::path(post, path = "/api/calls/{id}/replay", tag = "calls", request_body = ReplayRequest,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007"),
           ("traceparent" = Option<String>, Header, description = "The W3C trace the new call belongs to"),
           ("tracestate" = Option<String>, Header, description = "Vendor data of that trace, which is passed on")),
    responses((status = 200, description = "How the new call ended", body = EnvelopeSchema),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such call, or its tool is gone", body = Problem),
              (status = 409, description = "The tool may change something: `confirm` is needed", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The arguments were not kept whole", body = Problem),
              (status = 503, description = "The journal can't be read (a problem), or too many calls are running (an envelope)",
                  content((EnvelopeSchema = "application/json"), (Problem = "application/problem+json")))))]
pub(crate) async fn replay(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
    headers: HeaderMap,
    JsonBody(replay): JsonBody<ReplayRequest>,
) -> Result<Response, Problem> {
    caller.require(Right::Operate)?;
    let found = find(&gateway, &caller, id, false).await?;
    let call = &found.detail;
    let content = recorded_content(&gateway, &caller, &call.summary, &call.requested);
    let name = found.detail.summary.tool;
    let tool = match content.as_ref().and_then(tool_of) {
        Some(tool) => Ok(tool),
        None => gateway.executor().find_in_scope(&name, &caller.scope),
    };
    let tool = tool.map_err(|error| no_such_tool(&error))?;
    // A call with redacted or cut arguments would not be the recorded call.
    let Some(arguments) = found.arguments else {
        return Err(Problem::unprocessable(
            "the arguments of that call were not stored completely: they contained a secret, were too long or were not a JSON object; \
             call the tool itself",
        ));
    };
    let only_reads = tool.definition().annotations().read_only == Some(true);
    if !only_reads && !replay.confirm {
        let name = toolgate_core::text::escape(&name);
        return Err(Problem::conflict(format!(
            "'{name}' is not marked as read-only, so another call may have another effect; send {{\"confirm\": true}} to call it anyway"
        )));
    }
    if !replay.unverified
        && let Some(problem) = &found.unverified
    {
        return Err(Problem::unprocessable(format!(
            "the recorded call may have been changed: {problem}; send {{\"unverified\": true}} to run it anyway"
        )));
    }
    let trace = CallerTrace::from_headers(&headers);
    let outcome = match content {
        Some(request) => {
            let call = with_trace(request.to_call(), trace);
            run_content(&gateway, &caller, &request, call).await
        }
        None => {
            let call = with_trace(ToolCall::new(name, Value::clone(&arguments)), trace);
            run_call(&gateway, &caller, call).await
        }
    };
    Ok(envelope(&outcome, None))
}

/// A mock to make from a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMock {
    /// A name that no tool has yet.
    #[schema(example = "weather_mock")]
    name: String,
}

/// A mock tool that was made from a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedMock {
    /// The name of the mock.
    #[schema(example = "weather_mock")]
    name: String,
    /// Its entry for `tools` in the configuration.
    #[schema(value_type = Object)]
    definition: Value,
    /// Where the entry was saved, in words.
    #[schema(example = "added to toolgate.jsonc")]
    kept: String,
    /// How the mock's answer differs from the recorded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        example = "the answer contained a secret, which was replaced by [REDACTED]"
    )]
    note: Option<&'static str>,
}

/// Makes a mock tool that always returns the result of this call.
#[utoipa::path(post, path = "/api/calls/{id}/mock", tag = "calls", request_body = NewMock,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 201, description = "The mock is there, or will be in a moment", body = SavedMock),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such call", body = Problem),
              (status = 409, description = "There is a tool of that name", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The call has no complete result, or the name is not valid", body = Problem),
              (status = 503, description = "The journal can't be read, is busy, or the query takes too long", body = Problem)))]
pub(crate) async fn mock(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(mock): JsonBody<NewMock>,
) -> Result<Response, Problem> {
    caller.require(Right::Operate)?;
    let call = find(&gateway, &caller, id, false).await?.detail;
    let (Some(true), Some(answer), false) = (call.summary.success, call.result, call.result_cut)
    else {
        return Err(Problem::unprocessable(
            "a mock repeats the result of a call, but this call has no complete result: it failed, is still running, or its result was \
             too long to keep",
        ));
    };
    let executor = gateway.executor();
    if executor.manager().find(&mock.name).is_some() {
        let detail = "a tool of that name already exists; choose another";
        return Err(Problem::conflict(detail));
    }
    let original = executor.find_in_scope(&call.summary.tool, &caller.scope);
    let original = original.as_ref().ok().map(|tool| tool.definition());
    let definition = mock_entry(&mock.name, original, &call.summary.tool, &answer);
    let made = mock_tool(&definition)?;
    let kept = match gateway.parts.config_writer {
        Some(_) => {
            let definition = definition.clone();
            let write = move |config: &dyn ConfigWriter| config.add_tool(&definition);
            gateway.write_config(write).await?
        }
        None => {
            executor.manager().add(made);
            "in this gateway until it stops, because it has no configuration file".to_owned()
        }
    };
    let saved = SavedMock {
        name: mock.name,
        definition,
        kept,
        note: is_redacted(&answer)
            .then_some("the answer contained a secret, which was replaced by [REDACTED]"),
    };
    Ok((StatusCode::CREATED, Json(saved)).into_response())
}

fn mock_tool(entry: &Value) -> Result<FunctionTool, Problem> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let (name, description) = (text("name"), text("description"));
    let definition = ToolDefinition::builder(name, description, entry["parameters"].clone());
    let definition = definition.source(ToolSource::Mock).build();
    let definition = definition.map_err(|error| Problem::unprocessable(error.to_string()))?;
    let answer = entry["implementation"]["mock_response"].clone();
    Ok(FunctionTool::mock(definition, answer))
}

/// Builds a configuration entry for a mock tool that always gives the answer of a recorded call.
///
/// The description and the parameters are those of `tool`, unless the called tool no longer exists.
pub fn mock_entry(
    name: &str,
    tool: Option<&ToolDefinition>,
    called: &str,
    answer: &Value,
) -> Value {
    let (description, parameters) = match tool {
        Some(tool) => (tool.description().to_owned(), tool.parameters().clone()),
        None => (
            format!("Repeats the result of a call of {called}"),
            json!({ "type": "object" }),
        ),
    };
    json!({
        "name": name,
        "description": description,
        "parameters": parameters,
        "implementation": { "type": "mock", "mock_response": answer },
    })
}

// Actions need the full id: guessing from a prefix could act on another call.
async fn find(
    gateway: &Gateway,
    caller: &Caller,
    id: String,
    may_be_prefix: bool,
) -> Result<FoundCall, Problem> {
    let id = match may_be_prefix {
        true => id,
        false => parse_full_id("id", Some(id))
            .ok()
            .flatten()
            .ok_or_else(no_such_call)?,
    };
    let view = CallerView::new(gateway, caller);
    expect_some_calls(caller, &view)?;
    if view.sees_no_calls() {
        return Err(no_such_call());
    }
    let found = CallHistory(gateway).find(id).await?;
    let found = found.filter(|found| view.has_call(&found.detail.summary));
    found.ok_or_else(no_such_call)
}

// Callers without a name can't be distinguished, so they see no calls. An error is clearer than an
// empty list, which would look as if no call had been made.
fn expect_some_calls(caller: &Caller, view: &CallerView) -> Result<(), Problem> {
    match view.only_caller() {
        Some("") => caller.require(Right::SeeAll),
        _ => Ok(()),
    }
}

fn no_such_call() -> Problem {
    Problem::not_found("there is no such call; GET /api/calls lists the latest")
}
