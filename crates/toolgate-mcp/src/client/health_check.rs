//! Asks a connected server's own health tool whether the server can do its work.
//!
//! A server may answer every message and still be of no use: a home's server without its MQTT broker. Each server's task runs
//! one [`HealthCheck`] beside its connection, so that a health tool that hangs holds up nobody else. The calls pass an executor
//! like any other, one without a log and a journal: what counts is the change, and that is told once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use toolgate_core::{
    ErrorKind, Redactor, Tool, ToolCall, ToolDefinition, ToolError, ToolExecutor, escape,
};
use toolgate_home::HomeTool;
use tracing::{debug, info, warn};

use super::status::Board;
use crate::{Connection, HealthTool, Program, ServerSettings};

const TIMEOUT: Duration = Duration::from_secs(10);
/// A server that was connected just now may still be reaching what it needs: so long, bad news is asked for again.
const SETTLING: Duration = Duration::from_secs(3);
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Between two questions to a server that is well, and to one that is not.
const WHILE_HEALTHY: Duration = Duration::from_secs(30);
const WHILE_DEGRADED: Duration = Duration::from_secs(10);
/// The longest problem that is shown, in bytes.
const LONGEST: usize = 500;

/// What a server's health tool said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HealthReport {
    /// The tool's name on the server.
    pub tool: String,
    /// Whether the server can do its work.
    pub state: HealthState,
    /// Why it can't, or why that isn't known.
    pub problem: Option<String>,
}

/// Whether a connected server can do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HealthState {
    /// It can.
    Healthy,
    /// It is connected, and can't.
    Degraded,
    /// Its tool can't be asked: it isn't there, the policy forbids it, or it changes something.
    Unknown,
}

/// The tool to ask, by its name on the server. A usual one must say that it only reads; one that a person named need not, but
/// isn't called if it says that it changes something.
pub(super) fn health_tool(settings: &ServerSettings, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let usual = |program: &Program| {
        let name = HomeTool::CheckHealth.name(program.home_dialect()?);
        let is_offered = |tool: &Arc<dyn Tool>| {
            let definition = tool.definition();
            definition.original_name() == name && definition.annotations().read_only == Some(true)
        };
        tools.iter().any(is_offered).then_some(name)
    };
    match (&settings.health, &settings.connection) {
        (HealthTool::Named(name), _) => Some(name.clone()),
        (HealthTool::Usual, Connection::Stdio(program)) => usual(program),
        (HealthTool::Off | HealthTool::Usual, _) => None,
    }
}

pub(super) struct HealthCheck {
    pub(super) board: Arc<Board>,
    /// Who runs the calls, once somebody wants to know.
    pub(super) executor: watch::Receiver<Option<ToolExecutor>>,
    pub(super) redactor: Redactor,
}

impl HealthCheck {
    /// Runs for as long as the server is connected: dropped with the connection.
    pub(super) async fn run(mut self) -> Infallible {
        let connected = Instant::now();
        let wanted = self.executor.wait_for(Option::is_some).await;
        let Ok(Some(executor)) = wanted.map(|executor| executor.clone()) else {
            return std::future::pending().await;
        };
        let mut changed = self.board.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(tool) = self.board.health_tool() else {
                // Its list of tools may change.
                if changed.changed().await.is_err() {
                    return std::future::pending().await;
                }
                continue;
            };
            let report = self.ask(&executor, tool).await;
            let is_degraded =
                report.as_ref().map(|report| report.state) == Some(HealthState::Degraded);
            if is_degraded && connected.elapsed() < SETTLING {
                sleep(ASK_AGAIN).await;
                continue;
            }
            if let Some(report) = report {
                self.note(report);
            }
            sleep(if is_degraded {
                WHILE_DEGRADED
            } else {
                WHILE_HEALTHY
            })
            .await;
        }
    }

    /// None if the answer says nothing about the server, as when too much is asked of it at the same time.
    async fn ask(&self, executor: &ToolExecutor, tool: String) -> Option<HealthReport> {
        let name = format!("{}__{tool}", self.board.settings.name);
        let found = executor.manager().find(&name);
        if found.is_some_and(|found| changes_something(found.definition())) {
            let problem =
                format!("the tool '{tool}' says that it isn't read-only, so it isn't called");
            return Some(self.report(tool, HealthState::Unknown, Some(problem)));
        }
        let call = ToolCall::new(name, json!({})).timeout(TIMEOUT);
        let (state, problem) = match executor.execute(call).await.result {
            Ok(output) => judge(&output.to_result()),
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
            problem: problem.map(|problem| self.redactor.line(&problem, LONGEST)),
        }
    }

    /// Keeps a report, and tells what is new about it.
    fn note(&self, report: HealthReport) {
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
                warn!(%server, %tool, problem, "MCP server's health can't be asked for; see 'health' in its entry");
            }
        }
        self.board.update(|facts| facts.health = Some(report));
    }
}

/// True if a tool says of itself that it does more than read. It would do so every few seconds, with nobody looking.
fn changes_something(tool: &ToolDefinition) -> bool {
    let annotations = tool.annotations();
    annotations.read_only == Some(false) || annotations.destructive == Some(true)
}

/// A health tool tells bad news by failing, or by `"healthy": false` in what it answers.
fn judge(result: &Value) -> (HealthState, Option<String>) {
    let parsed = result
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let result = parsed.as_ref().unwrap_or(result);
    if result["healthy"] != Value::Bool(false) {
        return (HealthState::Healthy, None);
    }
    let words = ["problem", "message", "error"]
        .iter()
        .find_map(|key| result[*key].as_str());
    let words = words.filter(|words| !words.trim().is_empty());
    let problem = words.unwrap_or("its health tool says so, without a reason");
    (HealthState::Degraded, Some(problem.to_owned()))
}
