use serde_json::json;

use super::*;

fn units() -> HashMap<String, String> {
    HashMap::from([("degC".to_owned(), "°C".to_owned())])
}

fn english(units: &HashMap<String, String>) -> AnswerWording<'_> {
    AnswerWording {
        and: "and",
        rounded_prefix: "about",
        done: "Done.",
        units,
    }
}

fn said(answer: Value, result: &Value) -> String {
    let answer: AnswerTemplate = serde_json::from_value(answer).unwrap();
    let slots = Map::from_iter([("device".to_owned(), json!("Lamp"))]);
    let again: AnswerTemplate =
        serde_json::from_value(serde_json::to_value(&answer).unwrap()).unwrap();
    assert_eq!(again, answer, "what is kept in history is what was written");
    answer.render_result(&result.to_string(), &slots, &english(&units()))
}

#[test]
fn the_first_fitting_answer_is_used() {
    let on = json!({ "state": "on", "level": 50.0, "devices": [{ "name": "A" }, { "name": "B" }, { "name": "C" }], "none": [],
        "warm": "37.7777777778 degC", "far": "1609.344 degC", "noise": 0.1 + 0.2, "tiny": 1.5e-9, "many": 123_456_789_012_345_680_000.0, "long": 1_234_567_890_123.75, "days": 39,
        "edge": 9_007_199_254_740_992_i64, "below": -9_007_199_254_740_991_i64 });
    for (answer, expected) in [
        (
            json!("{device} is {/state} at {/level} %."),
            "Lamp is on at 50 %.",
        ),
        (json!(["{/missing}", "{/state}"]), "on"),
        (json!(["{/none}!", "x"]), "!"),
        (
            json!([{ "if": { "/state": "off" }, "say": "Dark." }, { "if": { "/state": "on" }, "say": "Bright." }]),
            "Bright.",
        ),
        (
            json!([{ "if": { "/none": null, "/x": null }, "say": "Nothing." }]),
            "Nothing.",
        ),
        (json!("{/devices/*/name}"), "A, B and C"),
        (json!(["{/none/*/name}", "None."]), "None."),
        (json!("{/warm}"), "37.78 °C"),
        (json!("{/far}"), "1609.34 °C"),
        (
            json!("{/noise} {/tiny} {/many} {/long}"),
            "0.3 1.5e-9 about 1.23456789012e20 about 1234567890120",
        ),
        (
            json!("{/edge} {/edge float} {/below float} {/state float}"),
            "9007199254740992 about 9007199254740992 -9007199254740991 on",
        ),
        (json!("{/days div 7} and {/days mod 7}"), "5 and 4"),
        (json!([{ "failed": "on", "say": "never" }, "fine"]), "fine"),
    ] {
        assert_eq!(said(answer.clone(), &on), expected, "{answer}");
    }
}

#[test]
fn a_result_without_an_answer_gets_a_default_text() {
    for (result, expected) in [
        (
            json!({ "sentence": "It is late.", "time": 3 }),
            "It is late.",
        ),
        (
            json!({ "state": "on", "level": 40, "unit": null }),
            "state: on, level: 40",
        ),
        (json!("(no output)"), "Done."),
        (json!(null), "Done."),
        (json!([1, 2.5, true]), "1, 2.5 and true"),
        (
            json!({ "a": { "b": 1, "c": [2, { "d": 3 }] } }),
            "a: (b: 1, c: 2 and (d: 3))",
        ),
        (json!([[[[1, { "e": 1 }]]]]), r#"1 and {"e":1}"#),
    ] {
        assert_eq!(said(json!([]), &result), expected);
    }
    let words = AnswerTemplate::default().render_result("{ cut", &Map::new(), &english(&units()));
    assert_eq!(words, "{ cut");
}

#[test]
fn an_error_may_have_its_own_answer() {
    let answer: AnswerTemplate = serde_json::from_value(
        json!(["ok", { "failed": "Infinity", "say": "No end to {device}." }]),
    )
    .unwrap();
    let slots = Map::from_iter([("device".to_owned(), json!("Lamp"))]);
    let units = units();
    let said = |text: &str| answer.render_error(text, &slots, &english(&units));
    assert_eq!(said("The result is Infinity"), "No end to Lamp.");
    assert_eq!(said("It is broken"), "It is broken");
}

#[test]
fn arguments_keep_the_slot_type_and_drop_empty_slots() {
    let slots = Map::from_iter([("n".to_owned(), json!(5)), ("d".to_owned(), json!("Lamp"))]);
    let template = json!({ "a": "{n}", "b": "the {d}", "c": "{gone}", "d": [1, "{d}"], "e": true, "f": { "g": "{gone}" } });
    let filled = fill_arguments(template.as_object().unwrap(), &slots);
    assert_eq!(
        Value::Object(filled),
        json!({ "a": 5, "b": "the Lamp", "d": [1, "Lamp"], "e": true, "f": {} })
    );
}
