//! What is recorded of a call, and when.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, Origin, ParameterNames,
    Policy, RenameMode, ToolCall, ToolContent, ToolDefinition, ToolError, ToolExecutor,
    ToolManager, ToolOutput, ToolSource,
};
use toolgate_journal::{JournalHealth, JournalSettings, SyncMode};

use crate::support::{
    TestJournal, always_answers, any_arguments, echo, executor_of, json_of, never_answers, scripted,
};

#[tokio::test]
async fn a_call_is_recorded_completely() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let parameters = json!({ "type": "object", "properties": { "deviceName": { "type": "string" }, "unit": { "type": "string" } }, "required": ["deviceName"] });
    let definition = ToolDefinition::builder("zwave__switch", "For tests", parameters)
        .source(ToolSource::Mcp("zwave".to_owned()))
        .parameter_names(ParameterNames::new(RenameMode::Undeclared, HashMap::new()));
    let tool = scripted(definition, |arguments, _| async move {
        Ok(ToolOutput::json(json!({ "was": arguments.as_value() })))
    });
    let call = ToolCall::new(
        "zwave__switch",
        json!({ "device_name": "Lamp", "unit": null }),
    )
    .origin(Origin::Chat)
    .trace_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let id = call.id().to_string();
    let outcome = executor_of(&journal, [tool]).execute(call).await;
    assert_eq!(outcome.error(), None);

    let summary = json_of(&fixture.calls()[0]);
    let started_at = summary["started_at"].as_str().unwrap();
    assert_eq!(
        (started_at.len(), &started_at[23..]),
        (24, "Z"),
        "{started_at}"
    );
    assert_eq!(summary["duration_ms"], outcome.execution_time_ms());
    assert_eq!(
        summary,
        json!({
            "id": id, "tool": "zwave__switch", "source": "mcp:zwave", "server": "zwave", "origin": "chat", "command": "test",
            "started_at": started_at, "duration_ms": summary["duration_ms"], "outcome": "success", "success": true,
            "arguments": { "deviceName": "Lamp" }, "result_bytes": 29,
        })
    );

    let detail = json_of(&fixture.only_call());
    for (key, expected) in [
        ("asked", json!({ "device_name": "Lamp", "unit": null })),
        ("executed", json!({ "deviceName": "Lamp" })),
        ("renamed", json!([["device_name", "deviceName"]])),
        ("dropped", json!(["unit"])),
        ("result", json!({ "was": { "deviceName": "Lamp" } })),
        ("trace_id", json!("4bf92f3577b34da6a3ce929d0e0e4736")),
        ("parent_span_id", json!("00f067aa0ba902b7")),
    ] {
        assert_eq!(detail[key], expected, "{key}");
    }
    for absent in ["error", "hint", "details", "content", "result_cut"] {
        assert_eq!(detail.get(absent), None, "{absent}");
    }
    let timings = &detail["timings"];
    let steps = ["check_ms", "queue_ms", "invoke_ms"].map(|step| timings[step].as_f64().unwrap());
    assert!(
        (steps.iter().sum::<f64>() - outcome.execution_time_ms()).abs() < 0.01,
        "{timings}"
    );
    let run = &detail["run"];
    assert_eq!(
        (&run["command"], &run["pid"]),
        (&json!("test"), &json!(std::process::id()))
    );
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["id"].as_str().unwrap().len(), 16);
}

#[tokio::test]
async fn every_kind_of_failure_is_recorded() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let failed = ToolError::failed("Out of paper").with_details("tray 2");
    let executor = executor_of(
        &journal,
        [
            always_answers("printer", Err(failed)),
            scripted(any_arguments("bomb"), |_, _| async { panic!("boom") }),
            scripted(
                ToolDefinition::builder(
                    "strict",
                    "For tests",
                    json!({ "type": "object", "required": ["a"] }),
                ),
                |_, _| async { Ok(ToolOutput::text("never")) },
            ),
        ],
    );
    for (call, outcome, error, asked, was_executed) in [
        (
            ToolCall::new("printer", json!({})),
            "tool_error",
            "Out of paper",
            json!({}),
            true,
        ),
        (
            ToolCall::new("bomb", json!({})),
            "panicked",
            "Tool 'bomb' failed unexpectedly",
            json!({}),
            true,
        ),
        (
            ToolCall::new("printed", json!({ "a": 1 })),
            "not_found",
            "Tool 'printed' not found",
            json!({ "a": 1 }),
            false,
        ),
        (
            ToolCall::new("strict", json!({})),
            "invalid_arguments",
            "Invalid parameters: missing 'a'",
            json!({}),
            false,
        ),
        (
            ToolCall::from_json("strict", b"{broken"),
            "invalid_arguments",
            "",
            json!("{broken"),
            false,
        ),
    ] {
        let id = call.id().to_string();
        let envelope = executor.execute(call).await.to_envelope();
        let detail = fixture.reader().call(&id).unwrap().unwrap();
        assert_eq!(
            (detail.summary.outcome.as_str(), detail.summary.success),
            (outcome, Some(false))
        );
        assert_eq!(
            envelope["error"],
            detail.summary.error.clone().unwrap(),
            "the same words"
        );
        assert!(error.is_empty() || envelope["error"] == error, "{envelope}");
        assert_eq!(
            (&detail.requested, detail.executed.is_some()),
            (&asked, was_executed)
        );
        assert_eq!(
            envelope.get("hint").map(Value::to_string),
            detail.hint.map(|hint| json!(hint).to_string())
        );
        assert_eq!(
            envelope.get("details").map(Value::to_string),
            detail.details.map(|details| json!(details).to_string())
        );
        assert_eq!((detail.result, detail.summary.result_bytes), (None, None));
    }
    assert_eq!(fixture.calls().len(), 5);
}

