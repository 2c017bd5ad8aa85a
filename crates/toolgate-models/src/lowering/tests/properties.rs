//! For any schema that is accepted at all, the lowered one keeps the provider's rules and forbids
//! nothing that was allowed.

use proptest::prelude::*;
use toolgate_core::{Schema, SchemaLimits};

use super::super::{root, unchanged};
use super::checker::faults;
use super::*;

fn name() -> impl Strategy<Value = &'static str> + Clone {
    prop::sample::select(vec!["a", "b", "c", "mode"])
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2..4_i64).prop_map(Value::from),
        prop::sample::select(vec!["", "x", "yy", "on"]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..3).prop_map(object),
        ]
    })
}

fn object(entries: Vec<(&str, Value)>) -> Value {
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn leaf() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "string", "integer", "number", "boolean", "null", "array", "object",
    ]);
    prop_oneof![
        kinds.clone().prop_map(|kind| json!({ "type": kind })),
        prop::collection::vec(kinds, 1..3).prop_filter_map("no type twice", |kinds| {
            (kinds.len() < 2 || kinds[0] != kinds[1]).then(|| json!({ "type": kinds }))
        }),
        prop::collection::vec(scalar(), 1..4).prop_map(|values| json!({ "enum": values })),
        scalar().prop_map(|value| json!({ "const": value, "description": "Fixed" })),
        (-1..3_i64, 0..2_u64)
            .prop_map(|(n, m)| json!({ "minimum": n, "maxLength": m + 1, "default": n })),
        any::<bool>().prop_map(Value::from),
        Just(json!({ "type": "string", "nullable": true, "pattern": "^[a-z]*$", "format": "uri" })),
        Just(json!({ "$ref": "#/$defs/d" })),
        Just(json!({ "$ref": "#/$defs/d", "maxLength": 1, "description": "Referred" })),
        Just(json!({ "$ref": "#named" })),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let named = prop::collection::vec((name(), inner.clone()), 0..3).prop_map(object);
        let required = prop::collection::vec(name(), 0..2);
        prop_oneof![
            (named.clone(), required).prop_map(|(properties, mut required)| {
                required.dedup();
                json!({ "type": "object", "properties": properties, "required": required })
            }),
            (named, any::<bool>()).prop_map(|(properties, more)| {
                json!({ "properties": properties, "additionalProperties": more })
            }),
            list.clone().prop_map(|all| json!({ "allOf": all })),
            list.clone()
                .prop_map(|any| json!({ "anyOf": any, "title": "Any" })),
            list.clone().prop_map(|one| json!({ "oneOf": one })),
            list.prop_map(|tuple| json!({ "type": "array", "prefixItems": tuple, "minItems": 1 })),
            inner
                .clone()
                .prop_map(|items| json!({ "type": ["array", "null"], "items": items })),
            inner.clone().prop_map(|not| json!({ "not": not })),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
            (inner.clone(), name())
                .prop_map(|(schema, name)| json!({ "dependentSchemas": { name: schema } })),
            inner.prop_map(|more| json!({ "type": "object", "additionalProperties": more })),
        ]
    })
}

/// A root object with any of the combinators.
fn root() -> impl Strategy<Value = Value> {
    let parts = prop::collection::vec(schema(), 0..3);
    (parts, schema(), schema()).prop_map(|(parts, defined, named)| {
        let mut root = serde_json::Map::new();
        for part in parts {
            if let Value::Object(part) = part {
                root.extend(part);
            }
        }
        if root.get("$ref").is_some() {
            root.shift_remove("$ref");
        }
        if let Some(kind) = root.get("type").cloned()
            && kind != "object"
        {
            root.shift_remove("type");
        }
        let named = json!({ "$anchor": "named", "anyOf": [named] });
        root.insert("$defs".to_owned(), json!({ "d": defined, "n": named }));
        root.into()
    })
}

