//! The pitfalls that others ran into, each with every provider it can happen with. `docs/models.md` lists them.

use std::time::Duration;

use fakellm::{Answer, Api, Recorded, Script};
use serde_json::{Value, json};
use toolgate_core::{ToolDefinition, ToolOutput};
use toolgate_models::TurnEnd;

use crate::house::House;
use crate::talk::{APIS, Talk, asks_for_oslo};

/// A call with these arguments as text, then an answer; gives what ran and what the model was told.
async fn with_arguments(api: Api, tool: &str, arguments: &str) -> (Vec<(String, Value)>, String) {
    let call = Answer::empty().and_broken_call("call_1", tool, arguments);
    let switch = json!({ "type": "object", "required": ["on"], "properties": { "on": { "type": "boolean" } } });
    let house = House::new().with("switch", switch, |_| Ok(ToolOutput::text("switched")));
    let script = Script::new([call, Answer::text("Done.")]);
    let mut talk = Talk::with(api, script, house, |_| {}).await;
    let turn = talk.says("go").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Done.", TurnEnd::Answered),
        "{api:?} {arguments}"
    );
    let texts = talk.texts();
    assert_eq!(texts.len(), 1, "{api:?} {arguments}: {texts:?}");
    (talk.house.calls(), texts[0].clone())
}

