//! The list of pitfalls: names and schemas.

use fakellm::{Answer, Script};
use serde_json::{Value, json};
use toolgate_core::{ToolDefinition, ToolOutput};

use crate::checklist::with_arguments;
use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{APIS, TestConversation, history};

#[tokio::test]
async fn an_unknown_name_gets_the_available_names_nearest_first() {
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
        // For names that look alike, neither the alphabet nor the order decides.
        let recorded =
            RecordedTools::new().with("get_leather", json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text("Brown"))
            });
        let calls = Answer::call("call_1", "get_wether", &json!({})).and_call(
            "call_2",
            "get_lether",
            &json!({}),
        );
        let script = Script::new([calls, Answer::text("Sorry.")]);
        let mut talk = TestConversation::with(api, script, recorded, |_| {}).await;
        talk.says("go").await;
        let texts = talk.texts();
        for (text, nearest) in texts.iter().zip([
            "Did you mean 'get_weather' or 'get_leather'?",
            "Did you mean 'get_leather' or 'get_weather'?",
        ]) {
            assert!(text.contains(nearest), "{api:?}: {text}");
        }
        assert_eq!(texts.len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn names_match_in_any_case_and_with_a_prefix() {
    for api in APIS {
        for name in ["Get_Weather", "functions.get_weather"] {
            let (ran, _) = with_arguments(api, name, r#"{"city": "Oslo"}"#).await;
            assert_eq!(ran.len(), 1, "{api:?} {name}");
        }
    }
}

#[tokio::test]
async fn dotted_long_and_colliding_names_resolve_to_their_tools() {
    let long = format!("{}/status", "a".repeat(100));
    let longer = format!("{}/state", "a".repeat(100));
    let names = ["home.door", "home/door", "home_door", &long, &longer];
    for api in APIS {
        let recorded = names.iter().fold(RecordedTools::empty(), |recorded, name| {
            recorded.with(name, json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text("opened it"))
            })
        });
        // Every offered tool is called by its wire name, which the double has
        // found legal and unique.
        let script = Script::from_fn(move |request| {
            let body = request.json();
            let declared = body["tools"][0].get("functionDeclarations");
            let tools = declared.unwrap_or(&body["tools"]).as_array();
            let tools = tools.cloned().unwrap_or_default();
            let names = tools.iter().map(|tool| {
                tool["name"]
                    .as_str()
                    .or(tool["function"]["name"].as_str())
                    .unwrap()
                    .to_owned()
            });
            let called = history(&body).to_string().contains("opened it");
            if called {
                return Answer::text("Done.");
            }
            names
                .enumerate()
                .fold(Answer::empty(), |answer, (index, name)| {
                    answer.and_call(&format!("call_{index}"), &name, &json!({}))
                })
        });
        let mut talk = TestConversation::with(api, script, recorded, |_| {}).await;
        assert_eq!(talk.says("all of them").await.answer, "Done.", "{api:?}");
        let mut ran = talk.recorded.names();
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
        let recorded = RecordedTools::empty()
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
        let mut talk = TestConversation::with(
            api,
            Script::new([calls, Answer::text("Done.")]),
            recorded,
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
        // Each schema has the parameters of all its alternatives at the root, where a
        // provider looks for them.
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

/// A schema whose root isn't an object never reaches a model.
#[test]
fn a_non_object_root_is_refused_at_registration() {
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
