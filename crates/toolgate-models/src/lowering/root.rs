//! Folds the root of a schema into one object without combinators: merges their properties, and
//! describes their rules in words.

use serde_json::{Map, Value, json};

use super::alternatives;
use super::keywords::allows_type;
use super::sentences::{self, constraints, join_quoted};

/// One form that a tool's arguments may have: a schema of the root or of one of
/// its branches, without combinators.
#[derive(Debug, Default)]
pub(super) struct ArgumentForm {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    // All other keywords.
    pub(super) rest: Map<String, Value>,
    // What the combinators require, in sentences.
    pub(super) rules: String,
}

pub(super) fn is_plain(schema: &Map<String, Value>) -> bool {
    let is_combinator = |keyword: &String| {
        matches!(
            keyword.as_str(),
            "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "dependentSchemas"
                | "enum"
                | "const"
        )
    };
    !schema.keys().any(is_combinator)
}

pub(super) fn fold_combinators(schema: Map<String, Value>) -> (Map<String, Value>, String) {
    if is_plain(&schema) {
        return (as_object(schema), String::new());
    }
    let form = ArgumentForm::from_schema(schema);
    let mut folded = form.rest;
    folded.insert("properties".to_owned(), form.properties.into());
    if !form.required.is_empty() {
        folded.insert("required".to_owned(), form.required.into());
    }
    (as_object(folded), form.rules)
}

fn as_object(mut schema: Map<String, Value>) -> Map<String, Value> {
    match schema.get_mut("type") {
        Some(name) => *name = "object".into(),
        None => {
            schema.shift_insert(0, "type".to_owned(), "object".into());
        }
    }
    if !schema.contains_key("properties") {
        schema.insert("properties".to_owned(), json!({}));
    }
    schema
}

impl ArgumentForm {
    /// Merges a schema with its combinators.
    pub(super) fn from_schema(mut schema: Map<String, Value>) -> Self {
        let mut form = Self::default();
        let is_plain = is_plain(&schema);
        let mut take = |keyword: &str| schema.shift_remove(keyword);
        let [all, any_of, one_of] = ["allOf", "anyOf", "oneOf"].map(&mut take);
        let [when, then, otherwise] = ["if", "then", "else"].map(&mut take);
        let [not, dependent] = ["not", "dependentSchemas"].map(&mut take);
        if let Some(Value::Object(properties)) = schema.shift_remove("properties") {
            form.properties = properties;
        }
        if let Some(Value::Array(required)) = schema.shift_remove("required") {
            form.required = required
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
        }
        // `enum` and `const` would be values of the whole object, and `unevaluatedProperties`
        // depends on the combinators that are being removed.
        let unfit = ["enum", "const", "unevaluatedProperties"];
        let unfit = unfit.into_iter().filter(|_| !is_plain);
        let unfit = unfit.filter_map(|keyword| schema.shift_remove_entry(keyword));
        let unfit: Map<String, Value> = unfit.collect();
        form.rest = schema;
        for branch in list(all) {
            form.merge(Self::from_schema(branch));
        }
        form.add_choice(list(any_of), false);
        form.add_choice(list(one_of), true);
        form.add_condition(object(when), object(then), object(otherwise));
        form.add_dependencies(object(dependent).unwrap_or_default());
        form.add_rule(
            &object(not).map_or_else(String::new, |not| alternatives::forbidden_rule(&not)),
        );
        form.add_rule(&constraints(&unfit, |_| false));
        form
    }

    fn add_rule(&mut self, sentence: &str) {
        sentences::push_sentence(&mut self.rules, sentence);
    }

    pub(super) fn constraints(&self) -> String {
        let described = |keyword: &str| matches!(keyword, "type" | "default" | "examples");
        constraints(&self.rest, described)
    }

    /// True if it forbids undeclared properties.
    pub(super) fn is_closed(&self) -> bool {
        let mut others = ["additionalProperties", "unevaluatedProperties"].into_iter();
        others.any(|keyword| {
            self.rest
                .get(keyword)
                .is_some_and(|others| *others == false)
        })
    }

