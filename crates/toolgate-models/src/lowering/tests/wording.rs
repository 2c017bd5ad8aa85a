//! Constraints that a provider can't get as a schema are described in words.

use super::*;

#[test]
fn constraints_of_root_forms_are_described() {
    let own = json!({ "v": { "type": "string" }, "n": { "type": "integer" }, "mode": { "type": "string" } });
    let low = json!({ "properties": { "n": { "maximum": 1 } } });
    let high = json!({ "properties": { "n": { "minimum": 5 } } });
    for (combinators, rule) in [
        (
            json!({ "anyOf": [
                { "properties": { "v": { "maxLength": 3 }, "n": { "minimum": 10 } } },
                { "properties": { "n": { "maximum": 5 } } },
            ] }),
            "Give either arguments ('v': at most 3 characters; 'n': at least 10), or arguments ('n': at most 5).",
        ),
        (
            json!({ "anyOf": [
                { "properties": { "v": { "maxLength": 3 }, "n": { "minimum": 10 } }, "required": ["v"] },
                { "properties": { "n": { "maximum": 5 } }, "required": ["n"] },
            ] }),
            "Give either 'v' ('v': at most 3 characters; 'n': at least 10), or 'n' ('n': at most 5).",
        ),
        (
            json!({ "if": { "properties": { "mode": { "const": "a" } } }, "then": high, "else": low }),
            "If 'mode' is \"a\", give arguments ('n': at least 5), else arguments ('n': at most 1).",
        ),
        (
            json!({ "if": high, "then": { "required": ["v"] } }),
            "If given arguments ('n': at least 5), give 'v'.",
        ),
        (
            json!({ "if": { "required": ["v"] }, "else": { "properties": { "n": { "const": 1 } }, "required": ["n"] } }),
            "Unless 'v' is given, give 'n' 1.",
        ),
        (
            json!({ "oneOf": [
                { "properties": { "mode": { "const": "copy" } }, "title": "Copy a page", "minProperties": 2 },
                { "properties": { "mode": { "const": "move", "description": "Once" } }, "required": ["v"],
                    "title": "Move", "description": "Move a page; irreversible.",
                    "additionalProperties": { "type": "integer", "minimum": 1 } },
            ] }),
            "Give either 'mode' \"copy\" (at least 2 keys; Copy a page), or 'mode' \"move\" with 'v' ('mode': Once; \
             other keys may be given; the value of each is integer (at least 1); Move a page; irreversible), not both.",
        ),
        (
            json!({ "oneOf": [{ "required": ["v"] }, {}], "additionalProperties": false }),
            "Give either 'v', or any arguments, not both.",
        ),
        (
            json!({ "anyOf": [
                { "properties": { "mode": { "const": "a" }, "v": {} }, "required": ["mode"], "additionalProperties": false },
                { "properties": { "n": {} }, "required": ["n"], "unevaluatedProperties": false },
            ] }),
            "Give either 'mode' \"a\" (besides only 'v'), or 'n' (nothing else).",
        ),
        (
            json!({ "anyOf": [{ "anyOf": [{ "required": ["v"] }, { "required": ["n"] }] }, { "required": ["mode"] }] }),
            "Give either arguments (give either 'v', or 'n'), or 'mode'.",
        ),
        (
            json!({ "dependentSchemas": { "v": high }, "not": { "anyOf": [low, { "required": ["mode"] }] } }),
            "'v' needs arguments ('n': at least 5). \
             The arguments must not match {\"properties\":{\"n\":{\"maximum\":1}}}. Don't give 'mode'.",
        ),
        (
            json!({ "not": { "anyOf": [{ "required": ["v"] }], "required": ["n"] } }),
            "The arguments must not match {\"anyOf\":[{\"required\":[\"v\"]}],\"required\":[\"n\"]}.",
        ),
        (
            json!({ "allOf": [{ "description": "All in metres.", "minProperties": 1 }], "const": { "n": 1 } }),
            "All in metres. At least 1 key. Must be exactly {\"n\":1}.",
        ),
    ] {
        let mut parameters = combinators.clone();
        parameters["properties"] = own.clone();
        for (provider, rules) in ALL {
            let (description, schema) = lowered(&unchecked(parameters.clone()), rules);
            let expected = format!("Does something.\n{rule}");
            assert_eq!(description, expected, "{provider}: {combinators}");
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), 3, "{provider}: {combinators}");
        }
    }
}

