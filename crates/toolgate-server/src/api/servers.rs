//! Lists MCP servers, reconnects them and records agreements to their tools.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use toolgate_core::ToolSource;
use toolgate_core::text::strip_invisible;
use toolgate_mcp::{AgreementError, ServerState, ServerStatus};
use utoipa::ToSchema;

use super::extract::{JsonBody, PathName, UnreadableResponses};
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::{Gateway, Right};

/// An MCP server and its current state.
#[derive(ToSchema)]
#[schema(as = Server)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct ServerSchema {
    /// The server's name in the configuration.
    #[schema(example = "house")]
    name: String,
    /// How it is reached: `stdio` or `http`.
    #[schema(example = "stdio")]
    transport: &'static str,
    /// `disabled`, `starting`, `connected`, `restarting`, `failed` or `stopped`.
    #[schema(example = "connected")]
    state: String,
    /// The generation of the protocol: `legacy` (up to 2025-11-25) or `modern` (2026-07-28), if it
    /// is or was connected.
    #[schema(example = "modern")]
    era: Option<String>,
    /// The MCP revision in use, if it is or was connected.
    #[schema(example = "2025-11-25")]
    protocol: Option<String>,
    /// How many of its tools are offered here.
    #[schema(example = 7)]
    tools: usize,
    /// True if it is not connected and these are the tools it had before.
    #[schema(example = false)]
    remembered: bool,
    /// Tools that were rejected, each with the reason.
    #[schema(example = json!([]))]
    refused: Vec<String>,
    /// The duration of the latest successful attempt to connect.
    #[schema(example = 12.5)]
    connected_in_ms: Option<f64>,
    /// The number of the latest attempt since it was last connected.
    #[schema(example = 1)]
    attempts: u32,
    /// How often it ended while it was connected.
    #[schema(example = 0)]
    restarts: u64,
    /// How many lines on its stdout were not messages.
    #[schema(example = 0)]
    polluted: u64,
    /// The latest of those lines; only for a token without a list of tools.
    #[schema(example = json!([]))]
    polluted_lines: Vec<String>,
    /// The end of its stderr; only for a token without a list of tools.
    #[schema(example = json!(["listening"]))]
    stderr: Vec<String>,
    /// The latest error, if the server has a problem.
    error: Option<String>,
    /// Milliseconds until the next attempt to connect.
    next_try_ms: Option<f64>,
    /// The id of its process.
    #[schema(example = 4711)]
    pid: Option<u32>,
    /// What its own health tool reports; nothing if it is not connected or has none.
    health: Option<HealthReportSchema>,
    /// Its tools that differ from what a person agreed to; only for a token without
    /// a list of tools.
    changes: Option<ServerChangesSchema>,
    /// What it has used of the gateway's model (sampling); nothing if it may not use it. Only for a
    /// token without a list of tools.
    sampling: Option<SamplingUsageSchema>,
}

/// What a server has used of the gateway's model.
#[derive(ToSchema)]
#[schema(as = SamplingUsage)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct SamplingUsageSchema {
    /// Answered requests since the start.
    #[schema(example = 3)]
    requests: u64,
    /// Refused requests since the start.
    #[schema(example = 0)]
    refused: u64,
    /// Tokens used in the current 24 hours, read and written ones together.
    #[schema(example = 1200)]
    tokens: u64,
    /// How many it may use in 24 hours.
    #[schema(example = 100_000)]
    tokens_per_day: u64,
}

/// Tools that differ from what a person agreed to.
#[derive(ToSchema)]
#[schema(as = Changes)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct ServerChangesSchema {
    /// Identifies these definitions; send it to agree to them.
    #[schema(example = "9f86d081884c7d65")]
    hash: String,
    /// In the server's order, followed by tools that are gone.
    tools: Vec<ToolChangeSchema>,
}

/// A tool that differs from what a person agreed to.
#[derive(ToSchema)]
#[schema(as = Change)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct ToolChangeSchema {
    /// The tool's name on the server.
    #[schema(example = "delete_note")]
    tool: String,
    /// `new`, `changed` or `gone`.
    #[schema(example = "changed")]
    kind: &'static str,
    /// True if the tool is not offered until somebody agrees.
    #[schema(example = true)]
    withheld: bool,
    /// The differences, the most important first.
    differences: Vec<DefinitionDifferenceSchema>,
    /// How many more differences there are.
    #[schema(example = 0)]
    more: usize,
}

/// A value that has changed. Secrets are hidden, invisible characters are escaped, and
/// long texts are cut.
#[derive(ToSchema)]
#[schema(as = Difference)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct DefinitionDifferenceSchema {
    /// The path in the tool's definition.
    #[schema(example = "annotations.readOnlyHint")]
    path: String,
    /// The value that was agreed to; nothing if there was none.
    #[schema(example = "true")]
    before: Option<String>,
    /// The value now; nothing if it is gone.
    #[schema(example = "false")]
    after: Option<String>,
}

/// The latest report of a server's health tool.
#[derive(ToSchema)]
#[schema(as = Health)]
#[expect(
    dead_code,
    reason = "describes the type of toolgate_mcp that is written"
)]
struct HealthReportSchema {
    /// The name of the health tool.
    #[schema(example = "check_zwave_health")]
    tool: String,
    /// `healthy`, `degraded` (connected, but unable to do its work) or `unknown` (the
    /// tool can't be called).
    #[schema(example = "healthy")]
    state: &'static str,
    /// Why the server is not healthy.
    problem: Option<String>,
}