/// A root that offers forms to choose from, like tools that were generated from a union of types.
fn forms() -> impl Strategy<Value = Value> {
    let property = prop_oneof![
        3 => scalar().prop_map(|value| json!({ "const": value })),
        2 => prop::collection::vec(scalar(), 1..4).prop_map(|values| json!({ "enum": values })),
        2 => Just(json!({ "type": ["string", "null", "boolean"] })),
        2 => Just(json!({ "type": "integer", "minimum": 0 })),
        3 => Just(json!({})),
    ];
    let form = (
        prop::collection::vec((name(), property), 0..4).prop_map(object),
        prop::collection::vec(name(), 0..2),
    );
    let form = form.prop_map(|(properties, mut required)| {
        required.dedup();
        json!({ "properties": properties, "required": required })
    });
    let forms = prop::collection::vec(form.clone(), 1..4);
    let keyword = prop::sample::select(vec![
        "anyOf", "oneOf", "allOf", "anyOf", "oneOf", "if", "not",
    ]);
    (form.clone(), forms, keyword, form).prop_map(|(mut root, forms, keyword, other)| {
        match keyword {
            "if" => {
                root["if"] = forms[0].clone();
                root["then"] = other;
                if let Some(form) = forms.get(1) {
                    root["else"] = form.clone();
                }
            }
            "not" => {
                root["not"] = forms[0].clone();
                root["dependentSchemas"] = json!({ "a": other });
            }
            _ => root[keyword] = forms.into(),
        }
        root
    })
}

fn instance() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), prop_oneof![3 => scalar(), 1 => value()]), 0..4).prop_map(object)
}

/// The original, but only for arguments that it declares by name. Uniting branches is stricter in
/// one way only: for arguments that a branch doesn't mention.
fn closed(parameters: &Value) -> Value {
    let mut closed = parameters.clone();
    if !root::is_plain(closed.as_object().unwrap()) {
        closed["unevaluatedProperties"] = false.into();
    }
    closed
}

/// A branch that covers all other arguments at once, which hides what it declares.
fn declares_all(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => {
            let others = keywords.get("additionalProperties");
            others.is_some_and(|others| *others != false) || keywords.values().any(declares_all)
        }
        Value::Array(list) => list.iter().any(declares_all),
        _ => false,
    }
}

fn allows(schema: &Schema, instance: &Value) -> bool {
    // What is left out counts as forbidden, because this is about the schema
    // and not about leniency.
    let checked = schema.check(instance.clone());
    checked.is_ok_and(|arguments| arguments.dropped().is_empty())
}

/// As many as `PROPTEST_CASES` says, by default 256.
fn cases() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_lowered_schema_keeps_the_rules_and_allows_what_was_allowed(
        parameters in prop_oneof![root(), forms()],
        instances in prop::collection::vec(instance(), 1..24),
    ) {
        let limits = SchemaLimits::default();
        let Ok(definition) = ToolDefinition::builder("tool", "Does.", parameters.clone()).build() else {
            return Ok(());
        };
        let Ok(declared) = Schema::compile(closed(&parameters), &limits) else {
            return Ok(());
        };
        for (provider, rules) in ALL {
            let (_, schema) = lowered(&definition, rules);
            prop_assert_eq!(faults(provider, &schema), Vec::<String>::new(), "{}: {}", provider, schema);
            let compiled = Schema::compile(schema.clone(), &limits);
            prop_assert!(compiled.is_ok(), "{}: {:?} {}", provider, compiled, schema);
            let compiled = compiled.unwrap();
            let allowed = |instance: &&Value| {
                let united = declared.document() != definition.parameters();
                allows(&declared, instance) && !(united && declares_all(&parameters))
            };
            for instance in instances.iter().filter(allowed) {
                prop_assert!(allows(&compiled, instance), "{}: {} forbids {}", provider, schema, instance);
            }
        }
    }

    #[test]
    fn a_schema_that_fits_is_unchanged_by_lowering(parameters in root()) {
        let mut parameters = parameters;
        for keyword in ["$defs", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"] {
            parameters.as_object_mut().unwrap().shift_remove(keyword);
        }
        for (_, rules) in ALL {
            if unchanged::fits(&parameters, rules) {
                // Something that no provider keeps forces the full lowering.
                let mut marked = parameters.clone();
                marked["$comment"] = "long way".into();
                let (_, schema) = lowered(&unchecked(marked), rules);
                prop_assert_eq!(schema.to_string(), parameters.to_string());
            }
        }
    }
}
