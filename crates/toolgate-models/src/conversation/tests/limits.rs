//! A model that doesn't stop by itself still gives an answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn counting(counter: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let counter = Arc::clone(counter);
    tool("count", move |_| {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolOutput::json(number)) }
    })
}

fn endless(name: &'static str) -> impl Iterator<Item = ModelReply> {
    (0..1000).map(move |n| calls([call(&format!("id{n}"), name, json!({ "n": n }))]))
}

#[tokio::test(start_paused = true)]
async fn after_the_last_round_of_tools_the_model_answers_in_words() {
    let runs = Arc::default();
    let script = ModelScript::new(endless("count").take(3).chain([words("Three.")]));
    let mut conversation = conversation_with(&script, [counting(&runs)], |settings| {
        settings.max_tool_rounds = 3;
    });
    let turn = say(&mut conversation, "Count.").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Three.", TurnEnd::RoundLimit)
    );
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let last = script.last_asked();
    assert!(last.forbid_tools);
    assert!(
        matches!(last.messages.last(), Some(Message::User { text }) if text.contains("Answer now"))
    );
    assert!(script.asked()[..3].iter().all(|asked| !asked.forbid_tools));
    let kept = format!("{:?}", conversation.history());
    assert!(
        !kept.contains("Answer now"),
        "what was said to the model alone is not kept: {kept}"
    );
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_calls_endlessly_is_stopped() {
    let runs = Arc::default();
    let script = ModelScript::new(endless("count"));
    let mut conversation = conversation(&script, [counting(&runs)]);
    let turn = say(&mut conversation, "Count.").await;
    assert_eq!(turn.end, TurnEnd::RoundLimit);
    assert_eq!(
        turn.answer,
        "There is no answer: the model used all its rounds of tool calls, and gave none when asked for one."
    );
    assert_eq!(runs.load(Ordering::SeqCst), 10);
    assert_eq!(script.asked().len(), 12);
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn text_with_a_call_in_the_last_round_is_the_answer() {
    let late = calls([text_part("It is 1."), call("z", "count", json!({ "n": 9 }))]);
    let script = ModelScript::new(endless("count").take(1).chain([late]));
    let runs = Arc::default();
    let mut conversation = conversation_with(&script, [counting(&runs)], |settings| {
        settings.max_tool_rounds = 1;
    });
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("It is 1.", TurnEnd::RoundLimit)
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn a_written_call_in_the_last_round_is_not_an_answer() {
    const WRITTEN: &str = r#"<tool_call>{"name": "count", "arguments": {"n": 9}}</tool_call>"#;
    for (last, expected) in [
        (
            vec![words(WRITTEN), words(WRITTEN)],
            "There is no answer: the model used all its rounds of tool calls, and gave none when asked for one.",
        ),
        (vec![words(WRITTEN), words("It is 1.")], "It is 1."),
        (vec![words(&format!("It is 1. {WRITTEN}"))], "It is 1."),
    ] {
        let script = ModelScript::new(endless("count").take(1).chain(last));
        let runs = Arc::default();
        let mut conversation = conversation_with(&script, [counting(&runs)], |settings| {
            settings.max_tool_rounds = 1;
        });
        let mut reported = ModelEventLog::default();
        let turn = conversation.turn("?", &mut reported).await.unwrap();
        assert_eq!(
            (turn.answer.as_str(), turn.end),
            (expected, TurnEnd::RoundLimit)
        );
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert!(reported.0.contains(&"void".to_owned()), "{:?}", reported.0);
        assert!(reported.0.contains(&format!("text {expected}")));
        expect_in_order(conversation.history(), false);
    }
}

#[tokio::test(start_paused = true)]
async fn without_rounds_of_tools_there_are_only_words() {
    let script = ModelScript::new([words("Hello.")]);
    let mut conversation =
        conversation_with(&script, [echo()], |settings| settings.max_tool_rounds = 0);
    let turn = say(&mut conversation, "Hi").await;
    assert_eq!(turn.end, TurnEnd::Answered);
    let asked = script.last_asked();
    assert!(asked.forbid_tools);
    assert_eq!(
        asked.messages,
        [Message::User {
            text: "Hi".to_owned()
        }]
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_call_is_limited() {
    let runs = Arc::default();
    let same = |n: usize| {
        calls([call(
            &format!("id{n}"),
            "count",
            json!({ "a": 1, "b": [2] }),
        )])
    };
    let other_order = calls([call("id9", "count", json!({ "b": [2], "a": 1 }))]);
    let script = ModelScript::new([
        same(0),
        same(1),
        same(2),
        other_order,
        same(4),
        words("Enough."),
    ]);
    let mut conversation = conversation(&script, [counting(&runs)]);
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Enough.", TurnEnd::Repetition)
    );
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let refused = &turn.rounds[3].calls[0].outcome;
    assert_eq!(
        refused.error().unwrap(),
        "Tool 'count' was called 3 times with these arguments in this turn and was not called again: use the results above, \
         do something else, or answer"
    );
    assert!(script.last_asked().forbid_tools);
    // The next turn starts from zero.
    let script = ModelScript::new([same(20), words("Again.")]);
    conversation.set_router(script);
    assert_eq!(say(&mut conversation, "again").await.end, TurnEnd::Answered);
    assert_eq!(runs.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_heeds_the_warning_may_use_other_tools() {
    let same = |n: usize| calls([call(&format!("id{n}"), "echo", json!({}))]);
    let script = ModelScript::new([
        same(0),
        same(1),
        same(2),
        same(3),
        calls([call("other", "echo", json!({ "x": 1 }))]),
        words("Good."),
    ]);
    let turn = say(&mut conversation(&script, [echo()]), "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Good.", TurnEnd::Answered)
    );
}

#[tokio::test(start_paused = true)]
async fn no_tool_starts_when_little_time_is_left() {
    let slow = || {
        tool("slow", async |_| {
            tokio::time::sleep(Duration::from_secs(25)).await;
            Ok(ToolOutput::text("slept"))
        })
    };
    let script = ModelScript::new(endless("slow").take(4).chain([words("Tired.")]));
    let mut conversation = conversation_with(&script, [slow()], |settings| {
        settings.timeout = Duration::from_secs(120);
    });
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Tired.", TurnEnd::Deadline)
    );
    // The fourth begins at 75 s and may take half of the 45 s that are left.
    assert_eq!(turn.rounds.len(), 5);
    assert_eq!(
        turn.rounds[3].calls[0].outcome.error().unwrap(),
        "Tool 'slow' timed out after 22.5 s"
    );
    assert!(turn.took_ms < 100_000.0, "{}", turn.took_ms);
    assert!(script.last_asked().forbid_tools);
}

#[tokio::test(start_paused = true)]
async fn a_late_call_gets_half_of_the_remaining_time() {
    let late = ModelScriptStep::Late(
        Duration::from_millis(90_123),
        calls([call("a", "hang", json!({}))]),
    );
    let script = ModelScript::new([late, words("Sorry.").into()]);
    let mut conversation = conversation_with(&script, [hang()], |settings| {
        settings.timeout = Duration::from_secs(100);
    });
    let turn = say(&mut conversation, "?").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Sorry.", TurnEnd::Deadline)
    );
    assert_eq!(
        turn.rounds[0].calls[0].outcome.error().unwrap(),
        "Tool 'hang' timed out after 5 s"
    );
}

#[tokio::test(start_paused = true)]
async fn if_the_last_round_fails_too_the_answer_says_so() {
    let script = ModelScript::new([
        calls([call("a", "echo", json!({}))]).into(),
        ModelScriptStep::Fail(failure()),
    ]);
    let mut conversation =
        conversation_with(&script, [echo()], |settings| settings.max_tool_rounds = 1);
    let mut reported = ModelEventLog::default();
    let turn = conversation.turn("?", &mut reported).await.unwrap();
    assert_eq!(turn.end, TurnEnd::RoundLimit);
    assert_eq!(turn.error.as_deref(), Some("openai failed: on fire"));
    assert!(
        turn.answer.contains("used all its rounds"),
        "{}",
        turn.answer
    );
    assert!(
        turn.answer.contains("openai failed: on fire"),
        "{}",
        turn.answer
    );
    assert_eq!(reported.0.last(), Some(&format!("text {}", turn.answer)));
    expect_in_order(conversation.history(), false);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ignores_the_deadline_is_abandoned() {
    let script = ModelScript::new([ModelScriptStep::Never]);
    let mut conversation = conversation(&script, []);
    let error = conversation
        .turn("?", &mut ModelEventLog::default())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "openai did not finish within 300 s");
}

#[tokio::test(start_paused = true)]
async fn a_huge_time_limit_does_not_overflow() {
    let script = ModelScript::new([words("Hello.")]);
    let endless = |settings: &mut ModelSettings| settings.timeout = Duration::MAX;
    let mut conversation = conversation_with(&script, [], endless);
    assert_eq!(say(&mut conversation, "Hi").await.answer, "Hello.");
}

#[tokio::test(start_paused = true)]
async fn text_that_arrived_before_the_deadline_is_the_answer() {
    let late = |what| ModelError::TimedOut {
        provider: Provider::OpenAi,
        what,
        after: Duration::from_secs(300),
    };
    for (words, what, expected) in [
        ("Once upon a", "finish", Some("Once upon a")),
        (" ", "finish", None),
        ("Once upon a", "begin to answer", None),
    ] {
        let script = ModelScript::new([ModelScriptStep::Break(words, late(what))]);
        let mut conversation = conversation(&script, [echo()]);
        let mut reported = ModelEventLog::default();
        let turn = conversation.turn("tell me a story", &mut reported).await;
        let answer = turn.as_ref().map(|turn| (turn.answer.as_str(), turn.end));
        let expected = expected.map(|answer| (answer, TurnEnd::Length));
        assert_eq!(answer.ok(), expected, "{words:?} {what}");
        let is_void = reported.0.iter().any(|event| event == "void");
        assert_eq!(is_void, expected.is_none(), "{:?}", reported.0);
        if expected.is_some() {
            expect_in_order(conversation.history(), false);
            assert_eq!(conversation.history().len(), 2);
        }
    }
}
