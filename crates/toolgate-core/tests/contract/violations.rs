//! VA4: violations in the contract's words.

use serde_json::json;

use crate::support::{check_parameter, compile, violation_text};

#[test]
fn va4_enums_list_their_options() {
    check_parameter(
        &json!({ "enum": ["on", "off", 1, 2.5, true, null, ["a"], { "b": 1 }] }),
        &[
            (json!("on"), ""),
            (json!(1.0), ""),
            (json!({ "b": 1 }), ""),
            (
                json!("On"),
                r#"'p' must be one of: on, off, 1, 2.5, true, null, ["a"], {"b":1}"#,
            ),
        ],
    );
    // A Cyrillic letter that looks like a Latin one.
    check_parameter(
        &json!({ "enum": ["open"] }),
        &[(json!("оpen"), "'p' must be one of: open")],
    );
    check_parameter(
        &json!({ "const": "x" }),
        &[(json!("y"), "'p' must be one of: x")],
    );
}

#[test]
fn va4_a_huge_enum_is_cut() {
    let options: Vec<String> = (0..5_000).map(|i| format!("o{i}")).collect();
    let schema = compile(json!({ "properties": { "p": { "enum": options } } }));
    let said = violation_text(&schema, json!({ "p": "x" }));
    assert!(
        said.starts_with("'p' must be one of: o0, o1, ")
            && said.ends_with(", o49, … (5000 in all)"),
        "{said}"
    );
}

#[test]
fn va4_names_are_paths() {
    let schema = compile(json!({
        "properties": {
            "o": { "properties": { "inner": { "properties": { "depth": { "type": "integer" } } } } },
            "a": { "items": { "type": "integer" } },
            "m": { "items": { "items": { "properties": { "x": { "type": "integer" } } } } },
        },
    }));
    for (arguments, expected) in [
        (
            json!({ "o": { "inner": { "depth": "x" } } }),
            "'o.inner.depth' must be integer",
        ),
        (json!({ "a": [1, "x"] }), "'a[1]' must be integer"),
        (
            json!({ "m": [[{ "x": 1 }], [{}, { "x": "y" }]] }),
            "'m[1][1].x' must be integer",
        ),
    ] {
        assert_eq!(violation_text(&schema, arguments), expected);
    }
}

#[test]
fn va4_missing_parameters_come_first() {
    let integer = || json!({ "type": "integer" });
    let schema = compile(json!({
        "properties": { "a": integer(), "b": integer(), "c": { "required": ["x"], "properties": { "y": integer() } } },
        "required": ["z"],
    }));
    assert_eq!(
        violation_text(&schema, json!({ "c": { "y": "" }, "b": "", "a": "" })),
        "missing 'z', missing 'c.x', 'c.y' must be integer, 'b' must be integer, 'a' must be integer"
    );
    let list = compile(json!({ "properties": { "a": { "items": integer() } } }));
    let said = violation_text(&list, json!({ "a": vec!["x"; 12] }));
    assert!(
        said.contains("'a[9]' must be integer, 'a[10]' must be integer"),
        "by number, not by text: {said}"
    );
}

#[test]
fn va4_several_types_are_joined_and_null_comes_last() {
    check_parameter(
        &json!({ "type": ["null", "string"] }),
        &[
            (json!("x"), ""),
            (json!(null), ""),
            (json!(1), "'p' must be string or null"),
        ],
    );
    check_parameter(
        &json!({ "type": ["integer", "boolean", "null"] }),
        &[(json!("x"), "'p' must be boolean or integer or null")],
    );
}

