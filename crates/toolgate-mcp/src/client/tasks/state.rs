//! [`TaskState`]: what a server says about a task.

use std::time::Duration;

use serde_json::Value;

use super::{TaskProtocol, is_usable_id};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug)]
pub(super) struct TaskState {
    pub(super) id: String,
    pub(super) status: TaskStatus,
    pub(super) message: Option<String>,
    pub(super) lifetime: Option<Duration>,
    pub(super) interval: Option<Duration>,
    /// Result, error or questions.
    pub(super) body: Value,
}

impl TaskState {
    /// Fails with what is wrong.
    pub(super) fn parse(body: Value, protocol: TaskProtocol) -> Result<Self, &'static str> {
        let (lifetime, interval) = match protocol {
            TaskProtocol::Extension => ("ttlMs", "pollIntervalMs"),
            TaskProtocol::Legacy { .. } => ("ttl", "pollInterval"),
        };
        let id = body["taskId"].as_str().unwrap_or_default();
        if !is_usable_id(id) {
            return Err("a task without a usable id");
        }
        let status = match body["status"].as_str() {
            Some("working") => TaskStatus::Working,
            Some("input_required") => TaskStatus::InputRequired,
            Some("completed") => TaskStatus::Completed,
            Some("failed") => TaskStatus::Failed,
            Some("cancelled") => TaskStatus::Cancelled,
            _ => return Err("a task of an unknown status"),
        };
        Ok(Self {
            id: id.to_owned(),
            status,
            message: body["statusMessage"].as_str().map(str::to_owned),
            lifetime: milliseconds(&body[lifetime]),
            interval: milliseconds(&body[interval]),
            body,
        })
    }

    pub(super) fn is_terminal(&self) -> bool {
        !matches!(self.status, TaskStatus::Working | TaskStatus::InputRequired)
    }
}

/// `None` also for what isn't a duration.
fn milliseconds(value: &Value) -> Option<Duration> {
    let ms = value.as_f64().filter(|ms| *ms >= 0.0)?;
    Some(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX))
}
