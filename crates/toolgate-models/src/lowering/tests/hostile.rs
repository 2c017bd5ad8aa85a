use super::checker::faults;
use super::*;

#[test]
fn invisible_text_is_removed() {
    let hidden = "Reads\u{202e} files\u{200b}\u{e0041}\u{e0101}\u{7}\u{1b}[31m\nof yours";
    let definition = described(
        hidden,
        json!({ "type": "object", "properties": {
            "a": { "type": "string", "description": hidden, "title": hidden, "x-note": [hidden] },
            "b": { "enum": ["x", "\u{e0041}y"] },
            "c\u{200b}": { "type": "string" },
            "d": { "patternProperties": { "\u{200b}": true }, "dependentSchemas": { "\u{200b}": true } },
        } }),
    );
    for (provider, rules) in ALL {
        let (description, schema) = lowered(&definition, rules);
        assert_eq!(description, "Reads files[31m\nof yours");
        let text = schema.to_string();
        let seen = |c: char| c == '\n' || !toolgate_core::text::is_invisible(c);
        assert!(
            text.chars().all(seen) && !text.contains('\u{e0101}'),
            "{provider}: {text}"
        );
        assert!(
            schema["properties"].get("c").is_none(),
            "another name is another parameter"
        );
        assert_eq!(
            schema["properties"]["b"],
            json!({}),
            "a value must not be changed"
        );
    }
    let required = tool(json!({ "type": "object", "required": ["c\u{200b}"] }));
    let problem = lower(&required, &SchemaRules::OLLAMA).unwrap_err();
    assert_eq!(
        problem,
        "the name of its required parameter 'c\\u{200b}' has invisible characters"
    );
}

#[test]
fn keywords_of_the_wrong_kind_do_not_reach_a_provider() {
    let junk = json!({
        "type": "object",
        "properties": {
            "a": { "type": "any", "required": true, "enum": [], "description": 5, "minimum": "1" },
            "b": { "type": ["string", "string", "text"], "anyOf": [], "items": 3, "properties": [] },
            "c": "string",
            "d": { "type": "array", "allOf": {}, "minLength": -1, "multipleOf": 0, "pattern": null },
            "e": { "$ref": 7 },
        },
        "required": ["a", 1, "a"],
        "anyOf": "x",
    });
    for (provider, rules) in ALL {
        let (_, schema) = lowered(&unchecked(junk.clone()), rules);
        assert_eq!(faults(provider, &schema), [""; 0]);
        let expected = json!({
            "a": {},
            "b": { "type": ["string"] },
            "c": {},
            "d": { "type": "array", "items": {} },
            "e": {},
        });
        assert_eq!(schema["properties"], expected, "{provider}");
        assert_eq!(schema["required"], json!(["a"]));
    }
}

#[test]
fn references_that_multiply_end_at_a_bounded_size() {
    // Each of twelve schemas contains all twelve. Without a count there would be
    // twelve factorial of them.
    let name = |i: usize| format!("d{i}");
    let all: serde_json::Map<_, _> = (0..12)
        .map(|i| (name(i), json!({ "$ref": format!("#/$defs/d{i}") })))
        .collect();
    let defs: serde_json::Map<_, _> = (0..12)
        .map(|i| (name(i), json!({ "type": "object", "properties": all })))
        .collect();
    let parameters = json!({ "type": "object", "properties": all, "$defs": defs });
    for (provider, rules) in ALL {
        let (_, schema) = lowered(&unchecked(parameters.clone()), rules);
        assert!(schema.to_string().len() < 128 << 10);
        assert_eq!(faults(provider, &schema), [""; 0]);
        assert_eq!(schema["properties"].as_object().unwrap().len(), 12);
    }
}

#[test]
fn references_to_tiny_schemas_are_bounded() {
    // Two to the power of thirty, if empty schemas cost nothing.
    let last = |i: usize| {
        if i < 30 {
            json!({ "$ref": format!("#/$defs/a{}", i + 1) })
        } else {
            json!(true)
        }
    };
    for keyword in ["items", "prefixItems", "anyOf"] {
        let defs: serde_json::Map<_, _> = (0..=30)
            .map(|i| (format!("a{i}"), json!({ keyword: [last(i), last(i)] })))
            .collect();
        let parameters = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a0" } }, "$defs": defs });
        for (provider, rules) in ALL {
            let (_, schema) = lowered(&unchecked(parameters.clone()), rules);
            assert!(schema.to_string().len() < 128 << 10);
            assert_eq!(faults(provider, &schema), [""; 0]);
        }
    }
}

