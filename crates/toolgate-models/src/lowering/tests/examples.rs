use std::borrow::Cow;

use super::*;

#[test]
fn a_schema_that_every_provider_understands_is_borrowed_not_copied() {
    let definition = tool(json!({
        "type": "object",
        "properties": { "city": { "type": "string", "description": "Where", "enum": ["Rome", "Oslo"] } },
        "required": ["city"],
    }));
    for (provider, rules) in ALL {
        let lowered = lower(&definition, rules).unwrap();
        assert!(matches!(lowered.schema, Cow::Borrowed(_)), "{provider}");
        assert!(
            matches!(lowered.description, Cow::Borrowed(_)),
            "{provider}"
        );
    }
}

#[test]
fn qw3_the_root_is_an_object_with_properties_whatever_was_left_out() {
    for parameters in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "type": ["object", "null"] }),
        json!({ "type": ["null", "object"], "properties": {} }),
        json!({ "properties": {} }),
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" }),
    ] {
        for (provider, rules) in ALL {
            let (_, schema) = lowered(&tool(parameters.clone()), rules);
            assert_eq!(
                schema,
                json!({ "type": "object", "properties": {} }),
                "{provider}: {parameters}"
            );
        }
    }
}

#[test]
fn qw4_the_definition_is_unchanged() {
    let parameters = json!({
        "$defs": { "n": { "type": "integer", "minimum": 1 } },
        "anyOf": [{ "properties": { "a": { "$ref": "#/$defs/n" } }, "required": ["a"] }, { "required": ["b"] }],
        "properties": { "b": true },
    });
    let definition = tool(parameters.clone());
    for (_, rules) in ALL {
        lowered(&definition, rules);
        assert_eq!(definition.parameters(), &parameters);
    }
}

#[test]
fn references_are_replaced_by_what_they_mean() {
    let with_refs = |reference: &str| {
        json!({
            "type": "object",
            "$defs": { "colour~name": { "$anchor": "colour", "type": "string", "enum": ["red", "blue"] } },
            "properties": { "c": { "$ref": reference, "description": "Of the lamp" } },
        })
    };
    for reference in ["#/$defs/colour~0name", "#/$defs/colour%7E0name", "#colour"] {
        for (provider, rules) in ALL {
            let (_, schema) = lowered(&tool(with_refs(reference)), rules);
            let expected = json!({ "c": { "type": "string", "enum": ["red", "blue"], "description": "Of the lamp" } });
            assert_eq!(schema["properties"], expected, "{provider}: {reference}");
            assert!(schema.get("$defs").is_none());
        }
    }
}

#[test]
fn values_that_look_like_references_are_left_alone() {
    let schema =
        json!({ "const": { "$ref": "#/nowhere" }, "default": { "$ref": "x", "$defs": 1 } });
    assert_eq!(property(&schema, &SchemaRules::ANTHROPIC), schema);
}

#[test]
fn siblings_of_a_reference_count_since_draft_2019() {
    let parameters = |draft: Option<&str>, beside: Value| {
        let mut p = json!({ "$ref": "#/definitions/n" });
        p.as_object_mut()
            .unwrap()
            .extend(beside.as_object().unwrap().clone());
        let mut schema = json!({
            "definitions": { "n": { "type": "integer", "minimum": 1 } },
            "type": "object",
            "properties": { "p": p },
        });
        if let Some(draft) = draft {
            schema["$schema"] = draft.into();
        }
        schema
    };
    let old = Some("http://json-schema.org/draft-07/schema#");
    for (draft, beside, expected) in [
        (
            None,
            json!({ "maximum": 9 }),
            json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
        ),
        (
            None,
            json!({ "minimum": 5 }),
            json!({ "allOf": [{ "type": "integer", "minimum": 1 }, { "minimum": 5 }] }),
        ),
        (
            old,
            json!({ "minimum": 5 }),
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (
            old,
            json!({ "title": "N" }),
            json!({ "type": "integer", "minimum": 1, "title": "N" }),
        ),
    ] {
        let (_, schema) = lowered(&tool(parameters(draft, beside)), &SchemaRules::ANTHROPIC);
        assert_eq!(schema["properties"]["p"], expected);
    }
}

#[test]
fn a_recursive_schema_is_inlined_twice_and_then_described() {
    let definition = tool(json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/node" } },
        "$defs": { "node": {
            "type": "object",
            "description": "A node.",
            "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } },
        } },
    }));
    for (_, rules) in ALL {
        let (_, schema) = lowered(&definition, rules);
        let inner = "/properties/tree/properties/children/items/properties/children/items";
        let expected =
            json!({ "type": "object", "description": "A node. Nested in the same way." });
        assert_eq!(schema.pointer(inner), Some(&expected));
    }
}

