//! Only a yes or the full name confirms a call, above all one that moves a lock.

use std::sync::LazyLock;

use super::questions::answered;
use super::*;

const ALL: &str =
    "Do you mean “turn off Kitchen Light, Kitchen Lamp, Desk Lamp, Bedroom Light, Fan and Heater”?";
const UNLOCK: &str = r#"control_lock {"deviceName":"Front Door","action":"unlock"}"#;
const MEAN_UNLOCK: &str = "Do you mean “unlock Front Door”?";
const LEFT: &str = "All right, I'll leave it.";
const FAN_OFF: &str = r#"control_zwave_device {"deviceName":"Fan","action":"off"}"#;
const FAN_ON: &str = r#"control_zwave_device {"deviceName":"Fan","action":"on"}"#;
const LOOK_AT_FAN: &str = r#"list_zwave_devices {"filter":"Fan"}"#;
const DESK_ON: &str = r#"control_zwave_device {"deviceName":"Desk Lamp","action":"on"}"#;

fn house() -> SentenceInterpreter {
    let device = |name: &str, location: &str, kind: &str| json!({ "name": name, "location": location, "type": kind });
    let devices = json!({ "devices": [
        device("Kitchen Light", "Kitchen", "dimmer"), device("Kitchen Lamp", "Kitchen", "switch"), device("Desk Lamp", "Office", "switch"),
        device("Bedroom Light", "Bedroom", "switch"), device("Fan", "Bedroom", "switch"), device("Front Door", "Hall", "lock"),
        device("Thermostat", "Hall", "thermostat"), device("Heater", "Office", "switch"),
    ] });
    let mut tools = HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools();
    tools.extend(house_tools(move || Ok(devices.clone())));
    english_interpreter(&manager_with(tools))
}

#[tokio::test]
async fn only_a_yes_counts_as_a_yes() {
    let interpreter = house();
    for (sentence, answer, expected) in [
        ("turn off everything", "the fan", ALL),
        ("turn off everything", "no the fan", LEFT),
        ("turn off everything", "turn off the fan", FAN_OFF),
        ("turn off everything", "fan and heater", ALL),
        ("turn off everything", "is the fan on", LOOK_AT_FAN),
        (
            "turn off everything",
            "everything but the fan",
            "I did not understand",
        ),
        ("unlock the front", "no the front door", LEFT),
        ("unlock the front", "that is a door", MEAN_UNLOCK),
        (
            "unlock the front",
            "is it the front door",
            "I did not understand",
        ),
        ("unlock the front", "unlock", MEAN_UNLOCK),
        ("unlock the front", "the door", MEAN_UNLOCK),
        ("unlock the front", "front door?", "I did not understand"),
        ("unlock the front", "Yes?", "I did not understand"),
        ("unlock the front", "the frnt door", "I did not understand"),
        ("unlock the front", "the first", "I did not understand"),
        ("unlock the front", "yes no", "I did not understand"),
        ("unlock the front", "um, no, the front door", LEFT),
        (
            "unlock the front",
            "please don't unlock the front door",
            LEFT,
        ),
        (
            "unlock the front",
            "lock the front door",
            r#"control_lock {"deviceName":"Front Door","action":"lock"}"#,
        ),
        (
            "turn on the lamp",
            "is the desk lamp on",
            r#"list_zwave_devices {"filter":"Desk Lamp"}"#,
        ),
        (
            "turn on the lamp",
            "desk lamp off",
            r#"control_zwave_device {"deviceName":"Desk Lamp","action":"off"}"#,
        ),
        (
            "turn on the lamp",
            "is it the desk lamp",
            "I did not understand",
        ),
        ("turn on the lamp", "not the desk lamp", LEFT),
        ("turn on the fna", "is the fan on", LOOK_AT_FAN),
        ("turn on", "not the fan", LEFT),
    ] {
        let text = answered(&interpreter, sentence, answer).await;
        let is_it = match expected {
            "I did not understand" => text.starts_with(expected),
            _ => text == expected,
        };
        assert!(is_it, "{sentence} / {answer}: {text}");
    }
}

#[tokio::test]
async fn a_no_is_understood_whatever_follows_it() {
    let interpreter = house();
    for answer in [
        "no",
        "no, don't",
        "no no",
        "not now",
        "stop it",
        "oh no, don't",
        "don't",
        "do not do that",
        "never mind that",
        "wait",
        "No, I meant the fan!",
    ] {
        for sentence in [
            "unlock the front",
            "turn on the lamp",
            "turn off everything",
        ] {
            let text = answered(&interpreter, sentence, answer).await;
            assert_eq!(text, LEFT, "{sentence} / {answer}");
        }
    }
}

