//! EX: the executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolgate_core::{
    HandlerKind, Limits, Origin, Tool, ToolCall, ToolContent, ToolError, ToolExecutor, ToolManager,
    ToolOutput, TraceContext,
};

use crate::support::{
    answering, builder_of, echo, executor_of, hung, millis, open_definition, outcome_of, scripted,
    secs, sleeping, with_schema,
};

fn failing(error: ToolError) -> ToolExecutor {
    executor_of([answering(open_definition("t"), Err(error))])
}

#[tokio::test]
async fn ex1_runs_the_tool_exactly_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let executor = executor_of([scripted(open_definition("t"), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolOutput::json(1)) }
    })]);
    for calls in 1..=3 {
        executor.execute(ToolCall::new("t", json!({}))).await;
        assert_eq!(count.load(Ordering::SeqCst), calls);
    }
}

#[tokio::test]
async fn ex1_returns_the_result_of_the_tool() {
    let arguments = json!({ "b": [1, { "c": null }], "a": "é" });
    let executor = executor_of([echo(open_definition("echo"))]);
    let outcome = executor
        .execute(ToolCall::new("echo", arguments.clone()))
        .await;
    assert_eq!(outcome.to_envelope()["result"], arguments);
}

#[tokio::test]
async fn ex1_a_call_can_run_in_a_task_and_from_a_clone() {
    let executor = executor_of([echo(open_definition("echo"))]);
    let clone = executor.clone();
    let task = tokio::spawn(async move { clone.execute(ToolCall::new("echo", json!({}))).await });
    assert!(task.await.unwrap().is_success());
}

#[tokio::test]
async fn ex1_the_tool_knows_its_call() {
    let executor = executor_of([scripted(open_definition("t"), |_, context| async move {
        Ok(ToolOutput::json(json!([
            context.tool_name(),
            context.id().to_string(),
            context.origin().to_string(),
            context.trace_parent(),
        ])))
    })]);
    let call = ToolCall::new("t", json!({}))
        .origin(Origin::Voice)
        .trace_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let id = call.id().to_string();
    let trace = TraceContext::for_call(
        call.id(),
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    )
    .to_string();
    let envelope = executor.execute(call).await.to_envelope();
    assert_eq!(envelope["result"], json!(["t", id, "voice", trace]));
    assert_eq!(envelope["call_id"], id);
}

#[tokio::test]
async fn ex3_an_unknown_tool_is_an_outcome_with_the_exact_text() {
    let outcome = executor_of([])
        .execute(ToolCall::new("frobnicate", json!({})))
        .await;
    assert_eq!(outcome.error().unwrap(), "Tool 'frobnicate' not found");
    assert_eq!(outcome.to_envelope()["error_kind"], "not_found");
}

#[tokio::test]
async fn ex3_the_hint_has_up_to_three_nearest_names() {
    let names = [
        "get_weather",
        "get_weather_1",
        "get_weather_2",
        "get_weather_3",
        "volume",
    ];
    let executor = executor_of(names.map(|name| echo(open_definition(name))));
    let envelope = executor
        .execute(ToolCall::new("getWeather", json!({})))
        .await
        .to_envelope();
    assert_eq!(
        envelope["hint"],
        "Did you mean 'get_weather' or 'get_weather_1' or 'get_weather_2'?"
    );
    let envelope = executor
        .execute(ToolCall::new("xyz", json!({})))
        .await
        .to_envelope();
    assert_eq!(envelope.get("hint"), None);
}

#[tokio::test]
async fn ex3_the_text_for_a_model_names_the_unknown_tool_and_lists_the_others() {
    let executor = executor_of([
        echo(open_definition("echo")),
        echo(open_definition("volume")),
    ]);
    let outcome = executor.execute(ToolCall::new("ecko", json!({}))).await;
    assert_eq!(
        outcome.to_model_text(),
        "Unknown tool: 'ecko'. Did you mean 'echo'? Available tools: echo, volume"
    );
    let outcome = executor_of([]).execute(ToolCall::new("x", json!({}))).await;
    assert_eq!(
        outcome.to_model_text(),
        "Unknown tool: 'x'. Available tools: none"
    );
}

#[tokio::test]
async fn ex3_speech_names_the_unknown_tool_and_lists_the_others() {
    let executor = executor_of([
        echo(open_definition("echo")),
        echo(open_definition("volume")),
    ]);
    let outcome = executor.execute(ToolCall::new("lamp", json!({}))).await;
    assert_eq!(
        outcome.to_speech(),
        "There is no tool called lamp. I have: echo, volume."
    );
}

