//! Several requests in one sentence.

use super::*;

const LAMP_ON: &str = r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"}"#;
const LAMP_OFF: &str = r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"off"}"#;
const LAMP_DIM: &str =
    r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"dim","level":30}"#;
const BOTH_ON: &str = r#"control_zwave_device {"deviceName":"Kitchen Lamp","action":"on"} + control_zwave_device {"deviceName":"Bedroom Light","action":"on"}"#;
const SUM: &str = r#"math_eval {"expression":"2 + 2"}"#;
const UNLOCK: &str = r#"control_lock {"deviceName":"Front Door","action":"unlock"}"#;

async fn steps(interpreter: &SentenceInterpreter, text: &str) -> Vec<String> {
    let (mut history, mut steps) = (vec![user(text)], Vec::new());
    loop {
        let reply = ask(interpreter, &history).await;
        if reply.stop != DialogueEnd::Calls {
            return steps;
        }
        steps.push(describe_answer(&reply));
        let done = r#"{"message":"It is done."}"#;
        history = with_result(with_answer(history, &reply), done, false);
    }
}

#[tokio::test]
async fn several_requests_are_carried_out_in_order() {
    let interpreter = interpreter_with_all_tools();
    for (text, expected) in [
        (
            "turn on the kitchen lamp and what is 2 plus 2",
            &[LAMP_ON, SUM][..],
        ),
        ("Turn on the kitchen lamp. What is 2 + 2?", &[LAMP_ON, SUM]),
        (
            "what is 2 plus 2, and then turn off the kitchen lamp please",
            &[SUM, LAMP_OFF],
        ),
        (
            "turn off the kitchen lamp then turn on the kitchen lamp",
            &[LAMP_OFF, LAMP_ON],
        ),
        (
            "turn on the kitchen lamp and the bedroom light and what is 2 plus 2",
            &[BOTH_ON, SUM],
        ),
        (
            "turn on the kitchen lamp and dim it to 30",
            &[LAMP_ON, LAMP_DIM],
        ),
        (
            "unlock the front door and turn on the kitchen lamp, then what is 2 plus 2",
            &[UNLOCK, LAMP_ON, SUM],
        ),
        ("turn on the kitchen lamp and thank you", &[LAMP_ON]),
        (
            "turn on the kichen lamp and what is 2 plus 2",
            &[LAMP_ON, SUM],
        ),
    ] {
        assert_eq!(steps(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_partly_understood_sentence_does_nothing() {
    let interpreter = interpreter_with_all_tools();
    for (text, expected) in [
        (
            "turn on the kitchen lamp and sing a song",
            "I understood “turn on the kitchen lamp”, but not “sing a song”, so I did nothing.",
        ),
        (
            "if nobody is there, turn on the kitchen lamp",
            "I understood “turn on the kitchen lamp”, but not “if nobody is there”, so I did nothing.",
        ),
        (
            "turn on the kitchen lamp and don't turn off the bedroom light",
            "I understood “turn on the kitchen lamp”, but not “don't turn off the bedroom light”, so I did nothing.",
        ),
        (
            "what is 2 plus 2 and turn on the kitchen",
            "I understood “what is 2 plus 2”, but not “turn on the kitchen”, so I did nothing.",
        ),
        (
            "search for cats and turn on the kitchen lamp",
            "I'm not sure how to split that up, so I did nothing. Please say one thing at a time.",
        ),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_name_may_contain_and() {
    let devices = || {
        let device = |name: &str| json!({ "name": name, "location": "", "state": "on" });
        Ok(json!({ "devices": [device("Salt and Pepper Lamp"), device("Salt"), device("Fan")] }))
    };
    let mut tools = HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools();
    tools.extend(house_tools(devices));
    let interpreter = english_interpreter(&manager_with(tools));
    let lamp = r#"control_zwave_device {"deviceName":"Salt and Pepper Lamp","action":"on"}"#;
    for (text, expected) in [
        ("turn on the salt and pepper lamp", &[lamp][..]),
        (
            "turn on the salt and pepper lamp and what is 2 plus 2",
            &[lamp, SUM],
        ),
        (
            "what is 2 plus 2 and turn on the salt and pepper lamp",
            &[SUM, lamp],
        ),
        (
            "turn on the salt and turn on the fan",
            &[
                r#"control_zwave_device {"deviceName":"Salt","action":"on"}"#,
                r#"control_zwave_device {"deviceName":"Fan","action":"on"}"#,
            ],
        ),
    ] {
        assert_eq!(steps(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn results_of_all_requests_are_reported_in_order() {
    let interpreter = interpreter_with_all_tools();
    let first = vec![user("what is 2 plus 2 and turn on the kitchen lamp")];
    for (is_error, answer, stop) in [
        (false, "2 + 2 = 4\nIt is done.", DialogueEnd::End),
        (true, "It broke.\nIt is done.", DialogueEnd::Refusal),
    ] {
        let result = if is_error {
            "It broke."
        } else {
            r#"{"result":4}"#
        };
        let reply = ask(&interpreter, &first).await;
        let history = with_result(with_answer(first.clone(), &reply), result, is_error);
        let reply = ask(&interpreter, &history).await;
        assert_eq!(
            describe_answer(&reply),
            LAMP_ON,
            "one that fails does not stop the other"
        );
        let done = r#"{"message":"It is done."}"#;
        let history = with_result(with_answer(history, &reply), done, false);
        let reply = ask(&interpreter, &history).await;
        assert_eq!((reply.text.as_str(), reply.stop), (answer, stop));
    }
}

#[tokio::test]
async fn without_further_calls_the_answer_says_that_steps_are_left() {
    let interpreter = interpreter_with_all_tools();
    let history = vec![user("what is 2 plus 2 and turn on the kitchen lamp")];
    let reply = ask(&interpreter, &history).await;
    let history = with_result(with_answer(history, &reply), r#"{"result":4}"#, false);
    let reply = reply_with(&interpreter, &history, false).await;
    assert_eq!(
        (reply.text.as_str(), reply.stop),
        (
            "2 + 2 = 4\nThat was all I could do at once; the rest isn't done.",
            DialogueEnd::Refusal
        )
    );
}

#[tokio::test]
async fn sentences_with_many_breaks_are_interpreted_quickly() {
    let interpreter = interpreter_with_all_tools();
    let started = Instant::now();
    for text in [
        "turn on, and, then, and, ".repeat(10),
        "and ".repeat(64),
        "a, b and c then d and it".to_owned(),
    ] {
        assert_eq!(steps(&interpreter, &text).await, [""; 0], "{text}");
    }
    // Guards against a hang: each part is matched once, however many ways to split there are.
    assert!(started.elapsed() < Duration::from_secs(30));
}