#[test]
fn keywords_without_a_field_in_ollama_are_described_in_full() {
    for (schema, expected) in [
        (
            json!({ "allOf": [{ "type": "integer", "minimum": 1 }, { "minimum": 5 }] }),
            json!({ "type": "integer", "description": "At least 1. At least 5." }),
        ),
        (
            json!({ "allOf": [{ "type": "string", "pattern": "^a" }, { "pattern": "b$" }] }),
            json!({ "type": "string", "description": "Matches ^a. Matches b$." }),
        ),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }], "oneOf": [{ "minLength": 2 }, { "maximum": 7 }] }),
            json!({
                "anyOf": [{ "type": "string" }, { "type": "integer" }],
                "description": "Exactly one of: at least 2 characters; at most 7.",
            }),
        ),
        (
            json!({ "type": "integer", "if": { "minimum": 5 }, "then": { "multipleOf": 5 } }),
            json!({ "type": "integer", "description": "Also: {\"if\":{\"minimum\":5},\"then\":{\"multipleOf\":5}}" }),
        ),
        (
            json!({ "type": "array", "contains": { "type": "integer", "minimum": 3 }, "minContains": 2 }),
            json!({ "type": "array", "items": {}, "description": "Contains integer (at least 3). At least 2 such items." }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer", "minimum": 3 }], "items": false }),
            json!({ "type": "array", "items": {}, "description": "Items in this order: integer (at least 3). No other items." }),
        ),
        (
            json!({ "oneOf": [{ "type": "integer", "multipleOf": 3 }, { "type": "number", "multipleOf": 5 }] }),
            json!({
                "anyOf": [
                    { "type": "integer", "description": "A multiple of 3." },
                    { "type": "number", "description": "A multiple of 5." },
                ],
                "description": "Only one of the forms may fit.",
            }),
        ),
        (
            json!({ "type": "object", "additionalProperties": false }),
            json!({ "type": "object" }),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "object", "properties": { "a": { "minimum": 1 } } } }),
            json!({ "type": "object", "description": "Other keys may be given; \
                the value of each is object (also: {\"properties\":{\"a\":{\"minimum\":1}}})." }),
        ),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null", "description": "No limit" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null", "description": "No limit" }] }),
        ),
        (
            json!({ "type": "string", "not": { "enum": ["a"] }, "allOf": [{ "not": { "maxLength": 2 } }] }),
            json!({ "type": "string", "description": "Must not be: one of \"a\". Must not be: at most 2 characters." }),
        ),
    ] {
        assert_eq!(
            property(&schema, &SchemaRules::OLLAMA),
            expected,
            "{schema}"
        );
    }
}

#[test]
fn disjoint_forms_need_no_note() {
    let kinds = |one: &str, other: &str| {
        let form = |kind: &str| json!({ "properties": { "kind": { "const": kind } }, "required": ["kind"] });
        json!([form(one), form(other)])
    };
    let said = |forms: &Value| {
        let schema = property(&json!({ "oneOf": forms }), &SchemaRules::OLLAMA);
        schema.get("description").is_some()
    };
    for (forms, expected) in [
        (
            json!([{ "type": "string" }, { "type": ["integer", "null"] }]),
            false,
        ),
        (json!([{ "type": "number" }, { "type": "integer" }]), true),
        (json!([{ "const": "a" }, { "enum": ["b", "c"] }]), false),
        (json!([{ "const": "a" }, { "enum": ["a", "c"] }]), true),
        (kinds("a", "b"), false),
        (kinds("a", "a"), true),
        (
            json!([{ "properties": { "kind": { "const": 1 } } }, { "properties": { "kind": { "const": 2 } } }]),
            true,
        ),
    ] {
        assert_eq!(said(&forms), expected, "{forms}");
    }
}
