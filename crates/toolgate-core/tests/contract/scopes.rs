//! A caller with a share of the tools.

use serde_json::{Value, json};
use toolgate_core::{Pattern, Scope, ToolCall, ToolError};

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
