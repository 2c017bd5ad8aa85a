//! Calls that were made: listed, shown, made again, turned into mocks.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_core::{FunctionTool, Source, ToolCall, ToolDefinition, is_redacted};
use toolgate_journal::{CallSummary, OUTCOMES};
use toolgate_mcp::CallerTrace;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Asked, Named, Sent, Unreadable, whole_id};
use super::tools::{Envelope, ToolInfo, envelope, no_such_tool, run, traced};
use crate::calls::CallPage;
use crate::guard::Caller;
use crate::history::{Asking, Found, History};
use crate::problem::Problem;
use crate::recent::CallFilter;
use crate::sight::Sight;
use crate::{Gateway, Right};

/// A list is this long unless told otherwise.
const USUAL: usize = 100;
/// A list is never longer.
const MOST: usize = 1000;

/// Which calls.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallsQuery {
    /// Only of this tool.
    #[param(example = "echo")]
    tool: Option<String>,
    /// Only of tools of this MCP server.
    server: Option<String>,
    /// Only from there: `cli`, `chat`, `voice`, `http`, `mcp`, `library` or `worker`.
    origin: Option<String>,
    /// Only by this caller: the name of a token, or the command that made calls without one, such as `chat`.
    #[param(example = "kitchen")]
    caller: Option<String>,
    /// Only with this outcome: `success`, an error kind, `running`, `interrupted`, or `failed` for every failure.
    #[param(example = "failed")]
    outcome: Option<String>,
    /// Only with this text in the name, the arguments or the error.
    search: Option<String>,
    /// Only those that started then or later, such as 2026-11-16T05:30:00Z.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only those that started before then.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only those older than the call with this id: the next page.
    before: Option<String>,
    /// At most so many, 100 unless told; never more than 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl CallsQuery {
    fn filter(self) -> Result<CallFilter, Problem> {
        let time = |name: &str, text: Option<String>| {
            let time = text.map(|text| text.parse::<jiff::Timestamp>()).transpose();
            time.map_err(|_| {
                bad(format!(
                    "'{name}' is no time; write it like 2026-11-16T05:30:00Z"
                ))
            })
        };
        if let Some(outcome) = &self.outcome
            && !OUTCOMES.contains(&outcome.as_str())
        {
            let known = OUTCOMES.join(", ");
            return Err(bad(format!("'outcome' must be one of {known}")));
        }
        if self.limit.is_some_and(|limit| !(1..=MOST).contains(&limit)) {
            return Err(bad(format!("'limit' must be from 1 to {MOST}")));
        }
        Ok(CallFilter {
            tool: self.tool,
            server: self.server,
            origin: self.origin,
            caller: self.caller.filter(|name| !name.is_empty()),
            outcome: self.outcome,
            search: self.search.filter(|text| !text.is_empty()),
            since: time("since", self.since)?,
            until: time("until", self.until)?,
            before: whole_id("before", self.before)?,
            limit: self.limit.unwrap_or(USUAL),
        })
    }
}

