//! What a provider does not get as a schema it gets in words, and all of it.

use proptest::prelude::*;

use super::*;

#[test]
fn what_a_form_at_the_root_demands_is_said() {
    let own = json!({ "v": { "type": "string" }, "n": { "type": "integer" }, "mode": { "type": "string" } });
    let when = json!({ "properties": { "mode": { "const": "a" } } });
    for (combinators, rule) in [(
        json!({ "anyOf": [
                { "properties": { "v": { "maxLength": 3 }, "n": { "minimum": 10 } } },
                { "properties": { "n": { "maximum": 5 } } },
            ] }),
        "Give either arguments with 'v': at most 3 characters; 'n': at least 10, or arguments with 'n': at most 5.",
    )] {
        let mut parameters = json!({ "type": "object", "properties": own });
        parameters
            .as_object_mut()
            .unwrap()
            .extend(combinators.as_object().unwrap().clone());
        for (provider, rules) in ALL {
            let (description, schema) = lowered(&tool(parameters.clone()), rules);
            println!("ROOT {parameters}\n => {description}\n {schema}");
            assert_eq!(
                description,
                format!("Does something.\n{rule}"),
                "{provider}"
            );
            assert_eq!(schema["properties"], own, "{provider}");
        }
    }
    let _ = when;
}

/// Where a schema goes on below one of its keywords.
enum Below {
    One,
    List,
    Named,
}

fn below(keyword: &str) -> Option<Below> {
    Some(match keyword {
        "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "additionalProperties" => Below::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Below::List,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" => Below::Named,
        _ => return None,
    })
}

/// Puts a number that is nowhere else into every value of a schema that says something.
fn mark(schema: &mut Value, markers: &mut Vec<String>) {
    let Value::Object(keywords) = schema else {
        return;
    };
    let mut next = || {
        markers.push((1000 + markers.len()).to_string());
        markers.len() + 999
    };
    for (keyword, value) in keywords.iter_mut() {
        match (below(keyword), value) {
            (None, Value::Number(number)) => *number = next().into(),
            (None, Value::String(text)) if text.is_empty() => *text = next().to_string(),
            (None, Value::Array(values)) if keyword == "enum" => {
                values
                    .iter_mut()
                    .for_each(|value| *value = next().to_string().into());
            }
            _ => {}
        }
    }
    for (keyword, value) in keywords {
        match (below(keyword), value) {
            (Some(Below::One), schema) => mark(schema, markers),
            (Some(Below::List), Value::Array(list)) => {
                list.iter_mut().for_each(|schema| mark(schema, markers));
            }
            (Some(Below::Named), Value::Object(named)) => {
                named.values_mut().for_each(|schema| mark(schema, markers));
            }
            _ => {}
        }
    }
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
    fn whatever_is_dropped_is_said(mut parameters in root()) {
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
