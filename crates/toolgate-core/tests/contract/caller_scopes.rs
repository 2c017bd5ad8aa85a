//! Callers that may use only some of the tools.

use serde_json::{Value, json};
use toolgate_core::{Limits, Scope, Tool, ToolCall, ToolError, ToolPattern};

use crate::support::{LogCapture, echo, executor_of, logging, open_definition};

#[tokio::test]
async fn a_caller_sees_only_the_tools_of_its_scope() {
    let executor = executor_of([
        echo(open_definition("light")),
        echo(open_definition("lock")),
    ]);
    let only = Scope::only(vec![ToolPattern::new("light")]);
    for (name, found) in [("light", true), ("lock", false)] {
        let call = ToolCall::new(name, json!({})).scope(only.clone());
        assert_eq!(executor.dry_run(&call).is_ok(), found);
        let outcome = executor.execute(call).await;
        assert_eq!(outcome.is_success(), found);
        assert!(
            !outcome
                .to_envelope()
                .to_string()
                .contains("Did you mean 'lock'")
        );
    }
    let nothing = ToolCall::new("light", json!({})).scope(Scope::only(Vec::new()));
    let error = executor.execute(nothing).await.result.unwrap_err();
    assert!(matches!(error, ToolError::NotFound { known, .. } if known.is_empty()));
}

#[test]
fn nested_scopes_allow_only_what_all_of_them_allow() {
    let patterns = |names: &[&str]| names.iter().map(|name| ToolPattern::new(name)).collect();
    let tools = [
        echo(open_definition("light")),
        echo(open_definition("lock")),
        echo(open_definition("oven")),
    ];
    let served = Scope::only(patterns(&["l*"])).except(patterns(&["lock"]));
    let caller = Scope::only(patterns(&["lock", "light", "oven"])).for_caller("kitchen");
    for (scope, expected) in [
        (
            Scope::default().within(&Scope::default()),
            [true, true, true],
        ),
        (
            Scope::default().except(patterns(&["l*"])),
            [false, false, true],
        ),
        (caller.clone(), [true, true, true]),
        (caller.clone().within(&served), [true, false, false]),
        (
            Scope::default().within(&caller).within(&served),
            [true, false, false],
        ),
        (
            caller.within(&served).without_restrictions(),
            [true, true, true],
        ),
    ] {
        let has: Vec<bool> = tools
            .iter()
            .map(|tool| scope.allows(tool.definition()))
            .collect();
        assert_eq!(has, expected, "{scope:?}");
    }
    assert!(
        Scope::default()
            .except(Vec::new())
            .within(&Scope::default())
            .is_unrestricted()
    );
}

#[tokio::test]
async fn a_resolved_tool_runs_only_if_it_is_still_visible() {
    let executor = executor_of([
        echo(open_definition("light")),
        echo(open_definition("lock")),
    ]);
    let lock = executor.find("lock").unwrap();
    for (allowed, runs) in [("l*", true), ("light", false)] {
        let scope = Scope::only(vec![ToolPattern::new(allowed)]);
        let call = ToolCall::new("lock", json!({})).resolved_tool(lock.clone());
        let outcome = executor.execute(call.scope(scope)).await;
        assert_eq!(outcome.is_success(), runs, "{allowed}");
    }
    let policy = serde_json::from_value(json!({ "deny": ["lock"] })).unwrap();
    executor.set_rules(Limits::default(), policy);
    let call = ToolCall::new("lock", json!({})).resolved_tool(lock);
    let error = executor.execute(call).await.result.unwrap_err();
    assert!(matches!(error, ToolError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_named_caller_is_logged_escaped() {
    let log = LogCapture::json();
    let executor = logging([echo(open_definition("light"))], &[]);
    for (scope, caller) in [
        (Scope::default(), None),
        (Scope::default().for_caller("kitchen"), Some("kitchen")),
        (Scope::only(Vec::new()).for_caller("a\nb"), Some("a\\nb")),
    ] {
        let call = ToolCall::new("light", json!({})).scope(scope);
        executor.execute(call).await;
        let lines = log.lines();
        let line: Value = serde_json::from_str(&lines[lines.len() - 1]).unwrap();
        assert_eq!(line["fields"]["caller"].as_str(), caller);
    }
}
