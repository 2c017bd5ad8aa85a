//! [`TaskEnd`]: how a task ended, and the answer that its client gets.

use serde_json::{Value, json};

use crate::server::jsonrpc::RequestError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    const ENDS: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// True if the task can't change any more.
    pub(super) fn is_end(self) -> bool {
        Self::ENDS.contains(&self)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct TaskEnd {
    pub(super) status: TaskStatus,
    pub(super) message: Option<String>,
    /// What the call's own request would have been answered with.
    pub(super) answer: Result<Value, RequestError>,
}

impl TaskEnd {
    pub(super) fn failed(error: RequestError) -> Self {
        Self {
            status: TaskStatus::Failed,
            message: Some(error.message.clone().into_owned()),
            answer: Err(error),
        }
    }

    /// A call that was cut off: nobody can know its result.
    pub(super) fn lost() -> Self {
        let text = "Toolgate was restarted while this call was running; whether it did its work is unknown";
        Self::failed(RequestError::new(RequestError::INTERNAL_ERROR, text))
    }

    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({ "status": self.status.as_str(), "message": self.message });
        match &self.answer {
            Ok(result) => value["result"] = result.clone(),
            Err(error) => value["error"] = json!(error),
        }
        value
    }

    /// Reads what [`to_value`](Self::to_value) wrote. A damaged record is a failure.
    pub(super) fn from_value(mut value: Value) -> Self {
        let status = value["status"].as_str().unwrap_or_default();
        let mut all = TaskStatus::ENDS.into_iter();
        let Some(status) = all.find(|known| known.as_str() == status) else {
            return Self::lost();
        };
        let message = value["message"].as_str().map(str::to_owned);
        let answer = match value.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(read_error(&value["error"])),
        };
        Self {
            status,
            message,
            answer,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.to_value().to_string().len()
    }
}

fn read_error(error: &Value) -> RequestError {
    let code = error["code"].as_i64().and_then(|code| code.try_into().ok());
    let text = error["message"].as_str().unwrap_or_default().to_owned();
    let mut read = RequestError::new(code.unwrap_or(RequestError::INTERNAL_ERROR), text);
    read.data = error.get("data").cloned();
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_kept_as_it_was() {
        let mut error = RequestError::invalid_params("no");
        error.data = Some(json!({ "a": 1 }));
        let completed = TaskEnd {
            status: TaskStatus::Completed,
            message: None,
            answer: Ok(json!({ "content": [] })),
        };
        let cancelled = TaskEnd {
            status: TaskStatus::Cancelled,
            message: Some("why".to_owned()),
            answer: Ok(json!({ "isError": true })),
        };
        for end in [TaskEnd::failed(error), completed, cancelled] {
            assert_eq!(TaskEnd::from_value(end.to_value()), end);
        }
        let damaged = TaskEnd::from_value(json!({ "status": "working" }));
        assert_eq!(damaged, TaskEnd::lost());
    }
}
