//! What is kept, what is sent, and what comes back from a file.

use super::*;

#[tokio::test(start_paused = true)]
async fn history_is_sent_with_every_question() {
    let script = ModelScript::new([words("Hello Ada."), words("Ada.")]);
    let mut conversation = conversation(&script, []);
    say(&mut conversation, "I am Ada.").await;
    say(&mut conversation, "Who am I?").await;
    let sent = script.last_asked().messages;
    assert_eq!(sent.len(), 3);
    assert!(is_from(&sent[0], "I am Ada."));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_stays_with_a_placeholder() {
    let script = ModelScript::new([
        ModelScriptStep::Fail(failure()),
        ModelScriptStep::Never,
        words("Both.").into(),
    ]);
    let mut conversation = conversation(&script, []);
    conversation
        .turn("First?", &mut ModelEventLog::default())
        .await
        .unwrap_err();
    let stopped =
        tokio::time::timeout(Duration::from_secs(1), say(&mut conversation, "Second?")).await;
    assert!(stopped.is_err());
    expect_in_order(conversation.history(), false);
    assert_eq!(say(&mut conversation, "Third?").await.answer, "Both.");
    let sent = script.last_asked().messages;
    assert!(
        is_from(&sent[0], "First?") && is_from(&sent[2], "Second?") && is_from(&sent[4], "Third?")
    );
    assert_eq!(
        sent[1],
        Message::Assistant(AssistantMessage::text(
            "(This turn ended before there was an answer.)"
        ))
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_turn_keeps_no_note_for_the_model() {
    let script = ModelScript::new([
        calls([call("a", "echo", json!({}))]).into(),
        ModelScriptStep::Never,
    ]);
    let mut conversation =
        conversation_with(&script, [echo()], |settings| settings.max_tool_rounds = 1);
    let stopped = tokio::time::timeout(Duration::from_secs(1), say(&mut conversation, "Go.")).await;
    assert!(stopped.is_err());
    assert!(script.last_asked().messages.len() == 4);
    expect_in_order(conversation.history(), false);
    assert!(!format!("{:?}", conversation.history()).contains("Answer now"));
}

#[tokio::test(start_paused = true)]
async fn a_saved_conversation_is_resumed_unchanged() {
    let numbers = json!({ "float": 0.1, "large": u64::MAX, "small": -1, "deep": [{ "x": null }] });
    let opaque = MessagePart::Opaque {
        provider: Provider::Anthropic,
        value: numbers.clone(),
    };
    let script = ModelScript::new([
        calls([
            thought("hm"),
            opaque,
            call("a", "echo", numbers),
            call("b", "nope", json!({})),
        ]),
        words("Saved."),
    ]);
    let mut conversation =
        conversation_with(&script, [echo()], |settings| settings.keep_thinking = true);
    say(&mut conversation, "Remember.").await;
    let file = conversation.save().to_json();
    let saved = SavedConversation::parse(file.as_bytes()).unwrap();
    assert_eq!(
        (saved.provider, saved.model.as_str()),
        (Provider::OpenAi.into(), "script")
    );
    assert_eq!(saved.messages, conversation.history());

    let script = ModelScript::new([calls([call("a", "echo", json!({}))]), words("Resumed.")]);
    let mut resumed =
        conversation_with(&script, [echo()], |_| {}).with_history(saved.messages.clone());
    assert_eq!(resumed.history(), saved.messages);
    assert_eq!(say(&mut resumed, "Well?").await.answer, "Resumed.");
    expect_in_order(resumed.history(), false);
}

#[test]
fn an_invalid_file_is_refused_with_the_reason() {
    let many = format!(
        r#"{{"version":1,"provider":"ollama","model":"m","messages":[{}]}}"#,
        vec![r#"{"role":"user","text":""}"#; 20_001].join(",")
    );
    let deep = format!(
        "{}{}",
        r#"{"version":1,"provider":"ollama","model":"m","messages":"#,
        "[".repeat(100_000)
    );
    for (file, expected) in [
        ("", "the file is not a saved conversation: EOF"),
        ("[]", "the file is not a saved conversation: "),
        (r#"{"messages":[]}"#, "missing field `version`"),
        (
            r#"{"version":2,"new":true}"#,
            "was saved in format 2, but this program reads format 1",
        ),
        (
            r#"{"version":-1}"#,
            "the file is not a saved conversation: ",
        ),
        (
            r#"{"version":1,"provider":"skynet","model":"m","messages":[]}"#,
            "unknown variant `skynet`",
        ),
        (
            r#"{"version":1,"provider":"ollama","model":"m","messages":[],"x":1}"#,
            "unknown field `x`",
        ),
        (
            r#"{"version":1,"provider":"ollama","model":"m","messages":[{"role":"god"}]}"#,
            "unknown variant `god`",
        ),
        (&many, "20001 bytes or messages, and at most 20000"),
        (&deep, "the file is not a saved conversation: "),
    ] {
        let error = SavedConversation::parse(file.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected),
            "{}: {error}",
            &file[..file.len().min(100)]
        );
    }
    let huge = vec![b' '; (128 << 20) + 1];
    assert!(matches!(
        SavedConversation::parse(&huge),
        Err(SavedConversationError::TooLarge { .. })
    ));
}

#[test]
fn an_inconsistent_history_is_repaired() {
    let user = || Message::User {
        text: "u".to_owned(),
    };
    let asks = |ids: &[&str]| {
        let parts = ids.iter().map(|id| call(id, "echo", json!({})));
        Message::Assistant(AssistantMessage {
            parts: parts.collect(),
        })
    };
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "echo".to_owned(),
        text: "real".to_owned(),
        images: Vec::new(),
        is_error: false,
        call_id: None,
    };
    let tool = |ids: &[&str]| Message::Tool {
        results: ids.iter().map(|id| result(id)).collect(),
    };
    let answer = || Message::Assistant(AssistantMessage::text("a"));
    let empty = || Message::Assistant(AssistantMessage::default());
    for (name, messages, length) in [
        ("nothing", vec![], 0),
        ("no question", vec![answer(), tool(&["a"]), asks(&["a"])], 0),
        ("no answer", vec![user()], 2),
        ("two questions", vec![user(), user()], 4),
        ("no results", vec![user(), asks(&["a", "b"])], 4),
        (
            "one result",
            vec![user(), asks(&["a", "b"]), tool(&["b"]), answer()],
            4,
        ),
        (
            "other order",
            vec![user(), asks(&["a", "b"]), tool(&["b", "a"]), answer()],
            4,
        ),
        (
            "results of nothing",
            vec![user(), answer(), tool(&["a"])],
            2,
        ),
        ("an empty message", vec![user(), empty(), user()], 4),
        (
            "an id twice",
            vec![
                user(),
                asks(&["a"]),
                tool(&["a"]),
                asks(&["a"]),
                tool(&["a"]),
            ],
            4,
        ),
        (
            "an id twice at once",
            vec![user(), asks(&["a", "a"]), tool(&["a", "a"])],
            4,
        ),
        (
            "calls in a row",
            vec![user(), asks(&["a"]), asks(&["b"]), answer()],
            6,
        ),
    ] {
        let conversation = conversation(&ModelScript::new([words("")]), []).with_history(messages);
        expect_in_order(conversation.history(), false);
        assert_eq!(conversation.history().len(), length, "{name}");
    }
    let mixed = vec![user(), asks(&["a", "b"]), tool(&["b"]), answer()];
    let conversation = conversation(&ModelScript::new([words("")]), []).with_history(mixed);
    let results = last_results(&conversation);
    assert!(results[0].text.starts_with("interrupted") && results[1].text == "real");
}

#[test]
fn a_conversation_has_a_bounded_size() {
    let large = "x".repeat(1 << 20);
    let turn = |n: usize| {
        [
            Message::User {
                text: format!("{n} {large}"),
            },
            Message::Assistant(AssistantMessage::text("a")),
        ]
    };
    let conversation = conversation(&ModelScript::new([words("")]), [])
        .with_history((0..50).flat_map(turn).collect());
    let history = conversation.history();
    assert_eq!(history.len(), 62, "32 MiB hold 31 of them");
    assert!(is_from(&history[0], "19 ") && is_from(&history[60], "49 "));
}

#[test]
fn deleting_a_turn_frees_its_call_ids() {
    let large = "x".repeat(1 << 20);
    let turn = |n: usize| {
        let id = format!("id{n}");
        [
            Message::User {
                text: large.clone(),
            },
            Message::Assistant(AssistantMessage {
                parts: vec![call(&id, "echo", json!({}))],
            }),
        ]
    };
    let history = MessageHistory::from_messages((0..50).flat_map(turn).collect());
    let calls = history
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(message) => message.calls().next(),
            _ => None,
        });
    let kept: HashSet<String> = calls.map(|call| call.id.clone()).collect();
    assert!(kept.len() < 50 && kept.contains("id49"));
    assert_eq!(history.ids, kept);
}