/// Lists all MCP servers.
#[utoipa::path(get, path = "/api/servers", tag = "servers",
    responses((status = 200, description = "All servers, in the order of the configuration", body = Vec<ServerSchema>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Json<Vec<ServerStatus>> {
    Json(CallerView::new(&gateway, &caller).servers())
}

/// An MCP server, and what it tells about its use.
#[derive(Serialize, ToSchema)]
#[schema(as = ServerDetail)]
pub(crate) struct ServerPage {
    #[serde(flatten)]
    #[schema(value_type = ServerSchema)]
    server: ServerStatus,
    /// The server's hints for models that use it. Untrusted text.
    #[schema(example = "Search before you write.")]
    instructions: Option<String>,
}

/// Shows one server, with its instructions.
#[utoipa::path(get, path = "/api/servers/{name}", tag = "servers",
    params(("name" = String, Path, description = "The server's name", example = "house")),
    responses((status = 200, description = "The server", body = ServerPage),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 404, description = "No such server", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(name): PathName,
) -> Result<Json<ServerPage>, Problem> {
    let server = find(&name, &CallerView::new(&gateway, &caller))?;
    let content = gateway.executor().manager().content();
    let owner = content.source(&ToolSource::Mcp(name));
    let instructions = owner.and_then(|owner| owner.content.instructions.as_deref());
    Ok(Json(ServerPage {
        server,
        instructions: instructions.map(|text| strip_invisible(text).into_owned()),
    }))
}

/// Reconnects a server, and answers once that has succeeded or failed.
#[utoipa::path(post, path = "/api/servers/{name}/reconnect", tag = "servers",
    params(("name" = String, Path, description = "The server's name", example = "house")),
    responses((status = 200, description = "The server as it is afterwards", body = ServerSchema),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such server", body = Problem),
              (status = 409, description = "The server is disabled", body = Problem)))]
pub(crate) async fn reconnect(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(name): PathName,
) -> Result<Json<ServerStatus>, Problem> {
    let view = CallerView::new(&gateway, &caller);
    let server = find(&name, &view)?;
    // Reconnecting ends the calls of everybody on that server.
    caller.require(Right::Operate)?;
    if server.state == ServerState::Disabled {
        let detail =
            "the server is disabled; remove 'disabled' from its entry in the configuration";
        return Err(Problem::conflict(detail));
    }
    gateway.parts.servers.reconnect(&name).await;
    Ok(Json(find(&name, &view)?))
}

/// Agreement to the tools of a server.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Agreement)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRequest {
    /// The `hash` of the server's `changes`, as they were shown to the person who agrees.
    #[schema(example = "9f86d081884c7d65")]
    hash: String,
}

/// Agrees to the changed tools of a server, as they were shown. Withheld tools are offered at once.
#[utoipa::path(post, path = "/api/servers/{name}/trust", tag = "servers", request_body = TrustRequest,
    params(("name" = String, Path, description = "The server's name", example = "house")),
    responses((status = 200, description = "The server as it is afterwards", body = ServerSchema),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such server", body = Problem),
              (status = 409, description = "The tools changed since they were shown, or nothing changed", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The body is not valid", body = Problem),
              (status = 503, description = "The agreement can't be saved", body = Problem)))]
pub(crate) async fn trust(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(name): PathName,
    JsonBody(agreement): JsonBody<TrustRequest>,
) -> Result<Json<ServerStatus>, Problem> {
    let view = CallerView::new(&gateway, &caller);
    find(&name, &view)?;
    // The agreement changes which tools all callers are offered.
    caller.require(Right::Operate)?;
    let (servers, server) = (gateway.parts.servers.clone(), name.clone());
    let agree = move || servers.agree_to_changes(&server, &agreement.hash);
    match tokio::task::spawn_blocking(agree).await {
        Ok(Ok(_)) => Ok(Json(find(&name, &view)?)),
        Ok(Err(AgreementError::UnknownServer(_))) => Err(unknown(&name, &view)),
        Ok(Err(error @ AgreementError::OtherChanges(_))) => {
            Err(Problem::conflict(error.to_string()))
        }
        Ok(Err(error)) => Err(Problem::unavailable(error.to_string())),
        Err(_) => Err(Problem::unavailable(
            "the agreement was not saved because of an internal error",
        )),
    }
}

fn find(name: &str, view: &CallerView) -> Result<ServerStatus, Problem> {
    let mut servers = view.servers().into_iter();
    let found = servers.find(|server| server.name == name);
    found.ok_or_else(|| unknown(name, view))
}

fn unknown(name: &str, view: &CallerView) -> Problem {
    let servers = view.servers();
    let names = servers.iter().map(|server| server.name.as_str());
    let near = toolgate_core::text::nearest_names(name, names, 3);
    let name = toolgate_core::text::escape(&name[..name.floor_char_boundary(200)]);
    Problem::not_found(match near.is_empty() {
        true => format!("there is no MCP server '{name}'; GET /api/servers lists them"),
        false => {
            let near = near.join(", ");
            format!("there is no MCP server '{name}'; did you mean: {near}")
        }
    })
}
