//! MCP servers: listed, reconnected, agreed to.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use toolgate_mcp::{
    AgreeError, HealthReport, HealthState, ServerStatus, ToolChange, ToolChangeKind, ToolChanges,
};
use utoipa::ToSchema;

use super::extract::{Named, Sent, Unreadable};
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;
use crate::{Gateway, Right};

/// An MCP server as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Server {
    /// Its name in the configuration.
    #[schema(example = "house")]
    pub(crate) name: String,
    /// `stdio` or `http`.
    #[schema(example = "stdio")]
    transport: &'static str,
    /// `disabled`, `starting`, `connected`, `restarting`, `failed` or `stopped`.
    #[schema(example = "connected")]
    state: String,
    /// `legacy` (up to 2025-11-25) or `modern` (2026-07-28), if it is or was connected.
    #[schema(example = "modern")]
    era: Option<String>,
    /// The revision of MCP that was agreed on, if it is or was connected.
    #[schema(example = "2025-11-25")]
    protocol: Option<String>,
    /// How many tools it offers here.
    #[schema(example = 7)]
    tools: usize,
    /// True if these are the tools it had when it was last asked: it isn't connected now.
    #[schema(example = false)]
    remembered: bool,
    /// Tools that could not be taken, each with the reason.
    #[schema(example = json!([]))]
    refused: Vec<String>,
    /// How long the latest successful attempt took.
    #[schema(example = 12.5)]
    connected_in_ms: Option<f64>,
    /// The number of the latest attempt since it was last well.
    #[schema(example = 1)]
    attempts: u32,
    /// How often it ended after it had been connected.
    #[schema(example = 0)]
    restarts: u64,
    /// Lines on its stdout that were no messages.
    #[schema(example = 0)]
    polluted: u64,
    /// The latest of them; only for a token without a list of tools.
    #[schema(example = json!([]))]
    polluted_lines: Vec<String>,
    /// The end of its stderr; only for a token without a list of tools.
    #[schema(example = json!(["listening"]))]
    stderr: Vec<String>,
    /// What went wrong the last time, if it is not well.
    error: Option<String>,
    /// When it is tried again, from now.
    next_try_ms: Option<f64>,
    /// Its process.
    #[schema(example = 4711)]
    pid: Option<u32>,
    /// Whether it can do its work, by its own health tool; nothing if it is not connected or has none.
    health: Option<Health>,
    /// Its tools that aren't what a person agreed to; only for a token without a list of tools.
    changes: Option<Changes>,
}

/// Tools that aren't what a person agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Changes {
    /// Stands for these very definitions; to be sent with an agreement to them.
    #[schema(example = "9f86d081884c7d65")]
    hash: String,
    /// In the server's order; those that are gone come last.
    tools: Vec<Change>,
}

/// A tool that isn't what a person agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Change {
    /// Its name on the server.
    #[schema(example = "delete_note")]
    tool: String,
    /// `new`, `changed` or `gone`.
    #[schema(example = "changed")]
    kind: &'static str,
    /// True if it isn't offered until somebody agrees.
    #[schema(example = true)]
    withheld: bool,
    /// What differs, the most telling first.
    differences: Vec<Difference>,
    /// How many differences there are besides.
    #[schema(example = 0)]
    more: usize,
}

/// A value that isn't what it was. Secrets are hidden, unseen characters are escaped, and long texts are cut.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Difference {
    /// Where it stands in the tool's definition.
    #[schema(example = "annotations.readOnlyHint")]
    path: String,
    /// What was agreed to; nothing if it wasn't there.
    #[schema(example = "true")]
    before: Option<String>,
    /// What it is now; nothing if it is gone.
    #[schema(example = "false")]
    after: Option<String>,
}

impl From<ToolChanges> for Changes {
    fn from(changes: ToolChanges) -> Self {
        Self {
            hash: changes.hash,
            tools: changes.tools.into_iter().map(Change::from).collect(),
        }
    }
}

impl From<ToolChange> for Change {
    fn from(change: ToolChange) -> Self {
        let difference = |one: toolgate_mcp::Difference| Difference {
            path: one.path,
            before: one.before,
            after: one.after,
        };
        Self {
            tool: change.tool,
            kind: match change.kind {
                ToolChangeKind::New => "new",
                ToolChangeKind::Changed => "changed",
                ToolChangeKind::Gone => "gone",
            },
            withheld: change.withheld,
            differences: change.differences.into_iter().map(difference).collect(),
            more: change.more,
        }
    }
}

/// What a server's health tool said last.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Health {
    /// The tool that was asked.
    #[schema(example = "check_zwave_health")]
    tool: String,
    /// `healthy`, `degraded` (it is connected, but can't do its work) or `unknown` (the tool can't be asked).
    #[schema(example = "healthy")]
    state: &'static str,
    /// Why it is not healthy.
    problem: Option<String>,
}

impl From<HealthReport> for Health {
    fn from(report: HealthReport) -> Self {
        Self {
            tool: report.tool,
            state: match report.state {
                HealthState::Healthy => "healthy",
                HealthState::Degraded => "degraded",
                _ => "unknown",
            },
            problem: report.problem,
        }
    }
}

