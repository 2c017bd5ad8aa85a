//! How the gateway is, in one answer.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toolgate_journal::{Journal, JournalHealth};
use toolgate_mcp::{ServerState, ServerStatus};
use utoipa::ToSchema;

use crate::Gateway;
use crate::guard::Caller;
use crate::rights::Rights;
use crate::sight::Sight;

/// How the gateway is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Condition {
    /// All is well.
    Ok,
    /// It takes calls, and something is not well.
    Degraded,
    /// It takes no calls any more.
    Down,
}

/// The gateway at a glance.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Status {
    status: Condition,
    /// What is not well, in words.
    #[schema(example = json!(["house: connection refused; retry in 4 s"]))]
    reasons: Vec<String>,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Seconds since it was started.
    #[schema(example = 86_400)]
    uptime_s: u64,
    /// Calls since then, of the tools that are there for the caller, as all that follows.
    #[schema(example = 1042)]
    calls_total: u64,
    /// Calls of the last minute.
    #[schema(example = 12)]
    calls_per_minute: u64,
    /// From 0 to 1, of the last five minutes; nothing if there were no calls.
    #[schema(example = 0.01)]
    error_rate: Option<f64>,
    /// So long or shorter took 95 of 100 calls of the last five minutes.
    #[schema(example = 4.2)]
    p95_ms: Option<f64>,
    /// Calls that run now.
    #[schema(example = 1)]
    in_flight: usize,
    /// How many tools there are for the caller.
    #[schema(example = 12)]
    tools: usize,
    /// How many MCP servers there are for the caller.
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
    /// The model of the chat, as configured or as it was chosen last.
    model: Option<Model>,
    /// True if a token is needed to come in.
    #[schema(example = false)]
    token_needed: bool,
    /// What of the configuration was edited and takes effect at the next start, for those who may see everything.
    #[schema(example = json!(["serve.bind"]))]
    restart_needed: Vec<String>,
}

/// Whether calls are recorded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct JournalStatus {
    /// `ok`, `off` or `failing`.
    #[schema(example = "ok")]
    state: &'static str,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Calls that were deleted before their time since the start, because the journal was full.
    #[schema(example = 0)]
    evicted: u64,
}

/// A model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Model {
    /// Whose it is.
    #[schema(example = "ollama")]
    provider: String,
    /// Its name; empty if the provider chooses.
    #[schema(example = "qwen3:0.6b")]
    name: String,
}

/// What the caller may do besides calling its tools.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StatusRights {
    /// Add servers, and reconnect them.
    #[schema(example = true)]
    manage_servers: bool,
    /// Let calls run that wait for approval, or refuse them.
    #[schema(example = true)]
    approve_calls: bool,
    /// Keep an answer as a mock.
    #[schema(example = true)]
    add_tools: bool,
    /// Make a recorded call again.
    #[schema(example = true)]
    replay_calls: bool,
    /// Read what was said to a voice gateway.
    #[schema(example = true)]
    read_turns: bool,
    /// Read the calls of everybody, not only its own.
    #[schema(example = true)]
    see_all: bool,
}

impl StatusRights {
    fn of(rights: Rights) -> Self {
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

/// How it is: one look at everything.
#[utoipa::path(get, path = "/api/status", tag = "status",
    responses((status = 200, description = "How it is", body = Status)))]
pub(crate) async fn show(State(gateway): State<Gateway>, caller: Caller) -> Json<Status> {
    Json(status(&gateway, &caller))
}

pub(crate) fn status(gateway: &Gateway, caller: &Caller) -> Status {
    let sight = Sight::new(gateway, caller);
    let (condition, reasons) = condition(gateway, caller);
    let parts = gateway.parts();
    let calls = if sight.sees_all() {
        parts.stats.summary()
    } else {
        parts.stats.summary_of(sight.only_of(), |tool, server| {
            sight.has_tool_of_call(tool, server)
        })
    };
    let journal = journal(gateway);
    Status {
        status: condition,
        reasons,
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: gateway.started().elapsed().as_secs(),
        calls_total: calls.calls_total,
        calls_per_minute: calls.calls_per_minute,
        error_rate: calls.error_rate,
        p95_ms: calls.p95_ms,
        in_flight: calls.in_flight,
        tools: sight.tools(),
        servers: sight.servers().len(),
        caller: caller.scope.caller().map(str::to_owned),
        rights: StatusRights::of(caller.rights),
        signed_in: caller.is_session,
        journal: JournalStatus {
            // The words name a file.
            error: journal.error.filter(|_| sight.has_all_tools()),
            ..journal
        },
        model: model(gateway),
        token_needed: token_needed(gateway),
        restart_needed: match sight.has_all_tools() {
            true => gateway.configuration().restart_needed.clone(),
            false => Vec::new(),
        },
    }
}

