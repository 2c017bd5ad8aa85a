//! EX2, EX4 and EX7: one record per call, safe for anybody to read.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{ToolCall, ToolContent, ToolError, ToolExecutor, ToolOutput};

use crate::support::{
    LogCapture, answering, builder_of, echo, hung, logging, manager_of, millis, open_definition,
    scripted, secs, with_schema,
};

async fn record_of(tool: crate::support::ScriptedTool, call: ToolCall) -> Value {
    let log = LogCapture::json();
    logging([tool], &[]).execute(call).await;
    log.only()
}

#[tokio::test(start_paused = true)]
async fn ex2_a_success_is_one_record_with_all_fields() {
    let tool = scripted(open_definition("t"), |_, _| async {
        tokio::time::advance(millis(12)).await;
        Ok(ToolOutput::json(json!({ "temp": 21 })))
    });
    let call = ToolCall::new("t", json!({ "city": "Bonn", "password": "hunter2" }));
    let id = call.id().to_string();
    let record = record_of(tool, call).await;
    assert_eq!(record["level"], "INFO");
    assert_eq!(
        record["fields"],
        json!({
            "message": "tool call",
            "call": id,
            "tool": "t",
            "source": "custom",
            "origin": "library",
            "elapsed_ms": 12.0,
            "outcome": "success",
            "arguments": r#"{"city":"Bonn","password":"[REDACTED]"}"#,
            "result": r#"{"temp":21}"#,
        })
    );
}

