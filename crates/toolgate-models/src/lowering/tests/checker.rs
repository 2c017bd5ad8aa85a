//! The rules of each provider again, written from what their servers refuse or lose.

use serde_json::Value;

/// What is wrong with a lowered schema.
pub(super) fn faults(provider: &str, schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let root = schema.as_object().unwrap();
    if root.get("type") != Some(&Value::from("object")) {
        faults.push("the root is not an object".to_owned());
    }
    if !root.get("properties").is_some_and(Value::is_object) {
        faults.push("no properties".to_owned());
    }
    for keyword in [
        "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const",
    ] {
        if root.contains_key(keyword) {
            faults.push(format!("'{keyword}' at the root"));
        }
    }
    if provider == "ollama" {
        for keyword in root.keys() {
            if !["type", "required", "properties", "items", "$defs"].contains(&keyword.as_str()) {
                faults.push(format!("'{keyword}' at the root is lost"));
            }
        }
    }
    walk(provider, schema, true, "", &mut faults);
    faults
}

fn walk(provider: &str, schema: &Value, root: bool, path: &str, faults: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        let flag = schema.is_boolean() && provider != "ollama";
        let allowed = [
            "/items",
            "/additionalProperties",
            "/unevaluatedProperties",
            "/unevaluatedItems",
        ];
        if !(flag && allowed.iter().any(|end| path.ends_with(end))) {
            faults.push(format!("{path} is not an object"));
        }
        return;
    };
    for (keyword, value) in keywords {
        let mut fault = |problem: &str| faults.push(format!("{path}/{keyword} {problem}"));
        match keyword.as_str() {
            "$ref" | "$defs" | "definitions" | "$id" | "$schema" | "$anchor" => {
                fault("is a reference");
            }
            "required" => {
                let names = value.as_array().unwrap();
                if !names.iter().all(Value::is_string) {
                    fault("has no names");
                }
            }
            "description" | "title"
                if value.as_str().is_none_or(|text| text.contains('\u{200b}')) =>
            {
                fault("is not clean");
            }
            "enum" if value.as_array().is_none_or(Vec::is_empty) => fault("is empty"),
            "type" if !(value.is_string() || value.is_array()) => fault("is not a type"),
            _ => {}
        }
        let known = [
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
        ];
        if provider == "ollama" && !root && !known.contains(&keyword.as_str()) {
            faults.push(format!("{path}/{keyword} is lost"));
        }
        let below = format!("{path}/{keyword}");
        match keyword.as_str() {
            "properties" | "patternProperties" | "dependentSchemas" => {
                for (name, schema) in value.as_object().unwrap() {
                    let odd = |c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c));
                    let odd = name.is_empty() || name.len() > 64 || name.contains(odd);
                    if provider == "anthropic" && keyword == "properties" && odd {
                        faults.push(format!("{below}/{name} has no legal name"));
                    }
                    walk(provider, schema, false, &format!("{below}/{name}"), faults);
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let list = value.as_array().unwrap();
                if list.is_empty() {
                    faults.push(format!("{below} is empty"));
                }
                for schema in list {
                    walk(provider, schema, false, &below, faults);
                }
            }
            "items"
            | "additionalProperties"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames" => walk(provider, value, false, &below, faults),
            _ => {}
        }
    }
    let is_array = match keywords.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.contains(&Value::from("array")),
        _ => false,
    };
    if is_array && !keywords.contains_key("items") {
        faults.push(format!("{path} is an array without items"));
    }
}
