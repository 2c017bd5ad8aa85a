//! Calls that their server goes on with as tasks: as the extension of 2026-07-28 has it, and as the
//! experimental tasks of 2025-11-25.

mod cancel;
mod input;
mod limit;
mod pacing;
mod poll;
mod poll_error;
mod state;
mod wait;

use serde_json::Value;

pub(crate) use cancel::cancel_at;
pub(crate) use limit::{MAX_TASKS, RunningTaskLimit};
pub(crate) use wait::TaskWait;

use crate::era::{LEGACY, MODERN};

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
// It has to fit into a header.
const MAX_TASK_ID_LEN: usize = 1024;

/// What a server says about tasks in its handshake.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskOffer {
    extension: bool,
    legacy_calls: bool,
    legacy_cancel: bool,
}

impl TaskOffer {
    pub(crate) fn from_json(capabilities: &Value) -> Self {
        let legacy = &capabilities["tasks"];
        Self {
            extension: capabilities["extensions"][TASKS_EXTENSION].is_object(),
            legacy_calls: legacy["requests"]["tools"]["call"].is_object(),
            legacy_cancel: legacy["cancel"].is_object(),
        }
    }

    /// Each revision has its own kind of tasks, and the other kind counts for nothing in it.
    pub(crate) fn protocol(self, is_modern: bool, revision: &str) -> Option<TaskProtocol> {
        match is_modern {
            true => self.extension.then_some(TaskProtocol::Extension),
            false => (self.legacy_calls && revision == LEGACY).then_some(TaskProtocol::Legacy {
                can_cancel: self.legacy_cancel,
            }),
        }
    }
}

/// How tasks work in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskProtocol {
    /// The extension: the server decides which calls become tasks.
    Extension,
    /// 2025-11-25: the client asks for a task with each call.
    Legacy { can_cancel: bool },
}

impl TaskProtocol {
    /// For a task that was created in this revision.
    fn of_revision(revision: &str) -> Option<Self> {
        match revision {
            MODERN => Some(Self::Extension),
            LEGACY => Some(Self::Legacy { can_cancel: true }),
            _ => None,
        }
    }
}

/// What a tool of 2025-11-25 says about tasks (`execution.taskSupport`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

impl TaskSupport {
    pub(crate) fn of_tool(entry: &Value) -> Self {
        match entry["execution"]["taskSupport"].as_str() {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

/// Returns the task that the answer to a call announces, if it does.
pub(crate) fn take_created_task(protocol: TaskProtocol, answer: &mut Value) -> Option<Value> {
    if !is_created_task(protocol, answer) {
        return None;
    }
    Some(match protocol {
        TaskProtocol::Extension => answer.take(),
        TaskProtocol::Legacy { .. } => answer["task"].take(),
    })
}

/// The id of such a task, if it is a usable one.
pub(crate) fn created_task_id(protocol: TaskProtocol, answer: &Value) -> Option<&str> {
    if !is_created_task(protocol, answer) {
        return None;
    }
    let task = match protocol {
        TaskProtocol::Extension => answer,
        TaskProtocol::Legacy { .. } => &answer["task"],
    };
    task["taskId"].as_str().filter(|id| is_usable_id(id))
}

fn is_created_task(protocol: TaskProtocol, answer: &Value) -> bool {
    match protocol {
        TaskProtocol::Extension => answer["resultType"] == "task",
        // A result of a tool may have a member of that name too, but then it has content.
        TaskProtocol::Legacy { .. } => answer["task"].is_object() && answer["content"].is_null(),
    }
}

fn is_usable_id(id: &str) -> bool {
    (1..=MAX_TASK_ID_LEN).contains(&id.len())
}

#[cfg(test)]
mod tests;
