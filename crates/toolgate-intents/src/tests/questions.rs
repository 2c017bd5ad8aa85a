//! Questions to the person, and references to what was said before.

use super::*;

pub(super) async fn answered(
    interpreter: &SentenceInterpreter,
    sentence: &str,
    answer: &str,
) -> String {
    let history = vec![user(sentence)];
    let asked = ask(interpreter, &history).await;
    assert_eq!(asked.calls.len(), 0, "{sentence}");
    assert_eq!(asked.stop, DialogueEnd::End, "a question is not a failure");
    let mut history = with_answer(history, &asked);
    history.push(user(answer));
    describe_answer(&ask(interpreter, &history).await)
}

#[tokio::test]
async fn replies_to_questions_are_understood() {
    let interpreter = interpreter_with_all_tools();
    let lamp = r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"}"#;
    let light = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#;
    let one = r#"control_zwave_device {"deviceName":"Switch 1","action":"on"}"#;
    let unlock = r#"control_lock {"deviceName":"Front Door","action":"unlock"}"#;
    for (question, answer, expected) in [
        ("turn on the kitchen", "the lamp", lamp),
        ("turn on the kitchen", "Kitchen Lamp.", lamp),
        ("turn on the kitchen", "I mean the lamp please", lamp),
        ("turn on the kitchen", "the lmap", lamp),
        ("turn on the kitchen", "the second one", lamp),
        ("turn on the kitchen", "the last one", lamp),
        ("turn on the kitchen", "the first", light),
        (
            "turn on the kitchen",
            "kitchen",
            "Which one: Kitchen Light or Kitchen Lamp?",
        ),
        (
            "turn on the kitchen",
            "yes",
            "Which one: Kitchen Light or Kitchen Lamp?",
        ),
        ("turn on the kitchen", "no", "All right, I'll leave it."),
        (
            "turn on the kitchen",
            "never mind",
            "All right, I'll leave it.",
        ),
        ("turn on the kitchen", "turn on switch 1", one),
        (
            "turn on the kitchen",
            "what is 2 plus 2",
            r#"math_eval {"expression":"2 + 2"}"#,
        ),
        ("turn on the switch", "one", one),
        ("turn on the switch", "switch 1", one),
        ("unlock the front", "yes", unlock),
        ("unlock the front", "no", "All right, I'll leave it."),
        ("unlock the front", "front door", unlock),
        // A reply that is almost a yes must not move a lock.
        (
            "unlock the frnt door",
            "frnt door",
            "Which one: Front Door or Font Door?",
        ),
        ("unlock the frnt door", "front", unlock),
    ] {
        let text = answered(&interpreter, question, answer).await;
        assert!(
            text == expected || answer == "frnt door" && !text.contains('{'),
            "{answer}: {text}"
        );
    }
}

#[tokio::test]
async fn a_reply_may_mean_all_choices_or_another_request() {
    let interpreter = interpreter_with_all_tools();
    let both = r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"} + control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"}"#;
    for (question, answer, expected) in [
        ("turn on the kitchen", "both", both),
        ("turn on the kitchen", "all of them", both),
        (
            "turn on",
            "the bedroom light",
            r#"control_zwave_device {"deviceName":"Bedroom Light","action":"on"}"#,
        ),
        (
            "turn on",
            "what is 1 + 1",
            r#"math_eval {"expression":"1 + 1"}"#,
        ),
        (
            "turn on the bathroom light",
            "yes",
            r#"control_zwave_device {"deviceName":"Bedroom Light","action":"on"}"#,
        ),
    ] {
        let text = answered(&interpreter, question, answer).await;
        assert_eq!(text, expected, "{answer}");
    }
}

