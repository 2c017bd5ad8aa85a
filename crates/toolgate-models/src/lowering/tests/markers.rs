//! For any schema, what is dropped is put into words. Each value is a number that occurs nowhere
//! else, so it can be searched for.

use proptest::prelude::*;

use super::super::keywords::{KeywordKind, keyword_kind};
use super::*;

/// Replaces every meaningful value of a schema by a unique number.
fn mark(schema: &mut Value, markers: &mut Vec<String>) {
    for (keyword, value) in schema.as_object_mut().into_iter().flatten() {
        match (keyword_kind(keyword), value) {
            (KeywordKind::Schema | KeywordKind::SchemaOrFlag, schema) => mark(schema, markers),
            (KeywordKind::SchemaList, Value::Array(list)) => {
                list.iter_mut().for_each(|schema| mark(schema, markers));
            }
            (KeywordKind::SchemasByName | KeywordKind::Metadata, Value::Object(named)) => {
                named.values_mut().for_each(|schema| mark(schema, markers));
            }
            (KeywordKind::Values, Value::Array(values)) => {
                values.iter_mut().for_each(|value| *value = next(markers));
            }
            (_, number @ Value::Number(_)) => {
                *number = json!(1000 + markers.len());
                markers.push(number.to_string());
            }
            (_, text @ Value::String(_)) if text == "" => *text = next(markers),
            _ => {}
        }
    }
}

fn next(markers: &mut Vec<String>) -> Value {
    markers.push((1000 + markers.len()).to_string());
    json!(markers.last())
}

fn name() -> impl Strategy<Value = &'static str> + Clone {
    prop::sample::select(vec!["a", "b", "mode"])
}

fn object(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn leaf() -> impl Strategy<Value = Value> + Clone {
    prop::sample::select(vec![
        json!({}),
        json!({ "type": "string", "minLength": 0, "maxLength": 0 }),
        json!({ "type": "string", "pattern": "" }),
        json!({ "pattern": "", "description": "" }),
        json!({ "type": "integer", "minimum": 0 }),
        json!({ "minimum": 0, "exclusiveMaximum": 0 }),
        json!({ "type": ["number", "null"], "multipleOf": 0, "description": "" }),
        json!({ "const": "" }),
        json!({ "const": "", "description": "" }),
        json!({ "enum": ["", ""], "format": "" }),
        json!({ "type": "array", "minItems": 0 }),
        json!({ "type": "null", "description": "" }),
        json!({ "$ref": "#/$defs/d" }),
        json!({ "$ref": "#/$defs/d", "minimum": 0, "pattern": "" }),
    ])
}

fn schema() -> impl Strategy<Value = Value> + Clone {
    leaf().prop_recursive(2, 6, 2, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let pair = prop::collection::vec(inner.clone(), 2);
        let named = prop::collection::vec((name(), inner.clone()), 1..3).prop_map(object);
        prop_oneof![
            named.clone().prop_map(|all| json!({ "type": "object", "properties": all, "minProperties": 0 })),
            named.clone().prop_map(|all| json!({ "patternProperties": all, "maxProperties": 0 })),
            named.prop_map(|all| json!({ "dependentSchemas": all })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items, "maxItems": 0 })),
            inner.clone().prop_map(|part| json!({ "contains": part, "minContains": 0 })),
            inner.clone().prop_map(|not| json!({ "not": not })),
            inner.clone().prop_map(|each| json!({ "additionalProperties": each, "propertyNames": { "pattern": "" } })),
            pair.clone().prop_map(|all| json!({ "if": all[0], "then": all[1] })),
            list.clone().prop_map(|all| json!({ "prefixItems": all })),
            list.clone().prop_map(|all| json!({ "allOf": all, "maximum": 0 })),
            list.clone().prop_map(|all| json!({ "anyOf": all, "description": "" })),
            list.prop_map(|all| json!({ "oneOf": all })),
            pair.prop_map(|all| json!({ "oneOf": [all[0], { "minLength": 0 }], "anyOf": [all[1], { "multipleOf": 0 }] })),
        ]
    })
}

/// One of several forms of the arguments.
fn form() -> impl Strategy<Value = Value> + Clone {
    let properties = prop::collection::vec((name(), schema()), 1..3).prop_map(object);
    let rest = prop::sample::select(vec![
        json!({}),
        json!({ "description": "" }),
        json!({ "minProperties": 0, "additionalProperties": false }),
        json!({ "additionalProperties": { "maximum": 0 } }),
        json!({ "patternProperties": { "^x": { "maxLength": 0 } }, "type": "object" }),
        json!({ "anyOf": [{ "required": ["c"], "description": "" }, { "minProperties": 0 }] }),
    ]);
    let required = prop::collection::vec(name(), 0..2);
    (properties, required, rest).prop_map(|(properties, required, mut form)| {
        form["properties"] = properties;
        form["required"] = required.into();
        form
    })
}

fn titled(mut form: Value) -> Value {
    if form.get("description").is_none() {
        form["title"] = "".into();
    }
    form
}

fn root() -> impl Strategy<Value = Value> {
    let own = prop::collection::vec((name(), schema()), 0..3).prop_map(object);
    let forms = prop::collection::vec(form(), 2);
    let combinators = prop_oneof![
        forms
            .clone()
            .prop_map(|all| json!({ "anyOf": all.into_iter().map(titled).collect::<Vec<_>>() })),
        forms
            .clone()
            .prop_map(|all| json!({ "oneOf": all.into_iter().map(titled).collect::<Vec<_>>() })),
        forms.clone().prop_map(|all| json!({ "allOf": all })),
        forms.prop_map(|all| json!({ "then": all[0], "else": all[1] })),
        form().prop_map(|form| json!({ "dependentSchemas": { "b": form } })),
        form().prop_map(|form| json!({ "not": form })),
        form().prop_map(|form| json!({ "anyOf": [form] })),
        form(),
    ];
    (own, combinators, schema(), leaf()).prop_map(|(own, mut root, when, defined)| {
        if root.get("properties").is_none() {
            root["properties"] = own;
        }
        if root.get("then").is_some() {
            root["if"] = json!({ "properties": { "mode": when } });
        }
        if root.to_string().contains("$ref") && defined.get("$ref").is_none() {
            root["$defs"] = json!({ "d": defined });
        }
        root
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_dropped_keyword_is_described(mut parameters in root()) {
        let mut markers = Vec::new();
        mark(&mut parameters, &mut markers);
        let definition = unchecked(parameters);
        for (provider, rules) in ALL {
            let (description, schema) = lowered(&definition, rules);
            let told = format!("{description}\n{schema}");
            let lost: Vec<&String> = markers.iter().filter(|marker| !told.contains(*marker)).collect();
            prop_assert!(lost.is_empty(), "{}: {:?} of {} lost in {}", provider, lost, definition.parameters(), told);
        }
    }
}