    fn merge(&mut self, other: Self) {
        let constraints = other.constraints();
        for (name, property) in other.properties {
            match self.properties.get_mut(&name) {
                Some(own) if *own == property || property == json!({}) => {}
                Some(own) if *own == json!({}) => *own = property,
                Some(own) => *own = json!({ "allOf": [own.take(), property] }),
                None => {
                    self.properties.insert(name, property);
                }
            }
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        if let Some(description) = other.rest.get("description").and_then(Value::as_str) {
            self.add_rule(description);
        }
        self.add_rule(&constraints);
        self.add_rule(&other.rules);
    }

    // Ignores branches that no object can match.
    fn add_choice(&mut self, branches: Vec<Map<String, Value>>, exactly_one: bool) {
        let is_for_objects = |branch: &Map<String, Value>| {
            allows_type(branch, "object") && branch.get("not") != Some(&json!({}))
        };
        let branches = branches.into_iter().filter(is_for_objects);
        let mut branches: Vec<Self> = branches.map(Self::from_schema).collect();
        if branches.len() < 2 {
            return branches.pop().map_or((), |only| self.merge(only));
        }
        let [first, others @ ..] = branches.as_slice() else {
            return;
        };
        let in_all = |name: &&String| others.iter().all(|branch| branch.required.contains(name));
        let common: Vec<String> = first.required.iter().filter(in_all).cloned().collect();
        self.merge_properties(&branches);
        let is_given = |name: &String| common.contains(name) || self.required.contains(name);
        let labels = branches.iter().map(|branch| {
            match alternatives::describe_form(branch, &self.properties, &is_given) {
                label if label.is_empty() && exactly_one => "any arguments".to_owned(),
                label => label,
            }
        });
        let rule = alternatives::choice_rule(labels.collect(), exactly_one);
        self.add_rule(&rule);
        for name in common {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    fn merge_properties(&mut self, branches: &[Self]) {
        let count = branches.len();
        let mut offered: Map<String, Value> = Map::new();
        for (name, property) in branches.iter().flat_map(|branch| &branch.properties) {
            let list = offered.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(property.clone());
            }
        }
        for (name, alternatives) in offered {
            let Value::Array(alternatives) = alternatives else {
                continue;
            };
            let in_all = alternatives.len() == count;
            match self.properties.get_mut(&name) {
                None => {
                    self.properties
                        .insert(name, alternatives::merge_alternatives(alternatives));
                }
                Some(Value::Object(own)) if in_all && !own.contains_key("enum") => {
                    if let Some(values) = alternatives::all_values(&alternatives) {
                        own.insert("enum".to_owned(), values.into());
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn add_condition(
        &mut self,
        when: Option<Map<String, Value>>,
        then: Option<Map<String, Value>>,
        otherwise: Option<Map<String, Value>>,
    ) {
        let Some(when) = when else {
            return;
        };
        let when = Self::from_schema(when);
        let branches =
            [then, otherwise].map(|branch| Self::from_schema(branch.unwrap_or_default()));
        // Conditions don't restrict properties, so only their names are taken over.
        for name in when.properties.keys() {
            self.properties.entry(name).or_insert_with(|| json!({}));
        }
        let is_new = |name: &&String| !self.properties.contains_key(*name);
        let new = branches.each_ref().map(|branch| {
            let new = branch.properties.keys().filter(is_new);
            join_quoted(new.map(String::as_str))
        });
        self.merge_properties(&branches);
        let mut labels = branches
            .each_ref()
            .map(|branch| alternatives::describe_form(branch, &self.properties, &|_| false));
        for (label, new) in labels.iter_mut().zip(new) {
            if label.is_empty() && !new.is_empty() {
                *label = format!("optionally {new}");
            }
        }
        let [then, otherwise] = &labels;
        self.add_rule(&alternatives::condition_rule(&when, then, otherwise));
    }

    fn add_dependencies(&mut self, dependent: Map<String, Value>) {
        for (name, schema) in dependent {
            let branch = Self::from_schema(object(Some(schema)).unwrap_or_default());
            let branches = [branch, Self::default()];
            self.merge_properties(&branches);
            let needed = alternatives::describe_form(&branches[0], &self.properties, &|_| false);
            if !needed.is_empty() {
                self.add_rule(&format!("'{name}' needs {needed}."));
            }
        }
    }
}

fn list(value: Option<Value>) -> Vec<Map<String, Value>> {
    match value {
        Some(Value::Array(list)) => list
            .into_iter()
            .filter_map(|value| object(Some(value)))
            .collect(),
        _ => Vec::new(),
    }
}

fn object(value: Option<Value>) -> Option<Map<String, Value>> {
    match value {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}