pub(crate) fn token_needed(gateway: &Gateway) -> bool {
    let settings = &gateway.parts().settings;
    !settings.token.is_empty() || !settings.tokens.is_empty()
}

fn journal(gateway: &Gateway) -> JournalStatus {
    let parts = gateway.parts();
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

fn model(gateway: &Gateway) -> Option<Model> {
    let settings = &gateway.parts().model;
    let configured = settings
        .provider
        .map(|provider| (provider.to_string(), settings.name.clone()));
    let (provider, name) = gateway.chats().model().or(configured)?;
    Some(Model { provider, name })
}

/// How it is, and why it is not well. Who may not see all servers is told how many are away, not which.
pub(crate) fn condition(gateway: &Gateway, caller: &Caller) -> (Condition, Vec<String>) {
    let mut reasons = Vec::new();
    if gateway.stopping().is_cancelled() {
        reasons.push("it is stopping: no new calls are taken".to_owned());
        return (Condition::Down, reasons);
    }
    let sight = Sight::new(gateway, caller);
    add_servers(gateway, &sight, &mut reasons);
    if let Some(problem) = &gateway.configuration().problem {
        let kept = "the configuration before it stays in force";
        reasons.push(match sight.has_all_tools() {
            true => format!("{problem}; {kept}"),
            false => format!("the configuration is broken; {kept}"),
        });
    }
    let requests = gateway.requests();
    if requests.is_crowded() {
        reasons.push(format!(
            "so many requests are under way that more are turned away (serve.concurrency: {})",
            requests.places()
        ));
    }
    if let Some(error) = journal(gateway).error {
        reasons.push(match sight.has_all_tools() {
            true => format!("the journal: {error}"),
            false => "calls can not be recorded".to_owned(),
        });
    }
    match reasons.is_empty() {
        true => (Condition::Ok, reasons),
        false => (Condition::Degraded, reasons),
    }
}

/// What is wrong with the servers; those that the caller may not see are only counted.
fn add_servers(gateway: &Gateway, sight: &Sight, reasons: &mut Vec<String>) {
    let servers = gateway.parts().servers.status();
    let enabled = servers
        .iter()
        .filter(|server| server.state != ServerState::Disabled);
    let (mut all, mut hidden, mut hidden_degraded) = (0, 0, 0);
    for server in enabled {
        all += 1;
        let is_seen = || sight.has_server(&server.name);
        if server.withheld() > 0 && is_seen() {
            let (count, name) = (server.withheld(), toolgate_core::escape(&server.name));
            let text = format!(
                "withheld tools: {count}; 'toolgate trust {name}' or its card here shows what changed, and agrees"
            );
            reasons.push(named(server, &text));
        }
        match (server.state, server.degraded()) {
            (ServerState::Connected, None) => {}
            (ServerState::Connected, Some(problem)) if is_seen() => {
                let problem = format!("connected, but can't do its work: {problem}");
                reasons.push(named(server, &problem));
            }
            (ServerState::Connected, Some(_)) => hidden_degraded += 1,
            _ if is_seen() => reasons.push(why(server)),
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

fn why(server: &ServerStatus) -> String {
    let mut text = match &server.error {
        Some(error) => named(server, reason(error)),
        None => named(server, &server.state.to_string()),
    };
    if let Some(wait) = server.next_try {
        text.push_str(&format!("; retry in {} s", wait.as_secs_f64().ceil()));
    }
    text
}

fn named(server: &ServerStatus, text: &str) -> String {
    const LONGEST: usize = 300;
    let mut text = format!("{}: {text}", toolgate_core::escape(&server.name));
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

/// The first line, without where a program was looked for: that is long, and stands with the server.
fn reason(error: &str) -> &str {
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
                "command /x cannot be started: it is no program (os error 8) (the PATH is /a:/b)",
                "command /x cannot be started: it is no program (os error 8)",
            ),
            ("refused (again)\nfor a reason", "refused (again)"),
            ("", ""),
        ] {
            assert_eq!(reason(error), expected);
        }
    }
}
