use std::sync::Arc;

use futures::FutureExt;
use proptest::prelude::*;
use serde_json::json;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};

use super::*;
use crate::builtin::BuiltinSettings;

fn load(entries: &[Value]) -> LoadedDefinitions {
    HandlerRegistry::new(&BuiltinSettings::default()).load(entries)
}

fn entry(implementation: &Value) -> Value {
    json!({ "name": "t", "description": "d", "parameters": { "type": "object" }, "implementation": implementation })
}

#[test]
fn im1_a_definition_of_each_type_becomes_a_tool() {
    let loaded = load(&[
        entry(&json!({ "type": "mock", "mock_response": null })),
        entry(&json!({ "type": "builtin", "handler": "echo" })),
        entry(&json!({ "type": "internal", "handler": "documents" })),
    ]);
    let sources: Vec<String> = loaded
        .tools
        .iter()
        .map(|tool| tool.definition().source().to_string())
        .collect();
    assert_eq!(sources, ["mock", "builtin", "internal"]);
}

#[tokio::test]
async fn im2_a_mock_answers_at_once_whatever_it_is_given() {
    for answer in [
        json!(null),
        json!("21 °"),
        json!([1, { "b": 2, "a": null }]),
    ] {
        let manager = Arc::new(ToolManager::new());
        let mock = json!({ "type": "mock", "mock_response": answer });
        manager.add_all(load(&[entry(&mock)]).tools);
        let executor = ToolExecutor::builder(manager).without_observers().build();
        for arguments in [json!({}), json!({ "a": 1 }), json!({ "mock_response": 5 })] {
            // Answers at the first poll: nothing in it could wait, let alone for 10 ms.
            let call = executor.execute(ToolCall::new("t", arguments));
            let envelope = call.now_or_never().unwrap().to_envelope();
            assert_eq!(envelope["result"].to_string(), answer.to_string());
        }
    }
}

#[test]
fn names_may_contain_any_visible_character() {
    let mut entry = entry(&json!({ "type": "mock", "mock_response": 1 }));
    entry["name"] = json!("wetter für heute");
    let loaded = load(&[entry]);
    assert_eq!(loaded.tools[0].definition().name(), "wetter für heute");
}

#[test]
fn tm6_a_bad_entry_is_left_out_and_named_and_the_rest_load() {
    let mock = json!({ "type": "mock", "mock_response": 1 });
    let with = |key: &str, value: Value| {
        let mut entry = entry(&mock);
        entry[key] = value;
        entry
    };
    for (bad, path, text) in [
        (
            json!(5),
            vec![],
            "tool number 1 is left out: it must be an object in { }",
        ),
        (
            json!({ "name": "x" }),
            vec![],
            "tool 'x' is left out: missing 'description', missing 'parameters', missing 'implementation'",
        ),
        (
            with("name", json!("")),
            vec!["name"],
            "tool number 1 is left out: tool name '' is empty",
        ),
        (
            with("name", json!("a\nb")),
            vec!["name"],
            r"tool 'a\nb' is left out: tool name 'a\nb' has characters that can't be seen: control or invisible ones",
        ),
        (
            with("description", json!(" ")),
            vec!["description"],
            "tool 't' is left out: tool 't' has no description",
        ),
        (
            with("description", json!(7)),
            vec!["description"],
            "tool 't' is left out: description: must be a string",
        ),
        (
            with("parameters", json!(null)),
            vec!["parameters"],
            "tool 't' is left out: parameters of tool 't': must be a JSON Schema object, not null",
        ),
        (
            with("implementation", json!({ "type": "magic" })),
            vec!["implementation", "type"],
            "tool 't' is left out: implementation.type: 'magic' is unknown; possible values: mock, builtin, internal",
        ),
        (
            with("implementation", json!({ "type": "mock" })),
            vec!["implementation"],
            "tool 't' is left out: implementation: missing 'mock_response'",
        ),
        (
            with(
                "implementation",
                json!({ "type": "builtn", "handler": "echo" }),
            ),
            vec!["implementation", "type"],
            "tool 't' is left out: implementation.type: 'builtn' is unknown; did you mean 'builtin'?",
        ),
        (
            with("implementation", json!({ "type": 5 })),
            vec!["implementation", "type"],
            "tool 't' is left out: implementation.type: must be one of: mock, builtin, internal",
        ),
        (
            with("implementation", json!({ "type": "builtin", "handler": 5 })),
            vec!["implementation", "handler"],
            "tool 't' is left out: implementation.handler: must be a string",
        ),
        (
            with("implementation", json!("echo")),
            vec!["implementation"],
            "tool 't' is left out: implementation: must be an object, such as { \"type\": \"builtin\", \"handler\": \"echo\" }",
        ),
    ] {
        let loaded = load(&[bad.clone(), entry(&mock)]);
        assert_eq!(loaded.tools.len(), 1, "{bad}");
        assert_eq!(loaded.problems[0].text, text);
        assert_eq!(
            (loaded.problems[0].path.clone(), loaded.problems[0].left_out),
            (path.iter().map(|key| (*key).to_owned()).collect(), true),
            "{bad}"
        );
    }
}