fn bad(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

fn unfit(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Calls, newest first.
#[utoipa::path(get, path = "/api/calls", tag = "calls", params(CallsQuery),
    responses((status = 200, description = "Calls, newest first; without the right to see all, the caller's own", body = Vec<CallSummary>),
              (status = 400, description = "A parameter makes no sense", body = Problem),
              (status = 403, description = "The caller has no name, so that no calls are its own", body = Problem),
              (status = 503, description = "The journal can not be read, many others read it, or the question takes too long", body = Problem)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Asked(query): Asked<CallsQuery>,
) -> Result<Json<Vec<CallSummary>>, Problem> {
    let filter = query.filter()?;
    let sight = Sight::new(&gateway, &caller);
    expect_some_calls(&caller, &sight)?;
    Ok(Json(History::of(&gateway).list(filter, sight).await?))
}

/// Everything that is known of one call.
#[utoipa::path(get, path = "/api/calls/{id}", tag = "calls",
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 200, description = "The call", body = CallPage),
              (status = 400, description = "The path can not be read", body = Problem),
              (status = 403, description = "The caller has no name, so that no calls are its own", body = Problem),
              (status = 404, description = "No such call", body = Problem),
              (status = 503, description = "The journal can not be read, many others read it, or the question takes too long", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<CallPage>, Problem> {
    let mut call = find(&gateway, &caller, id).await?.detail;
    if !caller.rights.see_all {
        call.details = None;
    }
    let executor = gateway.executor();
    let tool = executor.find_in(&call.summary.tool, &caller.scope).ok();
    let tool_definition = tool.map(|tool| ToolInfo::of(tool.definition(), executor));
    Ok(Json(CallPage {
        call,
        tool_definition,
    }))
}

/// Whether the caller means it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replay {
    /// Needed unless the tool only reads.
    #[schema(example = true)]
    #[serde(default)]
    confirm: bool,
    /// Needed where the recorded call isn't what the journal's chain of hashes says, or is older than it.
    #[schema(example = false)]
    #[serde(default)]
    unverified: bool,
}

/// Makes a call again, with the arguments as they were asked the first time.
#[utoipa::path(post, path = "/api/calls/{id}/replay", tag = "calls", request_body = Replay,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007"),
           ("traceparent" = Option<String>, Header, description = "The W3C trace the new call belongs to"),
           ("tracestate" = Option<String>, Header, description = "What others keep beside that trace; it is handed on")),
    responses((status = 200, description = "How the new call ended", body = Envelope),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such call, or its tool is gone", body = Problem),
              (status = 409, description = "The tool may change something: `confirm` is needed", body = Problem),
              Unreadable,
              (status = 422, description = "The arguments were not kept whole", body = Problem),
              (status = 503, description = "The journal can not be read (a problem); or as many calls run as may run (an envelope)",
                  content((Envelope = "application/json"), (Problem = "application/problem+json")))))]
pub(crate) async fn replay(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
    headers: HeaderMap,
    Sent(replay): Sent<Replay>,
) -> Result<Response, Problem> {
    caller.expect(Right::Operate)?;
    let found = find_whole(&gateway, &caller, id).await?;
    let name = found.detail.summary.tool;
    let tool = gateway.executor().find_in(&name, &caller.scope);
    let tool = tool.map_err(|error| no_such_tool(&error))?;
    let Asking::Whole(arguments) = found.asking else {
        return Err(unfit(
            "the arguments of that call were not kept whole: they held a secret, were too long or were no JSON object; \
             call the tool itself",
        ));
    };
    let only_reads = tool.definition().annotations().read_only == Some(true);
    if !only_reads && !replay.confirm {
        let name = toolgate_core::escape(&name);
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!(
                "'{name}' does not say that it only reads, so calling it again may do it again; send {{\"confirm\": true}} if that is meant"
            ),
        ));
    }
    if !replay.unverified
        && let Some(problem) = &found.unverified
    {
        return Err(unfit(format!(
            "the recorded call is not to be trusted: {problem}; send {{\"unverified\": true}} if it is to run all the same"
        )));
    }
    let call = ToolCall::new(name, Value::clone(&arguments));
    let call = traced(call, CallerTrace::of(&headers));
    Ok(envelope(&run(&gateway, &caller, call).await, None))
}

/// What the mock is to be called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMock {
    /// A name that no tool has.
    #[schema(example = "weather_mock")]
    name: String,
}

/// A mock tool that was made of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedMock {
    /// Its name.
    #[schema(example = "weather_mock")]
    name: String,
    /// Its entry for `tools` of the configuration.
    #[schema(value_type = Object)]
    definition: Value,
    /// Where it is kept, in words.
    #[schema(example = "added to toolgate.jsonc")]
    kept: String,
    /// What is not as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        example = "the answer held a secret, which is not kept: [REDACTED] stands in its place"
    )]
    note: Option<&'static str>,
}

/// Makes a mock tool that always answers what this call answered.
#[utoipa::path(post, path = "/api/calls/{id}/mock", tag = "calls", request_body = NewMock,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 201, description = "The mock is there, or will be in a moment", body = SavedMock),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such call", body = Problem),
              (status = 409, description = "There is a tool of that name", body = Problem),
              Unreadable,
              (status = 422, description = "The call has no whole result, or the name can not be one", body = Problem),
              (status = 503, description = "The journal can not be read, many others read it, or the question takes too long", body = Problem)))]