#[tokio::test]
async fn a_yes_or_the_full_name_is_consent() {
    let interpreter = house();
    for (sentence, answer, expected) in [
        ("unlock the front", "yes", UNLOCK),
        ("unlock the front", "Yes, thank you.", UNLOCK),
        ("unlock the front", "the front door", UNLOCK),
        ("unlock the front", "yes, the front door", UNLOCK),
        ("unlock the front", "it's the front door", UNLOCK),
        ("unlock the front", "unlock the front door", UNLOCK),
        ("turn on the fna", "yes", FAN_ON),
        ("turn on the fna", "the fan", FAN_ON),
        ("turn on the lamp", "it is the desk lamp", DESK_ON),
        ("turn on the lamp", "that's the second one", DESK_ON),
        ("turn on the lamp", "the one in the office", DESK_ON),
        ("turn on the lamp", "the office one", DESK_ON),
        ("turn on the lamp", "the desk lamp?", DESK_ON),
    ] {
        let text = answered(&interpreter, sentence, answer).await;
        assert_eq!(text, expected, "{sentence} / {answer}");
    }
    let text = answered(&interpreter, "turn off everything", "yes").await;
    assert_eq!(text.matches("control_zwave_device").count(), 6, "{text}");
    assert!(
        !text.contains("Door") && !text.contains("Thermostat"),
        "{text}"
    );
}