#[tokio::test]
async fn ex2_there_is_exactly_one_record_per_call_whatever_happens() {
    let tools = || {
        [
            echo(open_definition("echo")),
            answering(
                open_definition("fails"),
                Err(ToolError::failed("a\nb\nc").with_details("d\ne")),
            ),
            scripted(open_definition("panics"), |_, _| async { panic!("x\ny") }),
        ]
    };
    for format in [LogCapture::text, LogCapture::json] {
        let log = format();
        let executor = logging(tools(), &[]);
        for (calls, (name, json)) in [
            ("echo", r#"{"a":"x\ny"}"#),
            ("echo", "{\n\nbroken\n}"),
            ("fails", "{}"),
            ("panics", "{}"),
            ("no\nsuch\r\ntool", "{}"),
        ]
        .into_iter()
        .enumerate()
        {
            executor
                .execute(ToolCall::from_json(name, json.as_bytes()))
                .await;
            assert_eq!(log.lines().len(), calls + 1, "{}", log.written());
        }
    }
}

#[tokio::test]
async fn ex2_an_executor_logs_by_itself() {
    let log = LogCapture::json();
    let executor = ToolExecutor::new(manager_of([echo(open_definition("echo"))]));
    executor.execute(ToolCall::new("echo", json!({}))).await;
    assert_eq!(log.only()["fields"]["tool"], "echo");
}

#[tokio::test]
async fn ex2_long_arguments_and_results_are_cut_with_their_size() {
    let long = "x".repeat(100_000);
    let many = json!({ "list": vec![1; 9_000] });
    for (value, said) in [
        (json!({ "a": long }), "(100000 bytes)"),
        (many.clone(), "bytes)"),
    ] {
        let record = record_of(echo(open_definition("t")), ToolCall::new("t", value)).await;
        // A result preview is so short that the whole is cut.
        for (field, longest, said) in [("arguments", 700, said), ("result", 300, "bytes)")] {
            let shown = record["fields"][field].as_str().unwrap();
            assert!(shown.len() < longest && shown.contains(said), "{shown}");
        }
    }
    let size = format!("… ({} bytes)", many.to_string().len());
    let record = record_of(echo(open_definition("t")), ToolCall::new("t", many)).await;
    assert!(
        record["fields"]["result"]
            .as_str()
            .unwrap()
            .ends_with(&size)
    );
}

#[tokio::test]
async fn ex3_an_unknown_tool_is_a_warning() {
    let record = record_of(
        echo(open_definition("echo")),
        ToolCall::new("ecko", json!({ "a": 1 })),
    )
    .await;
    assert_eq!(record["level"], "WARN");
    let fields = &record["fields"];
    assert_eq!(fields["tool"], "ecko");
    assert_eq!(fields["outcome"], "not_found");
    assert_eq!(fields["error"], "Tool 'ecko' not found");
    assert_eq!(fields["arguments"], r#"{"a":1}"#);
}

#[tokio::test(start_paused = true)]
async fn ex4_a_failing_tool_is_an_error_with_tool_arguments_duration_and_causes() {
    let tool = scripted(open_definition("t"), |_, _| async {
        tokio::time::advance(millis(30)).await;
        let cause = std::io::Error::other(std::fmt::Error);
        Err(ToolError::failed_because("The lamp did not answer", cause)
            .with_details("exit status 3"))
    });
    let record = record_of(tool, ToolCall::new("t", json!({ "a": 1 }))).await;
    assert_eq!(record["level"], "ERROR");
    let fields = &record["fields"];
    assert_eq!(fields["message"], "tool call failed");
    assert_eq!(fields["tool"], "t");
    assert_eq!(fields["arguments"], r#"{"a":1}"#);
    assert_eq!(fields["elapsed_ms"], 30.0);
    assert_eq!(fields["outcome"], "tool_error");
    let error = fields["error"].as_str().unwrap();
    assert!(
        error.starts_with("The lamp did not answer: an error occurred"),
        "{error}"
    );
    assert_eq!(fields["details"], "exit status 3");
}

#[tokio::test(start_paused = true)]
async fn ex4_the_level_follows_whose_fault_it_is() {
    for (tool, call, level) in [
        (
            echo(open_definition("t")),
            ToolCall::new("t", json!({})),
            "INFO",
        ),
        (
            echo(with_schema("t", json!({ "required": ["a"] }))),
            ToolCall::new("t", json!({})),
            "WARN",
        ),
        (
            echo(open_definition("t")),
            ToolCall::new("t", json!([])),
            "WARN",
        ),
        (
            hung(open_definition("t")),
            ToolCall::new("t", json!({})),
            "ERROR",
        ),
        (
            answering(open_definition("t"), Err(ToolError::failed("no"))),
            ToolCall::new("t", json!({})),
            "ERROR",
        ),
        (
            answering(open_definition("t"), Err(ToolError::unavailable("t", "no"))),
            ToolCall::new("t", json!({})),
            "ERROR",
        ),
        (
            scripted(open_definition("t"), |_, _| async { panic!("no") }),
            ToolCall::new("t", json!({})),
            "ERROR",
        ),
    ] {
        assert_eq!(record_of(tool, call).await["level"], level);
    }
}

#[tokio::test(start_paused = true)]
async fn ex7_slow_means_over_one_second() {
    for (time, level, message) in [
        (Duration::from_millis(1_000), "INFO", "tool call"),
        (Duration::from_micros(1_000_001), "WARN", "slow tool call"),
        (Duration::from_millis(1_001), "WARN", "slow tool call"),
    ] {
        let tool = scripted(open_definition("t"), move |_, _| async move {
            tokio::time::advance(time).await;
            Ok(ToolOutput::json(1))
        });
        let record = record_of(tool, ToolCall::new("t", json!({}))).await;
        assert_eq!(record["level"], level, "{time:?}");
        assert_eq!(record["fields"]["message"], message);
        assert_eq!(record["fields"]["tool"], "t");
        let elapsed = record["fields"]["elapsed_ms"].as_f64().unwrap();
        assert!((elapsed - time.as_secs_f64() * 1000.0).abs() < 0.01);
    }
}

#[tokio::test(start_paused = true)]
async fn ex7_a_slow_failure_says_that_it_was_slow() {
    let record = record_of(hung(open_definition("t")), ToolCall::new("t", json!({}))).await;
    assert_eq!(record["level"], "ERROR");
    assert_eq!(record["fields"]["slow"], true);
    assert_eq!(record["fields"]["elapsed_ms"], 30_000.0);
}

#[tokio::test(start_paused = true)]
async fn ex7_a_slow_call_that_is_cancelled_is_a_warning_too() {
    for (time, level) in [(millis(500), "INFO"), (secs(5), "WARN")] {
        let log = LogCapture::json();
        let executor = logging([hung(open_definition("t"))], &[]);
        let call = executor.execute(ToolCall::new("t", json!({})));
        assert!(tokio::time::timeout(time, call).await.is_err());
        assert_eq!(log.only()["level"], level);
    }
}

#[tokio::test(start_paused = true)]
async fn ex7_the_wait_for_a_person_is_not_slow() {
    struct SlowApprover;
    impl toolgate_core::Approver for SlowApprover {
        fn ask<'a>(
            &'a self,
            _: toolgate_core::ApprovalRequest<'a>,
        ) -> futures::future::BoxFuture<'a, toolgate_core::Approval> {
            Box::pin(async {
                tokio::time::sleep(secs(60)).await;
                let by = toolgate_core::ApprovalActor::new(toolgate_core::ApprovalChannel::Browser);
                toolgate_core::Approval::Granted(by.with_name("kitchen"))
            })
        }
    }
    let log = LogCapture::json();
    let executor = builder_of([echo(open_definition("t"))])
        .policy(serde_json::from_value(json!({ "ask": ["*"] })).unwrap())
        .approver(SlowApprover)
        .observer(toolgate_core::LogObserver::default())
        .build();
    executor.execute(ToolCall::new("t", json!({}))).await;
    assert_eq!(log.only()["level"], "INFO");
    assert_eq!(
        log.only()["fields"]["approval"],
        "granted by kitchen (browser)"
    );
}

#[tokio::test]
async fn secrets_are_hidden_by_key() {
    for (arguments, kept) in [
        (json!({ "password": "S3NT1NEL" }), ""),
        (json!({ "password": 73_173_173 }), ""),
        (
            json!({ "a": [{ "API_KEY": "S3NT1NEL" }], "n": 1 }),
            r#""n":1"#,
        ),
        (
            json!({ "Authorization": { "value": "Bearer S3NT1NEL" } }),
            "",
        ),
        (
            json!({ "accessToken": "S3NT1NEL", "max_tokens": 5 }),
            r#""max_tokens":5"#,
        ),
        (
            json!({ "pin": "S3NT1NEL", "pinned": "x" }),
            r#""pinned":"x""#,
        ),
        (json!({ "client-secret": ["S3NT1NEL"] }), ""),
        (
            json!({ "body": r#"{"user":"u","password":"S3NT1NEL","n":2}"# }),
            r"\n\",
        ),
    ] {
        for format in [LogCapture::text, LogCapture::json] {
            let log = format();
            logging([echo(open_definition("t"))], &[])
                .execute(ToolCall::new("t", arguments.clone()))
                .await;
            let written = log.written();
            assert!(
                !written.contains("S3NT1NEL") && !written.contains("73173173"),
                "{written}"
            );
            assert!(written.contains("[REDACTED]"), "{written}");
            let plain = written.replace('\\', "");
            assert!(plain.contains(&kept.replace('\\', "")), "{written}");
        }
    }
}

#[tokio::test]
async fn secrets_in_broken_json_are_hidden_too() {
    for json in [
        r#"{"password": "S3NT1NEL","#,
        r#"{"a":1,"token":"S3NT1NEL"#,
        r#"{"password":S3NT1NEL}"#,
        r#"{"password":"S3NT1NEL","password":"S3NT1NEL"}"#,
        r#"[{"secret" : "S3NT1NEL"}]"#,
    ] {
        let log = LogCapture::text();
        logging([echo(open_definition("t"))], &[])
            .execute(ToolCall::from_json("t", json.as_bytes()))
            .await;
        let written = log.written();
        assert!(
            !written.contains("S3NT1NEL") && written.contains("[REDACTED]"),
            "{written}"
        );
    }
}

#[tokio::test]
async fn secrets_are_hidden_by_value_wherever_they_turn_up() {
    let secrets = ["S3NT1NEL-value", "48151623"];
    let spill = "url=http://u:S3NT1NEL-value@host";
    let cause = || std::io::Error::other(spill);
    for format in [LogCapture::text, LogCapture::json] {
        let log = format();
        let executor = logging(
            [
                echo(open_definition("echo")),
                echo(with_schema(
                    "strict",
                    json!({ "properties": {}, "additionalProperties": false }),
                )),
                answering(
                    open_definition("fails"),
                    Err(ToolError::failed_because(spill, cause()).with_details(spill)),
                ),
                scripted(open_definition("panics"), move |_, _| async move {
                    panic!("{spill}")
                }),
            ],
            &secrets,
        );
        let arguments = json!({ "x": [spill], "S3NT1NEL-value": 1, "code": 48_151_623 });
        for name in ["echo", "strict", "fails", "panics", "no-S3NT1NEL-value"] {
            executor
                .execute(ToolCall::new(name, arguments.clone()))
                .await;
        }
        executor
            .execute(ToolCall::from_json("echo", spill.as_bytes()))
            .await;
        let written = log.written();
        assert_eq!(log.lines().len(), 6);
        for secret in secrets {
            assert!(!written.contains(secret), "{written}");
        }
    }
}

#[tokio::test]
async fn nothing_from_outside_can_forge_a_line_or_drive_a_terminal() {
    let hostile = "a\nERROR forged\r\u{1b}[2J\u{7}\u{202e}\u{200b}\u{2028}\u{e0041}\u{85}\u{9b}31m";
    let executor_tools = || {
        [
            echo(open_definition("echo")),
            answering(
                open_definition("fails"),
                Err(ToolError::failed(hostile).with_details(hostile)),
            ),
            scripted(open_definition("panics"), move |_, _| async move {
                panic!("{hostile}")
            }),
            answering(
                open_definition("blocks"),
                Ok(ToolOutput::blocks(vec![ToolContent::from(
                    json!({ "type": "resource_link", "uri": hostile, "name": hostile }),
                )])),
            ),
        ]
    };
    for format in [LogCapture::text, LogCapture::json] {
        let log = format();
        let executor = logging(executor_tools(), &[]);
        for name in ["echo", "fails", "panics", "blocks", hostile] {
            executor
                .execute(ToolCall::new(name, json!({ hostile: hostile })))
                .await;
        }
        executor
            .execute(ToolCall::from_json("echo", hostile.as_bytes()))
            .await;
        assert_eq!(log.lines().len(), 6);
        for line in log.lines() {
            let bad = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}\u{e0041}".contains(c);
            assert!(!line.contains(bad), "{line:?}");
        }
    }
}
