//! How the results of calls are reported.

use super::*;

pub(super) async fn spoken_result(sentence: &str, result: &Value) -> String {
    let interpreter = interpreter_with_all_tools();
    let history = vec![user(sentence)];
    let reply = ask(&interpreter, &history).await;
    let history = with_result(with_answer(history, &reply), &result.to_string(), false);
    describe_answer(&ask(&interpreter, &history).await)
}

#[tokio::test]
async fn results_are_put_into_words() {
    for (sentence, result, expected) in [
        ("what is 2 plus 2", json!({ "result": 4 }), "2 + 2 = 4"),
        (
            "what is 2^53+1",
            json!({ "result": 9_007_199_254_740_992_i64 }),
            "2 ^ 53 + 1 = about 9007199254740992",
        ),
        (
            "what time is it",
            json!({ "sentence": "It is 3:05 PM." , "date": "x" }),
            "It is 3:05 PM.",
        ),
        (
            "what day is it",
            json!({ "sentence": "…", "weekday": "Sunday", "date": "2026-11-15" }),
            "It is Sunday, 2026-11-15.",
        ),
        (
            "set the volume to 40",
            json!({ "sentence": "The volume is 40 %.", "level": 40 }),
            "The volume is 40 %.",
        ),
        (
            "search for cats",
            json!({ "answer": "Small.", "results": [] }),
            "Small.",
        ),
        (
            "search for cats",
            json!({ "results": [{ "title": "Cat", "url": "https://c.at", "snippet": "A pet." }] }),
            "Cat: A pet. https://c.at",
        ),
        (
            "search for cats",
            json!({ "results": [] }),
            "I found nothing.",
        ),
        (
            "which devices are there",
            devices(),
            "There are: Kitchen Light, Kitchen Lamp, Bedroom Light, Switch 1, Switch 2, Front Door, Font Door, Living Room Thermostat, Thermostat, Motion Sensor, Café Machine and Humidity Sensor.",
        ),
        (
            "which lights are on",
            json!({ "devices": [] }),
            "No light is on.",
        ),
        (
            "turn on switch 1",
            json!({ "message": "Switch 1 is on." }),
            "Switch 1 is on.",
        ),
        (
            "echo hello",
            json!({ "echo": { "text": "hello" } }),
            "hello",
        ),
    ] {
        assert_eq!(
            spoken_result(sentence, &result).await,
            expected,
            "{sentence}"
        );
    }
}

#[tokio::test]
async fn an_error_is_reported_unchanged() {
    let interpreter = interpreter_with_all_tools();
    let history = vec![user("turn on switch 1")];
    let reply = ask(&interpreter, &history).await;
    let history = with_result(
        with_answer(history, &reply),
        "Switch 1 does not answer",
        true,
    );
    assert_eq!(
        describe_answer(&ask(&interpreter, &history).await),
        "Switch 1 does not answer"
    );
}

#[tokio::test]
async fn the_result_of_a_models_call_is_reported() {
    let interpreter = interpreter_with_all_tools();
    let history = with_answer(vec![user("?")], &DialogueAnswer::model_call("t"));
    let history = with_result(history, r#"{"summary":"Fine."}"#, false);
    assert_eq!(describe_answer(&ask(&interpreter, &history).await), "Fine.");
}

#[tokio::test]
async fn failures_are_marked_as_refusals() {
    let interpreter = interpreter_with_all_tools();
    for (text, stop) in [
        ("what is love", DialogueEnd::Refusal),
        ("set the volume to 150", DialogueEnd::Refusal),
        ("turn on the garage fountain", DialogueEnd::Refusal),
        ("turn on the kitchen", DialogueEnd::End),
        ("turn on", DialogueEnd::End),
        ("help", DialogueEnd::End),
        ("thanks", DialogueEnd::End),
        ("what time is it", DialogueEnd::Calls),
    ] {
        assert_eq!(ask(&interpreter, &[user(text)]).await.stop, stop, "{text}");
    }
    let alone = english_interpreter(&manager_with(Vec::new()));
    let reply = ask(&alone, &[user("what time is it")]).await;
    assert_eq!(reply.stop, DialogueEnd::Refusal);
    let history = vec![user("turn on switch 1")];
    let reply = ask(&interpreter, &history).await;
    let history = with_result(with_answer(history, &reply), "It is broken", true);
    assert_eq!(ask(&interpreter, &history).await.stop, DialogueEnd::Refusal);
}

#[tokio::test]
async fn equal_errors_are_reported_once() {
    let interpreter = interpreter_with_all_tools();
    let history = vec![user("turn off all the lights")];
    let reply = ask(&interpreter, &history).await;
    let told = [
        ("It is away.", true),
        ("Done.", false),
        ("It is away.", true),
    ];
    let results = reply.calls.iter().zip(told);
    let results: Vec<_> = results
        .map(|(_, (text, is_error))| (text.to_owned(), is_error))
        .collect();
    assert_eq!(results.len(), told.len());
    let mut history = with_answer(history, &reply);
    history.push(DialogueMessage::Results(results));
    let reply = ask(&interpreter, &history).await;
    assert_eq!(describe_answer(&reply), "It is away.\nDone.");
    assert_eq!(reply.stop, DialogueEnd::Refusal);
}

#[tokio::test]
async fn without_permission_to_call_a_sentence_fails() {
    let interpreter = interpreter_with_all_tools();
    let messages = [user("turn on switch 1")];
    let reply = reply_with(&interpreter, &messages, false).await;
    assert_eq!(describe_answer(&reply), "Please say that again.");
}
