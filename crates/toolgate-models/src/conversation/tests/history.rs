//! What is kept, what is sent, and what comes back from a file.

use super::*;

/// About a thousand tokens.
fn long(mark: &str) -> String {
    format!("{mark} {}", "word ".repeat(600))
}

fn is_from(message: &Message, mark: &str) -> bool {
    matches!(message, Message::User { text } if text.starts_with(mark))
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_sent_with_every_question() {
    let script = Script::new([words("Hello Ada."), words("Ada.")]);
    let mut conversation = conversation(&script, []);
    say(&mut conversation, "I am Ada.").await;
    say(&mut conversation, "Who am I?").await;
    let sent = script.last_asked().messages;
    assert_eq!(sent.len(), 3);
    assert!(is_from(&sent[0], "I am Ada."));
}

#[tokio::test(start_paused = true)]
async fn e4_the_oldest_turns_are_left_out_whole_when_the_window_is_full() {
    let script = Script::with_window(8000, Vec::<Reply>::new());
    let mut conversation = conversation(&script, [echo()]);
    let mut heard = Heard::default();
    for turn in 0..20 {
        script.answers.lock().unwrap().extend([
            calls([call(
                &format!("id{turn}"),
                "echo",
                json!({ "text": long("call") }),
            )])
            .into(),
            Answer::Reply(words("ok")),
        ]);
        conversation
            .turn(&format!("turn {turn}"), &mut heard)
            .await
            .unwrap();
        // Whole turns, which the script itself looks at, and the last one always.
        let sent = script.last_asked().messages;
        assert!(
            sent.iter()
                .any(|message| is_from(message, &format!("turn {turn}")))
        );
    }
    let sent = script.last_asked().messages;
    assert!(sent.len() < 20, "{}", sent.len());
    assert_eq!(conversation.history().len(), 80, "all of it is kept");
    let notices = heard.notices();
    assert!(
        notices[0].starts_with("The conversation is longer than the model can hold: the oldest"),
        "{notices:?}"
    );
    assert!(
        notices.len() < 15,
        "not every turn begins with another prompt: {}",
        notices.len()
    );

    let larger = Script::with_window(1_000_000, [words("I remember.")]);
    conversation.set_client(larger.clone());
    say(&mut conversation, "And now?").await;
    assert_eq!(
        larger.last_asked().messages.len(),
        81,
        "a larger model is sent all of it"
    );
}

#[tokio::test(start_paused = true)]
async fn e4_results_of_a_turn_that_alone_is_too_long_are_shortened_oldest_first() {
    let large = tool("large", async |_| Ok(ToolOutput::text(long("result"))));
    let replies = (0..9).map(|n| calls([call(&format!("id{n}"), "large", json!({ "n": n }))]));
    let script = Script::with_window(4000, replies);
    let mut conversation = conversation(&script, [large]);
    let mut heard = Heard::default();
    let turn = conversation.turn("Read it all.", &mut heard).await.unwrap();
    assert_eq!(turn.end, TurnEnd::Answered);
    let lengths: Vec<usize> = script
        .last_asked()
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { results } => Some(results[0].text.len()),
            _ => None,
        })
        .collect();
    assert!(lengths[0] < 500 && lengths[8] > 3000, "{lengths:?}");
    assert!(lengths.is_sorted(), "the oldest first: {lengths:?}");
    let notices = heard.notices();
    assert_eq!(
        notices[0],
        "This turn is longer than the model can hold: a result of a tool is shortened."
    );
}

