//! Conversations that exceed a model's window.

use super::*;

/// About a thousand tokens.
fn long(mark: &str) -> String {
    format!("{mark} {}", "word ".repeat(600))
}

#[tokio::test(start_paused = true)]
async fn e4_a_full_window_drops_whole_turns_oldest_first() {
    let script = ModelScript::with_window(8000, Vec::<ModelReply>::new());
    let mut conversation = conversation(&script, [echo()]);
    let mut reported = ModelEventLog::default();
    for turn in 0..20 {
        script.answers.lock().extend([
            calls([call(
                &format!("id{turn}"),
                "echo",
                json!({ "text": long("call") }),
            )])
            .into(),
            ModelScriptStep::Reply(words("ok")),
        ]);
        conversation
            .turn(&format!("turn {turn}"), &mut reported)
            .await
            .unwrap();
        // Whole turns, which the script itself checks, and always the last one.
        let sent = script.last_asked().messages;
        assert!(
            sent.iter()
                .any(|message| is_from(message, &format!("turn {turn}")))
        );
    }
    let sent = script.last_asked().messages;
    assert!(sent.len() < 20, "{}", sent.len());
    assert_eq!(conversation.history().len(), 80, "all of it is kept");
    let notices = reported.notices();
    assert!(
        notices[0].starts_with("The conversation is longer than the model can hold: the oldest"),
        "{notices:?}"
    );
    assert!(
        notices.len() < 15,
        "not every turn begins with another prompt: {}",
        notices.len()
    );

    let larger = ModelScript::with_window(1_000_000, [words("I remember.")]);
    conversation.set_router(larger.clone());
    say(&mut conversation, "And now?").await;
    assert_eq!(
        larger.last_asked().messages.len(),
        81,
        "a larger model is sent all of it"
    );
}

#[tokio::test(start_paused = true)]
async fn e4_results_of_an_overlong_turn_are_shortened_oldest_first() {
    let large = tool("large", async |_| Ok(ToolOutput::text(long("result"))));
    let replies = (0..9).map(|n| calls([call(&format!("id{n}"), "large", json!({ "n": n }))]));
    let script = ModelScript::with_window(4000, replies);
    let mut conversation = conversation(&script, [large]);
    let mut reported = ModelEventLog::default();
    let turn = conversation
        .turn("Read it all.", &mut reported)
        .await
        .unwrap();
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
    let notices = reported.notices();
    assert_eq!(
        notices[0],
        "This turn is longer than the model can hold: a result of a tool is shortened."
    );
}