#[test]
fn an_unresolvable_reference_accepts_anything_with_a_note() {
    for reference in [
        "#/nowhere",
        "https://example.org/s.json",
        "other.json#/a",
        "#/properties/p/description",
    ] {
        let p = property(
            &json!({ "$ref": reference, "description": "Data" }),
            &SchemaRules::OPENAI,
        );
        assert_eq!(p, json!({ "description": "Data" }), "{reference}");
        let p = property(&json!({ "$ref": reference }), &SchemaRules::OPENAI);
        assert_eq!(
            p,
            json!({ "description": "Anything: its schema is not known." })
        );
    }
}

#[test]
fn root_combinators_become_one_object_and_a_sentence() {
    let text = json!({ "type": "string" });
    for (parameters, properties, required, rule) in [
        (
            json!({ "properties": { "a": text, "b": text }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            json!({ "a": text, "b": text }),
            json!(null),
            "Give either 'a', or 'b'.",
        ),
        (
            json!({ "oneOf": [
                { "properties": { "id": text, "x": text }, "required": ["id", "x"] },
                { "properties": { "url": text, "x": text }, "required": ["url", "x"] },
            ] }),
            json!({ "id": text, "x": text, "url": text }),
            json!(["x"]),
            "Give either 'id', or 'url', not both.",
        ),
        (
            json!({ "required": ["a"], "allOf": [
                { "properties": { "a": text }, "required": ["a", "b"] },
                { "properties": { "b": { "type": "integer" } } },
            ] }),
            json!({ "a": text, "b": { "type": "integer" } }),
            json!(["a", "b"]),
            "",
        ),
        (
            json!({ "required": ["action"], "anyOf": [
                { "properties": { "action": { "const": "create" }, "title": text }, "required": ["title"] },
                { "properties": { "action": { "const": "delete" }, "id": text }, "required": ["id"] },
                { "properties": { "action": { "enum": ["list"] } } },
            ] }),
            json!({ "action": { "enum": ["create", "delete", "list"] }, "title": text, "id": text }),
            json!(["action"]),
            "Give either 'action' \"create\" with 'title', or 'action' \"delete\" with 'id', or 'action' \"list\".",
        ),
        (
            json!({ "properties": { "v": text }, "oneOf": [
                { "properties": { "v": { "type": "string", "maxLength": 3 }, "w": { "type": "integer" } } },
                { "properties": { "w": { "type": "boolean" } } },
            ] }),
            json!({ "v": text, "w": { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] } }),
            json!(null),
            "Give either arguments ('v': at most 3 characters; 'w': integer), or arguments ('w': boolean), not both.",
        ),
        (
            json!({ "properties": { "a": text, "b": text }, "not": { "required": ["a", "b"] } }),
            json!({ "a": text, "b": text }),
            json!(null),
            "Don't give 'a' and 'b' together.",
        ),
        (
            json!({
                "properties": { "mode": text, "path": text },
                "if": { "properties": { "mode": { "const": "file" } } },
                "then": { "required": ["path"] },
                "else": { "properties": { "url": text }, "required": ["url"] },
            }),
            json!({ "mode": text, "path": text, "url": text }),
            json!(null),
            "If 'mode' is \"file\", give 'path', else 'url'.",
        ),
        (
            json!({ "properties": { "card": text }, "dependentSchemas": { "card": {
                "properties": { "address": text }, "required": ["address"],
            } } }),
            json!({ "card": text, "address": text }),
            json!(null),
            "'card' needs 'address'.",
        ),
        (
            json!({ "anyOf": [{ "type": "object", "properties": { "a": text } }, { "type": "null" }, false] }),
            json!({ "a": text }),
            json!(null),
            "",
        ),
    ] {
        for (provider, rules) in [ALL[0], ALL[2]] {
            let (description, schema) = lowered(&tool(parameters.clone()), rules);
            assert_eq!(schema["properties"], properties, "{provider}: {parameters}");
            assert_eq!(schema["required"], required, "{provider}: {parameters}");
            let expected = match rule {
                "" => "Does something.".to_owned(),
                rule => format!("Does something.\n{rule}"),
            };
            assert_eq!(description, expected, "{provider}: {parameters}");
        }
    }
}

#[test]
fn keywords_that_ollama_drops_are_described() {
    for (schema, expected) in [
        (
            json!({ "type": "integer", "description": "How many", "minimum": 0, "maximum": 100, "default": 5 }),
            json!({ "type": "integer", "description": "How many. Default: 5. At least 0, at most 100." }),
        ),
        (
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.5 }),
            json!({ "type": "number", "description": "A multiple of 0.5. More than 0, less than 1." }),
        ),
        (
            json!({ "type": "string", "pattern": "^[a-z]+$", "format": "date-time", "minLength": 1, "default": null }),
            json!({ "type": "string", "description": "Matches ^[a-z]+$. Format: date-time. At least 1 character." }),
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "format": "uri" }, "minItems": 1, "maxItems": 3, "uniqueItems": true }),
            json!({
                "type": "array",
                "items": { "type": "string", "description": "Format: uri." },
                "description": "No duplicates. At least 1, at most 3 items.",
            }),
        ),
        (
            json!({ "const": "x" }),
            json!({ "enum": ["x"], "type": "string" }),
        ),
        (
            json!({ "enum": [1, 2] }),
            json!({ "enum": [1, 2], "type": "number" }),
        ),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null, "title": "P" }),
            json!({ "type": ["integer", "null"] }),
        ),
        (
            json!({ "anyOf": [{ "const": "a" }, { "type": "null" }] }),
            json!({ "anyOf": [{ "enum": ["a"], "type": "string" }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer", "minimum": 1 }] }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer", "description": "At least 1." }] }),
        ),
        (
            json!({ "allOf": [{ "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] },
                { "properties": { "a": { "type": "integer" }, "b": true }, "required": ["b"] }], "title": "Both of them" }),
            json!({
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": {} },
                "required": ["a", "b"],
                "description": "Both of them",
            }),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "integer" } } }),
            json!({ "type": "object", "description": "Other keys may be given; the value of each is list of integer." }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "number" }, { "enum": ["N", "S"] }] }),
            json!({ "type": "array", "items": {}, "description": "Items in this order: number, one of \"N\", \"S\"." }),
        ),
        (
            json!({ "type": "object", "properties": { "never": false } }),
            json!({ "type": "object", "properties": {} }),
        ),
        (json!(true), json!({})),
    ] {
        assert_eq!(
            property(&schema, &SchemaRules::OLLAMA),
            expected,
            "{schema}"
        );
    }
}