#[tokio::test]
async fn arguments_may_be_an_object_a_string_or_a_string_in_a_string() {
    for api in APIS {
        let object = json!({ "city": "Oslo" });
        let string = json!(object.to_string());
        for arguments in [object.clone(), string.clone()] {
            let (ran, told) = with_arguments(api, "get_weather", &arguments.to_string()).await;
            assert_eq!(
                ran,
                [("get_weather".to_owned(), object.clone())],
                "{api:?} {arguments}"
            );
            assert_eq!(told, r#"{"city":"Oslo","degrees":3}"#, "{api:?}");
        }
    }
}

#[tokio::test]
async fn no_arguments_at_all_are_an_empty_object() {
    for api in APIS {
        for arguments in ["", "null", "{}", "\"\""] {
            let (ran, told) = with_arguments(api, "clock", arguments).await;
            assert_eq!(
                ran,
                [("clock".to_owned(), json!({}))],
                "{api:?} {arguments:?}"
            );
            assert_eq!(told, "12:00");
        }
    }
}

#[tokio::test]
async fn broken_arguments_run_nothing_and_the_model_is_told() {
    for api in APIS {
        for arguments in [r#"{"city": "#, "[1]", r#"{"city":"a","city":"b"}"#] {
            let (ran, told) = with_arguments(api, "get_weather", arguments).await;
            assert!(ran.is_empty(), "{api:?} {arguments}: {ran:?}");
            assert!(
                told.contains("Invalid parameters"),
                "{api:?} {arguments}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_coerced_and_the_violation_goes_back() {
    for api in APIS {
        let cases = [
            (r#"{"level": "5"}"#, "'level' must be integer"),
            (r#"{"level": true}"#, "'level' must be integer"),
            (r#"{"level": 5.5}"#, "'level' must be integer"),
            (r#"{"Level": 5}"#, "missing 'level'"),
            (r#"{}"#, "missing 'level'"),
        ];
        for (arguments, violation) in cases {
            let (ran, told) = with_arguments(api, "set_level", arguments).await;
            assert!(ran.is_empty(), "{api:?} {arguments}: {ran:?}");
            assert!(told.contains(violation), "{api:?} {arguments}: {told}");
        }
        let (ran, _) = with_arguments(api, "set_level", r#"{"level": 5}"#).await;
        assert_eq!(ran.len(), 1, "{api:?}");
        for arguments in [r#"{"on": "true"}"#, r#"{"on": 1}"#, r#"{"on": "True"}"#] {
            let (ran, told) = with_arguments(api, "switch", arguments).await;
            assert!(ran.is_empty(), "{api:?} {arguments}: {ran:?}");
            assert!(
                told.contains("'on' must be boolean"),
                "{api:?} {arguments}: {told}"
            );
        }
        let (ran, _) = with_arguments(api, "switch", r#"{"on": true}"#).await;
        assert_eq!(ran.len(), 1, "{api:?}");
    }
}

#[tokio::test]
async fn null_for_an_optional_parameter_is_not_given() {
    for api in APIS {
        let (ran, _) =
            with_arguments(api, "get_weather", r#"{"city": "Oslo", "days": null}"#).await;
        assert_eq!(
            ran,
            [("get_weather".to_owned(), json!({ "city": "Oslo" }))],
            "{api:?}"
        );
        let (ran, told) =
            with_arguments(api, "get_weather", r#"{"city": "Oslo", "days": ""}"#).await;
        assert!(
            ran.is_empty() && told.contains("'days' must be integer"),
            "{api:?} {told}"
        );
    }
}

#[tokio::test]
async fn calls_without_ids_or_with_the_same_id_each_get_their_result() {
    for api in APIS {
        for id in ["", "same"] {
            if id.is_empty() && api == Api::Anthropic {
                continue; // It always gives one.
            }
            let calls = ["Oslo", "Rome"]
                .into_iter()
                .fold(Answer::empty(), |answer, city| {
                    answer.and_call(id, "get_weather", &json!({ "city": city }))
                });
            let mut talk = Talk::new(api, [calls, Answer::text("Both.")]).await;
            talk.says("Oslo and Rome?").await;
            let results = talk.results();
            assert_eq!(results.len(), 2, "{api:?} {id:?}: {results:?}");
            assert!(
                results[0].1.contains("Oslo") && results[1].1.contains("Rome"),
                "{api:?}: {results:?}"
            );
            if api != Api::Ollama {
                assert_ne!(results[0].0, results[1].0, "{api:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_is_said_twice_id_and_all_is_one_call() {
    for api in APIS {
        let twice = asks_for_oslo().and_call("call_1", "get_weather", &json!({ "city": "Oslo" }));
        let mut talk = Talk::new(api, [twice, Answer::text("3 degrees.")]).await;
        assert_eq!(talk.says("Oslo?").await.answer, "3 degrees.", "{api:?}");
        assert_eq!(talk.house.names(), ["get_weather"], "{api:?}");
        assert_eq!(talk.results().len(), 1, "{api:?}");
    }
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_the_names_there_are_nearest_first() {
    for api in APIS {
        for name in ["get_wether", "get-the-weather", "weather.get"] {
            let (ran, told) = with_arguments(api, name, r#"{"city": "Oslo"}"#).await;
            assert!(ran.is_empty(), "{api:?} {name}");
            assert!(
                told.contains("not found") || told.contains("nknown tool"),
                "{api:?} {name}: {told}"
            );
            assert!(told.contains("get_weather"), "{api:?} {name}: {told}");
        }
        let (ran, told) = with_arguments(api, "x", "{}").await;
        assert!(ran.is_empty() && told.contains("clock"), "{api:?}: {told}");
    }
}

#[tokio::test]
async fn a_name_in_another_case_or_behind_a_prefix_means_the_tool() {
    for api in APIS {
        for name in ["Get_Weather", "functions.get_weather"] {
            let (ran, _) = with_arguments(api, name, r#"{"city": "Oslo"}"#).await;
            assert_eq!(ran.len(), 1, "{api:?} {name}");
        }
    }
}

#[tokio::test]
async fn dotted_long_and_colliding_names_come_back_as_the_tools_they_are() {
    let long = format!("{}/status", "a".repeat(100));
    let longer = format!("{}/state", "a".repeat(100));
    let names = ["home.door", "home/door", "home_door", &long, &longer];
    for api in APIS {
        let house = names.iter().fold(House::empty(), |house, name| {
            house.with(name, json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text("opened it"))
            })
        });
        // All that is offered is called, by the names on the wire, which the double has found legal and unique.
        let script = Script::by(move |request| {
            let tools = request.json()["tools"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let names = tools.iter().map(|tool| {
                tool["name"]
                    .as_str()
                    .or(tool["function"]["name"].as_str())
                    .unwrap()
                    .to_owned()
            });
            let called = request.json()["messages"].to_string().contains("opened it");
            if called {
                return Answer::text("Done.");
            }
            names
                .enumerate()
                .fold(Answer::empty(), |answer, (index, name)| {
                    answer.and_call(&format!("call_{index}"), &name, &json!({}))
                })
        });
        let mut talk = Talk::with(api, script, house, |_| {}).await;
        assert_eq!(talk.says("all of them").await.answer, "Done.", "{api:?}");
        let mut ran = talk.house.names();
        ran.sort();
        let mut expected = names.map(str::to_owned);
        expected.sort();
        assert_eq!(ran, expected, "{api:?}");
    }
}

#[tokio::test]
async fn schemas_that_providers_choke_on_are_lowered_and_checked_in_full() {
    let point =
        json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
    let referring = json!({ "type": "object", "properties": { "at": { "$ref": "#/$defs/point" } }, "required": ["at"],
        "$defs": { "point": point } });
    let either = json!({ "type": "object", "anyOf": [
        { "properties": { "id": { "type": "string" } }, "required": ["id"] },
        { "properties": { "name": { "type": "string", "minLength": 2 } }, "required": ["name"] },
    ] });
    let one = json!({ "type": "object", "oneOf": [
        { "properties": { "on": { "type": "boolean" } }, "required": ["on"] },
        { "properties": { "level": { "type": "integer" } }, "required": ["level"] },
    ] });
    let all = json!({ "type": "object", "allOf": [
        { "properties": { "from": { "type": "integer" } }, "required": ["from"] },
        { "properties": { "to": { "type": "integer" } }, "required": ["to"] },
    ] });
    let bare = json!({ "type": "object" });
    for api in APIS {
        let done = |_: &Value| Ok(ToolOutput::text("done"));
        let house = House::empty()
            .with("referring", referring.clone(), done)
            .with("either", either.clone(), done)
            .with("bare", bare.clone(), done)
            .with("one", one.clone(), done)
            .with("all", all.clone(), done);
        let calls = Answer::empty()
            .and_call(
                "call_1",
                "referring",
                &json!({ "at": { "x": "no number" } }),
            )
            .and_call("call_2", "either", &json!({ "name": "z" }))
            .and_call("call_3", "either", &json!({ "name": "zoe" }))
            .and_call("call_4", "bare", &json!({}))
            .and_call("call_5", "one", &json!({ "on": true }))
            .and_call("call_6", "all", &json!({ "from": 1, "to": 2 }))
            .and_call("call_7", "one", &json!({ "on": true, "level": 1 }))
            .and_call("call_8", "all", &json!({ "from": 1 }));
        let mut talk = Talk::with(
            api,
            Script::new([calls, Answer::text("Done.")]),
            house,
            |_| {},
        )
        .await;
        talk.says("go").await;
        assert_eq!(talk.offered().len(), 5, "{api:?}: nothing is left out");
        let texts = talk.texts();
        assert!(
            texts[0].contains("'at.x' must be number"),
            "{api:?}: {texts:?}"
        );
        assert!(
            texts[1].contains("Invalid parameters"),
            "{api:?}: {texts:?}"
        );
        assert_eq!(texts[2..6], ["done"; 4], "{api:?}");
        for text in &texts[6..] {
            assert!(text.contains("Invalid parameters"), "{api:?}: {texts:?}");
        }
        // Each has all the parameters of its alternatives, at the root, where a provider looks for them.
        let parameters = [
            ("either", ["id", "name"]),
            ("one", ["on", "level"]),
            ("all", ["from", "to"]),
        ];
        let offered = talk.offered();
        for (tool, names) in parameters {
            let schema = &offered.iter().find(|(name, _)| name == tool).unwrap().1;
            for name in names {
                assert!(schema["properties"][name].is_object(), "{api:?}: {schema}");
            }
        }
    }
}

/// A root that is no object never gets as far as a model.
#[test]
fn a_root_that_is_no_object_is_refused_at_registration() {
    for schema in [
        json!({ "type": "array" }),
        json!(true),
        json!({ "type": "string" }),
    ] {
        assert!(
            ToolDefinition::builder("bad", "Bad", schema.clone())
                .build()
                .is_err(),
            "{schema}"
        );
    }
}

#[tokio::test]
async fn words_before_a_call_are_told_and_kept() {
    for api in APIS {
        let both = Answer::text("Let me look.").and_call("call_1", "clock", &json!({}));
        let mut talk = Talk::new(api, [both, Answer::text("Noon.")]).await;
        let turn = talk.says("What time is it?").await;
        assert_eq!(turn.answer, "Noon.");
        assert!(
            talk.heard.concat().contains("Let me look."),
            "{api:?}: {:?}",
            talk.heard
        );
        let sent = talk.last()["messages"].to_string();
        assert!(sent.contains("Let me look."), "{api:?}: {sent}");
    }
}

#[tokio::test]
async fn one_of_several_calls_fails_and_the_others_are_answered_in_order() {
    for api in APIS {
        let calls = Answer::call("call_1", "get_weather", &json!({ "city": "Oslo" }))
            .and_call("call_2", "broken", &json!({}))
            .and_call("call_3", "clock", &json!({}));
        let mut talk = Talk::new(api, [calls, Answer::text("Two of three.")]).await;
        talk.says("all of it").await;
        let texts = talk.texts();
        assert_eq!(texts.len(), 3, "{api:?}");
        assert!(texts[0].contains("degrees"), "{api:?}: {texts:?}");
        assert!(
            texts[1].contains("The sensor is broken"),
            "{api:?}: {texts:?}"
        );
        assert_eq!(texts[2], "12:00", "{api:?}");
        if api == Api::Anthropic {
            let blocks = &talk.last()["messages"][2]["content"];
            let failed: Vec<_> = (0..3)
                .map(|index| blocks[index]["is_error"] == true)
                .collect();
            assert_eq!(failed, [false, true, false]);
        }
    }
}

#[tokio::test]
async fn calls_of_one_reply_run_side_by_side_and_are_answered_in_their_order() {
    for api in APIS {
        let schema = json!({ "type": "object" });
        let slow = Duration::from_millis(300);
        let house = House::empty()
            .with_slow("slow", schema.clone(), slow, |_| {
                Ok(ToolOutput::text("slow"))
            })
            .with("fast", schema, |_| Ok(ToolOutput::text("fast")));
        let calls = (0..8).fold(Answer::empty(), |answer, index| {
            let name = if index % 2 == 0 { "slow" } else { "fast" };
            answer.and_call(&format!("call_{index}"), name, &json!({}))
        });
        let mut talk = Talk::with(
            api,
            Script::new([calls, Answer::text("Done.")]),
            house,
            |settings| {
                settings.max_same_calls = 100;
            },
        )
        .await;
        talk.says("go").await;
        let names = ["slow", "fast"].repeat(4);
        assert_eq!(talk.texts(), names, "{api:?}");
    }
}

#[tokio::test]
async fn a_result_too_large_is_cut_with_a_mark() {
    for api in APIS {
        let call = Answer::call("call_1", "large", &json!({}));
        let script = Script::new([call, Answer::text("Much.")]);
        let mut talk = Talk::with(api, script, House::new(), |settings| {
            settings.max_result = 1000;
        })
        .await;
        talk.says("go").await;
        let text = talk.texts().remove(0);
        assert!(text.len() < 1500, "{api:?}: {}", text.len());
        assert!(
            text.starts_with("ää") && text.contains("cut"),
            "{api:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_picture_reaches_who_can_look_and_is_named_to_who_can_not() {
    for api in APIS {
        let call = Answer::call("call_1", "camera", &json!({}));
        let mut talk = Talk::new(api, [call, Answer::text("Nice.")]).await;
        talk.says("look").await;
        let text = talk.texts().remove(0);
        assert!(text.contains("The garden"), "{api:?}: {text}");
        let sent = talk.last()["messages"].to_string();
        if api == Api::Anthropic {
            assert!(sent.contains("aGVsbG8="), "{sent}");
        } else {
            assert!(
                !text.contains("aGVsbG8="),
                "{api:?}: no base64 as words: {text}"
            );
            assert!(text.to_lowercase().contains("image"), "{api:?}: {text}");
        }
    }
}

#[tokio::test]
async fn nothing_as_a_result_is_said_so() {
    for api in APIS {
        let (_, told) = with_arguments(api, "silent", "{}").await;
        assert_eq!(told, "(no output)", "{api:?}");
    }
}

/// True if the model may not use tools in this round, by whichever way a provider knows to say so.
fn must_answer(request: &Recorded) -> bool {
    let body = request.json();
    let none = body["tools"].as_array().is_none_or(Vec::is_empty);
    none || body["tool_choice"] == "none" || body["tool_choice"]["type"] == "none"
}

#[tokio::test]
async fn the_same_call_for_ever_is_stopped_with_an_answer() {
    for api in APIS {
        let mut count = 0;
        let script = Script::by(move |request| {
            count += 1;
            if must_answer(request) {
                return Answer::text("It is 3 degrees.");
            }
            Answer::call(
                &format!("call_{count}"),
                "get_weather",
                &json!({ "city": "Oslo" }),
            )
        });
        let mut talk = Talk::with(api, script, House::new(), |settings| {
            settings.max_same_calls = 2;
        })
        .await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.end, TurnEnd::Repetition, "{api:?}");
        assert_eq!(turn.answer, "It is 3 degrees.", "{api:?}");
        assert_eq!(talk.house.calls().len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn after_the_last_round_there_is_an_answer_without_tools() {
    for api in APIS {
        let mut count = 0;
        let script = Script::by(move |request| {
            if must_answer(request) {
                return Answer::text("As far as I got.");
            }
            count += 1;
            Answer::call(
                &format!("call_{count}"),
                "set_level",
                &json!({ "level": count }),
            )
        });
        let mut talk = Talk::with(api, script, House::new(), |settings| {
            settings.max_tool_rounds = 3;
        })
        .await;
        let turn = talk.says("go").await;
        assert_eq!(
            (turn.end, turn.answer.as_str()),
            (TurnEnd::RoundLimit, "As far as I got."),
            "{api:?}"
        );
        assert_eq!(talk.house.calls().len(), 3, "{api:?}");
        assert_eq!(turn.rounds.len(), 4, "{api:?}");
    }
}

#[tokio::test]
async fn a_stream_cut_in_its_arguments_runs_nothing_and_is_asked_again() {
    for api in APIS {
        let cut =
            Answer::text("Wait.").and_call("call_1", "get_weather", &json!({ "city": "Oslo" }));
        let cut = cut.cut_in(api, "Oslo");
        let mut talk = Talk::new(api, [cut, asks_for_oslo(), Answer::text("3.")]).await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.answer, "3.", "{api:?}");
        assert_eq!(talk.house.names(), ["get_weather"], "{api:?}");
        assert!(
            talk.heard.contains(&"<void>".to_owned()),
            "{api:?}: {:?}",
            talk.heard
        );
    }
}