#[test]
fn va4_other_keywords_have_their_words() {
    for (schema, bad, expected) in [
        (json!({ "minimum": 0 }), json!(-1), "must be at least 0"),
        (
            json!({ "maximum": 99.5 }),
            json!(100),
            "must be at most 99.5",
        ),
        (
            json!({ "exclusiveMinimum": 0 }),
            json!(0),
            "must be more than 0",
        ),
        (
            json!({ "exclusiveMaximum": 1 }),
            json!(1),
            "must be less than 1",
        ),
        (
            json!({ "multipleOf": 5 }),
            json!(7),
            "must be a multiple of 5",
        ),
        (
            json!({ "pattern": "^[a-z]+$" }),
            json!("A"),
            "must match ^[a-z]+$",
        ),
        (
            json!({ "minItems": 1 }),
            json!([]),
            "must have at least 1 item",
        ),
        (
            json!({ "minItems": 2 }),
            json!([]),
            "must have at least 2 items",
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "must have at most 1 item",
        ),
        (
            json!({ "minLength": 1 }),
            json!(""),
            "must have at least 1 character",
        ),
        (
            json!({ "maxLength": 2 }),
            json!("abc"),
            "must have at most 2 characters",
        ),
        (
            json!({ "minProperties": 1 }),
            json!({}),
            "must have at least 1 property",
        ),
        (
            json!({ "maxProperties": 2 }),
            json!({ "a": 1, "b": 1, "c": 1 }),
            "must have at most 2 properties",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1]),
            "must not contain duplicate items",
        ),
        (
            json!({ "contains": { "type": "string" } }),
            json!([1]),
            "must contain an item of the required form",
        ),
        (
            json!({ "not": { "type": "string" } }),
            json!("x"),
            "has a form that is not allowed",
        ),
        (json!(false), json!(1), "is not allowed"),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            "has a property name that is not allowed",
        ),
    ] {
        check_parameter(&schema, &[(bad, &format!("'p' {expected}"))]);
    }
}

#[test]
fn va4_a_combinator_says_that_no_form_matches() {
    let none = "'p' matches none of the allowed forms";
    let either = json!([{ "type": "string" }, { "type": "integer" }]);
    check_parameter(
        &json!({ "anyOf": either }),
        &[(json!("x"), ""), (json!([]), none)],
    );
    check_parameter(
        &json!({ "oneOf": either }),
        &[(json!(1), ""), (json!([]), none)],
    );
    check_parameter(
        &json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
        &[
            (json!(1.5), ""),
            (json!(1), "'p' matches more than one of the allowed forms"),
        ],
    );
    check_parameter(
        &json!({ "allOf": [{ "type": "string" }, { "minLength": 2 }] }),
        &[
            (json!("xy"), ""),
            (json!("x"), "'p' must have at least 2 characters"),
            (json!(1), "'p' must be string"),
        ],
    );
}

#[test]
fn va4_at_the_root_the_name_is_arguments() {
    for (schema, expected) in [
        (
            json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "'arguments' matches none of the allowed forms",
        ),
        (
            json!({ "minProperties": 1 }),
            "'arguments' must have at least 1 property",
        ),
        (
            json!({ "not": {} }),
            "'arguments' has a form that is not allowed",
        ),
    ] {
        assert_eq!(violation_text(&compile(schema), json!({})), expected);
    }
}

#[test]
fn va4_more_than_fifty_violations_are_counted() {
    let schema = compile(json!({ "properties": { "a": { "items": { "type": "string" } } } }));
    let said = violation_text(&schema, json!({ "a": vec![0; 80] }));
    assert!(
        said.ends_with("'a[49]' must be string, and 30 more"),
        "{said}"
    );
}

#[test]
fn va4_untrusted_names_and_patterns_cannot_forge_a_message() {
    let schema = compile(json!({ "additionalProperties": { "type": "string" } }));
    let said = violation_text(&schema, json!({ "x\n'y'\u{1b}[31m\u{202e}": 1 }));
    assert_eq!(said, r"'x\n'y'\u{1b}[31m\u{202e}' must be string");
    let said = violation_text(&schema, json!({ "k".repeat(10_000): 1 }));
    assert!(said.len() < 200, "{said}");
}