#[tokio::test]
async fn ex3_the_nearest_of_thousands_of_similar_names_is_found() {
    // The longest names that are compared, similar enough that none is ruled out by its length.
    let long = |i: usize| format!("{}{i:04}", "ab".repeat(48));
    let executor = executor_of((0..2_000).map(|i| echo(open_definition(&long(i)))));
    let wanted = format!("{}1234", "ba".repeat(48));
    let search = tokio::time::timeout(
        secs(60), // Against hanging; it takes a fraction of a second.
        executor.execute(ToolCall::new(wanted.clone(), json!({}))),
    );
    let envelope = search.await.unwrap().to_envelope();
    assert_eq!(envelope["error"], format!("Tool '{wanted}' not found"));
    let hint = envelope["hint"].as_str().unwrap();
    assert!(hint.contains(&long(1234)), "{hint}");
    // Longer names aren't compared: the work grows with the square of the length.
    let endless = "ab".repeat(500_000);
    let outcome = executor.execute(ToolCall::new(endless, json!({}))).await;
    assert_eq!(outcome.to_envelope().get("hint"), None);
}

#[tokio::test]
async fn ex4_the_tools_own_message_is_unchanged() {
    let message = "Gerät 'Flur' antwortet nicht\n\tseit 5 min (E42)";
    let outcome = failing(ToolError::failed(message))
        .execute(ToolCall::new("t", json!({})))
        .await;
    assert_eq!(outcome.error().unwrap(), message);
    assert_eq!(outcome.to_model_text(), message);
    assert_eq!(outcome.to_speech(), message);
}

#[tokio::test]
async fn ex4_the_message_leaves_out_its_cause() {
    let cause = std::io::Error::from_raw_os_error(111);
    let outcome = failing(ToolError::failed_because("The lamp did not answer", cause))
        .execute(ToolCall::new("t", json!({})))
        .await;
    assert_eq!(outcome.error().unwrap(), "The lamp did not answer");
    let line = outcome.to_operator_line();
    assert!(line.contains("os error 111"), "an operator sees it: {line}");
}

#[tokio::test]
async fn ex4_details_go_to_the_envelope_but_never_to_a_model_or_into_speech() {
    let details = "exit status 3; stderr: cannot open /dev/ttyUSB0";
    for error in [
        ToolError::failed("It failed").with_details(details),
        ToolError::unavailable("t", "no radio").with_details(details),
        ToolError::ServerStopped {
            server: "zwave".to_owned(),
            status: "exit status 3".to_owned(),
            details: Some(details.to_owned()),
        },
        ToolError::Panicked {
            tool: "t".to_owned(),
            panic: details.to_owned(),
        },
    ] {
        let outcome = failing(error).execute(ToolCall::new("t", json!({}))).await;
        assert_eq!(outcome.to_envelope()["details"], details);
        for text in [
            outcome.to_model_text(),
            outcome.to_speech(),
            outcome.error().unwrap(),
        ] {
            assert!(!text.contains("ttyUSB0"), "{text}");
        }
        assert!(outcome.to_operator_line().contains("ttyUSB0"));
    }
}

#[tokio::test]
async fn ex8_texts_are_exact() {
    for (error, kind, expected) in [
        (
            ToolError::unavailable("search", "no network"),
            "unavailable",
            "The search service is currently unavailable: no network",
        ),
        (
            ToolError::ServerStopped {
                server: "zwave".to_owned(),
                status: "exit status 3".to_owned(),
                details: None,
            },
            "unavailable",
            "MCP server 'zwave' stopped during the call (exit status 3)",
        ),
        (
            ToolError::HandlerNotFound {
                kind: HandlerKind::Builtin,
                name: "calc".to_owned(),
            },
            "handler_not_found",
            "Builtin handler 'calc' not found",
        ),
        (
            ToolError::HandlerNotFound {
                kind: HandlerKind::Internal,
                name: "docs".to_owned(),
            },
            "handler_not_found",
            "Internal handler 'docs' not found",
        ),
    ] {
        let envelope = failing(error)
            .execute(ToolCall::new("t", json!({})))
            .await
            .to_envelope();
        assert_eq!(envelope["error"], expected);
        assert_eq!(envelope["error_kind"], kind);
    }
}

#[tokio::test]
async fn ex8_the_text_for_a_model_adds_every_required_parameter_with_its_type() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": ["integer", "null"] },
            "unit": { "enum": ["C", "F"] },
            "free": {},
            "optional": { "type": "string" },
        },
        "required": ["city", "days", "unit", "free", "undeclared"],
    });
    let executor = executor_of([echo(with_schema("weather", schema))]);
    let arguments = json!({ "city": 5, "days": 1, "unit": "C", "free": 1, "undeclared": 1 });
    let outcome = executor.execute(ToolCall::new("weather", arguments)).await;
    assert_eq!(
        outcome.error().unwrap(),
        "Invalid parameters: 'city' must be string"
    );
    assert_eq!(
        outcome.to_model_text(),
        "Invalid parameters: 'city' must be string. Required parameters: 'city' (string), 'days' (integer or null), \
         'unit' (one of: C, F), 'free' (any), 'undeclared' (any)"
    );
}

