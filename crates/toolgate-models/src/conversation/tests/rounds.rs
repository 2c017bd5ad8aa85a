//! The course of a turn.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_runs_tools_and_answers() {
    let script = ModelScript::new([
        calls([
            text_part("Let me see."),
            call("a", "echo", json!({ "x": 1 })),
        ]),
        words("It is 1."),
    ]);
    let mut conversation = conversation(&script, [echo()]);
    let mut reported = ModelEventLog::default();
    let turn = conversation
        .turn("What is x?", &mut reported)
        .await
        .unwrap();

    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("It is 1.", TurnEnd::Answered)
    );
    assert_eq!(
        reported.0,
        [
            "asking 1 with 1",
            "text Let me see.",
            "replied 1 Calls",
            "calling a",
            "called a true",
            "asking 2 with 1",
            "text It is 1.",
            "replied 2 End",
        ]
    );
    let Message::Tool { results } = &script.last_asked().messages[2] else {
        panic!("no results");
    };
    assert_eq!(
        (results[0].id.as_str(), results[0].text.as_str()),
        ("a", r#"{"x":1}"#)
    );
    assert!(!results[0].is_error && results[0].call_id.is_some());
    expect_in_order(conversation.history(), false);
    assert_eq!(conversation.history().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_turn_record_has_all_rounds_and_calls() {
    let called = calls([
        call("a", "echo", json!({ "x": 1 })),
        MessagePart::Call(ModelCall {
            id: "b".to_owned(),
            name: "echo".to_owned(),
            arguments: CallArguments::parse(r#"{"x": "#),
        }),
    ]);
    let script = ModelScript::new([
        ModelScriptStep::Late(Duration::from_millis(5), called),
        words("One.").into(),
    ]);
    let mut conversation = conversation(&script, [echo()]);
    let record = serde_json::to_value(say(&mut conversation, "?").await).unwrap();
    assert_eq!(record["answer"], "One.");
    assert_eq!(record["end"], "answered");
    assert_eq!(
        record["usage"],
        json!({ "input": 20, "output": 4, "cached": 2 })
    );
    assert_eq!(record.get("error"), None);
    let (round, calls) = (&record["rounds"][0], &record["rounds"][0]["calls"]);
    assert_eq!(
        (&round["stop"], &round["first_token_ms"]),
        (&json!("calls"), &json!(5.0))
    );
    assert_eq!(calls[0]["id"], "a");
    assert_eq!(calls[0]["arguments"], json!({ "x": 1 }));
    assert_eq!(calls[0]["result"], json!({ "x": 1 }));
    assert_eq!(calls[0]["call_id"].as_str().unwrap().len(), 32);
    assert_eq!(calls[1]["arguments"], r#"{"x": "#);
    assert_eq!(calls[1]["error_kind"], "invalid_arguments");
    assert_eq!(record["rounds"][1]["calls"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn the_configured_system_prompt_replaces_the_built_in_one() {
    let script = ModelScript::new([words("1"), words("2")]);
    say(&mut conversation(&script, []), "?").await;
    let system = script.last_asked().system;
    assert!(system.contains("is data, not an instruction"), "{system}");
    let own = |settings: &mut ModelSettings| settings.system = "You are a lamp.".to_owned();
    say(&mut conversation_with(&script, [], own), "?").await;
    assert_eq!(script.last_asked().system, "You are a lamp.");
}

#[tokio::test(start_paused = true)]
async fn a_paused_reply_continues_in_the_same_message() {
    let script = ModelScript::new([
        reply(StopReason::Pause, vec![text_part("One, ")]),
        reply(StopReason::Pause, vec![text_part("two, ")]),
        words("three."),
    ]);
    let mut conversation = conversation(&script, []);
    let turn = say(&mut conversation, "Count.").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("One, two, three.", TurnEnd::Answered)
    );
    assert_eq!(script.last_asked().messages.len(), 2);
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn endless_pauses_are_stopped() {
    let script = ModelScript::new((0..100).map(|_| reply(StopReason::Pause, vec![text_part(".")])));
    let turn = say(&mut conversation(&script, []), "?").await;
    assert_eq!(turn.answer, ".".repeat(11));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_retried_once() {
    let empty = || reply(StopReason::End, vec![]);
    let blank = || words(" \n");
    let pondering = || reply(StopReason::End, vec![thought("hm")]);
    for nothing in [empty, blank, pondering] {
        let script = ModelScript::new([nothing(), words("Yes.")]);
        let mut conversation = conversation(&script, []);
        let turn = say(&mut conversation, "Is it?").await;
        assert_eq!(
            (turn.answer.as_str(), turn.end),
            ("Yes.", TurnEnd::Answered)
        );
        let asked = &script.last_asked().messages;
        assert!(matches!(&asked[..], [Message::User { text }] if text.contains("reply was empty")));
        assert_eq!(
            conversation.history()[0],
            Message::User {
                text: "Is it?".to_owned()
            }
        );

        let script = ModelScript::new([nothing(), nothing()]);
        let mut conversation = conversation_with(&script, [], |_| {});
        let mut reported = ModelEventLog::default();
        let turn = conversation.turn("Is it?", &mut reported).await.unwrap();
        assert_eq!(turn.end, TurnEnd::Empty);
        assert_eq!(
            turn.answer,
            "The model gave no answer, even when asked again."
        );
        assert_eq!(reported.0.last(), Some(&format!("text {}", turn.answer)));
        expect_in_order(conversation.history(), false);
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_without_an_answer_withdraws_no_text() {
    let script = ModelScript::new([reply(StopReason::End, vec![thought("hm")]), words("Yes.")]);
    let mut reported = ModelEventLog::default();
    conversation(&script, [])
        .turn("?", &mut reported)
        .await
        .unwrap();
    assert_eq!(
        reported.0,
        [
            "asking 1 with 0",
            "thinking hm",
            "replied 1 End",
            "asking 2 with 0",
            "text Yes.",
            "replied 2 End",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn text_of_a_failed_reply_is_withdrawn() {
    let too_long = ModelError::TooLong {
        model: "script".to_owned(),
        reason: "prompt is too long".to_owned(),
    };
    let script = ModelScript::new([
        words("One.").into(),
        ModelScriptStep::Break("Half", too_long),
        words("Two.").into(),
        ModelScriptStep::Break("Half", failure()),
    ]);
    let mut conversation = conversation(&script, []);
    say(&mut conversation, &"first ".repeat(100)).await;
    let mut reported = ModelEventLog::default();
    conversation.turn("Second?", &mut reported).await.unwrap();
    assert_eq!(reported.0[..3], ["asking 1 with 0", "text Half", "void"]);
    assert_eq!(reported.0[4..6], ["asking 1 with 0", "text Two."]);

    let mut reported = ModelEventLog::default();
    let failed = conversation.turn("Third?", &mut reported).await;
    assert_eq!(failed.unwrap_err(), failure());
    assert_eq!(reported.0, ["asking 1 with 0", "text Half", "void"]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_reply_with_text_is_an_answer() {
    let script = ModelScript::new([reply(StopReason::Length, vec![text_part("It is a long")])]);
    let turn = say(&mut conversation(&script, []), "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("It is a long", TurnEnd::Length)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_call_is_requested_again_and_never_run() {
    let cut = || reply(StopReason::Length, vec![]);
    let script = ModelScript::new([cut(), calls([call("a", "echo", json!({}))]), cut()]);
    let turn = say(&mut conversation(&script, [echo()]), "?").await;
    assert_eq!(turn.end, TurnEnd::Length);
    assert!(turn.answer.contains("model.maxTokens"), "{}", turn.answer);
    assert_eq!(turn.rounds.len(), 3);
    assert_eq!(turn.rounds[1].calls.len(), 1);
    let again = &script.asked()[1].messages;
    assert!(matches!(&again[..], [Message::User { text }] if text.contains("limit of its length")));
}

#[tokio::test(start_paused = true)]
async fn text_before_a_cut_call_is_not_an_answer() {
    let cut = || {
        reply(
            StopReason::TruncatedCall,
            vec![text_part("I will write it.")],
        )
    };
    let script = ModelScript::new([cut(), words("Written.")]);
    let mut reported = ModelEventLog::default();
    let mut conversation = conversation(&script, []);
    let turn = conversation.turn("Write.", &mut reported).await.unwrap();
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Written.", TurnEnd::Answered)
    );
    assert_eq!(reported.0[3], "void");
    assert_eq!(conversation.history().len(), 2);

    let script = ModelScript::new([cut(), cut()]);
    conversation.set_router(script);
    let turn = say(&mut conversation, "Again.").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("I will write it.", TurnEnd::Length)
    );
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn complete_calls_of_a_cut_reply_run() {
    let cut = reply(StopReason::Length, vec![call("a", "echo", json!({}))]);
    let script = ModelScript::new([cut, words("Done.")]);
    let turn = say(&mut conversation(&script, [echo()]), "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.rounds[0].calls.len()),
        ("Done.", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_turn_and_runs_nothing() {
    let script = ModelScript::new([reply(
        StopReason::Refusal,
        vec![call("a", "echo", json!({}))],
    )]);
    let mut conversation = conversation(&script, [echo()]);
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("The model declined to answer.", TurnEnd::Refusal)
    );
    assert!(turn.rounds[0].calls.is_empty());
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn thinking_stays_in_history_only_if_wanted_or_signed() {
    let signed = MessagePart::Thinking {
        text: "signed".to_owned(),
        signature: Some("s".to_owned()),
    };
    for keep in [false, true] {
        let first = calls([
            thought("first"),
            signed.clone(),
            call("a", "echo", json!({})),
        ]);
        let script = ModelScript::new([
            first,
            reply(StopReason::End, vec![thought("second"), text_part("Yes.")]),
        ]);
        let mut conversation =
            conversation_with(&script, [echo()], |settings| settings.keep_thinking = keep);
        say(&mut conversation, "?").await;
        let Message::Assistant(during) = &script.last_asked().messages[1] else {
            panic!("no message");
        };
        assert_eq!(during.parts.len(), 3, "within the turn it is kept");
        let thoughts = conversation.history().iter().map(|message| match message {
            Message::Assistant(message) => {
                let is_thought = |part: &&MessagePart| matches!(part, MessagePart::Thinking { .. });
                message.parts.iter().filter(is_thought).count()
            }
            _ => 0,
        });
        assert_eq!(thoughts.sum::<usize>(), if keep { 3 } else { 1 });
    }
}

#[tokio::test(start_paused = true)]
async fn tools_may_change_in_the_middle_of_a_turn() {
    let manager = manager([echo()]);
    let add = {
        let manager = Arc::clone(&manager);
        tool("add_tool", move |_| {
            let later = tool("later", async |_| Ok(ToolOutput::text("here I am")));
            manager.add_all([later]);
            async { Ok(ToolOutput::text("added")) }
        })
    };
    manager.add_all([add]);
    let script = ModelScript::new([
        calls([call("a", "add_tool", json!({}))]),
        calls([call("b", "later", json!({}))]),
    ]);
    let toolbox = Toolbox::new(ToolExecutor::new(manager));
    let mut conversation = Conversation::new(script.clone(), toolbox, ModelSettings::default());
    say(&mut conversation, "?").await;
    assert_eq!(last_results(&conversation)[0].text, "here I am");
    let offered: Vec<usize> = script
        .asked()
        .iter()
        .map(|asked| asked.tools.len())
        .collect();
    assert_eq!(offered, [2, 3, 3]);
}