impl From<ServerStatus> for Server {
    fn from(status: ServerStatus) -> Self {
        let millis = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            name: status.name,
            transport: status.transport,
            state: status.state.to_string(),
            era: status.era.map(|era| era.to_string()),
            protocol: status.protocol,
            tools: status.tools,
            remembered: status.remembered,
            refused: status.refused,
            connected_in_ms: status.connected_in.map(millis),
            attempts: status.attempts,
            restarts: status.restarts,
            polluted: status.polluted,
            polluted_lines: status.polluted_lines,
            stderr: status.stderr,
            error: status.error,
            next_try_ms: status.next_try.map(millis),
            pid: status.pid,
            health: status.health.map(Health::from),
            changes: status.changes.map(Changes::from),
        }
    }
}

impl Server {
    /// The same, without what changes by itself from moment to moment.
    pub(crate) fn settled(&self) -> Self {
        Self {
            next_try_ms: None,
            ..self.clone()
        }
    }
}

/// All MCP servers.
#[utoipa::path(get, path = "/api/servers", tag = "servers",
    responses((status = 200, description = "All servers, in the order of the configuration", body = Vec<Server>)))]
pub(crate) async fn list(State(gateway): State<Gateway>, caller: Caller) -> Json<Vec<Server>> {
    let servers = Sight::new(&gateway, &caller).servers();
    Json(servers.into_iter().map(Server::from).collect())
}

/// Ends a server and connects it anew; answers when that is done, well or not.
#[utoipa::path(post, path = "/api/servers/{name}/reconnect", tag = "servers",
    params(("name" = String, Path, description = "The server's name", example = "house")),
    responses((status = 200, description = "The server as it is afterwards", body = Server),
              (status = 400, description = "The path can not be read", body = Problem),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such server", body = Problem),
              (status = 409, description = "The server is disabled", body = Problem)))]
pub(crate) async fn reconnect(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(name): Named,
) -> Result<Json<Server>, Problem> {
    let sight = Sight::new(&gateway, &caller);
    let server = find(&name, &sight)?;
    // It ends everybody's calls on that server.
    caller.expect(Right::Operate)?;
    if server.state == toolgate_mcp::ServerState::Disabled {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the server is disabled; take 'disabled' out of its entry in the configuration",
        ));
    }
    gateway.parts().servers.reconnect(&name).await;
    Ok(Json(find(&name, &sight)?.into()))
}

/// An agreement to the tools of a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    /// The `hash` of the server's `changes`, as they were shown to the person who agrees.
    #[schema(example = "9f86d081884c7d65")]
    hash: String,
}

/// Agrees to the tools of a server that changed, as they were shown. Those that were withheld are offered at once.
#[utoipa::path(post, path = "/api/servers/{name}/trust", tag = "servers", request_body = Agreement,
    params(("name" = String, Path, description = "The server's name", example = "house")),
    responses((status = 200, description = "The server as it is afterwards", body = Server),
              (status = 403, description = "The caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such server", body = Problem),
              (status = 409, description = "Its tools are not those that were shown, or nothing changed", body = Problem),
              Unreadable,
              (status = 422, description = "The body does not fit", body = Problem),
              (status = 503, description = "The agreement cannot be kept", body = Problem)))]
pub(crate) async fn trust(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(name): Named,
    Sent(agreement): Sent<Agreement>,
) -> Result<Json<Server>, Problem> {
    let sight = Sight::new(&gateway, &caller);
    find(&name, &sight)?;
    // It decides for everybody what a model is offered.
    caller.expect(Right::Operate)?;
    let (servers, server) = (gateway.parts().servers.clone(), name.clone());
    let agreed =
        tokio::task::spawn_blocking(move || servers.agree_to_changes(&server, &agreement.hash));
    match agreed.await {
        Ok(Ok(_)) => {}
        Ok(Err(AgreeError::UnknownServer(_))) => return Err(unknown(&name, &sight)),
        Ok(Err(error @ AgreeError::OtherChanges(_))) => {
            return Err(Problem::new(StatusCode::CONFLICT, error.to_string()));
        }
        Ok(Err(error)) => {
            let detail = error.to_string();
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
        Err(_) => {
            let detail = "the agreement was not kept: an error inside Toolgate";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    }
    Ok(Json(find(&name, &sight)?.into()))
}

fn find(name: &str, sight: &Sight) -> Result<ServerStatus, Problem> {
    let mut servers = sight.servers().into_iter();
    let found = servers.find(|server| server.name == name);
    found.ok_or_else(|| unknown(name, sight))
}

fn unknown(name: &str, sight: &Sight) -> Problem {
    let servers = sight.servers();
    let names = servers.iter().map(|server| server.name.as_str());
    let near = toolgate_core::nearest(name, names, 3);
    let name = toolgate_core::escape(&name[..name.floor_char_boundary(200)]);
    Problem::not_found(match near.is_empty() {
        true => format!("there is no MCP server '{name}'; GET /api/servers lists them"),
        false => format!(
            "there is no MCP server '{name}'; near it: {}",
            near.join(", ")
        ),
    })
}