#[tokio::test(start_paused = true)]
async fn e4_a_question_that_cannot_fit_is_refused_before_it_is_sent() {
    let script = ModelScript::with_window(2000, Vec::<ModelReply>::new());
    let mut conversation = conversation(&script, []);
    let error = conversation
        .turn(&long("What?").repeat(4), &mut ModelEventLog::default())
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
    // The next one is sent without it.
    assert_eq!(say(&mut conversation, "Hi").await.answer, "done");
    assert_eq!(script.last_asked().messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e4_if_the_provider_counts_more_the_older_half_is_left_out() {
    let too_long = || ModelError::TooLong {
        model: "script".to_owned(),
        reason: "prompt is too long".to_owned(),
    };
    let script = ModelScript::new(
        (0..4)
            .map(|_| words(&long("answer")))
            .map(ModelScriptStep::from)
            .chain([
                ModelScriptStep::Fail(too_long()),
                words("Better.").into(),
                ModelScriptStep::Fail(too_long()),
                ModelScriptStep::Fail(too_long()),
            ]),
    );
    let mut conversation = conversation(&script, []);
    for _ in 0..4 {
        say(&mut conversation, "?").await;
    }
    let mut reported = ModelEventLog::default();
    let turn = conversation.turn("Shorter?", &mut reported).await.unwrap();
    assert_eq!(turn.answer, "Better.");
    assert_eq!(
        reported.notices(),
        [
            "The conversation is longer than the model can hold: the oldest 3 turns are left out from now on."
        ]
    );
    assert_eq!(script.last_asked().messages.len(), 3);
    let error = conversation
        .turn("Again?", &mut ModelEventLog::default())
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
    let script = ModelScript::new([
        calls([call("a", "large", json!({}))]).into(),
        ModelScriptStep::Fail(too_long),
        words("Better.").into(),
    ]);
    let mut conversation = conversation(&script, [large]);
    assert_eq!(say(&mut conversation, "Read.").await.answer, "Better.");
    let text = &last_results(&conversation)[0].text;
    assert!(
        text.contains(
            "… [shortened to make room for others: 2.7 kB left out; the full result is kept"
        ),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn e4_a_result_takes_no_more_than_its_share_of_a_small_window() {
    let large = tool("large", async |_| {
        Ok(ToolOutput::text("word ".repeat(100_000)))
    });
    for (asked, most) in [(1, 6000), (3, 2000), (20, 1000)] {
        let parts: Vec<MessagePart> = (0..asked)
            .map(|n| call(&format!("id{n}"), "large", json!({ "n": n })))
            .collect();
        let script = ModelScript::with_window(6000, [calls(parts)]);
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

fn results(messages: &[Message]) -> Vec<&str> {
    let results = messages.iter().filter_map(|message| match message {
        Message::Tool { results } => Some(results),
        _ => None,
    });
    results
        .flatten()
        .map(|result| result.text.as_str())
        .collect()
}

/// A conversation with a small model. A large result was cut for it and shortened later;
/// another one is small.
async fn with_a_small_model(whole: &str) -> Conversation {
    let text = whole.to_owned();
    let read = tool("read", move |arguments| {
        let is_large = arguments["page"] == 1;
        let text = if is_large { text.clone() } else { long("p") };
        async { Ok(ToolOutput::text(text)) }
    });
    let pages = (1..6).map(|n| calls([call(&format!("id{n}"), "read", json!({ "page": n }))]));
    let script = ModelScript::with_window(4000, pages);
    let mut conversation = conversation(&script, [read]);
    say(&mut conversation, "Read it all.").await;
    let sent = script.last_asked().messages;
    assert!(results(&sent)[0].contains("… [shortened to make room"));
    conversation
}

#[tokio::test(start_paused = true)]
async fn e4_another_model_gets_as_much_of_earlier_results_as_fits() {
    let whole = "word ".repeat(10_000);
    let mut conversation = with_a_small_model(&whole).await;
    for (window, expected) in [(200_000, 50_000), (20_000, 20_000), (200_000, 50_000)] {
        let script = ModelScript::with_window(window, [words("I see.")]);
        conversation.set_router(script.clone());
        say(&mut conversation, "And now?").await;
        let sent = script.last_asked().messages;
        let first = results(&sent)[0];
        assert!(
            first.len() <= expected && first.len() > expected - 20,
            "{window}: {}",
            first.len()
        );
        assert_eq!(first == whole, window == 200_000);
    }
}

#[tokio::test(start_paused = true)]
async fn e4_a_saved_conversation_is_cut_for_the_model_that_resumes_it() {
    let whole = "word ".repeat(10_000);
    let saved = with_a_small_model(&whole).await.save();
    assert_eq!(results(&saved.messages)[0], whole);
    assert!(!saved.to_json().contains("[shortened to make room"));

    let script = ModelScript::with_window(16_000, [words("I see.")]);
    let mut resumed = conversation(&script, []).with_history(saved.messages.clone());
    say(&mut resumed, "And now?").await;
    let sent = script.last_asked().messages;
    let first = results(&sent)[0];
    assert!(
        first.len() <= 16_000 && first.contains("… [cut: "),
        "{first}"
    );
    assert_eq!(
        results(&resumed.save().messages),
        results(&saved.messages),
        "nothing is lost on the way"
    );
}

#[tokio::test(start_paused = true)]
async fn whole_results_are_bounded_and_the_oldest_go_first() {
    const LARGE: usize = 7_000_000;
    let large = tool("large", async |_| Ok(ToolOutput::text("x".repeat(LARGE))));
    let asked: Vec<MessagePart> = (0..6)
        .map(|n| call(&format!("id{n}"), "large", json!({ "n": n })))
        .collect();
    let script = ModelScript::new([calls(asked)]);
    let mut conversation = conversation(&script, [large]);
    say(&mut conversation, "?").await;
    let saved = conversation.save();
    let are_whole: Vec<bool> = results(&saved.messages)
        .iter()
        .map(|text| text.len() == LARGE)
        .collect();
    assert_eq!(are_whole, [false, false, true, true, true, true], "32 MiB");
}
