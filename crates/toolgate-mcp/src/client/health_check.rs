//! Calls a connected server's own health tool to find out whether the server works. A server may
//! answer every message and still be useless, such as a home server without its MQTT broker.
//!
//! Each server's task runs one [`HealthCheck`] beside its connection, so a health tool
//! that hangs doesn't block others. The calls are neither logged nor recorded; only
//! changes of state are logged.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use toolgate_core::text::escape;
use toolgate_core::{ErrorKind, Redactor, Tool, ToolCall, ToolDefinition, ToolError, ToolExecutor};
use toolgate_home::HomeTool;
use tracing::{debug, info, warn};

use super::status::StatusBoard;
use crate::{HealthToolChoice, ServerConnection, ServerProgram, ServerSettings};

const TIMEOUT: Duration = Duration::from_secs(10);
// A new server may still be connecting to its own dependencies, so a bad report within this time is
// checked again.
const STARTUP_GRACE: Duration = Duration::from_secs(3);
const STARTUP_RETRY_DELAY: Duration = Duration::from_millis(500);
const HEALTHY_INTERVAL: Duration = Duration::from_secs(30);
const DEGRADED_INTERVAL: Duration = Duration::from_secs(10);
const MAX_SHOWN: usize = 500;

/// The latest result of a server's health tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HealthReport {
    pub tool: String,
    pub state: HealthState,
    /// Why the server is degraded, or why its health is unknown.
    pub problem: Option<String>,
}

/// The health of a connected server, as its health tool reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HealthState {
    Healthy,
    Degraded,
    /// The health tool can't be called: it is missing, denied by policy, or not read-only.
    Unknown,
}

/// Returns the original name of the health tool. A tool that we choose must be marked read-only. A
/// configured one need not be marked, but isn't called if it is marked as changing something.
pub(super) fn choose_health_tool(
    settings: &ServerSettings,
    tools: &[Arc<dyn Tool>],
) -> Option<String> {
    let known_tool = |program: &ServerProgram| {
        let name = HomeTool::CheckHealth.name(program.home_protocol()?);
        let is_offered = |tool: &Arc<dyn Tool>| {
            let definition = tool.definition();
            definition.original_name() == name && definition.annotations().read_only == Some(true)
        };
        tools.iter().any(is_offered).then_some(name)
    };
    match (&settings.health, &settings.connection) {
        (HealthToolChoice::Named(name), _) => Some(name.clone()),
        (HealthToolChoice::Auto, ServerConnection::Stdio(program)) => known_tool(program),
        (HealthToolChoice::Off | HealthToolChoice::Auto, _) => None,
    }
}

pub(super) struct HealthCheck {
    pub(super) board: Arc<StatusBoard>,
    pub(super) executor: watch::Receiver<Option<ToolExecutor>>,
    pub(super) redactor: Redactor,
}

impl HealthCheck {
    pub(super) async fn run(mut self) -> Infallible {
        let connected = Instant::now();
        let executor = self.executor.wait_for(Option::is_some).await;
        let Ok(Some(executor)) = executor.map(|executor| executor.clone()) else {
            return std::future::pending().await;
        };
        let mut changed = self.board.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(tool) = self.board.health_tool() else {
                // The tool may appear with the next list.
                if changed.changed().await.is_err() {
                    return std::future::pending().await;
                }
                continue;
            };
            let report = self.call_tool(&executor, tool).await;
            let is_degraded =
                report.as_ref().map(|report| report.state) == Some(HealthState::Degraded);
            if is_degraded && connected.elapsed() < STARTUP_GRACE {
                sleep(STARTUP_RETRY_DELAY).await;
                continue;
            }
            if let Some(report) = report {
                self.record_report(report);
            }
            sleep(if is_degraded {
                DEGRADED_INTERVAL
            } else {
                HEALTHY_INTERVAL
            })
            .await;
        }
    }

    /// Calls the tool. `None` if the result says nothing about the server, for example because
    /// the executor is overloaded.
    async fn call_tool(&self, executor: &ToolExecutor, tool: String) -> Option<HealthReport> {
        let name = format!("{}__{tool}", self.board.settings.name);
        let found = executor.manager().find(&name);
        if found.is_some_and(|found| is_declared_unsafe(found.definition())) {
            let problem =
                format!("the tool '{tool}' says that it isn't read-only, so it isn't called");
            return Some(self.report(tool, HealthState::Unknown, Some(problem)));
        }
        let call = ToolCall::new(name, json!({})).timeout(TIMEOUT);
        let (state, problem) = match executor.execute(call).await.result {
            Ok(output) => parse_health_result(&output.to_result()),
            Err(ToolError::NotFound { .. }) => {
                let problem = format!("the server offers no tool '{tool}' here");
                (HealthState::Unknown, Some(problem))
            }
            Err(error) => match error.kind() {
                ErrorKind::InvalidArguments | ErrorKind::Denied => {
                    (HealthState::Unknown, Some(error.to_string()))
                }
                ErrorKind::Overloaded | ErrorKind::Cancelled | ErrorKind::Interrupted => {
                    return None;
                }
                _ => (HealthState::Degraded, Some(error.to_string())),
            },
        };
        Some(self.report(tool, state, problem))
    }

    fn report(&self, tool: String, state: HealthState, problem: Option<String>) -> HealthReport {
        HealthReport {
            tool,
            state,
            problem: problem.map(|problem| self.redactor.line(&problem, MAX_SHOWN)),
        }
    }

    fn record_report(&self, report: HealthReport) {
        let before = self.board.health();
        if before.as_ref() == Some(&report) {
            return;
        }
        let server = escape(&self.board.settings.name);
        let (tool, problem) = (
            escape(&report.tool),
            report.problem.as_deref().unwrap_or_default(),
        );
        let was_degraded = before.is_some_and(|before| before.state == HealthState::Degraded);
        match report.state {
            HealthState::Healthy if was_degraded => {
                info!(%server, %tool, "MCP server can do its work again");
            }
            HealthState::Healthy => debug!(%server, %tool, "MCP server can do its work"),
            HealthState::Degraded => {
                warn!(%server, %tool, problem, "MCP server is connected, but can't do its work");
            }
            HealthState::Unknown => {
                warn!(%server, %tool, problem, "MCP server's health can't be checked; see 'health' in its entry");
            }
        }
        self.board
            .update(|facts| facts.status.health = Some(report));
    }
}

// True if a tool declares that it does more than read. It must not run
// unattended every few seconds.
fn is_declared_unsafe(tool: &ToolDefinition) -> bool {
    let annotations = tool.annotations();
    annotations.read_only == Some(false) || annotations.destructive == Some(true)
}

// A health tool reports problems by failing, or with `"healthy": false` in its result.
fn parse_health_result(result: &Value) -> (HealthState, Option<String>) {
    let parsed = result
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let result = parsed.as_ref().unwrap_or(result);
    if result["healthy"] != Value::Bool(false) {
        return (HealthState::Healthy, None);
    }
    let text = ["problem", "message", "error"]
        .iter()
        .find_map(|key| result[*key].as_str());
    let text = text.filter(|text| !text.trim().is_empty());
    let problem = text.unwrap_or("its health tool says so, without a reason");
    (HealthState::Degraded, Some(problem.to_owned()))
}
