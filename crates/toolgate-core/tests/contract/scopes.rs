//! A caller with a share of the tools.

use serde_json::{Value, json};
use toolgate_core::{Limits, Pattern, Scope, Tool, ToolCall, ToolError};

use crate::support::{Log, echo, executor_of, logging, open};

#[tokio::test]
async fn a_callers_share_of_the_tools_is_all_there_is_for_it() {
    let executor = executor_of([echo(open("light")), echo(open("lock"))]);
    let only = Scope::only(vec![Pattern::new("light")]);
    for (name, found) in [("light", true), ("lock", false)] {
        let call = ToolCall::new(name, json!({})).scope(only.clone());
        assert_eq!(executor.rehearse(&call).is_ok(), found);
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
fn shares_of_shares_have_what_all_of_them_have() {
    let patterns = |names: &[&str]| names.iter().map(|name| Pattern::new(name)).collect();
    let tools = [echo(open("light")), echo(open("lock")), echo(open("oven"))];
    let served = Scope::only(patterns(&["l*"])).except(patterns(&["lock"]));
    let caller = Scope::only(patterns(&["lock", "light", "oven"])).of("kitchen");
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
        (caller.within(&served).without_limit(), [true, true, true]),
    ] {
        let has: Vec<bool> = tools
            .iter()
            .map(|tool| scope.has(tool.definition()))
            .collect();
        assert_eq!(has, expected, "{scope:?}");
    }
    assert!(
        Scope::default()
            .except(Vec::new())
            .within(&Scope::default())
            .is_everything()
    );
}

#[tokio::test]
async fn a_tool_that_was_found_before_runs_only_where_it_is_still_shown() {
    let executor = executor_of([echo(open("light")), echo(open("lock"))]);
    let lock = executor.find("lock").unwrap();
    for (allowed, runs) in [("l*", true), ("light", false)] {
        let scope = Scope::only(vec![Pattern::new(allowed)]);
        let call = ToolCall::new("lock", json!({})).found(lock.clone());
        let outcome = executor.execute(call.scope(scope)).await;
        assert_eq!(outcome.is_success(), runs, "{allowed}");
    }
    let policy = serde_json::from_value(json!({ "deny": ["lock"] })).unwrap();
    executor.set_rules(Limits::default(), policy);
    let call = ToolCall::new("lock", json!({})).found(lock);
    let error = executor.execute(call).await.result.unwrap_err();
    assert!(matches!(error, ToolError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn who_called_stands_in_the_log_escaped_and_only_where_callers_are_told_apart() {
    let log = Log::json();
    let executor = logging([echo(open("light"))], &[]);
    for (scope, caller) in [
        (Scope::default(), None),
        (Scope::default().of("kitchen"), Some("kitchen")),
        (Scope::only(Vec::new()).of("a\nb"), Some("a\\nb")),
    ] {
        let call = ToolCall::new("light", json!({})).scope(scope);
        executor.execute(call).await;
        let lines = log.lines();
        let line: Value = serde_json::from_str(&lines[lines.len() - 1]).unwrap();
        assert_eq!(line["fields"]["caller"].as_str(), caller);
    }
}
