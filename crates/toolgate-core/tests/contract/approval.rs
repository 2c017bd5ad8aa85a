//! Policy and approval: hidden tools are not found, and calls wait for a person where
//! the policy says so.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, MAX_APPROVABLE_BYTES,
    Origin, Policy, PolicyDecision, RemoteTask, Scope, ToolCall, ToolExecutor, ToolOutput,
    ToolSource,
};

use crate::support::{
    Recorder, builder_of, echo, executor_of, open_definition, scripted, secs, with_schema,
};

/// Gives its answer after a delay.
struct DelayedApprover(Duration, Approval);

impl Approver for DelayedApprover {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            self.1.clone()
        })
    }
}

fn granted() -> Approval {
    Approval::Granted(ApprovalActor::new(ApprovalChannel::Terminal))
}

fn refused() -> Approval {
    Approval::Refused(ApprovalActor::new(ApprovalChannel::Browser).with_name("kitchen"))
}

fn policy(text: serde_json::Value) -> Policy {
    serde_json::from_value(text).unwrap()
}

fn asking(approver: impl Approver + 'static, recorder: &Recorder) -> ToolExecutor {
    builder_of([echo(open_definition("lock"))])
        .policy(policy(json!({ "ask": ["lock"] })))
        .approver(approver)
        .observer(recorder.clone())
        .build()
}

#[tokio::test(start_paused = true)]
async fn a_persons_answer_decides() {
    for (answer, expected) in [
        (granted(), None),
        (
            refused(),
            Some("Tool 'lock' was declined by the person who was asked"),
        ),
        (Approval::Nobody, Some("Tool 'lock' needs approval")),
    ] {
        let recorder = Recorder::default();
        let executor = asking(DelayedApprover(secs(3), answer), &recorder);
        let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
        assert_eq!(outcome.error().as_deref(), expected);
        assert_eq!(recorder.started().len(), usize::from(expected.is_none()));
    }
}

#[tokio::test]
async fn a_task_is_continued_at_its_own_server_and_without_another_approval() {
    let task = |server: &str| RemoteTask {
        server: server.to_owned(),
        task_id: "1".to_owned(),
        revision: "2026-07-28".to_owned(),
        expires: None,
    };
    let source = ToolSource::Mcp("house".to_owned());
    let lock = scripted(
        open_definition("lock").source(source),
        |_, context| async move {
            Ok(ToolOutput::text(match context.resumed_task() {
                Some(_) => "continued",
                None => "ran",
            }))
        },
    );
    let executor = builder_of([lock, echo(open_definition("echo"))]);
    let executor = executor.policy(policy(json!({ "ask": ["lock"] }))).build();
    for (tool, resumed, expected) in [
        ("lock", None, "Tool 'lock' needs approval"),
        ("lock", Some("house"), "continued"),
        (
            "lock",
            Some("garden"),
            "'lock' is not a tool of MCP server 'garden', which has the task",
        ),
        (
            "echo",
            Some("house"),
            "'echo' is not a tool of MCP server 'house', which has the task",
        ),
    ] {
        let mut call = ToolCall::new(tool, json!({}));
        if let Some(server) = resumed {
            call = call.resume(task(server));
        }
        let envelope = executor.execute(call).await.to_envelope();
        let said = match envelope["success"] == true {
            true => &envelope["result"],
            false => &envelope["error"],
        };
        assert_eq!(said, expected);
    }
}

#[tokio::test]
async fn without_an_approver_the_call_is_denied() {
    let executor = builder_of([scripted(open_definition("lock"), |_, _| async {
        panic!("ran")
    })])
    .policy(policy(json!({ "ask": ["lock"] })))
    .build();
    let envelope = executor
        .execute(ToolCall::new("lock", json!({})))
        .await
        .to_envelope();
    assert_eq!(envelope["error"], "Tool 'lock' needs approval");
    assert_eq!(envelope["error_kind"], "denied");
}

