//! Changing limits and policy while calls run.

use std::sync::Arc;

use serde_json::json;
use toolgate_core::{ErrorKind, Limits, LogObserver, Policy, Scope, ToolCall, ToolOutcome};

use crate::support::{
    LogCapture, builder_of, echo, executor_of, millis, open_definition, secs, sleeping,
};

fn policy(policy: serde_json::Value) -> Policy {
    serde_json::from_value(policy).unwrap()
}

fn kind(outcome: &ToolOutcome) -> Option<ErrorKind> {
    outcome
        .result
        .as_ref()
        .err()
        .map(toolgate_core::ToolError::kind)
}

#[tokio::test]
async fn a_new_policy_applies_to_the_next_call_and_notifies_subscribers() {
    let executor = executor_of([echo(open_definition("lamp")), echo(open_definition("lock"))]);
    let mut changes = executor.manager().subscribe();
    for (rules, expected) in [
        (json!({ "deny": ["lock"] }), Some(ErrorKind::NotFound)),
        (json!({ "ask": ["lock"] }), Some(ErrorKind::Denied)),
        (json!({}), None),
    ] {
        changes.mark_unchanged();
        executor.set_rules(Limits::default(), policy(rules.clone()));
        assert!(changes.has_changed().unwrap(), "{rules}");
        let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
        assert_eq!(kind(&outcome), expected, "{rules}");
        let lamp = executor.execute(ToolCall::new("lamp", json!({}))).await;
        assert!(lamp.is_success(), "{rules}");
    }
    changes.mark_unchanged();
    executor.set_rules(Limits::default(), Policy::default());
    assert!(!changes.has_changed().unwrap(), "nothing else is visible");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_under_the_rules_it_started_with() {
    let executor = executor_of([sleeping(open_definition("slow"), secs(5))]);
    let call = executor.execute(ToolCall::new("slow", json!({})));
    let change = async {
        tokio::time::sleep(secs(1)).await;
        let mut limits = Limits::default();
        limits.timeout = secs(2);
        executor.set_rules(limits, policy(json!({ "deny": ["slow"] })));
    };
    let (outcome, ()) = tokio::join!(call, change);
    assert!(outcome.is_success(), "{outcome:?}");
    executor.set_rules(executor.rules().limits.clone(), Policy::default());
    let next = executor.execute(ToolCall::new("slow", json!({}))).await;
    assert_eq!(kind(&next), Some(ErrorKind::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_changed_concurrency_applies_to_new_calls() {
    let executor = executor_of([sleeping(open_definition("slow"), secs(1))]);
    let mut limits = Limits::default();
    limits.concurrency = 1;
    executor.set_rules(limits, Policy::default());
    let started = tokio::time::Instant::now();
    let call = || executor.execute(ToolCall::new("slow", json!({})));
    let (..) = tokio::join!(call(), call(), call());
    assert_eq!(started.elapsed(), secs(3));
    // Slots stay where only something else changes.
    let held = executor.execute(ToolCall::new("slow", json!({})));
    let change = async {
        tokio::time::sleep(millis(100)).await;
        let limits = executor.rules().limits.clone();
        executor.set_rules(limits, policy(json!({ "ask": ["nothing"] })));
        executor.execute(ToolCall::new("slow", json!({}))).await
    };
    let started = tokio::time::Instant::now();
    let (..) = tokio::join!(held, change);
    assert_eq!(started.elapsed(), secs(2), "one after the other");
}

#[tokio::test(start_paused = true)]
async fn the_slow_threshold_follows_the_limits() {
    let log = LogCapture::json();
    let executor = builder_of([sleeping(open_definition("slow"), secs(5))])
        .observer(LogObserver::default())
        .build();
    let mut limits = Limits::default();
    limits.slow_after = secs(10);
    executor.set_rules(limits, Policy::default());
    executor.execute(ToolCall::new("slow", json!({}))).await;
    assert_eq!(log.only()["level"], "INFO");
}

#[test]
fn visible_tools_follow_policy_and_scope() {
    let executor = executor_of([echo(open_definition("lamp"))]);
    let tool = executor.find("lamp").unwrap();
    let (all, nothing) = (Scope::default(), Scope::only(Vec::new()));
    let before = executor.rules();
    assert!(before.offers(tool.definition(), &all) && !before.offers(tool.definition(), &nothing));
    executor.set_rules(Limits::default(), policy(json!({ "deny": ["lamp"] })));
    assert!(!executor.is_visible(tool.definition()));
    assert!(!Arc::ptr_eq(&before, &executor.rules()));
}