#[tokio::test]
async fn it_refers_to_the_last_subject() {
    let interpreter = interpreter_with_all_tools();
    let off = r#"control_zwave_device {"deviceName":"Bedroom Light","action":"off"}"#;
    let both = r#"control_zwave_device {"deviceName":"Switch 1","action":"off"} + control_zwave_device {"deviceName":"Switch 2","action":"off"}"#;
    for (first, second, expected) in [
        ("turn on the bedroom light", "turn it off", off),
        ("dim the bedroom light to 30 percent", "turn that off", off),
        ("is the bedroom light on", "switch it off", off),
        ("turn on switch 1 and switch 2", "turn them off", both),
        (
            "turn on the bedroom light",
            "dim it to 20 percent",
            r#"control_zwave_device {"deviceName":"Bedroom Light","action":"dim","level":20}"#,
        ),
        (
            "turn on the bedroom light",
            "turn it up",
            r#"volume {"action":"up"}"#,
        ),
        (
            "is the front door locked",
            "unlock it",
            "Do you mean “unlock Front Door”?",
        ),
        (
            "what is 1 + 1",
            "turn it off",
            "I don't know what “it” is. Please say its name.",
        ),
    ] {
        let history = vec![user(first)];
        let reply = ask(&interpreter, &history).await;
        let mut history = with_answer(history, &reply);
        let results = reply.calls.iter().map(|_| ("ok".to_owned(), false));
        history.push(DialogueMessage::Results(results.collect()));
        let reply = ask(&interpreter, &history).await;
        let mut history = with_answer(history, &reply);
        history.push(user(second));
        assert_eq!(
            describe_answer(&ask(&interpreter, &history).await),
            expected,
            "{second}"
        );
    }
}

#[tokio::test]
async fn a_question_is_forgotten_after_the_next_message() {
    let interpreter = interpreter_with_all_tools();
    let mut history = vec![user("turn on the kitchen")];
    for text in ["what is 1 plus 1", "the lamp"] {
        let reply = ask(&interpreter, &history).await;
        history = with_answer(history, &reply);
        history.push(user(text));
    }
    let text = describe_answer(&ask(&interpreter, &history).await);
    assert!(text.starts_with("I did not understand"), "{text}");
}

#[tokio::test]
async fn an_omitted_sensor_is_the_only_one_or_asked_for() {
    let device = |name: &str, kind: &str| json!({ "name": name, "location": "Hall", "type": kind });
    let devices = json!({ "devices": [
        device("Climate Sensor", "sensor"), device("Balcony Door", "sensor"), device("Motion Sensor", "sensor"),
        device("Heater", "switch"), device("Danfoss", "thermostat"),
    ] });
    let interpreter = english_interpreter(&manager_with(house_tools(move || Ok(devices.clone()))));
    let read = |name: &str| format!(r#"get_device_sensor_data {{"deviceName":"{name}"}}"#);
    let which = "Which one: Climate Sensor or Danfoss?";
    for (text, expected) in [
        ("what is the temperature", which),
        ("what's the temperature?", which),
        ("how warm is it in here", which),
        ("temperature", which),
        ("what is the humidity", &read("Climate Sensor")),
        ("is there any motion", &read("Motion Sensor")),
        ("what is the battery", "The battery of which device?"),
        ("what is the power usage", "The power of which device?"),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
    for (sentence, answer, name) in [
        ("what is the temperature", "the second one", "Danfoss"),
        (
            "what is the temperature",
            "climate sensor",
            "Climate Sensor",
        ),
        ("what is the battery", "motion sensor", "Motion Sensor"),
        ("what is the battery", "of the balcony door", "Balcony Door"),
    ] {
        let text = answered(&interpreter, sentence, answer).await;
        assert_eq!(text, read(name), "{sentence} / {answer}");
    }
    let none = english_interpreter(&manager_with(house_tools(|| Ok(json!({ "devices": [] })))));
    let text = say(&none, "what is the temperature").await;
    assert_eq!(
        text,
        "I don't know any device that measures a temperature here."
    );
    let away = house_tools(|| Err(ToolError::failed("The gateway is away")));
    let text = say(
        &english_interpreter(&manager_with(away)),
        "what is the temperature",
    )
    .await;
    assert!(
        text.contains("could not be read: The gateway is away"),
        "{text}"
    );
    let no_house = english_interpreter(&manager_with(Vec::new()));
    for text in ["what is the temperature", "what is the battery"] {
        let text = say(&no_house, text).await;
        assert!(text.starts_with("I can't read sensors here"), "{text}");
    }
}
