//! Reports the overall state of the gateway.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toolgate_journal::{Journal, JournalHealth};
use toolgate_mcp::{ServerState, ServerStatus};
use utoipa::ToSchema;

use crate::Gateway;
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::rights::Rights;

/// The overall state of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Condition)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatewayCondition {
    /// Everything works as it should.
    Ok,
    /// It takes calls, but something has a problem.
    Degraded,
    /// It takes no more calls.
    Down,
}

/// The gateway at a glance.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Status)]
pub(crate) struct GatewayStatus {
    status: GatewayCondition,
    /// What is wrong, in words.
    #[schema(example = json!(["house: connection refused; retry in 4 s"]))]
    reasons: Vec<String>,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Seconds since the gateway started.
    #[schema(example = 86_400)]
    uptime_s: u64,
    /// Calls since the start. Like everything below, of the tools that the caller may use.
    #[schema(example = 1042)]
    calls_total: u64,
    /// Calls in the last minute.
    #[schema(example = 12)]
    calls_per_minute: u64,
    /// The share of failed calls in the last five minutes, from 0 to 1; nothing if there were none.
    #[schema(example = 0.01)]
    error_rate: Option<f64>,
    /// The 95th percentile of call durations in the last five minutes.
    #[schema(example = 4.2)]
    p95_ms: Option<f64>,
    /// Calls that are running.
    #[schema(example = 1)]
    in_flight: usize,
    /// How many tools the caller may use.
    #[schema(example = 12)]
    tools: usize,
    /// How many MCP servers the caller may see.
    #[schema(example = 2)]
    servers: usize,
    /// The name of the caller's token, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    caller: Option<String>,
    rights: StatusRights,
    /// True in a browser that is signed in.
    #[schema(example = true)]
    signed_in: bool,
    journal: JournalStatus,
    /// The chat's model, as configured or as it was chosen last.
    model: Option<StatusModel>,
    /// True if a token is needed.
    #[schema(example = false)]
    token_needed: bool,
    /// Changed settings that take effect at the next start, for callers who may see everything.
    #[schema(example = json!(["serve.bind"]))]
    restart_needed: Vec<String>,
}

/// Whether calls are recorded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct JournalStatus {
    /// `ok`, `off` or `failing`.
    #[schema(example = "ok")]
    state: &'static str,
    /// Why calls aren't recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Calls that were deleted early since the start, because the journal was full.
    #[schema(example = 0)]
    evicted: u64,
}

/// The model of the chat.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Model)]
pub(crate) struct StatusModel {
    /// The provider of the model.
    #[schema(example = "ollama")]
    provider: String,
    /// The model's name; empty if the provider chooses.
    #[schema(example = "qwen3:0.6b")]
    name: String,
}

/// What the caller may do besides calling its tools.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatusRights {
    /// Add servers and reconnect them.
    #[schema(example = true)]
    manage_servers: bool,
    /// Approve or refuse waiting calls.
    #[schema(example = true)]
    approve_calls: bool,
    /// Save an answer as a mock.
    #[schema(example = true)]
    add_tools: bool,
    /// Make a recorded call again.
    #[schema(example = true)]
    replay_calls: bool,
    /// Read what was said to a voice gateway.
    #[schema(example = true)]
    read_turns: bool,
    /// Read everybody's calls, not only its own.
    #[schema(example = true)]
    see_all: bool,
}

impl StatusRights {
    fn new(rights: Rights) -> Self {
        Self {
            manage_servers: rights.operate,
            approve_calls: rights.approve,
            add_tools: rights.operate,
            replay_calls: rights.operate,
            read_turns: rights.see_all,
            see_all: rights.see_all,
        }
    }
}

/// Reports the state of the gateway.
#[utoipa::path(get, path = "/api/status", tag = "status",
    responses((status = 200, description = "The state of the gateway", body = GatewayStatus)))]
pub(crate) async fn show(State(gateway): State<Gateway>, caller: Caller) -> Json<GatewayStatus> {
    Json(status(&gateway, &caller))
}

pub(crate) fn status(gateway: &Gateway, caller: &Caller) -> GatewayStatus {
    let view = CallerView::new(gateway, caller);
    let (condition, reasons) = condition(gateway, caller);
    let parts = &gateway.parts;
    let may_show = |tool: &str, server: Option<&str>| view.has_tool_of_call(tool, server);
    let calls = match view.sees_all() {
        true => parts.stats.summary(),
        false => parts.stats.summary_of(view.only_caller(), may_show),
    };
    let journal = journal(gateway);
    GatewayStatus {
        status: condition,
        reasons,
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: gateway.started.elapsed().as_secs(),
        calls_total: calls.calls_total,
        calls_per_minute: calls.calls_per_minute,
        error_rate: calls.error_rate,
        p95_ms: calls.p95_ms,
        in_flight: calls.in_flight,
        tools: view.tool_count(),
        servers: view.servers().len(),
        caller: caller.scope.caller().map(str::to_owned),
        rights: StatusRights::new(caller.rights),
        signed_in: caller.is_session,
        journal: JournalStatus {
            // The error names a file.
            error: journal.error.filter(|_| view.has_all_tools()),
            ..journal
        },
        model: model(gateway),
        token_needed: token_needed(gateway),
        restart_needed: match view.has_all_tools() {
            true => gateway.configuration.lock().restart_needed.clone(),
            false => Vec::new(),
        },
    }
}

