//! C3, C4, C6 and C7: hostile arguments.

use serde_json::{Value, json};
use toolgate_core::{Redactor, ToolCall, ToolOutput};

use crate::support::{
    Recorder, builder_of, echo, executor_of, logging, on_a_small_stack, open_definition, scripted,
};

fn run(call: impl FnOnce() -> ToolCall + Send + 'static) -> Value {
    on_a_small_stack("a call", move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let executor = logging([echo(open_definition("echo"))], &["S3NT1NEL"]);
            executor.execute(call()).await.to_envelope()
        })
    })
}

/// Nested lists, built by hand: the `json!` macro itself would overflow the stack.
fn deep(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

fn deep_arguments(depth: usize) -> Value {
    Value::Object([("a".to_owned(), deep(depth - 1))].into_iter().collect())
}

#[test]
fn deep_arguments_are_refused_and_overflow_nothing() {
    let envelope = run(|| ToolCall::new("echo", deep_arguments(64)));
    assert_eq!(envelope["success"], true);
    for depth in [65, 3_000] {
        let envelope = run(move || ToolCall::new("echo", deep_arguments(depth)));
        assert_eq!(
            envelope["error"],
            "Invalid parameters: 'arguments' must not be nested deeper than 64"
        );
        let envelope = run(move || ToolCall::new("nope", deep_arguments(depth)));
        assert_eq!(envelope["error_kind"], "not_found");
    }
    let envelope = run(|| ToolCall::from_json("echo", "{\"a\":".repeat(100_000).as_bytes()));
    assert_eq!(envelope["error_kind"], "invalid_arguments");
}

#[test]
fn deep_values_are_redacted_as_deep_as_the_stack_allows() {
    let (line, copy) = on_a_small_stack("redacting", || {
        let redactor = Redactor::default();
        let copy = redactor.value(&deep(3_000));
        (redactor.json(&deep(3_000), 100), copy.to_string())
    });
    assert!(line.ends_with("… (nested deeper than 512)"), "{line}");
    assert!(copy.contains('…'), "{copy}");
}

#[test]
fn deep_results_are_written_or_refused_and_overflow_nothing() {
    for (depth, success) in [(512, true), (513, false), (3_000, false)] {
        let written = on_a_small_stack("a deep result", move || {
            let tool = scripted(open_definition("t"), move |_, _| async move {
                Ok(ToolOutput::json(deep(depth)))
            });
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build();
            let executor = logging([tool], &[]);
            let outcome = runtime
                .unwrap()
                .block_on(executor.execute(ToolCall::new("t", json!({}))));
            let envelope = outcome.to_envelope();
            assert_eq!(envelope["success"], success);
            (envelope.to_string(), outcome.to_model_text())
        });
        assert!(!written.0.is_empty() && !written.1.is_empty());
    }
}

#[test]
fn large_arguments_are_refused_with_their_size() {
    let envelope = run(|| ToolCall::new("echo", json!({ "a": "x".repeat(10 << 20) })));
    assert_eq!(
        envelope["error"],
        "The arguments of 'echo' take 10485768 bytes; the limit is 1048576"
    );
    let keys = || {
        (0..100_000)
            .map(|i| (format!("key_{i}"), json!(i)))
            .collect::<serde_json::Map<_, _>>()
    };
    let envelope = run(move || ToolCall::new("echo", keys()));
    assert_eq!(envelope["error_kind"], "too_large");
}

#[tokio::test]
async fn numbers_arrive_exactly_or_not_at_all() {
    let executor = executor_of([echo(open_definition("echo"))]);
    for text in [
        r#"{"n":9007199254740993}"#,
        r#"{"n":-9223372036854775808}"#,
        r#"{"n":18446744073709551615}"#,
        r#"{"n":0.1}"#,
        r#"{"n":-0.0}"#,
    ] {
        let outcome = executor
            .execute(ToolCall::from_json("echo", text.as_bytes()))
            .await;
        assert_eq!(outcome.to_model_text(), text);
    }
    let outcome = executor
        .execute(ToolCall::from_json("echo", br#"{"n":1e999}"#))
        .await;
    assert!(outcome.error().unwrap().contains("number out of range"));
}

#[tokio::test]
async fn shell_syntax_reaches_the_tool_as_data() {
    let executor = executor_of([echo(open_definition("echo"))]);
    for text in [
        "; touch pwned",
        "$(touch pwned)",
        "`id`",
        "--upload-pack=x",
        "a\nb",
        "../../etc/passwd",
        "\0",
    ] {
        let arguments = json!({ "a": text, text: 1 });
        let envelope = executor
            .execute(ToolCall::new("echo", arguments.clone()))
            .await
            .to_envelope();
        assert_eq!(envelope["result"], arguments);
    }
}

#[tokio::test]
async fn names_of_any_length_are_harmless() {
    let recorder = Recorder::default();
    let executor = builder_of([echo(open_definition("echo"))])
        .observer(recorder.clone())
        .build();
    for name in [
        "x".repeat(1 << 20),
        "\n".repeat(1_000),
        "é".repeat(300),
        String::new(),
    ] {
        let outcome = executor
            .execute(ToolCall::new(name.as_str(), json!({})))
            .await;
        assert_eq!(outcome.tool_name, name);
        let error = outcome.error().unwrap();
        assert!(
            error.len() < 2_100 && error.ends_with("' not found"),
            "{error}"
        );
    }
    assert_eq!(recorder.records().len(), 4);
}
