//! Tasks as clients of both eras see them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::EXTENSION;
use super::task::ClientTask;
use super::task_end::TaskStatus;
use crate::server::jsonrpc::RequestError;
use crate::server::suspended::input_request;
use crate::task_fields::timestamp;

impl ClientTask {
    /// The task without what is in it.
    pub(super) fn to_seed(&self, id: &str) -> Map<String, Value> {
        let (ttl, interval) = match self.is_modern {
            true => ("ttlMs", "pollIntervalMs"),
            false => ("ttl", "pollInterval"),
        };
        let (status, message, updated) = self.status();
        let mut seed = Map::new();
        let mut add = |key: &str, value: Value| drop(seed.insert(key.to_owned(), value));
        add("taskId", json!(id));
        add("status", json!(status.as_str()));
        if let Some(message) = message {
            add("statusMessage", json!(message));
        }
        add("createdAt", json!(timestamp(self.record.created)));
        add("lastUpdatedAt", json!(timestamp(updated)));
        add(ttl, json!(millis(self.ttl())));
        add(interval, json!(millis(self.poll_interval())));
        seed
    }

    /// The task with its questions, its result or its error, for clients of 2026-07-28.
    pub(super) fn to_detailed(&self, id: &str) -> Map<String, Value> {
        // Read first: an end is for good, while questions come and go.
        let (end, questions) = (self.end(), self.open_questions());
        let mut task = self.to_seed(id);
        let status = match &end {
            Some(end) => end.status,
            None if questions.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        };
        task.insert("status".to_owned(), json!(status.as_str()));
        let payload = match (status, end.map(|end| end.answer)) {
            (TaskStatus::Completed, Some(Ok(result))) => Some(("result", result)),
            (TaskStatus::Failed, Some(Err(error))) => Some(("error", json!(error))),
            (TaskStatus::InputRequired, _) => {
                let requests = questions.iter();
                let requests = requests.map(|(key, asked)| (key.clone(), input_request(asked)));
                let requests: Map<String, Value> = requests.collect();
                Some(("inputRequests", requests.into()))
            }
            _ => None,
        };
        if let Some((key, value)) = payload {
            task.insert(key.to_owned(), value);
        }
        task
    }
}

/// The error for a client that uses tasks without saying that it supports them.
pub(in crate::server) fn missing_capability() -> RequestError {
    let text = "this needs the capability of the tasks extension in the request";
    let mut error = RequestError::new(RequestError::MISSING_CAPABILITY, text);
    error.data = Some(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
    error
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