pub(crate) fn token_needed(gateway: &Gateway) -> bool {
    let settings = &gateway.parts.settings;
    !settings.token.is_empty() || !settings.tokens.is_empty()
}

fn journal(gateway: &Gateway) -> JournalStatus {
    let parts = &gateway.parts;
    let health = parts.journal.as_ref().map(Journal::health);
    let (state, error) = match health {
        None if parts.journal_problem.is_some() => ("failing", parts.journal_problem.clone()),
        None => ("off", None),
        Some(JournalHealth::Failing { error, .. }) => ("failing", Some(error)),
        Some(_) => ("ok", None),
    };
    let evicted = parts.journal.as_ref().map_or(0, Journal::evicted);
    JournalStatus {
        state,
        error,
        evicted,
    }
}

fn model(gateway: &Gateway) -> Option<StatusModel> {
    let settings = &gateway.parts.model;
    let provider = settings.provider.map(|provider| provider.to_string());
    let configured = provider.map(|provider| (provider, settings.name.clone()));
    let (provider, name) = gateway.chats.model().or(configured)?;
    Some(StatusModel { provider, name })
}

/// Returns the state and the reasons for it. Callers who can't see all servers learn how many
/// are disconnected, not which.
pub(crate) fn condition(gateway: &Gateway, caller: &Caller) -> (GatewayCondition, Vec<String>) {
    let mut reasons = Vec::new();
    if gateway.stopping.is_cancelled() {
        reasons.push("it is stopping and takes no new calls".to_owned());
        return (GatewayCondition::Down, reasons);
    }
    let view = CallerView::new(gateway, caller);
    add_server_reasons(gateway, &view, &mut reasons);
    if let Some(problem) = &gateway.configuration.lock().problem {
        let kept = "the previous configuration stays in force";
        reasons.push(match view.has_all_tools() {
            true => format!("{problem}; {kept}"),
            false => format!("the configuration is broken; {kept}"),
        });
    }
    let requests = &gateway.requests;
    if requests.is_exhausted() {
        reasons.push(format!(
            "too many requests are running, so more are rejected (serve.concurrency: {})",
            requests.capacity
        ));
    }
    if let Some(error) = journal(gateway).error {
        reasons.push(match view.has_all_tools() {
            true => format!("the journal: {error}"),
            false => "calls can't be recorded".to_owned(),
        });
    }
    match reasons.is_empty() {
        true => (GatewayCondition::Ok, reasons),
        false => (GatewayCondition::Degraded, reasons),
    }
}

// Servers that the caller can't see are only counted.
fn add_server_reasons(gateway: &Gateway, view: &CallerView, reasons: &mut Vec<String>) {
    let servers = gateway.parts.servers.status();
    let enabled = servers
        .iter()
        .filter(|server| server.state != ServerState::Disabled);
    let (mut all, mut hidden, mut hidden_degraded) = (0, 0, 0);
    for server in enabled {
        all += 1;
        let is_seen = || view.has_server(&server.name);
        if server.withheld() > 0 && is_seen() {
            let (count, name) = (server.withheld(), toolgate_core::text::escape(&server.name));
            let text = format!(
                "withheld tools: {count}; review and accept them with 'toolgate trust {name}' or here, on the card of the server"
            );
            reasons.push(with_server_name(server, &text));
        }
        match (server.state, server.degraded()) {
            (ServerState::Connected, None) => {}
            (ServerState::Connected, Some(problem)) if is_seen() => {
                let problem = format!("connected, but can't do its work: {problem}");
                reasons.push(with_server_name(server, &problem));
            }
            (ServerState::Connected, Some(_)) => hidden_degraded += 1,
            _ if is_seen() => reasons.push(disconnected_reason(server)),
            _ => hidden += 1,
        }
    }
    let s = if all == 1 { "" } else { "s" };
    if hidden > 0 {
        let are = if hidden == 1 { "is" } else { "are" };
        reasons.push(format!(
            "{hidden} of {all} MCP server{s} {are} not connected"
        ));
    }
    if hidden_degraded > 0 {
        let their = if hidden_degraded == 1 { "its" } else { "their" };
        reasons.push(format!(
            "{hidden_degraded} of {all} MCP server{s} can't do {their} work"
        ));
    }
}

fn disconnected_reason(server: &ServerStatus) -> String {
    let mut text = match &server.error {
        Some(error) => with_server_name(server, first_line(error)),
        None => with_server_name(server, &server.state.to_string()),
    };
    if let Some(wait) = server.next_try {
        text.push_str(&format!("; retry in {} s", wait.as_secs_f64().ceil()));
    }
    text
}

fn with_server_name(server: &ServerStatus, text: &str) -> String {
    const MAX_BYTES: usize = 300;
    let mut text = format!("{}: {text}", toolgate_core::text::escape(&server.name));
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push('…');
    }
    text
}

// Leaves out the PATH that was searched, because it is long. The server's own error shows it.
fn first_line(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    let remark = line.find(" (the PATH is ");
    &line[..remark.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_without_the_path_of_the_machine() {
        for (error, expected) in [
            (
                "command 'x' was not found on the PATH: install it (the PATH is /a:/b)",
                "command 'x' was not found on the PATH: install it",
            ),
            (
                "command /x cannot be started: it is not a program (os error 8) (the PATH is /a:/b)",
                "command /x cannot be started: it is not a program (os error 8)",
            ),
            ("refused (again)\nfor a reason", "refused (again)"),
            ("", ""),
        ] {
            assert_eq!(first_line(error), expected);
        }
    }
}