#[test]
fn others_keep_every_keyword_below_the_root() {
    let schema = json!({
        "type": "object",
        "title": "P",
        "properties": {
            "n": { "type": "integer", "minimum": 0, "default": 5, "examples": [1] },
            "m": { "oneOf": [{ "type": "string", "pattern": "^a" }, { "not": { "type": "string" } }] },
        },
        "additionalProperties": false,
        "x-order": ["n", "m"],
    });
    for rules in [&SchemaRules::ANTHROPIC, &SchemaRules::OPENAI] {
        assert_eq!(property(&schema, rules), schema);
    }
}

#[test]
fn older_drafts_are_rewritten() {
    for (schema, expected) in [
        (
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": 0, "maximum": 9 }),
        ),
        (
            json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": false }),
            json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false }),
        ),
        (
            json!({ "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
            json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "c": { "required": ["d"] } } }),
        ),
    ] {
        assert_eq!(property(&schema, &SchemaRules::ANTHROPIC), expected);
    }
}

#[test]
fn a_root_description_reaches_ollama_with_the_tools_own() {
    let definition =
        tool(json!({ "type": "object", "description": "All in metres.", "minProperties": 1 }));
    let (description, _) = lowered(&definition, &SchemaRules::OLLAMA);
    assert_eq!(
        description,
        "Does something.\nAll in metres. At least 1 key."
    );
    let (description, schema) = lowered(&definition, &SchemaRules::ANTHROPIC);
    assert_eq!(
        (description.as_str(), &schema["description"]),
        ("Does something.", &json!("All in metres."))
    );
}

#[test]
fn properties_with_illegal_names_are_described() {
    let definition = tool(json!({
        "type": "object",
        "properties": {
            "$filter": { "type": "string", "description": "OData filter." },
            "filter[id]": { "type": "array", "items": { "type": "integer" } },
            "top": { "type": "integer" },
        },
        "required": ["top", "$filter"],
        "additionalProperties": false,
    }));
    let (_, schema) = lowered(&definition, &SchemaRules::ANTHROPIC);
    let expected = json!({
        "type": "object",
        "properties": { "top": { "type": "integer" } },
        "required": ["top"],
        "description": "Also takes '$filter' (string, required): OData filter; 'filter[id]' (list of integer).",
    });
    assert_eq!(schema, expected);
    for rules in [&SchemaRules::OLLAMA, &SchemaRules::OPENAI] {
        let (_, schema) = lowered(&definition, rules);
        assert!(schema["properties"].get("$filter").is_some());
    }
}

#[test]
fn long_descriptions_are_cut_and_continue_for_openai() {
    let long = "word and ".repeat(300);
    let definition = described(&long, json!({ "type": "object", "description": "Own." }));
    let (description, schema) = lowered(&definition, &SchemaRules::OPENAI);
    assert!(description.chars().count() <= 1024 && description.ends_with(" […]"));
    let rest = schema["description"].as_str().unwrap();
    assert!(rest.starts_with("[…] ") && rest.ends_with("Own."), "{rest}");
    let whole = format!(
        "{} {}",
        description.trim_end_matches(" […]"),
        &rest["[…] ".len()..]
    );
    assert_eq!(whole, format!("{}. Own.", long.trim_end()));

    let (description, _) = lowered(&definition, &SchemaRules::ANTHROPIC);
    assert_eq!(description, long);
    let endless = described(&"é".repeat(20_000), json!({ "type": "object" }));
    let (description, _) = lowered(&endless, &SchemaRules::OLLAMA);
    assert_eq!(description.chars().count(), 4096);
}
