//! How the gateway is, in one answer.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toolgate_mcp::{ServerState, ServerStatus};
use utoipa::ToSchema;

use crate::Gateway;
use crate::guard::Caller;
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
    /// How many tools there are for the caller.
    #[schema(example = 12)]
    tools: usize,
    /// How many MCP servers there are for the caller.
    #[schema(example = 2)]
    servers: usize,
    /// True if a token is needed to come in.
    token_needed: bool,
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
    let settings = &gateway.parts().settings;
    Status {
        status: condition,
        reasons,
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: gateway.started().elapsed().as_secs(),
        tools: sight.tools(),
        servers: sight.servers().len(),
        token_needed: !settings.token.is_empty() || !settings.tokens.is_empty(),
    }
}

/// How it is, and why it is not well. Who may not see all servers is told how many are away, not which.
pub(crate) fn condition(gateway: &Gateway, caller: &Caller) -> (Condition, Vec<String>) {
    let mut reasons = Vec::new();
    if gateway.stopping().is_cancelled() {
        reasons.push("it is stopping: no new calls are taken".to_owned());
        return (Condition::Down, reasons);
    }
    let sight = Sight::new(gateway, caller);
    let servers = gateway.parts().servers.status();
    let enabled = servers
        .iter()
        .filter(|server| server.state != ServerState::Disabled);
    let (mut all, mut hidden) = (0, 0);
    for server in enabled {
        all += 1;
        match server.state {
            ServerState::Connected => {}
            _ if sight.has_server(&server.name) => reasons.push(why(server)),
            _ => hidden += 1,
        }
    }
    if hidden > 0 {
        let (are, s) = if hidden == 1 {
            ("is", "")
        } else {
            ("are", "s")
        };
        reasons.push(format!(
            "{hidden} of {all} MCP server{s} {are} not connected"
        ));
    }
    match reasons.is_empty() {
        true => (Condition::Ok, reasons),
        false => (Condition::Degraded, reasons),
    }
}

/// Why a server is not connected, in one line.
fn why(server: &ServerStatus) -> String {
    const LONGEST: usize = 300;
    let name = toolgate_core::escape(&server.name);
    let mut text = match &server.error {
        Some(error) => format!("{name}: {}", error.lines().next().unwrap_or_default()),
        None => format!("{name}: {}", server.state),
    };
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    if let Some(wait) = server.next_try {
        text.push_str(&format!("; retry in {} s", wait.as_secs_f64().ceil()));
    }
    text
}
