//! Describes the parameters of a tool for a person.

use serde_json::Value;
use toolgate_core::text::escape;

// Deeper parameters are only shown with `--json`.
const MAX_DEPTH: usize = 5;
// A schema from outside may be arbitrarily large.
const MAX_ROWS: usize = 200;
const MAX_CHOICES: usize = 40;

/// Path and description of each parameter. Nested ones follow as `outer.inner` or `list[].inner`.
pub(super) fn parameters(schema: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    ParameterReader { root: schema }.collect("", schema, 0, &mut rows);
    let rest = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    if rest > 0 {
        rows.push(("…".to_owned(), "and more; --json shows all".to_owned()));
    }
    rows
}

struct ParameterReader<'a> {
    root: &'a Value,
}

impl<'a> ParameterReader<'a> {
    fn collect(
        &self,
        path: &str,
        schema: &'a Value,
        depth: usize,
        rows: &mut Vec<(String, String)>,
    ) {
        let properties = self.resolve(schema).get("properties");
        let properties = properties.and_then(Value::as_object).into_iter().flatten();
        for (name, parameter) in properties {
            if rows.len() > MAX_ROWS {
                return;
            }
            let path = match path {
                "" => escape(name),
                path => format!("{path}.{}", escape(name)),
            };
            let facts = self.describe_parameter(parameter, is_required(self.resolve(schema), name));
            let meaning = parameter
                .get("description")
                .or(self.resolve(parameter).get("description"));
            let meaning = meaning.and_then(Value::as_str).unwrap_or_default();
            let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
            rows.push((
                path.clone(),
                format!("{facts}\n{}", escape(&meaning))
                    .trim_end()
                    .to_owned(),
            ));
            if depth < MAX_DEPTH {
                let (inner, mark) = self.inner_schema(parameter);
                self.collect(&format!("{path}{mark}"), inner, depth + 1, rows);
            }
        }
    }

    fn describe_parameter(&self, parameter: &'a Value, is_required: bool) -> String {
        let required = if is_required { "required, " } else { "" };
        let default = parameter
            .get("default")
            .filter(|default| !default.is_null())
            .map(|default| format!("; default {}", format_value(default)));
        let kind = self.describe_type(parameter, 0);
        format!("{required}{kind}{}", default.unwrap_or_default())
    }

    /// The schema with the nested properties: the object itself, or each item of a list.
    fn inner_schema(&self, parameter: &'a Value) -> (&'a Value, &'static str) {
        let parameter = self.resolve(parameter);
        match parameter.get("items") {
            Some(items) if items.is_object() => (items, "[]"),
            _ => (parameter, ""),
        }
    }

    fn resolve(&self, mut schema: &'a Value) -> &'a Value {
        // Bounded, because references may form a loop.
        for _ in 0..MAX_DEPTH {
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| target.strip_prefix('#'));
            match target.and_then(|target| self.root.pointer(target)) {
                Some(found) => schema = found,
                None => return schema,
            }
        }
        schema
    }

    fn describe_type(&self, schema: &'a Value, depth: usize) -> String {
        let schema = self.resolve(schema);
        if depth > MAX_DEPTH {
            return "…".to_owned();
        }
        if let Some(only) = schema.get("const") {
            return format!("always {}", format_value(only));
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            return format!("one of: {}", join_choices(choices));
        }
        let several = ["anyOf", "oneOf", "allOf"];
        let several = several.iter().find_map(|key| schema.get(*key)?.as_array());
        match (schema.get("type"), several) {
            (Some(Value::String(name)), _) => self.describe_named_type(name, schema, depth),
            (Some(Value::Array(names)), _) => {
                let names = names.iter().take(MAX_CHOICES).filter_map(Value::as_str);
                join_alternatives(names.map(|name| self.describe_named_type(name, schema, depth)))
            }
            (_, Some(schemas)) => {
                let schemas = schemas.iter().take(MAX_CHOICES);
                join_alternatives(schemas.map(|schema| self.describe_type(schema, depth + 1)))
            }
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => "any".to_owned(),
        }
    }