#[tokio::test]
async fn a_choice_is_selected_word_for_word_even_if_it_is_a_sentence() {
    let names = ["Hall Light", "Hall Temperature", "Hall Stop"];
    let devices = names.map(|name| json!({ "name": name, "location": "Hall" }));
    let devices = json!({ "devices": devices });
    let interpreter = english_interpreter(&manager_with(house_tools(move || Ok(devices.clone()))));
    for answer in names {
        let text = answered(&interpreter, "turn on the hall", answer).await;
        let expected = format!(r#"control_zwave_device {{"deviceName":"{answer}","action":"on"}}"#);
        assert_eq!(text, expected);
    }
}

#[tokio::test]
async fn reply_phrases_without_words_match_nothing() {
    let mine = Pack::parse(r#"{ "replies": { "yes": ["👍"], "no": ["👎"], "small": ["…"] } }"#);
    let pack = Pack::english().with(mine.unwrap());
    let interpreter = SentenceInterpreter::new(house().toolbox.clone(), pack).unwrap();
    for (sentence, answer, expected) in [
        ("unlock the front", "…", "I did not understand"),
        ("unlock the front", "", "I did not understand"),
        ("turn on the lamp", "the second one", DESK_ON),
    ] {
        let text = answered(&interpreter, sentence, answer).await;
        assert!(text.starts_with(expected), "{sentence} / {answer}: {text}");
    }
}

#[tokio::test]
async fn an_interrupted_question_gets_no_consent() {
    let interpreter = house();
    for (sentence, heard, answer, expected) in [
        ("unlock the front", MEAN_UNLOCK, "yes", UNLOCK),
        (
            "unlock the front",
            "Do you mean “unlock",
            "yes",
            "I did not understand",
        ),
        (
            "turn off everything",
            "Do you mean “turn off Kitchen",
            "yes",
            "I did not understand",
        ),
        (
            "turn on the lamp",
            "Which one: Kitchen",
            "the desk lamp",
            DESK_ON,
        ),
    ] {
        let history = vec![user(sentence)];
        let mut asked = ask(&interpreter, &history).await;
        asked.text = heard.to_owned();
        let mut history = with_answer(history, &asked);
        history.push(user(answer));
        let text = describe_answer(&ask(&interpreter, &history).await);
        assert!(text.starts_with(expected), "{heard}: {text}");
    }
}

#[tokio::test]
async fn unknown_names_are_reported_and_questions_say_what_would_happen() {
    let interpreter = house();
    for (text, expected) in [
        (
            "what time is it in atlantis",
            "I don't know any place called “atlantis”.",
        ),
        (
            "what time is it in springfield",
            "I don't know any place called “springfield”.",
        ),
        (
            "what is the date in springfield",
            "I don't know any place called “springfield”.",
        ),
        (
            "turn off all lights except the kitchen light",
            "I don't know any device called “all lights except the kitchen light”.",
        ),
        (
            "turn on the fan in 5 minutes",
            "I don't know any device called “fan in 5 minutes”.",
        ),
        (
            "turn on the fna",
            "I don't know any device called “fna”. Do you mean “turn on Fan”?",
        ),
        (
            "turn off the kitchn lite",
            "I don't know any device called “kitchn lite”. Which one: Kitchen Light or Kitchen Lamp?",
        ),
        ("unlock everything", MEAN_UNLOCK),
        ("unlock the fan", "I don't know any lock called “fan”."),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn locks_are_found_by_type_or_by_name() {
    let devices = json!({ "devices": [
        { "name": "Back Door" }, { "name": "Entrance", "type": "lock" }, { "name": "Front Door Light", "type": "lock" },
        { "name": "Back Door Light" }, { "name": "Door Sensor" }, { "name": "Fan", "type": "switch" },
    ] });
    let interpreter = english_interpreter(&manager_with(house_tools(move || Ok(devices.clone()))));
    assert_eq!(
        say(&interpreter, "lock everything").await,
        "Do you mean “lock Back Door, Entrance and Front Door Light”?"
    );
}

#[tokio::test]
async fn everything_means_switchable_devices_and_never_locks_or_doors() {
    let house = [
        ("Ceiling Light", json!("switch"), true),
        ("Fan", json!("fan"), true),
        ("Stairs", json!("dimmer"), true),
        ("Front Door Light", json!("switch"), true),
        ("Sensor Lamp", json!("switch"), false),
        ("Radio", Value::Null, true),
        ("Entrance", json!("lock"), false),
        ("Porch Light", json!("lock"), false),
        ("Garage Door", json!("switch"), false),
        ("Garden Gates", json!("dimmer"), false),
        ("Back Door", Value::Null, false),
        ("Siren", json!("switch"), false),
        ("Blinds", json!("blind"), false),
        ("Radiator", json!("thermostat"), false),
        ("Window", json!("sensor"), false),
        ("Motion Sensor", Value::Null, false),
        ("Remote", json!("other"), false),
    ];
    let device = |(name, kind, _): &(&str, Value, bool)| json!({ "name": name, "type": kind });
    let devices: Vec<Value> = house.iter().map(device).collect();
    let interpreter = english_interpreter(&manager_with(house_tools(move || {
        Ok(json!({ "devices": devices }))
    })));
    let meant = "Do you mean “turn on Ceiling Light, Fan, Stairs, Front Door Light and Radio”?";
    assert_eq!(say(&interpreter, "turn on everything").await, meant);
    let text = answered(&interpreter, "turn on everything", "yes").await;
    for (name, _, is_meant) in &house {
        let call = format!(r#""deviceName":"{name}","action":"on""#);
        assert_eq!(text.contains(&call), *is_meant, "{name}: {text}");
    }
    let dim = answered(&interpreter, "dim everything to 30 percent", "yes").await;
    assert_eq!(dim.matches("control_zwave_device").count(), 2, "{dim}");
    // A read-only tool may read everything without asking.
    let text = say(&interpreter, "check everything").await;
    assert!(text.contains("Motion Sensor"), "{text}");
    // All locks are meant, but they need a yes.
    let text = say(&interpreter, "unlock the doors").await;
    assert_eq!(text, "Do you mean “unlock Garage Door and Back Door”?");
}

#[tokio::test]
async fn a_plural_moves_no_lock_without_a_yes() {
    let interpreter = house();
    assert_eq!(say(&interpreter, "unlock the doors").await, MEAN_UNLOCK);
    assert_eq!(
        answered(&interpreter, "unlock the doors", "yes").await,
        UNLOCK
    );
    assert_eq!(answered(&interpreter, "unlock the doors", "no").await, LEFT);
}

static HOUSE: LazyLock<SentenceInterpreter> = LazyLock::new(house);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn only_a_yes_or_the_name_moves_a_lock(answer in "((unlock|lock|the|front|door|a|is|it|that|one|no|not|yes|on|in|and|fan|hall|please)[ ,]){1,5}[?]?") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let text = runtime.block_on(answered(&HOUSE, "unlock the front", &answer));
        let words = words::plain_words(&answer);
        let has = |word: &str| words.iter().any(|one| one == word);
        let agrees = ["yes", "yes please", "that one", "yes that one"].contains(&words.join(" ").as_str());
        // `The front door in the hall` is the name with its location.
        let names = has("front") && has("door") && words[0] != "is" && !["no", "not", "fan"].iter().any(|word| has(word));
        prop_assert!(agrees || names || !text.contains("control_lock"), "{}: {}", answer, text);
    }
}
