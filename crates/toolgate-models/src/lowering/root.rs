//! One object at the root: what combinators demand there is united, and their rule is said in words.

use serde_json::{Map, Value, json};

use super::choice;
use super::keywords::allows;
use super::words::{self, demands, listed};

#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    pub(super) rest: Map<String, Value>,
    pub(super) rules: String,
}

const COMBINATORS: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "enum",
    "const",
];

/// True if there is nothing to fold.
pub(super) fn is_plain(schema: &Map<String, Value>) -> bool {
    !schema
        .keys()
        .any(|keyword| COMBINATORS.contains(&keyword.as_str()))
}

/// The schema as one object, and the rules it can not carry.
pub(super) fn fold(schema: Map<String, Value>) -> (Map<String, Value>, String) {
    if is_plain(&schema) {
        return (as_object(schema), String::new());
    }
    let form = Form::of(schema);
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

impl Form {
    /// Unites a schema with all that its combinators say of the same object.
    pub(super) fn of(mut schema: Map<String, Value>) -> Self {
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
        // Besides values of the whole: what looks at all that combinators have seen, as they are about to go.
        let unfit = ["enum", "const", "unevaluatedProperties"];
        let unfit = unfit.into_iter().filter(|_| !is_plain);
        let unfit = unfit.filter_map(|keyword| schema.shift_remove_entry(keyword));
        let unfit: Map<String, Value> = unfit.collect();
        form.rest = schema;
        for branch in list(all) {
            form.and(Self::of(branch));
        }
        form.choose(list(any_of), false);
        form.choose(list(one_of), true);
        form.conditions(object(when), object(then), object(otherwise));
        form.dependencies(object(dependent).unwrap_or_default());
        form.say(&object(not).map_or_else(String::new, |not| choice::forbidden(&not)));
        form.say(&demands(&unfit, |_| false));
        form
    }

    fn say(&mut self, sentence: &str) {
        words::say(&mut self.rules, sentence);
    }

    pub(super) fn demands(&self) -> String {
        let described = |keyword: &str| matches!(keyword, "type" | "default" | "examples");
        demands(&self.rest, described)
    }

    /// True if it takes no properties but its own.
    pub(super) fn is_closed(&self) -> bool {
        let mut others = ["additionalProperties", "unevaluatedProperties"].into_iter();
        others.any(|keyword| {
            self.rest
                .get(keyword)
                .is_some_and(|others| *others == false)
        })
    }

    fn and(&mut self, other: Self) {
        let demands = other.demands();
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
            self.say(description);
        }
        self.say(&demands);
        self.say(&other.rules);
    }

    /// One of several applies. A branch that is for no object does not count.
    fn choose(&mut self, branches: Vec<Map<String, Value>>, exactly_one: bool) {
        let is_for_objects = |branch: &Map<String, Value>| {
            allows(branch, "object") && branch.get("not") != Some(&json!({}))
        };
        let branches = branches.into_iter().filter(is_for_objects);
        let mut branches: Vec<Self> = branches.map(Self::of).collect();
        if branches.len() < 2 {
            return branches.pop().map_or((), |only| self.and(only));
        }
        let [first, others @ ..] = branches.as_slice() else {
            return;
        };
        let in_all = |name: &&String| others.iter().all(|branch| branch.required.contains(name));
        let common: Vec<String> = first.required.iter().filter(in_all).cloned().collect();
        self.unite(&branches);
        let is_given = |name: &String| common.contains(name) || self.required.contains(name);
        let labels = branches.iter().map(|branch| {
            let label = choice::label(branch, &self.properties, &is_given);
            if label.is_empty() && exactly_one {
                choice::outline(branch)
            } else {
                label
            }
        });
        let rule = choice::said(labels.collect(), exactly_one);
        self.say(&rule);
        for name in common {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    fn unite(&mut self, branches: &[Self]) {
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
                    self.properties.insert(name, choice::either(alternatives));
                }
                Some(Value::Object(own)) if in_all && !own.contains_key("enum") => {
                    if let Some(values) = choice::all_values(&alternatives) {
                        own.insert("enum".to_owned(), values.into());
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn conditions(
        &mut self,
        when: Option<Map<String, Value>>,
        then: Option<Map<String, Value>>,
        otherwise: Option<Map<String, Value>>,
    ) {
        let Some(when) = when else {
            return;
        };
        let when = Self::of(when);
        let branches = [then, otherwise].map(|branch| Self::of(branch.unwrap_or_default()));
        // What a condition asks for is no demand: the property may also have other values.
        for name in when.properties.keys() {
            self.properties.entry(name).or_insert_with(|| json!({}));
        }
        let is_new = |name: &&String| !self.properties.contains_key(*name);
        let new = branches.each_ref().map(|branch| {
            let new = branch.properties.keys().filter(is_new);
            listed(new.map(String::as_str))
        });
        self.unite(&branches);
        let mut labels = branches
            .each_ref()
            .map(|branch| choice::label(branch, &self.properties, &|_| false));
        for (label, new) in labels.iter_mut().zip(new) {
            if label.is_empty() && !new.is_empty() {
                *label = format!("optionally {new}");
            }
        }
        let [then, otherwise] = &labels;
        self.say(&choice::condition(&when, then, otherwise));
    }

    fn dependencies(&mut self, dependent: Map<String, Value>) {
        for (name, schema) in dependent {
            let branch = Self::of(object(Some(schema)).unwrap_or_default());
            let branches = [branch, Self::default()];
            self.unite(&branches);
            let needed = choice::label(&branches[0], &self.properties, &|_| false);
            if !needed.is_empty() {
                self.say(&format!("'{name}' needs {needed}."));
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
