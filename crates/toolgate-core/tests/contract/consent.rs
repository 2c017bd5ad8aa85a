//! What a model may do without asking: `policy.destructive` and `policy.flow`.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, Approval, ApprovalActor, ApprovalChannel, ApprovalReason, ApprovalRequest,
    Approver, FlowState, Limits, Origin, Policy, ToolCall, ToolExecutor,
};

use crate::support::{ScriptedTool, builder_of, echo, open_definition};

const EVERYBODY: [Origin; 7] = [
    Origin::Chat,
    Origin::Voice,
    Origin::CommandLine,
    Origin::Library,
    Origin::Mcp,
    Origin::Http,
    Origin::Worker,
];

/// Approves every request, and remembers it.
#[derive(Clone, Default)]
struct ConsentingApprover(Arc<Mutex<Vec<(String, ApprovalReason)>>>);

impl ConsentingApprover {
    fn asked(&self) -> Vec<(String, ApprovalReason)> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Approver for ConsentingApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        let asked = (request.tool.name().to_owned(), request.reason);
        self.0.lock().push(asked);
        let by = ApprovalActor::new(ApprovalChannel::Terminal);
        Box::pin(std::future::ready(Approval::Granted(by)))
    }
}

fn policy(json: Value) -> Policy {
    serde_json::from_value(json).unwrap()
}

fn annotated_tool(name: &str, destructive: Option<bool>) -> ScriptedTool {
    let mut annotations = Annotations::default();
    annotations.destructive = destructive;
    echo(open_definition(name).annotations(annotations))
}

/// `lock` declares itself destructive; the others declare that they aren't, or nothing.
fn destructive_executor(json: Value) -> ToolExecutor {
    let tools = [
        annotated_tool("lock", Some(true)),
        annotated_tool("lamp", Some(false)),
        annotated_tool("fan", None),
    ];
    builder_of(tools).policy(policy(json)).build()
}

async fn error(executor: &ToolExecutor, call: ToolCall) -> Option<String> {
    executor.execute(call).await.error()
}

fn call(name: &str) -> ToolCall {
    ToolCall::new(name, json!({})).origin(Origin::Chat)
}

#[tokio::test]
async fn only_destructive_calls_of_our_models_need_approval() {
    let executor = destructive_executor(json!({}));
    for name in ["lock", "lamp", "fan"] {
        for origin in EVERYBODY {
            let asks = name == "lock" && matches!(origin, Origin::Chat | Origin::Voice);
            let expected = asks.then_some("Tool 'lock' needs approval");
            let found = error(&executor, call(name).origin(origin)).await;
            assert_eq!(found.as_deref(), expected, "{name} {origin}");
        }
    }
}

#[tokio::test]
async fn the_rule_can_be_lifted_or_tightened() {
    let denied = "Tool 'lock' is destructive, and 'policy.destructive' denies such calls";
    for (rule, expected) in [("allow", None), ("deny", Some(denied))] {
        let executor = destructive_executor(json!({ "destructive": rule }));
        assert_eq!(error(&executor, call("lock")).await.as_deref(), expected);
        let typed = call("lock").origin(Origin::CommandLine);
        assert_eq!(error(&executor, typed).await, None);
        assert_eq!(error(&executor, call("lamp")).await, None);
    }
}

#[tokio::test]
async fn the_rule_can_be_extended_to_clients_and_sentences() {
    for (from, origin, is_said) in [
        ("mcp", Origin::Mcp, false),
        ("http", Origin::Http, false),
        ("sentences", Origin::Voice, true),
    ] {
        let call = || match is_said {
            true => call("lock").origin(origin).user_initiated(),
            false => call("lock").origin(origin),
        };
        assert_eq!(error(&destructive_executor(json!({})), call()).await, None);
        let extended = destructive_executor(json!({ "destructiveFrom": [from] }));
        let found = error(&extended, call()).await;
        assert_eq!(found.as_deref(), Some("Tool 'lock' needs approval"));
    }
}

#[tokio::test]
async fn a_denial_says_how_to_allow_the_call() {
    let executor = destructive_executor(json!({}));
    let outcome = executor.execute(call("lock")).await;
    let hint = outcome.to_envelope()["hint"].clone();
    let model = outcome.to_model_text();
    for text in [hint.as_str().unwrap(), model.as_str()] {
        for needed in [r#""destructive": "allow""#, "--yes", "'toolgate serve'"] {
            assert!(text.contains(needed), "{text}");
        }
    }
    assert!(model.starts_with("Tool 'lock' needs approval. "), "{model}");
    assert_eq!(outcome.to_envelope()["error_kind"], "denied");
}