#[tokio::test(start_paused = true)]
async fn ex5_waiting_for_approval_counts_towards_no_limit() {
    let recorder = Recorder::default();
    let executor = asking(DelayedApprover(secs(100), granted()), &recorder);
    let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
    assert!(outcome.is_success());
    assert_eq!(outcome.execution_time_ms(), 0.0);
    assert_eq!(recorder.only().timings.approval, secs(100));
}

#[tokio::test(start_paused = true)]
async fn an_approval_times_out_after_two_minutes() {
    let recorder = Recorder::default();
    let executor = asking(DelayedApprover(secs(1_000), granted()), &recorder);
    let begin = tokio::time::Instant::now();
    let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
    assert_eq!(
        outcome.error().unwrap(),
        "Tool 'lock' needs approval, and nobody answered in time"
    );
    assert_eq!(begin.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn ex9_a_panicking_approver_counts_as_none() {
    struct PanickingApprover;
    impl Approver for PanickingApprover {
        fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            panic!("no terminal")
        }
    }
    struct PanickingFuture;
    impl Approver for PanickingFuture {
        fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            Box::pin(async { panic!("no terminal") })
        }
    }
    let recorder = Recorder::default();
    for executor in [
        asking(PanickingApprover, &recorder),
        asking(PanickingFuture, &recorder),
    ] {
        let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
        assert_eq!(outcome.error().unwrap(), "Tool 'lock' needs approval");
    }
    assert_eq!(recorder.records().len(), 2);
}

#[tokio::test]
async fn an_approval_request_shows_caller_and_exact_arguments() {
    struct RecordingApprover(std::sync::mpsc::Sender<(serde_json::Value, Origin, String)>);
    impl Approver for RecordingApprover {
        fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            let caller = request.caller.unwrap_or_default().to_owned();
            let asked = (request.arguments.clone(), request.origin, caller);
            self.0.send(asked).unwrap();
            Box::pin(std::future::ready(granted()))
        }
    }
    let (sender, asked) = std::sync::mpsc::channel();
    let schema =
        json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    let executor = builder_of([echo(with_schema("t", schema))])
        .policy(policy(json!({ "ask": ["*"] })))
        .approver(RecordingApprover(sender))
        .build();
    let arguments = json!({ "x": 1, "a": "b" });
    let call = ToolCall::new("t", arguments).origin(Origin::Http);
    let outcome = executor
        .execute(call.scope(Scope::default().for_caller("kitchen")))
        .await;
    let expected = (json!({ "a": "b" }), Origin::Http, "kitchen".to_owned());
    assert_eq!(asked.recv().unwrap(), expected);
    assert_eq!(outcome.to_envelope()["result"], json!({ "a": "b" }));
}

#[tokio::test]
async fn nobody_is_asked_about_invalid_arguments() {
    let recorder = Recorder::default();
    struct UnusedApprover;
    impl Approver for UnusedApprover {
        fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            panic!("asked")
        }
    }
    let executor = asking(UnusedApprover, &recorder);
    let outcome = executor.execute(ToolCall::from_json("lock", b"[]")).await;
    assert_eq!(outcome.to_envelope()["error_kind"], "invalid_arguments");
}

#[tokio::test]
async fn a_hidden_tool_leaves_no_trace() {
    let executor = builder_of([
        echo(open_definition("unlock_door")),
        echo(open_definition("unlock_cat")),
        echo(open_definition("echo")),
    ])
    .policy(policy(json!({ "deny": ["unlock_door"] })))
    .build();
    for name in ["unlock_door", "unlock_doors", "unlock_dor"] {
        for call in [
            ToolCall::new(name, json!({})),
            ToolCall::from_json(name, b"{"),
        ] {
            let outcome = executor.execute(call).await;
            assert_eq!(outcome.error().unwrap(), format!("Tool '{name}' not found"));
            let mut shown = outcome.to_envelope().to_string();
            shown.push_str(&outcome.to_model_text());
            shown.push_str(&outcome.to_speech());
            let leaked = shown.replace(name, "").contains("unlock_door");
            assert!(!leaked, "{shown}");
        }
    }
    let rehearsed = executor.dry_run(&ToolCall::new("unlock_door", json!({})));
    assert_eq!(
        rehearsed.err().unwrap().to_string(),
        "Tool 'unlock_door' not found"
    );
}