#[tokio::test(start_paused = true)]
async fn e4_a_question_that_can_not_fit_is_told_so_before_it_is_sent() {
    let script = Script::with_window(2000, Vec::<Reply>::new());
    let mut conversation = conversation(&script, []);
    let error = conversation
        .turn(&long("What?").repeat(4), &mut Heard::default())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the conversation is too long for script: it takes about "),
        "{text}"
    );
    assert!(
        text.contains("the model holds 2000") && text.contains("model.contextTokens"),
        "{text}"
    );
    assert!(script.asked().is_empty());
    // The next one goes out without it.
    assert_eq!(say(&mut conversation, "Hi").await.answer, "done");
    assert_eq!(script.last_asked().messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e4_if_the_provider_counts_more_the_older_half_is_left_out() {
    let too_long = || ModelError::TooLong {
        model: "script".to_owned(),
        reason: "prompt is too long".to_owned(),
    };
    let script = Script::new(
        (0..4)
            .map(|_| words(&long("answer")))
            .map(Answer::from)
            .chain([
                Answer::Fail(too_long()),
                words("Better.").into(),
                Answer::Fail(too_long()),
                Answer::Fail(too_long()),
            ]),
    );
    let mut conversation = conversation(&script, []);
    for _ in 0..4 {
        say(&mut conversation, "?").await;
    }
    let mut heard = Heard::default();
    let turn = conversation.turn("Shorter?", &mut heard).await.unwrap();
    assert_eq!(turn.answer, "Better.");
    assert_eq!(
        heard.notices(),
        [
            "The conversation is longer than the model can hold: the oldest 3 turns are left out from now on."
        ]
    );
    assert_eq!(script.last_asked().messages.len(), 3);
    let error = conversation
        .turn("Again?", &mut Heard::default())
        .await
        .unwrap_err();
    assert_eq!(error, too_long(), "once is enough");
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn e4_if_the_provider_counts_more_in_the_first_turn_results_are_shortened() {
    let too_long = ModelError::TooLong {
        model: "script".to_owned(),
        reason: "prompt is too long".to_owned(),
    };
    let large = tool("large", async |_| Ok(ToolOutput::text(long("result"))));
    let script = Script::new([
        calls([call("a", "large", json!({}))]).into(),
        Answer::Fail(too_long),
        words("Better.").into(),
    ]);
    let mut conversation = conversation(&script, [large]);
    assert_eq!(say(&mut conversation, "Read.").await.answer, "Better.");
    let text = &last_results(&conversation)[0].text;
    assert!(
        text.ends_with("… [shortened to make room for others: 2.7 kB left out]"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn e4_a_result_takes_no_more_than_its_share_of_a_small_window() {
    let large = tool("large", async |_| {
        Ok(ToolOutput::text("word ".repeat(100_000)))
    });
    for (asked, most) in [(1, 6000), (3, 2000), (20, 1000)] {
        let parts: Vec<Part> = (0..asked)
            .map(|n| call(&format!("id{n}"), "large", json!({ "n": n })))
            .collect();
        let script = Script::with_window(6000, [calls(parts)]);
        let mut conversation = conversation(&script, [Arc::clone(&large)]);
        assert_eq!(say(&mut conversation, "Read.").await.answer, "done");
        let result = &last_results(&conversation)[asked - 1];
        assert!(
            result.text.len() <= most && result.text.len() > most - 20 || asked == 20,
            "{}",
            result.text.len()
        );
        assert!(
            conversation
                .full_result(result.call_id.as_ref().unwrap())
                .is_some()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_stays_and_is_closed() {
    let script = Script::new([
        Answer::Fail(failure()),
        Answer::Never,
        words("Both.").into(),
    ]);
    let mut conversation = conversation(&script, []);
    conversation
        .turn("First?", &mut Heard::default())
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
async fn a_turn_that_is_dropped_in_its_last_round_keeps_no_words_to_the_model_alone() {
    let script = Script::new([calls([call("a", "echo", json!({}))]).into(), Answer::Never]);
    let mut conversation =
        conversation_with(&script, [echo()], |settings| settings.max_tool_rounds = 1);
    let stopped = tokio::time::timeout(Duration::from_secs(1), say(&mut conversation, "Go.")).await;
    assert!(stopped.is_err());
    assert!(script.last_asked().messages.len() == 4);
    expect_in_order(conversation.history(), false);
    assert!(!format!("{:?}", conversation.history()).contains("Answer now"));
}

#[tokio::test(start_paused = true)]
async fn what_was_saved_is_resumed_as_it_was() {
    let numbers = json!({ "float": 0.1, "large": u64::MAX, "small": -1, "deep": [{ "x": null }] });
    let opaque = Part::Opaque {
        provider: Provider::Anthropic,
        value: numbers.clone(),
    };
    let script = Script::new([
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
    let saved = Saved::read(file.as_bytes()).unwrap();
    assert_eq!(
        (saved.provider, saved.model.as_str()),
        (Provider::OpenAi, "script")
    );
    assert_eq!(saved.messages, conversation.history());

    let script = Script::new([calls([call("a", "echo", json!({}))]), words("Resumed.")]);
    let mut resumed = conversation_with(&script, [echo()], |_| {}).resumed(saved.messages.clone());
    assert_eq!(resumed.history(), saved.messages);
    assert_eq!(say(&mut resumed, "Well?").await.answer, "Resumed.");
    expect_in_order(resumed.history(), false);
}

#[test]
fn a_file_that_holds_no_conversation_is_refused_with_the_reason() {
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
        ("", "the file holds no saved conversation: EOF"),
        ("[]", "the file holds no saved conversation: "),
        (r#"{"messages":[]}"#, "missing field `version`"),
        (
            r#"{"version":2,"new":true}"#,
            "was saved in the form 2, and this program knows the form 1",
        ),
        (
            r#"{"version":-1}"#,
            "the file holds no saved conversation: ",
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
        (&deep, "the file holds no saved conversation: "),
    ] {
        let error = Saved::read(file.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains(expected),
            "{}: {error}",
            &file[..file.len().min(100)]
        );
    }
    let huge = vec![b' '; (128 << 20) + 1];
    assert!(matches!(
        Saved::read(&huge),
        Err(SavedError::TooLarge { .. })
    ));
}

#[test]
fn a_history_that_is_not_in_order_is_mended() {
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
        let conversation = conversation(&Script::new([words("")]), []).resumed(messages);
        expect_in_order(conversation.history(), false);
        assert_eq!(conversation.history().len(), length, "{name}");
    }
    let mixed = vec![user(), asks(&["a", "b"]), tool(&["b"]), answer()];
    let conversation = conversation(&Script::new([words("")]), []).resumed(mixed);
    let results = last_results(&conversation);
    assert!(results[0].text.starts_with("interrupted") && results[1].text == "real");
}

#[test]
fn a_conversation_does_not_grow_for_ever() {
    let large = "x".repeat(1 << 20);
    let turn = |n: usize| {
        [
            Message::User {
                text: format!("{n} {large}"),
            },
            Message::Assistant(AssistantMessage::text("a")),
        ]
    };
    let conversation =
        conversation(&Script::new([words("")]), []).resumed((0..50).flat_map(turn).collect());
    let history = conversation.history();
    assert_eq!(history.len(), 62, "32 MiB hold 31 of them");
    assert!(is_from(&history[0], "19 ") && is_from(&history[60], "49 "));
}

#[test]
fn with_a_turn_the_ids_of_its_calls_are_forgotten() {
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
    let history = History::resumed((0..50).flat_map(turn).collect());
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