    fn describe_named_type(&self, name: &str, schema: &'a Value, depth: usize) -> String {
        match name {
            "array" => match schema.get("items") {
                Some(items) if items.is_object() => match self.describe_type(items, depth + 1) {
                    kind if kind == "any" => "array".to_owned(),
                    kind if kind.starts_with("one of:") => format!("array, each {kind}"),
                    kind => format!("array of {kind}"),
                },
                _ => "array".to_owned(),
            },
            "integer" | "number" => format!("{name}{}", format_range(schema)),
            "string" => match schema.get("format").and_then(Value::as_str) {
                Some(format) => format!("string ({})", escape(format)),
                None => "string".to_owned(),
            },
            other => escape(other),
        }
    }
}

fn format_range(schema: &Value) -> String {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        _ => String::new(),
    }
}

fn join_alternatives(kinds: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for kind in kinds.filter(|kind| kind != "any") {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    match different.is_empty() {
        true => "any".to_owned(),
        false => different.join(" or "),
    }
}

fn join_choices(choices: &[Value]) -> String {
    let mut words: Vec<String> = choices.iter().take(MAX_CHOICES).map(format_value).collect();
    let rest = choices.len().saturating_sub(MAX_CHOICES);
    if rest > 0 {
        words.push(format!("… and {rest} more"));
    }
    words.join(", ")
}

fn format_value(value: &Value) -> String {
    escape(
        &value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameters_type_is_described_in_words() {
        for (schema, expected) in [
            (json!({ "type": "string" }), "string"),
            (
                json!({ "type": "string", "format": "date-time" }),
                "string (date-time)",
            ),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                "array of string",
            ),
            (json!({ "type": "array" }), "array"),
            (json!({ "type": "array", "items": true }), "array"),
            (
                json!({ "type": "array", "items": { "enum": ["Alt", "Shift"] } }),
                "array, each one of: Alt, Shift",
            ),
            (
                json!({ "type": "array", "items": { "type": "array", "items": { "type": "number" } } }),
                "array of array of number",
            ),
            (
                json!({ "type": "string", "enum": ["on", "off", 3, null] }),
                "one of: on, off, 3, null",
            ),
            (json!({ "type": ["string", "null"] }), "string or null"),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "string" }] }),
                "string or integer",
            ),
            (
                json!({ "type": "integer", "minimum": 0, "maximum": 100 }),
                "integer, 0 to 100",
            ),
            (
                json!({ "type": "number", "minimum": 0 }),
                "number, at least 0",
            ),
            (json!({ "const": "x" }), "always x"),
            (json!({ "$ref": "#/$defs/level" }), "integer, at most 9"),
            (json!({ "$ref": "#/$defs/loop" }), "any"),
            (json!({ "properties": {} }), "object"),
            (json!({}), "any"),
            (json!(true), "any"),
        ] {
            let root = json!({
                "properties": { "p": schema },
                "$defs": { "level": { "type": "integer", "maximum": 9 }, "loop": { "$ref": "#/$defs/loop" } },
            });
            assert_eq!(parameters(&root)[0], ("p".to_owned(), expected.to_owned()));
        }
    }

    #[test]
    fn nested_parameters_follow_their_parent() {
        let root = json!({
            "required": ["issue"],
            "properties": {
                "issue": {
                    "type": "object",
                    "description": "What to\n  file",
                    "required": ["title"],
                    "properties": { "title": { "type": "string" }, "tags": { "type": "array", "default": ["new"],
                        "items": { "type": "object", "properties": { "name": { "type": "string" } } } } }
                },
            },
        });
        let rows = parameters(&root);
        let rows: Vec<_> = rows
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(
            rows,
            [
                ("issue", "required, object\nWhat to file"),
                ("issue.title", "required, string"),
                ("issue.tags", "array of object; default [\"new\"]"),
                ("issue.tags[].name", "string"),
            ]
        );
    }

    #[test]
    fn an_endless_schema_is_cut() {
        let node = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/node" }, "b": { "$ref": "#/$defs/node" } } });
        let root = json!({ "$ref": "#/$defs/node", "$defs": { "node": node } });
        assert!(parameters(&root).len() <= MAX_ROWS + 1);
        let many: serde_json::Map<_, _> = (0..1000).map(|n| (n.to_string(), json!({}))).collect();
        let rows = parameters(&json!({ "properties": many }));
        assert_eq!(rows.len(), MAX_ROWS + 1);
        assert!(rows[MAX_ROWS].1.contains("--json"));
        let choices: Vec<_> = (0..1000).collect();
        let kind = &parameters(&json!({ "properties": { "p": { "enum": choices } } }))[0].1;
        assert!(kind.ends_with("… and 960 more"), "{kind}");
    }
}
