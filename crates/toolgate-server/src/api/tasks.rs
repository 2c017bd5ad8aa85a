//! Lists calls that go on as tasks, of MCP clients or of servers, and cancels them.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_core::{ToolSource, sanitize};
use toolgate_mcp::TaskSummary;
use utoipa::ToSchema;

use super::extract::PathName;
use crate::Gateway;
use crate::Right;
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::server_tasks::ServerTask;

/// A call that goes on as a task: its client doesn't wait for the answer, or its server works on it
/// and reports how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Task)]
pub(crate) struct TaskInfo {
    /// The id of the call.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    id: String,
    /// The name of the tool.
    #[schema(example = "render_video")]
    tool: String,
    /// The MCP server that provides the tool.
    #[schema(example = "studio")]
    server: Option<String>,
    /// True if the caller waits for the answer; false if its client fetches the answer later.
    #[schema(example = false)]
    caller_waits: bool,
    /// The name of the caller's token, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    caller: Option<String>,
    /// Whether the caller of this request may cancel it.
    #[schema(example = true)]
    may_cancel: bool,
    /// `working`, or `input_required` while a question has to be answered.
    #[schema(example = "working")]
    status: String,
    /// What the tool reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "rendering")]
    message: Option<String>,
    /// How much is done, in a unit that the tool chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 12.0)]
    done: Option<f64>,
    /// How much there is to do, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 20.0)]
    total: Option<f64>,
    /// When the call became a task, in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    created_at: String,
    /// When its state changed last, in UTC.
    #[schema(example = "2026-11-16T05:32:00.000Z", format = DateTime)]
    updated_at: String,
}

/// Lists the calls that continue as tasks, the oldest first: the caller's own, or all for callers
/// that may see everything.
#[utoipa::path(get, path = "/api/tasks", tag = "calls",
    responses((status = 200, description = "Tasks that run or wait", body = Vec<TaskInfo>)))]
pub(crate) async fn list(State(gateway): State<Gateway>, caller: Caller) -> Json<Vec<TaskInfo>> {
    Json(visible_tasks(&gateway, &caller).unwrap_or_default())
}

/// Cancels a task and its call, and tells its client and its server so. Cancelling a task of
/// another caller needs the right to operate.
#[utoipa::path(post, path = "/api/tasks/{id}/cancel", tag = "calls",
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 204, description = "It is cancelled"),
              (status = 403, description = "The task is another caller's, and the caller does not have the right to operate", body = Problem),
              (status = 404, description = "No such task is running", body = Problem)))]
pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
) -> Result<StatusCode, Problem> {
    let unknown = || Problem::not_found("no such task is running; it may have ended");
    let mut visible = visible_tasks(&gateway, &caller).into_iter().flatten();
    let task = visible.find(|task| task.id == id).ok_or_else(unknown)?;
    if !task.may_cancel {
        caller.require(Right::Operate)?;
    }
    // A client's task first, so that its client learns why there is no result.
    let is_cancelled = gateway.mcp.cancel_task(&id).await || gateway.parts.feed.tasks().cancel(&id);
    is_cancelled
        .then_some(StatusCode::NO_CONTENT)
        .ok_or_else(unknown)
}

/// `None` for a caller that sees no calls.
fn visible_tasks(gateway: &Gateway, caller: &Caller) -> Option<Vec<TaskInfo>> {
    let view = CallerView::new(gateway, caller);
    if view.sees_no_calls() {
        return None;
    }
    let of_clients = gateway.mcp.tasks().into_iter();
    let mut tasks: Vec<TaskInfo> = of_clients
        .map(|task| TaskInfo::of_client(task, gateway))
        .collect();
    let known: HashSet<String> = tasks.iter().map(|task| task.id.clone()).collect();
    let of_servers = gateway.parts.feed.tasks().list().into_iter();
    let of_servers = of_servers.map(|task| TaskInfo::of_server(task, gateway));
    // Many tasks of clients are tasks of their servers as well.
    tasks.extend(of_servers.filter(|task| !known.contains(&task.id)));
    tasks.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    let is_visible = |task: &TaskInfo| {
        view.sees_calls_of(task.caller.as_deref())
            && view.has_tool_of_call(&task.tool, task.server.as_deref())
    };
    tasks.retain(is_visible);
    let name = caller.scope.caller();
    let name = name.map(|name| sanitize::name(&gateway.parts.redactor, name));
    for task in &mut tasks {
        task.may_cancel = caller.rights.operate || name == task.caller;
    }
    Some(tasks)
}

impl TaskInfo {
    fn of_client(task: TaskSummary, gateway: &Gateway) -> Self {
        let redactor = &gateway.parts.redactor;
        let tool = gateway.executor().manager().find(&task.tool);
        let source = tool.as_ref().map(|tool| tool.definition().source());
        Self {
            id: task.call.to_string(),
            tool: task.tool,
            server: match source {
                Some(ToolSource::Mcp(server)) => Some(server.clone()),
                _ => None,
            },
            caller_waits: false,
            may_cancel: false,
            caller: task.caller.map(|name| sanitize::name(redactor, &name)),
            status: task.status.to_owned(),
            message: task.message.map(|text| sanitize::text(redactor, &text)),
            done: task.done,
            total: task.total,
            created_at: timestamp(task.created),
            updated_at: timestamp(task.updated),
        }
    }

    fn of_server(task: ServerTask, gateway: &Gateway) -> Self {
        let redactor = &gateway.parts.redactor;
        let report = task.report();
        let updated = report.as_ref().map_or(task.created, |report| report.at);
        let progress = report.and_then(|report| report.progress);
        let finite = |number: f64| number.is_finite().then_some(number);
        let message = progress
            .as_ref()
            .and_then(|progress| progress.message.as_ref());
        let caller = task.call.scope().caller();
        Self {
            id: task.call.id().to_string(),
            tool: task.call.tool_name().to_owned(),
            caller_waits: true,
            may_cancel: false,
            caller: caller.map(|name| sanitize::name(redactor, name)),
            status: task.status().to_owned(),
            message: message.map(|text| sanitize::text(redactor, text)),
            done: progress.as_ref().and_then(|progress| finite(progress.done)),
            total: progress.and_then(|progress| progress.total.and_then(finite)),
            created_at: timestamp(task.created),
            updated_at: timestamp(updated),
            server: Some(task.server),
        }
    }
}

fn timestamp(time: std::time::SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    format!("{time:.3}")
}