#[tokio::test]
async fn starts_precede_the_tool_and_ends_precede_the_answer() {
    let fixture = Arc::new(TestJournal::new());
    for sync in [SyncMode::Normal, SyncMode::Full] {
        let mut settings = JournalSettings::default();
        settings.sync = sync;
        let journal = fixture.journal_with(&settings);
        let seen = Arc::clone(&fixture);
        let tool = scripted(any_arguments("looking"), move |_, context| {
            let call = seen
                .reader()
                .call(&context.id().to_string())
                .unwrap()
                .unwrap();
            assert_eq!(
                (call.summary.outcome.as_str(), call.summary.success),
                ("running", None)
            );
            assert_eq!(
                (call.summary.duration_ms, call.timings.check_ms),
                (None, None)
            );
            async { Ok(ToolOutput::text("seen")) }
        });
        let call = ToolCall::new("looking", json!({}));
        let id = call.id().to_string();
        let outcome = executor_of(&journal, [tool]).execute(call).await;
        assert_eq!(outcome.error(), None);
        let call = fixture.reader().call(&id).unwrap().unwrap();
        assert_eq!(call.summary.outcome, "success");
    }
}

#[tokio::test]
async fn relaxed_sync_writes_every_call_without_waiting() {
    let fixture = TestJournal::new();
    let mut settings = JournalSettings::default();
    settings.sync = SyncMode::Relaxed;
    let journal = fixture.journal_with(&settings);
    // Holds the write lock: a call that waited for its row would wait for the busy timeout.
    let other = fixture.sqlite();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let executor = executor_of(&journal, [echo()]);
    let calls = (0..100).map(|n| executor.execute(ToolCall::new("echo", json!({ "n": n }))));
    let answered =
        tokio::time::timeout(Duration::from_secs(3), futures::future::join_all(calls)).await;
    assert!(
        answered
            .unwrap()
            .iter()
            .all(toolgate_core::ToolOutcome::is_success)
    );
    assert_eq!(journal.health(), JournalHealth::Ok { lost: 0 });
    other.execute_batch("ROLLBACK").unwrap();
    journal.flush().await;
    assert_eq!(fixture.calls().len(), 100);
}

#[tokio::test]
async fn results_are_kept_as_in_the_envelope() {
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let blocks = vec![ToolContent::text("a"), ToolContent::from(image.clone())];
    let mut both = ToolOutput::json(json!({ "sum": 4 }));
    both.content = blocks.clone();
    let mut only_text = ToolOutput::json(json!({ "sum": 4 }));
    only_text.content = vec![ToolContent::text("4")];
    let listed = json!([{ "type": "text", "text": "a" }, image]);
    for (output, result, content) in [
        (ToolOutput::text("four\n"), json!("four\n"), None),
        (ToolOutput::json(Value::Null), Value::Null, None),
        (ToolOutput::blocks(blocks), listed.clone(), None),
        (both, json!({ "sum": 4 }), Some(listed)),
        (only_text, json!({ "sum": 4 }), None),
    ] {
        let fixture = TestJournal::new();
        let journal = fixture.journal();
        let executor = executor_of(&journal, [always_answers("t", Ok(output))]);
        let envelope = executor
            .execute(ToolCall::new("t", json!({})))
            .await
            .to_envelope();
        let call = fixture.only_call();
        assert_eq!(
            (Some(&result), &envelope["result"]),
            (call.result.as_ref(), &result)
        );
        assert_eq!(call.content, content);
        assert_eq!(
            call.summary.result_bytes,
            Some(result.to_string().len() as u64)
        );
    }
}

#[tokio::test]
async fn long_values_are_cut_and_marked() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    let call = async |bytes: usize| {
        let call = ToolCall::new("echo", json!({ "text": "ü".repeat(bytes / 2) }));
        let id = call.id().to_string();
        executor.execute(call).await;
        json_of(&fixture.reader().call(&id).unwrap().unwrap())
    };

    let short = call(2000).await;
    assert!(short["arguments"].is_object() && short["result"].is_object());

    let longer = call(10_000).await;
    let shown = longer["arguments"].as_str().unwrap();
    assert!(
        shown.starts_with("{\"text\":\"üü") && shown.ends_with("… (7964 more bytes)"),
        "{shown}"
    );
    assert!(shown.len() < 2100 && longer["asked"].is_object() && longer["result"].is_object());

    let long = call(300_000).await;
    let result = long["result"].as_str().unwrap();
    assert!(result.ends_with(" more bytes)") && result.len() < 270_000);
    assert_eq!(
        (&long["result_cut"], &long["result_bytes"]),
        (&json!(true), &json!(300_011))
    );
    assert!(long["asked"].is_object(), "to be asked again");

    let refused = call(2_000_000).await;
    assert_eq!(refused["outcome"], "too_large");
    assert!(refused["asked"].as_str().unwrap().ends_with(" more bytes)"));
}