#[test]
fn all_problems_of_an_entry_are_reported() {
    let loaded = load(&[json!({ "name": 5, "description": [], "implementation": {} })]);
    let texts: Vec<&str> = loaded.problems.iter().map(|it| it.text.as_str()).collect();
    let left_out = "tool number 1 is left out";
    assert_eq!(
        texts,
        [
            format!("{left_out}: missing 'parameters'"),
            format!("{left_out}: name: must be a string"),
            format!("{left_out}: description: must be a string"),
            format!(
                "{left_out}: implementation: missing 'type', such as {{ \"type\": \"builtin\", \"handler\": \"echo\" }}"
            ),
        ]
    );
}

#[test]
fn im3_a_missing_handler_is_warned_about_and_the_tool_is_there() {
    let loaded = load(&[
        entry(&json!({ "type": "builtin", "handler": "ecko" })),
        entry(&json!({ "type": "internal", "handler": "x" })),
    ]);
    assert_eq!(loaded.tools.len(), 2);
    let texts: Vec<&str> = loaded
        .problems
        .iter()
        .map(|problem| problem.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "tool 't': Builtin handler 'ecko' not found, did you mean 'echo'?",
            "tool 't': Internal handler 'x' not found, no handlers of this type exist",
        ]
    );
}

#[test]
fn unknown_keys_are_warned_about_with_the_way_to_them() {
    let mut odd = entry(&json!({ "type": "mock", "mock_response": 1, "mock_respons": 2 }));
    odd["descripton"] = json!("d");
    let loaded = load(&[odd]);
    assert_eq!(loaded.tools.len(), 1);
    assert_eq!(
        loaded.problems[0].text,
        "tool 't': unknown key 'descripton' is ignored, did you mean 'description'?"
    );
    assert_eq!(loaded.problems[1].path, ["implementation", "mock_respons"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z_$./ ]{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("object"),
            Just("mock"),
            Just("builtin"),
            Just("internal"),
            Just("echo"),
            Just("#")
        ]
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "name",
            "description",
            "parameters",
            "implementation",
            "type",
            "handler",
            "mock_response",
            "properties",
            "$ref"
        ])
        .prop_map(str::to_owned),
        "[a-z$]{0,6}",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_definitions_load_or_are_named(entries in prop::collection::vec(any_json(), 0..4)) {
        let loaded = load(&entries);
        let left_out = loaded.problems.iter().filter(|problem| problem.left_out);
        let left_out: std::collections::HashSet<usize> = left_out.map(|problem| problem.index).collect();
        prop_assert_eq!(loaded.tools.len() + left_out.len(), entries.len());
    }
}
