//! A caller with a share of the tools.

use serde_json::json;
use toolgate_core::{Pattern, Scope, ToolCall, ToolError};

use crate::support::{echo, executor_of, open};

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