#[tokio::test]
async fn hostile_names_are_kept_as_text() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [echo()]);
    let names = [
        "'; DROP TABLE calls; --",
        "a\nb\u{1b}[31m\u{202e}",
        "\0",
        "",
        &"x".repeat(100_000),
        "%_\\",
    ];
    for name in names {
        executor.execute(ToolCall::new(name, json!({}))).await;
    }
    let calls = fixture.calls();
    assert_eq!(calls.len(), names.len());
    for call in &calls {
        assert_eq!(call.outcome, "not_found");
        assert!(
            call.tool.len() < 300 && !call.tool.contains(char::is_control),
            "{}",
            call.tool
        );
    }
    assert_eq!(calls[5].tool, "'; DROP TABLE calls; --");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_recorded() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [never_answers()]);
    let call = executor.execute(ToolCall::new("hang", json!({})));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
    );
    journal.flush().await;
    assert_eq!(fixture.only_call().summary.outcome, "cancelled");
}

#[tokio::test]
async fn a_call_that_runs_when_the_journal_is_closed_counts_as_interrupted() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let executor = executor_of(&journal, [never_answers(), echo()]);
    let hung = executor.clone();
    let hung = tokio::spawn(async move { hung.execute(ToolCall::new("hang", json!({}))).await });
    while fixture.calls().is_empty() {
        tokio::task::yield_now().await;
    }
    journal.close().await;
    let call = fixture.only_call();
    assert_eq!(
        (call.summary.outcome.as_str(), call.summary.success),
        ("interrupted", None)
    );
    assert_eq!(
        call.summary.error.as_deref(),
        Some("interrupted, outcome unknown")
    );
    // After this nothing is recorded, and nothing waits.
    journal.close().await;
    journal.flush().await;
    assert!(
        executor
            .execute(ToolCall::new("echo", json!({})))
            .await
            .is_success()
    );
    assert_eq!(fixture.calls().len(), 1);
    assert_eq!(fixture.files_with_suffix(".runs").len(), 1);
    hung.abort();
}

#[tokio::test]
async fn nobody_else_may_read_the_files() {
    let fixture = TestJournal::new();
    std::fs::create_dir(fixture.folder().join("state")).unwrap();
    std::fs::write(fixture.file(), "").unwrap();
    std::fs::set_permissions(fixture.file(), PermissionsExt::from_mode(0o644)).unwrap();
    let journal = fixture.journal();
    let executor = ToolExecutor::builder(Arc::new(ToolManager::new()))
        .observer(journal.observer())
        .build();
    executor.execute(ToolCall::new("nope", json!({}))).await;
    let mut seen = 0;
    for entry in std::fs::read_dir(fixture.folder().join("state")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.path());
        seen += 1;
    }
    assert_eq!(seen, 5, "the file, its log, its index, its head, the runs");
    let of_run = fixture.run_files();
    assert_eq!(of_run.len(), 2, "the lock and a spool");
    for file in of_run {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file:?}");
    }

    let fixture = TestJournal::new();
    drop(fixture.journal());
    let folder = std::fs::metadata(fixture.folder().join("state")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

struct FixedApprover(Approval);

impl Approver for FixedApprover {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> futures::future::BoxFuture<'a, Approval> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[tokio::test]
async fn an_approval_is_recorded_with_person_time_and_means() {
    let by = |means| ApprovalActor::new(means);
    for (answer, expected) in [
        (
            Approval::Granted(by(ApprovalChannel::Browser).with_name("a\u{202e}b")),
            json!({ "granted": true, "means": "browser", "by": "a\\u{202e}b" }),
        ),
        (
            Approval::Refused(by(ApprovalChannel::Terminal)),
            json!({ "granted": false, "means": "terminal" }),
        ),
        (Approval::Nobody, Value::Null),
    ] {
        let fixture = TestJournal::new();
        let journal = fixture.journal();
        let manager = ToolManager::new();
        manager.add(echo());
        let mut policy = Policy::default();
        policy.ask = vec![toolgate_core::ToolPattern::new("echo")];
        let executor = ToolExecutor::builder(Arc::new(manager))
            .policy(policy)
            .approver(FixedApprover(answer))
            .observer(journal.observer())
            .build();
        executor.execute(ToolCall::new("echo", json!({}))).await;
        let mut approval = json_of(&fixture.only_call())["approval"].clone();
        if let Some(approval) = approval.as_object_mut() {
            let at = approval.remove("at").unwrap();
            assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
        }
        assert_eq!(approval, expected);
    }
}