#[tokio::test]
async fn ex9_a_panic_anywhere_in_a_tool_is_contained() {
    let at_once: Box<dyn Fn() -> ToolOutput + Send + Sync> = Box::new(|| panic!("boom {}", 1));
    let executor = executor_of([
        scripted(open_definition("in_invoke"), move |_, _| {
            let output = at_once();
            async { Ok(output) }
        }),
        scripted(open_definition("in_future"), |_, _| async {
            panic!("boom 1")
        }),
        scripted(open_definition("later"), |_, _| async {
            tokio::task::yield_now().await;
            panic!("boom 1")
        }),
        echo(open_definition("echo")),
    ]);
    for name in ["in_invoke", "in_future", "later"] {
        let outcome = executor.execute(ToolCall::new(name, json!({}))).await;
        assert_eq!(
            outcome.error().unwrap(),
            format!("Tool '{name}' failed unexpectedly")
        );
        assert_eq!(outcome.to_envelope()["details"], "boom 1");
        assert!(
            executor
                .execute(ToolCall::new("echo", json!({})))
                .await
                .is_success()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ex9_a_panic_while_a_tool_is_stopped_is_contained() {
    struct PanicOnDrop;
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    let executor = executor_of([scripted(open_definition("t"), |_, _| async {
        let _bomb = PanicOnDrop;
        std::future::pending().await
    })]);
    let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
    assert_eq!(outcome.error().unwrap(), "Tool 't' timed out after 30 s");
}

#[tokio::test]
async fn ex10_text_is_the_string_joined_blocks_or_compact_json() {
    let text = |text: &str| ToolContent::text(text);
    for (output, expected) in [
        (ToolOutput::json("as it is\n"), "as it is\n"),
        (ToolOutput::text("as it is\n"), "as it is\n"),
        (ToolOutput::blocks(vec![text("a"), text("b")]), "a\nb"),
        (
            ToolOutput::json(json!({ "b": [1, 2.5], "a": null })),
            r#"{"b":[1,2.5],"a":null}"#,
        ),
        (ToolOutput::json(7), "7"),
        (ToolOutput::json(false), "false"),
        (ToolOutput::json(Value::Null), "(no output)"),
        (ToolOutput::json(""), "(no output)"),
        (ToolOutput::blocks(vec![]), "(no output)"),
    ] {
        let outcome = outcome_of(Ok(output)).await;
        assert_eq!(outcome.to_model_text(), expected);
        assert_eq!(outcome.to_speech(), expected);
    }
}

#[tokio::test]
async fn results_over_the_limit_are_refused() {
    let mut limits = Limits::default();
    limits.max_result = 1_000;
    let deep = (0..600).fold(json!(1), |inner, _| json!([inner]));
    for (output, expected) in [
        (
            ToolOutput::text("x".repeat(1_001)),
            Some("The result of 't' takes 1001 bytes; the limit is 1000"),
        ),
        (ToolOutput::text("x".repeat(1_000)), None),
        (ToolOutput::json(json!(vec![1; 499])), None),
        (
            ToolOutput::json(json!(vec![1; 500])),
            Some("The result of 't' takes 1001 bytes; the limit is 1000"),
        ),
        (
            ToolOutput::json(deep),
            Some("The result of 't' is nested deeper than 512"),
        ),
    ] {
        let executor = builder_of([answering(open_definition("t"), Ok(output))])
            .limits(limits.clone())
            .build();
        let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
        assert_eq!(outcome.error().as_deref(), expected);
    }
}

#[tokio::test]
async fn a_dry_run_finds_renames_and_validates_but_runs_nothing() {
    let executor = executor_of([scripted(open_definition("t"), |_, _| async {
        panic!("ran")
    })]);
    let rehearsal = executor
        .dry_run(&ToolCall::new("t", json!({ "a": 1 })))
        .unwrap();
    assert_eq!(rehearsal.tool.definition().name(), "t");
    assert_eq!(rehearsal.arguments.as_value(), &json!({ "a": 1 }));
    let unknown = executor.dry_run(&ToolCall::new("nope", json!({})));
    assert_eq!(unknown.err().unwrap().to_string(), "Tool 'nope' not found");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_replaced_while_it_runs_still_answers() {
    let manager = Arc::new(ToolManager::new());
    manager.add(sleeping(open_definition("t"), secs(1)));
    let executor = ToolExecutor::builder(Arc::clone(&manager))
        .without_observers()
        .build();
    let running = executor.execute(ToolCall::new("t", json!({})));
    let replacing = async {
        tokio::time::sleep(millis(500)).await;
        manager.add(hung(open_definition("t")));
    };
    let (outcome, ()) = tokio::join!(running, replacing);
    assert_eq!(outcome.to_model_text(), "done");
    let tool: Arc<dyn Tool> = manager.find("t").unwrap();
    assert_eq!(tool.definition().name(), "t");
}
