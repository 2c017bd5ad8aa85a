//! The calls of turns that are not over yet: how each is shown, and what came of it.

use serde_json::{Value, json};
use toolgate_core::{CallId, ToolOutcome, escape};

/// Calls of turns that never end are not kept for ever.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    title: String,
    /// Whether it went well, and how long it took in milliseconds; none while it runs.
    came: Option<(bool, f64)>,
}

impl Calls {
    pub(super) fn begin(&mut self, id: CallId, tool: &str, title: String) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(Call {
            id: id.to_string(),
            tool: tool.to_owned(),
            title,
            came: None,
        });
    }

    pub(super) fn end(&mut self, outcome: &ToolOutcome) -> String {
        let id = outcome.call_id.to_string();
        let Some(call) = self.0.iter_mut().find(|call| call.id == id) else {
            return escape(&outcome.tool_name);
        };
        call.came = Some((outcome.is_success(), outcome.execution_time_ms()));
        call.title.clone()
    }

    /// The calls of a turn that is over, for programs, in the words of the journal. One that was given up has no outcome.
    pub(super) fn take(&mut self, ids: &[String]) -> Value {
        let records = ids.iter().map(|id| {
            let known = self.0.iter().position(|call| call.id == *id);
            match known.map(|index| self.0.remove(index)) {
                None => json!({ "id": id }),
                Some(Call { tool, came, .. }) => {
                    let (success, took) = came.unzip();
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
    fn each_call_of_a_turn_is_told_with_what_came_of_it() {
        let [first, second, other] =
            ["echo", "echo", "lock"].map(|tool| ToolCall::new(tool, json!({})));
        let mut calls = Calls::default();
        for (call, title) in [(&first, "echo 1"), (&second, "echo 2"), (&other, "lock")] {
            calls.begin(call.id(), call.name(), title.to_owned());
        }
        let failed = ToolOutcome::refused(&second, ToolError::failed("It is broken."));
        assert_eq!(calls.end(&failed), "echo 2", "not the other of that name");
        let ids = [&second, &first].map(|call| call.id().to_string());
        let [id, given_up] = &ids;
        assert_eq!(
            calls.take(&ids),
            json!([
                { "id": id, "tool": "echo", "success": false, "duration_ms": 0.0 },
                { "id": given_up, "tool": "echo", "success": null, "duration_ms": null },
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
        let mut calls = Calls::default();
        for _ in 0..2 * MOST {
            let call = ToolCall::new("echo", json!({}));
            calls.begin(call.id(), "echo", String::new());
        }
        assert_eq!(calls.0.len(), MOST);
    }
}
