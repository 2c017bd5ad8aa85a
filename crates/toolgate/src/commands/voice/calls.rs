//! The calls of turns that aren't over yet.

use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_core::{CallId, ToolOutcome};

// Bounds the list, because a turn may never end.
const MAX_CALLS: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct PendingCalls(Vec<PendingCall>);

#[derive(Debug)]
struct PendingCall {
    id: String,
    tool: String,
    title: String,
    /// Success, and the duration in milliseconds. `None` while it runs.
    outcome: Option<(bool, f64)>,
}

impl PendingCalls {
    pub(super) fn start(&mut self, id: CallId, tool: &str, title: String) {
        if self.0.len() == MAX_CALLS {
            self.0.remove(0);
        }
        self.0.push(PendingCall {
            id: id.to_string(),
            tool: tool.to_owned(),
            title,
            outcome: None,
        });
    }

    pub(super) fn finish(&mut self, outcome: &ToolOutcome) -> String {
        let id = outcome.call_id.to_string();
        let Some(call) = self.0.iter_mut().find(|call| call.id == id) else {
            return escape(&outcome.tool_name);
        };
        call.outcome = Some((outcome.is_success(), outcome.execution_time_ms()));
        call.title.clone()
    }

    /// Removes the calls of a finished turn, as JSON in the journal's terms. An abandoned
    /// call has no outcome.
    pub(super) fn take(&mut self, ids: &[String]) -> Value {
        let records = ids.iter().map(|id| {
            let known = self.0.iter().position(|call| call.id == *id);
            match known.map(|index| self.0.remove(index)) {
                None => json!({ "id": id }),
                Some(PendingCall { tool, outcome, .. }) => {
                    let (success, took) = outcome.unzip();
                    json!({ "id": id, "tool": tool, "success": success, "duration_ms": took })
                }
            }
        });
        records.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_core::{ToolCall, ToolError};

    use super::*;

    #[test]
    fn each_call_of_a_turn_has_its_outcome() {
        let [first, second, other] =
            ["echo", "echo", "lock"].map(|tool| ToolCall::new(tool, json!({})));
        let mut calls = PendingCalls::default();
        for (call, title) in [(&first, "echo 1"), (&second, "echo 2"), (&other, "lock")] {
            calls.start(call.id(), call.name(), title.to_owned());
        }
        let failed = ToolOutcome::rejected(&second, ToolError::failed("It is broken."));
        assert_eq!(
            calls.finish(&failed),
            "echo 2",
            "not the other of that name"
        );
        let ids = [&second, &first].map(|call| call.id().to_string());
        let [id, abandoned] = &ids;
        assert_eq!(
            calls.take(&ids),
            json!([
                { "id": id, "tool": "echo", "success": false, "duration_ms": 0.0 },
                { "id": abandoned, "tool": "echo", "success": null, "duration_ms": null },
            ])
        );
        let ids = [other.id().to_string(), "never seen".to_owned()];
        assert_eq!(
            calls.take(&ids)[0]["tool"],
            "lock",
            "it belongs to another turn"
        );
        assert_eq!(calls.0.len(), 0);
    }

    #[test]
    fn calls_of_turns_that_never_end_are_forgotten() {
        let mut calls = PendingCalls::default();
        for _ in 0..2 * MAX_CALLS {
            let call = ToolCall::new("echo", json!({}));
            calls.start(call.id(), "echo", String::new());
        }
        assert_eq!(calls.0.len(), MAX_CALLS);
    }
}