#[test]
fn deeply_nested_lists_are_described_with_bounded_text() {
    // Two to the power of sixty, if each list looked at its content twice.
    let mut deep = json!({ "type": "string" });
    for _ in 0..60 {
        deep = json!({ "type": "array", "items": deep });
    }
    let parameters =
        json!({ "type": "object", "properties": { "a": { "type": "array", "contains": deep } } });
    let (_, schema) = lowered(&unchecked(parameters), &SchemaRules::OLLAMA);
    let text = schema["properties"]["a"]["description"].as_str().unwrap();
    let told = "list of ".repeat(7);
    let start = format!("Contains {told}array (also: {{\"items\":{{\"type\":\"array\",");
    assert!(text.starts_with(&start) && text.ends_with(" […]"), "{text}");
    assert!(text.chars().count() <= 600, "{text}");
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    for parameters in [
        json!({ "type": "object", "$ref": "#" }),
        json!({ "type": "object", "allOf": [{ "$ref": "#" }], "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
    ] {
        for (provider, rules) in ALL {
            let (_, schema) = lowered(&unchecked(parameters.clone()), rules);
            assert_eq!(faults(provider, &schema), [""; 0], "{parameters}");
        }
    }
}

#[test]
fn a_schema_that_is_too_large_loses_its_depth_before_its_tool() {
    let mut deep = json!({ "type": "string", "description": "x".repeat(3_000) });
    for _ in 0..25 {
        deep = json!({ "type": "object", "description": "y".repeat(3_000), "properties": { "in": deep } });
    }
    let definition =
        tool(json!({ "type": "object", "properties": { "a": deep, "b": { "type": "integer" } } }));
    let (_, schema) = lowered(&definition, &SchemaRules::ANTHROPIC);
    assert!(schema.to_string().len() <= 64 << 10);
    assert_eq!(schema["properties"]["b"], json!({ "type": "integer" }));
    assert!(schema.to_string().contains("Its details are left out."));

    let wide: serde_json::Map<_, _> = (0..40)
        .map(|i| (format!("p{i}"), json!({ "description": "z".repeat(3_000) })))
        .collect();
    let definition = tool(json!({ "type": "object", "properties": wide }));
    for (_, rules) in ALL {
        let problem = lower(&definition, rules).unwrap_err();
        assert_eq!(problem, "its parameters take more than 64 KiB to describe");
    }
}

#[test]
fn the_deepest_schema_that_core_takes_is_lowered() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..62 {
        deep = json!({ "anyOf": [deep] });
    }
    for (provider, rules) in ALL {
        let (_, schema) = lowered(&unchecked(deep.clone()), rules);
        assert_eq!(faults(provider, &schema), [""; 0]);
    }
}

fn longest(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(longest).max().unwrap_or(0),
        Value::Object(object) => object.values().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn endless_rules_are_cut_with_a_mark() {
    let many = |form: fn(i64) -> Value| -> Value { (0..280).map(form).collect() };
    let bounded = |n: i64| json!({ "properties": { "x": { "minimum": n } } });
    let named = |n: i64| json!({ "required": [format!("p{n}")], "title": "t".repeat(40) });
    let nested = |n: i64| json!({ "oneOf": [{ "minProperties": n }, { "maxProperties": n }] });
    let when = |n: i64| json!({ "if": { "maxProperties": n }, "then": { "minProperties": n } });
    for (keyword, forms) in [
        ("anyOf", many(bounded)),
        ("oneOf", many(bounded)),
        ("oneOf", many(named)),
        ("allOf", many(nested)),
        ("allOf", many(when)),
        ("anyOf", many(nested)),
    ] {
        for parameters in [
            json!({ "properties": { "x": { "type": "integer" } }, keyword: forms }),
            json!({ "properties": { "p": { keyword: forms } } }),
            json!({ "properties": { "p": { "not": { keyword: forms }, "contains": { keyword: forms } } } }),
        ] {
            for (provider, rules) in ALL {
                let (description, schema) = lowered(&unchecked(parameters.clone()), rules);
                let length = description.len().max(longest(&schema));
                assert!(length < 9 << 10, "{provider}: {length} of {keyword}");
                let at_root = schema["properties"].get("p").is_none();
                let marked = |mark: &&str| format!("{description} {schema}").contains(*mark);
                let cut = ["[…]", "more forms"].iter().any(marked);
                assert!(cut || !at_root, "{provider}: {description}");
            }
        }
    }
}
