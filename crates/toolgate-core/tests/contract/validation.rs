//! VA: arguments are validated, and errors use the contract's words.

use serde_json::{Value, json};
use toolgate_core::ToolCall;

use crate::support::{
    LogCapture, Recorder, builder_of, check_parameter, compile, echo, executor_of, logging,
    scripted, violation_text, with_schema,
};

#[tokio::test]
async fn va1_a_failing_call_never_reaches_the_tool() {
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let tool = scripted(with_schema("t", schema), |_, _| async { panic!("ran") });
    let recorder = Recorder::default();
    let executor = builder_of([tool]).observer(recorder.clone()).build();
    for arguments in [
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": null }),
        json!([]),
        json!("a"),
        json!(null),
    ] {
        let envelope = executor
            .execute(ToolCall::new("t", arguments))
            .await
            .to_envelope();
        assert_eq!(envelope["error_kind"], "invalid_arguments");
    }
    assert!(recorder.started().is_empty());
}

#[tokio::test]
async fn va1_arguments_are_checked_against_the_schema_of_that_tool() {
    let of = |name: &str, kind: &str| {
        echo(with_schema(
            name,
            json!({ "properties": { "a": { "type": kind } } }),
        ))
    };
    let executor = executor_of([of("s", "string"), of("n", "number")]);
    for (name, value, success) in [
        ("s", json!("x"), true),
        ("s", json!(1), false),
        ("n", json!(1), true),
        ("n", json!("x"), false),
    ] {
        let outcome = executor
            .execute(ToolCall::new(name, json!({ "a": value })))
            .await;
        assert_eq!(outcome.is_success(), success);
    }
}

#[test]
fn va2_one_missing_parameter_is_named() {
    let schema = compile(json!({ "required": ["city"] }));
    assert_eq!(
        schema.check(json!({})).unwrap_err().to_string(),
        "Invalid parameters: missing 'city'"
    );
}

#[test]
fn va2_all_missing_parameters_are_reported_at_once() {
    let schema = compile(json!({ "required": ["b", "a", "c"] }));
    assert_eq!(
        schema.check(json!({ "a": 1 })).unwrap_err().to_string(),
        "Invalid parameters: missing 'b', missing 'c'"
    );
}

#[test]
fn va2_all_violations_are_reported_at_once() {
    let schema = compile(json!({
        "properties": { "n": { "type": "integer" }, "e": { "enum": ["x"] }, "o": { "required": ["i"] } },
        "required": ["m"],
    }));
    assert_eq!(
        violation_text(&schema, json!({ "e": "y", "o": {}, "n": "1" })),
        "missing 'm', missing 'o.i', 'e' must be one of: x, 'n' must be integer"
    );
}

#[test]
fn va2_null_counts_as_missing_unless_it_is_allowed() {
    let schema = compile(json!({
        "properties": {
            "s": { "type": "string" },
            "e": { "enum": ["x"] },
            "r": { "$ref": "#/$defs/r" },
            "n": { "type": ["string", "null"] },
        },
        "required": ["s", "e", "r", "n"],
        "$defs": { "r": { "type": "object" } },
    }));
    assert_eq!(
        violation_text(
            &schema,
            json!({ "s": null, "e": null, "r": null, "n": null })
        ),
        "missing 's', missing 'e', missing 'r'"
    );
}

#[test]
fn va2_missing_parameters_behind_combinators_and_references_are_found() {
    for schema in [
        json!({ "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }] }),
        json!({ "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "a": { "type": "string" } }, "required": ["a"] } } }),
        json!({ "if": {}, "then": { "required": ["a"] }, "properties": { "a": { "type": "string" } } }),
    ] {
        let schema = compile(schema);
        for arguments in [json!({}), json!({ "a": null })] {
            assert_eq!(violation_text(&schema, arguments), "missing 'a'");
        }
    }
}

#[test]
fn va3_integers() {
    let wrong = "'p' must be integer";
    check_parameter(
        &json!({ "type": "integer" }),
        &[
            (json!(5), ""),
            (json!(5.0), ""),
            (json!(-0.0), ""),
            (json!(9_007_199_254_740_993_i64), ""),
            (json!(u64::MAX), ""),
            (json!(5.5), wrong),
            (json!("5"), wrong),
            (json!(true), wrong),
            (json!([5]), wrong),
        ],
    );
}

#[test]
fn va3_strings_are_strict() {
    let wrong = "'p' must be string";
    check_parameter(
        &json!({ "type": "string" }),
        &[
            (json!(""), ""),
            (json!(5), wrong),
            (json!(true), wrong),
            (json!(["a"]), wrong),
            (json!({}), wrong),
        ],
    );
}

#[test]
fn va3_numbers_booleans_arrays_and_objects() {
    for (kind, good, bad) in [
        ("number", json!([1, 1.5, -2e10]), json!(["1", true, [], {}])),
        (
            "boolean",
            json!([true, false]),
            json!([0, 1, "true", [], {}]),
        ),
        ("array", json!([[], [1, "a"]]), json!([{}, "[]", 1])),
        ("object", json!([{}, { "a": 1 }]), json!([[], "{}", 1])),
    ] {
        let wrong = format!("'p' must be {kind}");
        let cases = |values: &Value, said: &str| -> Vec<(Value, String)> {
            values
                .as_array()
                .unwrap()
                .iter()
                .map(|value| (value.clone(), said.to_owned()))
                .collect()
        };
        let all = [cases(&good, ""), cases(&bad, &wrong)].concat();
        let all: Vec<(Value, &str)> = all
            .iter()
            .map(|(value, said)| (value.clone(), said.as_str()))
            .collect();
        check_parameter(&json!({ "type": kind }), &all);
    }
}

#[test]
fn va3_nested_schemas_are_checked_too() {
    let schema = json!({
        "type": "object",
        "properties": { "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } } },
    });
    check_parameter(
        &schema,
        &[
            (json!({ "list": [{ "n": 1 }, { "n": 2 }] }), ""),
            (
                json!({ "list": [{ "n": 1 }, { "n": "2" }] }),
                "'p.list[1].n' must be integer",
            ),
            (json!({ "list": [{}] }), "missing 'p.list[0].n'"),
            (json!({ "list": [5] }), "'p.list[0]' must be object"),
        ],
    );
}

#[tokio::test]
async fn va3_nothing_is_coerced() {
    let schema = json!({ "properties": { "i": { "type": "integer" }, "n": { "type": "number" } } });
    let executor = executor_of([echo(with_schema("t", schema))]);
    let text = r#"{"i":5.0,"n":9007199254740993}"#;
    let outcome = executor
        .execute(ToolCall::from_json("t", text.as_bytes()))
        .await;
    assert_eq!(
        outcome.to_model_text(),
        text,
        "numbers arrive as they were sent"
    );
}

#[tokio::test]
async fn va3_null_for_an_optional_parameter_counts_as_absent() {
    let log = LogCapture::json();
    let schema = json!({
        "properties": {
            "s": { "type": "string" },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "nullable": { "type": ["string", "null"] },
            "any": {},
        },
        "required": ["any"],
    });
    let executor = logging([echo(with_schema("t", schema))], &[]);
    let arguments =
        json!({ "s": null, "either": null, "nullable": null, "any": null, "unknown": null });
    let outcome = executor.execute(ToolCall::new("t", arguments)).await;
    assert_eq!(
        outcome.to_envelope()["result"],
        json!({ "nullable": null, "any": null, "unknown": null })
    );
    assert_eq!(log.only()["fields"]["changes"], "-s, -either");
}