#[tokio::test]
async fn an_edited_policy_applies_at_once() {
    let executor = destructive_executor(json!({}));
    let allowing = policy(json!({ "destructive": "allow" }));
    executor.set_rules(Limits::default(), allowing);
    assert_eq!(error(&executor, call("lock")).await, None);
}

const FLOW: &str =
    r#"{ "flow": { "untrusted": ["mail"], "private": ["notes"], "outward": ["post"] } }"#;

fn flow_executor(json: &str) -> (ToolExecutor, ConsentingApprover) {
    let tools = ["mail", "notes", "post", "clock"].map(|name| echo(open_definition(name)));
    let person = ConsentingApprover::default();
    let policy = policy(serde_json::from_str(json).unwrap());
    let executor = builder_of(tools).policy(policy).approver(person.clone());
    (executor.build(), person)
}

async fn run(executor: &ToolExecutor, conversation: &Arc<FlowState>, names: &[&str]) {
    for name in names {
        let outcome = executor.execute(call(name).flow(conversation)).await;
        assert!(outcome.is_success(), "{name}");
    }
}

#[tokio::test]
async fn data_already_read_decides_what_may_be_sent() {
    for (before, asks) in [
        (&[][..], false),
        (&["mail", "clock"], false),
        (&["notes", "post"], false),
        (&["mail", "notes"], true),
        (&["notes", "clock", "mail"], true),
    ] {
        let (executor, person) = flow_executor(FLOW);
        let conversation = Arc::default();
        run(&executor, &conversation, before).await;
        assert_eq!(person.asked(), []);
        run(&executor, &conversation, &["clock", "post"]).await;
        let expected = [("post".to_owned(), ApprovalReason::Flow)];
        assert_eq!(person.asked(), &expected[..usize::from(asks)], "{before:?}");
    }
}

#[tokio::test]
async fn other_conversations_have_read_nothing() {
    let (executor, person) = flow_executor(FLOW);
    run(&executor, &Arc::default(), &["mail", "notes"]).await;
    run(&executor, &Arc::default(), &["post"]).await;
    assert_eq!(error(&executor, call("post")).await, None);
    assert_eq!(person.asked(), []);
}

#[tokio::test]
async fn a_call_is_judged_by_the_data_read_before_it() {
    let (executor, person) = flow_executor(FLOW);
    let conversation = Arc::default();
    let reply = ["mail", "notes", "post"].map(|name| call(name).flow(&conversation));
    for call in reply {
        assert!(executor.execute(call).await.is_success());
    }
    assert_eq!(person.asked(), []);
    run(&executor, &conversation, &["post"]).await;
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_person_who_says_what_to_send_is_not_asked_again() {
    let (executor, person) = flow_executor(FLOW);
    let conversation = Arc::default();
    run(&executor, &conversation, &["mail", "notes"]).await;
    let said = call("post").flow(&conversation).user_initiated();
    assert_eq!(error(&executor, said).await, None);
    assert_eq!(person.asked(), []);
}

#[tokio::test]
async fn without_all_three_lists_nothing_is_guarded() {
    for json in [
        "{}",
        r#"{ "flow": { "untrusted": ["*"], "outward": ["*"] } }"#,
        r#"{ "flow": { "untrusted": ["*"], "private": ["*"] } }"#,
    ] {
        let (executor, person) = flow_executor(json);
        run(&executor, &Arc::default(), &["mail", "notes", "post"]).await;
        assert_eq!(person.asked(), [], "{json}");
    }
}

#[tokio::test]
async fn earlier_calls_count_even_if_their_tool_is_gone() {
    for (recalled, asks) in [
        (&["mail"][..], false),
        (&["mail", "notes"], true),
        (&["gone"], true),
    ] {
        let (executor, person) = flow_executor(FLOW);
        let conversation = Arc::default();
        for name in recalled {
            executor.restore_flow(name, &conversation);
        }
        run(&executor, &conversation, &["post"]).await;
        assert_eq!(person.asked().len(), usize::from(asks), "{recalled:?}");
    }
}

#[tokio::test]
async fn without_an_approver_nothing_is_sent_out() {
    let (executor, _) = flow_executor(FLOW);
    let alone = ToolExecutor::builder(Arc::clone(executor.manager()))
        .policy(policy(serde_json::from_str(FLOW).unwrap()))
        .build();
    let conversation = Arc::default();
    run(&alone, &conversation, &["mail", "notes"]).await;
    let outcome = alone.execute(call("post").flow(&conversation)).await;
    assert_eq!(outcome.error().unwrap(), "Tool 'post' needs approval");
    let hint = outcome.to_envelope()["hint"].to_string();
    assert!(hint.contains("'policy.flow'"), "{hint}");
}