#[tokio::test]
async fn a_hidden_tool_does_not_make_the_name_of_another_ambiguous() {
    let of = |server: &str| {
        echo(
            open_definition(&format!("{server}__lamp"))
                .original_name("lamp")
                .source(ToolSource::Mcp(server.to_owned())),
        )
    };
    let executor = builder_of([of("attic"), of("cellar")])
        .policy(policy(json!({ "deny": ["cellar/*"] })))
        .build();
    assert!(
        executor
            .execute(ToolCall::new("lamp", json!({})))
            .await
            .is_success()
    );
    assert!(
        !executor
            .execute(ToolCall::new("cellar__lamp", json!({})))
            .await
            .is_success()
    );
}

#[tokio::test]
async fn a_dry_run_says_whether_a_person_would_be_asked() {
    let executor = executor_of([echo(open_definition("t"))]);
    let call = ToolCall::new("t", json!({}));
    assert_eq!(
        executor.dry_run(&call).unwrap().decision,
        PolicyDecision::Allow
    );
    let recorder = Recorder::default();
    let executor = asking(DelayedApprover(secs(1), granted()), &recorder);
    let call = ToolCall::new("lock", json!({}));
    assert_eq!(
        executor.dry_run(&call).unwrap().decision,
        PolicyDecision::Ask
    );
    assert!(recorder.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn approvals_record_who_answered_and_when() {
    for (answer, expected) in [
        (granted(), Some((true, "terminal"))),
        (refused(), Some((false, "kitchen (browser)"))),
        (Approval::Nobody, None),
    ] {
        let recorder = Recorder::default();
        let before = std::time::SystemTime::now();
        let executor = asking(DelayedApprover(secs(3), answer), &recorder);
        executor.execute(ToolCall::new("lock", json!({}))).await;
        let approval = recorder.only().approval;
        let by = approval.as_ref().map(|it| (it.granted, it.by.to_string()));
        assert_eq!(by, expected.map(|(granted, by)| (granted, by.to_owned())));
        assert!(approval.is_none_or(|approval| approval.at >= before));
        let started = recorder.started();
        let started = started.first().and_then(|call| call.approval.as_ref());
        assert_eq!(
            started.is_some(),
            expected.is_some_and(|(granted, _)| granted)
        );
    }
}

#[tokio::test]
async fn unreadably_long_arguments_are_denied_without_asking() {
    let arguments = |bytes: usize| json!({ "text": "x".repeat(bytes - r#"{"text":""}"#.len()) });
    let recorder = Recorder::default();
    let executor = asking(DelayedApprover(Duration::ZERO, granted()), &recorder);
    let whole = ToolCall::new("lock", arguments(MAX_APPROVABLE_BYTES));
    assert!(executor.execute(whole).await.is_success());
    let longer = ToolCall::new("lock", arguments(MAX_APPROVABLE_BYTES + 1));
    let envelope = executor.execute(longer).await.to_envelope();
    assert_eq!(envelope["error_kind"], "denied");
    let error = envelope["error"].as_str().unwrap();
    assert!(
        error.starts_with("Tool 'lock' needs approval, and its arguments take 65537 bytes"),
        "{error}"
    );
    assert_eq!(envelope["hint"], "Send less at once, in several calls");
}

#[tokio::test]
async fn an_approver_says_how_the_approval_is_given() {
    struct HintingApprover;
    impl Approver for HintingApprover {
        fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            Box::pin(std::future::ready(Approval::Nobody))
        }
        fn hint(&self) -> Option<String> {
            Some("Open the dashboard".to_owned())
        }
    }
    let executor = asking(HintingApprover, &Recorder::default());
    let outcome = executor.execute(ToolCall::new("lock", json!({}))).await;
    let envelope = outcome.to_envelope();
    assert_eq!(envelope["error"], "Tool 'lock' needs approval");
    assert_eq!(envelope["hint"], "Open the dashboard");
}
