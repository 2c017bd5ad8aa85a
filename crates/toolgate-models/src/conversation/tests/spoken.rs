//! An answer that was spoken aloud and broke off.

use super::*;

/// The words of each message of the model, with its calls in brackets.
fn said(conversation: &Conversation) -> Vec<String> {
    expect_in_order(conversation.history(), false);
    let messages = conversation.history().iter();
    let said = messages.filter_map(|message| match message {
        Message::Assistant(message) => {
            let calls: String = message
                .calls()
                .map(|call| format!("[{}]", call.id))
                .collect();
            Some(message.to_text() + &calls)
        }
        _ => None,
    });
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn only_what_was_spoken_is_kept_of_a_turn() {
    const NONE: &str = "(This turn ended before there was an answer.)";
    let (first, second) = ("Let me look.\n", "It is warm. It is 21.5 degrees.");
    for (spoken, expected) in [
        ("", ["[a]".to_owned(), NONE.to_owned()]),
        (" \n ", ["[a]".to_owned(), NONE.to_owned()]),
        ("Let me", ["Let me[a]".to_owned(), NONE.to_owned()]),
        (
            "Let me look.",
            ["Let me look.[a]".to_owned(), NONE.to_owned()],
        ),
        (
            "Let me look. It is warm.",
            ["Let me look.[a]".to_owned(), "It is warm.".to_owned()],
        ),
        (
            "Let me look.It  is warm. It is 21.5 degrees.",
            [
                "Let me look.[a]".to_owned(),
                "It  is warm. It is 21.5 degrees.".to_owned(),
            ],
        ),
        // Words that were withdrawn after they had been spoken.
        (
            "Well, let me see.",
            ["[a]".to_owned(), "Well, let me see.".to_owned()],
        ),
    ] {
        let asks = reply(
            StopReason::Calls,
            vec![text_part(first), call("a", "echo", json!({}))],
        );
        let script = ModelScript::new([words("Hello."), asks, words(second), words("Bye.")]);
        let mut conversation = conversation(&script, [echo()]);
        say(&mut conversation, "Hi").await;
        say(&mut conversation, "How warm is it?").await;
        conversation.keep_spoken(spoken);
        let expected = [&["Hello.".to_owned()][..], &expected].concat();
        assert_eq!(said(&conversation), expected, "{spoken:?}");
        assert_eq!(last_results(&conversation).len(), 1, "what was done stays");
        say(&mut conversation, "Bye").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_spoken_part_of_a_dropped_answer_is_kept() {
    let script = ModelScript::new([ModelScriptStep::Never]);
    let mut conversation = conversation(&script, []);
    let mut reported = ModelEventLog::default();
    let turn = conversation.turn("Tell me a story.", &mut reported);
    let over = tokio::time::timeout(Duration::from_secs(1), turn).await;
    assert!(over.is_err());
    conversation.keep_spoken("Once upon a time");
    assert_eq!(said(&conversation), ["Once upon a time"]);
}

#[tokio::test(start_paused = true)]
async fn the_shown_part_of_a_dropped_turn_is_kept() {
    let script = ModelScript::new([
        words("Hello.").into(),
        ModelScriptStep::Stuck("Once upon a "),
    ]);
    let mut conversation = conversation(&script, []);
    say(&mut conversation, "Hi").await;
    conversation.keep_partial_answer();
    assert_eq!(said(&conversation), ["Hello."], "it ended well");
    let mut reported = ModelEventLog::default();
    let turn = conversation.turn("Tell me a story.", &mut reported);
    let over = tokio::time::timeout(Duration::from_secs(1), turn).await;
    assert!(over.is_err());
    conversation.keep_partial_answer();
    assert_eq!(said(&conversation), ["Hello.", "Once upon a"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_was_spoken_of_an_empty_conversation() {
    let mut conversation = conversation(&ModelScript::new([words("")]), []);
    conversation.keep_spoken("Hello");
    assert!(conversation.history().is_empty());
}

#[tokio::test(start_paused = true)]
async fn thinking_that_a_provider_wants_back_stays() {
    let signed = MessagePart::Thinking {
        text: "hm".to_owned(),
        signature: Some("proof".to_owned()),
    };
    let script = ModelScript::new([reply(
        StopReason::End,
        vec![signed.clone(), text_part("One. Two.")],
    )]);
    let mut conversation = conversation(&script, []);
    say(&mut conversation, "Count").await;
    conversation.keep_spoken("One.");
    let Some(Message::Assistant(message)) = conversation.history().last() else {
        panic!("no answer");
    };
    assert_eq!(message.parts, [signed, text_part("One.")]);
}
