//! `recent_calls` as a tool.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, Handler, Tool, ToolCall, ToolDefinition, ToolExecutor, ToolFuture, ToolManager,
    ToolOutput, ValidArguments,
};
use toolgate_journal::RecentCallsHandler;

use crate::support::{TestJournal, always_answers};

struct RecentCallsTool(ToolDefinition, RecentCallsHandler);

impl Tool for RecentCallsTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        self.1.call(arguments, context)
    }
}

#[tokio::test]
async fn im6_recent_calls_lists_the_newest_without_itself() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let service = RecentCallsHandler::default();
    let definition = ToolDefinition::builder(
        RecentCallsHandler::NAME,
        "Recent calls",
        RecentCallsHandler::parameters(),
    );
    let manager = ToolManager::new();
    manager.add(RecentCallsTool(
        definition.build().unwrap(),
        service.clone(),
    ));
    manager.add(always_answers("ping", Ok(ToolOutput::text("pong"))));
    let executor = ToolExecutor::builder(Arc::new(manager))
        .observer(journal.observer())
        .build();
    let ask = async |arguments: Value| {
        executor
            .execute(ToolCall::new(RecentCallsHandler::NAME, arguments))
            .await
            .to_envelope()
    };

    let early = ask(json!({})).await;
    assert_eq!(
        early["error"],
        "The recent_calls service is currently unavailable: calls are not recorded"
    );
    service.set_reader(journal.reader());
    for n in 0..60 {
        executor
            .execute(ToolCall::new(
                if n % 2 == 0 { "ping" } else { "nope" },
                json!({ "n": n }),
            ))
            .await;
    }
    for (arguments, expected) in [
        (json!({}), (50..60).rev().collect::<Vec<u64>>()),
        (
            json!({ "limit": 50, "tool": "ping" }),
            (0..30).rev().map(|n| 2 * n).collect(),
        ),
        (
            json!({ "limit": 3, "tool": "nope", "outcome": "failed" }),
            vec![59, 57, 55],
        ),
        (json!({ "tool": "ping", "outcome": "timeout" }), vec![]),
    ] {
        let envelope = ask(arguments).await;
        let calls = envelope["result"]["calls"].as_array().unwrap();
        let found: Vec<u64> = calls
            .iter()
            .map(|call| call["arguments"]["n"].as_u64().unwrap())
            .collect();
        assert_eq!(found, expected, "{envelope}");
    }
    for wrong in [
        json!({ "limit": 51 }),
        json!({ "limit": 0 }),
        json!({ "outcome": "odd" }),
    ] {
        assert_eq!(ask(wrong).await["error_kind"], "invalid_arguments");
    }
}
