//! The parameter names that a schema declares, by name or by pattern.

use std::collections::HashSet;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::keywords::{in_place_schemas, named_entries};
use super::references::SchemaReferences;
use super::{build_validator, pattern};
use crate::SchemaLimits;

/// Names of root properties, including those behind combinators, conditions and references.
#[derive(Debug, Default)]
pub(crate) struct DeclaredNames {
    names: HashSet<String>,
    patterns: HashSet<String>,
    // Worst-case cost of matching one byte, in steps of [`SchemaLimits::steps`].
    cost_per_byte: u64,
    max_steps: u64,
    compiled: OnceLock<Vec<Validator>>,
}

impl DeclaredNames {
    // Visits each part once, however often it is referred to: an unchecked
    // schema may contain anything.
    pub(crate) fn from_schema(document: &Value, limits: &SchemaLimits) -> Self {
        let mut declared = Self {
            max_steps: limits.steps,
            ..Self::default()
        };
        let mut references = None;
        let mut spent_on_patterns = 0;
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut pending = vec![document];
        while let Some(schema) = pending.pop() {
            let Value::Object(keywords) = schema else {
                continue;
            };
            if !seen.insert(schema) {
                continue;
            }
            let names = named_entries(keywords, "properties").map(|(name, _)| name.to_owned());
            declared.names.extend(names);
            for (text, _) in named_entries(keywords, "patternProperties") {
                declared.add_pattern(text, &mut spent_on_patterns, limits);
            }
            pending.extend(in_place_schemas(keywords));
            if let Some(Value::String(reference)) = keywords.get("$ref") {
                let all = references.get_or_insert_with(|| SchemaReferences::new(document).ok());
                pending.extend(all.as_ref().and_then(|all| all.resolve(reference)));
            }
        }
        declared
    }

    // Patterns that can't be bounded are skipped: a schema with one is only shown, never run.
    fn add_pattern(&mut self, text: &str, spent: &mut u64, limits: &SchemaLimits) {
        let Ok(size) = pattern::state_count(text) else {
            return;
        };
        let cost = size.saturating_add(pattern::translation_cost(text));
        let cost = cost.saturating_add(*spent);
        if cost <= limits.pattern && self.patterns.insert(text.to_owned()) {
            *spent = cost;
            self.cost_per_byte = self.cost_per_byte.saturating_add(size);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.has_name(name) || self.matches(name)
    }

    fn matches(&self, name: &str) -> bool {
        !self.patterns.is_empty() && {
            let name = json!(name);
            self.compiled_patterns()
                .iter()
                .any(|pattern| pattern.is_valid(&name))
        }
    }

    /// False if matching these names could take longer than validating arguments may.
    pub(crate) fn can_match<'a>(&self, names: impl Iterator<Item = &'a String>) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        let bytes: usize = names.map(String::len).sum();
        self.cost_per_byte.saturating_mul(bytes as u64) <= self.max_steps
    }

    // Compiled on first use, unless the definition compiled them before.
    pub(crate) fn compiled_patterns(&self) -> &[Validator] {
        self.compiled.get_or_init(|| {
            let patterns = self.patterns.iter();
            patterns
                .filter_map(|text| build_validator(&json!({ "pattern": text })).ok())
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(document: &Value) -> DeclaredNames {
        DeclaredNames::from_schema(document, &SchemaLimits::default())
    }

    #[test]
    fn names_are_found_in_all_subschemas_of_an_object() {
        let by_name = |name: &str| json!({ "properties": { name: {} } });
        for schema in [
            by_name("a_b"),
            json!({ "allOf": [by_name("a_b")] }),
            json!({ "anyOf": [{ "oneOf": [by_name("a_b")] }] }),
            json!({ "if": by_name("a_b") }),
            json!({ "if": {}, "then": by_name("a_b") }),
            json!({ "if": {}, "else": by_name("a_b") }),
            json!({ "dependentSchemas": { "x": by_name("a_b") } }),
            json!({ "dependencies": { "x": by_name("a_b"), "y": ["z"] } }),
            json!({ "$ref": "#/$defs/a%20b", "$defs": { "a b": by_name("a_b") } }),
            json!({ "$ref": "#named", "$defs": { "x": { "$anchor": "named", "properties": { "a_b": {} } } } }),
            json!({ "allOf": [{ "$ref": "#" }], "properties": { "a_b": {} } }),
            json!({ "patternProperties": { "^a_": {} } }),
            json!({ "then": { "patternProperties": { r"^\w_\w$": {} } } }),
        ] {
            assert!(declared(&schema).declares("a_b"), "{schema}");
            assert!(!declared(&schema).declares("aB"), "{schema}");
        }
        let deeper = json!({ "properties": { "o": by_name("a_b") }, "additionalProperties": by_name("a_b") });
        assert!(!declared(&deeper).declares("a_b"));
    }

    #[test]
    fn a_pattern_that_cannot_be_bounded_matches_nothing() {
        let huge = format!("^{}$", "(a_b){1,1000}".repeat(100));
        let schema =
            json!({ "patternProperties": { "^a_(?=b)": {}, "(": {}, huge: {}, "^x_": {} } });
        let declared = declared(&schema);
        assert!(!declared.declares("a_b") && declared.declares("x_y"));
    }

    #[test]
    fn names_that_take_too_long_to_match_are_detected() {
        let schema = json!({ "patternProperties": { "^[a-z_]{1,20000}$": {} } });
        let declared = declared(&schema);
        let short = ["a_b".to_owned()];
        let long = ["a_b".repeat(1000)];
        assert!(declared.can_match(short.iter()) && !declared.can_match(long.iter()));
    }
}
