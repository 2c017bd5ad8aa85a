//! The pitfalls that others ran into, each with every provider it can happen
//! with. `docs/models.md` lists them.

use fakellm::{Answer, Api, Script};
use serde_json::{Value, json};
use toolgate_core::ToolOutput;
use toolgate_models::TurnEnd;

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{APIS, TestConversation, asks_for_oslo};

/// Scripts a call with these arguments as text and then an answer. Returns what ran and
/// what the model received.
pub(crate) async fn with_arguments(
    api: Api,
    tool: &str,
    arguments: &str,
) -> (Vec<(String, Value)>, String) {
    let call = Answer::empty().and_broken_call("call_1", tool, arguments);
    let switch = json!({ "type": "object", "required": ["on"], "properties": { "on": { "type": "boolean" } } });
    let recorded =
        RecordedTools::new().with("switch", switch, |_| Ok(ToolOutput::text("switched")));
    let script = Script::new([call, Answer::text("Done.")]);
    let mut talk = TestConversation::with(api, script, recorded, |_| {}).await;
    let turn = talk.says("go").await;
    assert_eq!(
        (turn.answer.as_str(), turn.end),
        ("Done.", TurnEnd::Answered),
        "{api:?} {arguments}"
    );
    let texts = talk.texts();
    assert_eq!(texts.len(), 1, "{api:?} {arguments}: {texts:?}");
    (talk.recorded.calls(), texts[0].clone())
}

#[tokio::test]
async fn arguments_may_be_an_object_a_string_or_a_string_in_a_string() {
    for api in APIS {
        let object = json!({ "city": "Oslo" });
        let string = json!(object.to_string());
        let in_a_string = json!(string.to_string());
        for arguments in [object.clone(), string, in_a_string] {
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
async fn null_for_an_optional_parameter_counts_as_absent() {
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
            let mut talk = TestConversation::new(api, [calls, Answer::text("Both.")]).await;
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
async fn a_duplicated_call_runs_once() {
    for api in APIS {
        let twice = asks_for_oslo().and_call("call_1", "get_weather", &json!({ "city": "Oslo" }));
        let mut talk = TestConversation::new(api, [twice, Answer::text("3 degrees.")]).await;
        assert_eq!(talk.says("Oslo?").await.answer, "3 degrees.", "{api:?}");
        assert_eq!(talk.recorded.names(), ["get_weather"], "{api:?}");
        assert_eq!(talk.results().len(), 1, "{api:?}");
    }
}