pub(crate) async fn mock(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
    Sent(mock): Sent<NewMock>,
) -> Result<Response, Problem> {
    caller.expect(Right::Operate)?;
    let call = find_whole(&gateway, &caller, id).await?.detail;
    let (Some(true), Some(answer), false) = (call.summary.success, call.result, call.result_cut)
    else {
        return Err(unfit(
            "a mock answers what a call answered, and this one has no whole result: it failed, still runs, or its result was \
             too long to keep",
        ));
    };
    let executor = gateway.executor();
    if executor.manager().find(&mock.name).is_some() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "there is a tool of that name; choose another",
        ));
    }
    let original = executor.find_in(&call.summary.tool, &caller.scope).ok();
    let original = original.as_ref().map(|tool| tool.definition());
    let definition = mock_entry(&mock.name, original, &call.summary.tool, &answer);
    let made = mock_tool(&definition)?;
    let kept = match gateway.parts().workshop {
        Some(_) => {
            let definition = definition.clone();
            gateway
                .keep(move |workshop| workshop.add_tool(&definition))
                .await?
        }
        None => {
            executor.manager().add(made);
            "in this gateway until it ends: there is no configuration file to keep it in".to_owned()
        }
    };
    let saved = SavedMock {
        name: mock.name,
        definition,
        kept,
        note: is_redacted(&answer).then_some(
            "the answer held a secret, which is not kept: [REDACTED] stands in its place",
        ),
    };
    Ok((StatusCode::CREATED, Json(saved)).into_response())
}

fn mock_tool(entry: &Value) -> Result<FunctionTool, Problem> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let (name, description) = (text("name"), text("description"));
    let definition = ToolDefinition::builder(name, description, entry["parameters"].clone());
    let definition = definition.source(Source::Mock).build();
    let definition = definition.map_err(|error| unfit(error.to_string()))?;
    let answer = entry["implementation"]["mock_response"].clone();
    Ok(FunctionTool::mock(definition, answer))
}

/// An entry for `tools` of the configuration: a mock that always gives this answer of a tool, which may be gone by now.
pub fn mock_entry(
    name: &str,
    tool: Option<&ToolDefinition>,
    called: &str,
    answer: &Value,
) -> Value {
    let description = tool.map(|tool| tool.description().to_owned());
    let description =
        description.unwrap_or_else(|| format!("Answers what a call of {called} answered"));
    let parameters = tool.map(|tool| tool.parameters().clone());
    json!({
        "name": name,
        "description": description,
        "parameters": parameters.unwrap_or_else(|| json!({ "type": "object" })),
        "implementation": { "type": "mock", "mock_response": answer },
    })
}

/// A call that something is to be done with: nothing is guessed from the beginning of its id.
async fn find_whole(gateway: &Gateway, caller: &Caller, id: String) -> Result<Found, Problem> {
    match whole_id("id", Some(id)) {
        Ok(Some(id)) => found(gateway, caller, id).await,
        _ => Err(no_such_call()),
    }
}

/// A call that the caller may see. Only who sees all of them may name one by its beginning: else others could be told apart.
async fn find(gateway: &Gateway, caller: &Caller, id: String) -> Result<Found, Problem> {
    match caller.rights.see_all {
        true => found(gateway, caller, id).await,
        false => find_whole(gateway, caller, id).await,
    }
}

async fn found(gateway: &Gateway, caller: &Caller, id: String) -> Result<Found, Problem> {
    let sight = Sight::new(gateway, caller);
    expect_some_calls(caller, &sight)?;
    if sight.is_blind() {
        return Err(no_such_call());
    }
    let found = History::of(gateway).find(id).await?;
    let found = found.filter(|found| sight.has_call(&found.detail.summary));
    found.ok_or_else(no_such_call)
}

/// Those without a name can't be told apart, so none of them sees what others called. An empty list would look as if nothing
/// had been called at all.
fn expect_some_calls(caller: &Caller, sight: &Sight) -> Result<(), Problem> {
    match sight.only_of() {
        Some("") => caller.expect(Right::SeeAll),
        _ => Ok(()),
    }
}

fn no_such_call() -> Problem {
    Problem::not_found("there is no such call; GET /api/calls lists the latest")
}
