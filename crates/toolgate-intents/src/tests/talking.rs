//! Turns with several messages: how results are reported.

use super::*;

pub(super) async fn told(sentence: &str, result: &Value) -> String {
    let client = everything();
    let history = vec![user(sentence)];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), &result.to_string(), false);
    shown(&ask(&client, &history).await)
}

#[tokio::test]
async fn a_result_is_put_into_words() {
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
        assert_eq!(told(sentence, &result).await, expected, "{sentence}");
    }
}

#[tokio::test]
async fn a_failure_is_said_as_it_is() {
    let client = everything();
    let history = vec![user("turn on switch 1")];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), "Switch 1 does not answer", true);
    assert_eq!(
        shown(&ask(&client, &history).await),
        "Switch 1 does not answer"
    );
}

#[tokio::test]
async fn the_result_of_somebody_elses_call_is_said_as_it_is() {
    let client = everything();
    let history = with(vec![user("?")], &DialogueAnswer::model_call("t"));
    let history = with_result(history, r#"{"summary":"Fine."}"#, false);
    assert_eq!(shown(&ask(&client, &history).await), "Fine.");
}

#[tokio::test]
async fn a_program_sees_that_nothing_was_done() {
    let client = everything();
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
        assert_eq!(ask(&client, &[user(text)]).await.stop, stop, "{text}");
    }
    let alone = client_of(&manager_of(Vec::new()));
    let reply = ask(&alone, &[user("what time is it")]).await;
    assert_eq!(reply.stop, DialogueEnd::Refusal);
    let history = vec![user("turn on switch 1")];
    let reply = ask(&client, &history).await;
    let history = with_result(with(history, &reply), "It is broken", true);
    assert_eq!(ask(&client, &history).await.stop, DialogueEnd::Refusal);
}

#[tokio::test]
async fn failures_that_are_equal_in_words_are_told_once() {
    let client = everything();
    let history = vec![user("turn off all the lights")];
    let reply = ask(&client, &history).await;
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
    let mut history = with(history, &reply);
    history.push(DialogueMessage::Results(results));
    let reply = ask(&client, &history).await;
    assert_eq!(shown(&reply), "It is away.\nDone.");
    assert_eq!(reply.stop, DialogueEnd::Refusal);
}

#[tokio::test]
async fn a_round_that_must_end_in_words_does() {
    let client = everything();
    let messages = [user("turn on switch 1")];
    let reply = ask_where(&client, &messages, false).await;
    assert_eq!(shown(&reply), "Please say that again.");
}
