//! Sentences without a model.

use std::collections::BTreeSet;

use super::*;
use crate::{Conversation, ModelSettings};

fn alone() -> SentenceRouter {
    SentenceRouter::sentences_only(sentences_of(all_tools()))
}

#[tokio::test]
async fn a_whole_conversation_needs_no_model() {
    let toolbox = all_tools();
    let router = SentenceRouter::sentences_only(sentences_of(toolbox.clone()));
    let mut conversation = Conversation::new(router, toolbox, ModelSettings::default());
    for (text, answer, calls) in [
        ("What is 12 percent of 80?", "12% of 80 is 9.6", 1),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3", 1),
        ("17% of 340", "17% of 340 is 57.8", 1),
        ("what is 5!", "5! = 120", 1),
        ("5!", "5! = 120", 1),
        ("100!", "100! = about 9.33262154439e157", 1),
        (
            "123456789 times 987654321",
            "123456789 * 987654321 = about 1.21932631113e17",
            1,
        ),
        ("2^64", "2 ^ 64 = about 1.84467440737e19", 1),
        ("2^53 - 1", "2 ^ 53 - 1 = 9007199254740991", 1),
        ("10 percent off 50", "50 - 10% = 45", 1),
        ("three quarters of 80", "3 / 4 * 80 = 60", 1),
        ("2 to the 8th", "2 ^ 8 = 256", 1),
        ("negative five squared", "(-5)^2 = 25", 1),
        ("sin 90", "sin(90 radians) is 0.893996663601", 1),
        ("100 F in C", "100 degF to degC = 37.78 °C", 1),
        ("how many inches in a foot", "1 ft to inch = 12 inches", 1),
        ("how many grams in 2 pounds", "2 lb to g = 907.18 g", 1),
        (
            "what is 7 divided by zero",
            "7 / 0 has no finite result.",
            1,
        ),
        (
            "what weekday was 2000-02-29",
            "February 29, 2000 was a Tuesday.",
            1,
        ),
        (
            "turn on the kitchen light and the bedroom light",
            "It is done.",
            2,
        ),
        (
            "turn on the kitchen",
            "Which one: Kitchen Light or Kitchen Lamp?",
            0,
        ),
        ("the lamp", "It is done.", 1),
        ("thanks", "You're welcome.", 0),
    ] {
        let turn = conversation
            .turn(text, &mut |_: ModelEvent<'_>| {})
            .await
            .unwrap();
        let called: usize = turn.rounds.iter().map(|round| round.calls.len()).sum();
        assert_eq!(called, calls, "{text}: {}", turn.answer);
        assert_eq!(turn.answer, answer, "{text}");
    }
}

#[tokio::test]
async fn ids_are_unique_in_a_conversation() {
    let client = alone();
    let mut history = Vec::new();
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        history.push(user("turn on switch 1"));
        let reply = ask(&client, &history).await;
        ids.insert(reply.message.calls().next().unwrap().id.clone());
        history = with_result(with(history, &reply), "ok", false);
        let reply = ask(&client, &history).await;
        history = with(history, &reply);
    }
    assert_eq!(
        ids.into_iter().collect::<Vec<_>>(),
        ["intent_1", "intent_2", "intent_3"]
    );
}

#[tokio::test]
async fn an_unusable_history_still_gets_a_reply() {
    let client = alone();
    for history in [
        vec![],
        vec![Message::Assistant(AssistantMessage::text("x"))],
        vec![Message::Tool {
            results: Vec::new(),
        }],
    ] {
        assert_ne!(ask(&client, &history).await.stop, StopReason::Calls);
    }
    let odd = json!({ "type": "sentence", "memory": { "asked": 5 } });
    let odd: MessagePart = serde_json::from_value(odd).unwrap();
    let history = [
        Message::Assistant(AssistantMessage { parts: vec![odd] }),
        user("yes"),
    ];
    assert!(shown(&ask(&client, &history).await).starts_with("I did not understand"));
}

#[tokio::test]
async fn events_and_history_say_that_a_sentence_asked_for_a_call() {
    let toolbox = all_tools();
    let router =
        SentenceRouter::new(Arc::new(CountingModel)).sentences_first(sentences_of(toolbox.clone()));
    let mut conversation = Conversation::new(router, toolbox, ModelSettings::default());
    for (text, expected) in [
        ("what is 2 plus 2", AnswerSource::Sentences),
        ("sing a song", AnswerSource::Model(Provider::Ollama)),
    ] {
        let (mut replied, mut called) = (Vec::new(), Vec::new());
        let mut listener = |event: ModelEvent<'_>| match event {
            ModelEvent::Replied { source, .. } => replied.push(source),
            ModelEvent::Calling { source, .. } | ModelEvent::Called { source, .. } => {
                called.push(source);
            }
            _ => {}
        };
        conversation.turn(text, &mut listener).await.unwrap();
        assert!(replied.iter().all(|source| *source == expected), "{text}");
        assert!(called.iter().all(|source| *source == expected), "{text}");
        let is_sentence = expected == AnswerSource::Sentences;
        assert_eq!(called.len(), if is_sentence { 2 } else { 0 }, "{text}");
        assert_eq!(conversation.last_source(), expected, "{text}");
    }
}

#[tokio::test]
async fn a_conversation_saved_by_an_old_version_continues() {
    let toolbox = all_tools();
    let router = SentenceRouter::sentences_only(sentences_of(toolbox.clone()));
    let new = || Conversation::new(router.clone(), toolbox.clone(), ModelSettings::default());
    let mut conversation = new();
    let mut nobody = |_: ModelEvent<'_>| {};
    let question = conversation.turn("turn on the kitchen", &mut nobody);
    question.await.unwrap();
    let mut saved: Value = serde_json::from_str(&conversation.save().to_json()).unwrap();
    for part in saved["messages"][1]["parts"].as_array_mut().unwrap() {
        if part["type"] == "sentence" {
            let memory = part["memory"].take();
            *part = json!({ "type": "opaque", "provider": "intents", "value": memory });
        }
    }
    let saved = crate::SavedConversation::parse(saved.to_string().as_bytes()).unwrap();
    assert_eq!(saved.provider, AnswerSource::Sentences);
    let mut resumed = new().with_history(saved.messages);
    let turn = resumed.turn("the lamp", &mut nobody).await;
    assert_eq!(turn.unwrap().answer, "It is done.");
}
