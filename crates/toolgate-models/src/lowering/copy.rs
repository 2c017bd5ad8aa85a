//! A copy of a schema that stands on its own: references replaced by what they mean, keywords in today's form and well
//! formed, nothing hidden in its texts, and of a bounded size.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::keywords::{Holds, holds, is_sound, is_type_name, names, only_describes, size};
use super::references::References;
use super::text::{add, is_shown, shown};
use super::{Rules, phrase, words};

/// About as much JSON as one tool may send. A model that gets more of it reads nothing else.
pub(super) const LARGEST: usize = 64 << 10;

#[derive(Clone, Copy)]
pub(super) struct Detail {
    /// How often a schema may stand inside of itself.
    pub(super) repeats: usize,
    pub(super) deepest: usize,
}

pub(super) struct Copier<'a> {
    rules: &'a Rules,
    references: References<'a>,
    detail: Detail,
    within: Vec<&'a Value>,
    depth: usize,
    spent: usize,
}

impl<'a> Copier<'a> {
    /// The copy, or `None` if there is too much of it.
    pub(super) fn copy(
        document: &'a Value,
        rules: &'a Rules,
        detail: Detail,
    ) -> Option<Map<String, Value>> {
        let mut copier = Self {
            rules,
            references: References::of(document),
            detail,
            within: vec![document],
            depth: 0,
            spent: 0,
        };
        let copy = copier.schema(document);
        (copier.spent <= LARGEST).then_some(copy)
    }

    fn schema(&mut self, schema: &'a Value) -> Map<String, Value> {
        // Also what is empty takes its brackets: nothing is free, or references to nothing could multiply without end.
        self.spent += 4;
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return one("not", json!({})),
            _ => return Map::new(),
        };
        if self.spent > LARGEST {
            return Map::new();
        }
        if self.depth > self.detail.deepest {
            return self.outline(keywords, "Its details are left out.");
        }
        self.depth += 1;
        let copy = match keywords.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.referred(keywords, reference),
            None => self.keywords(keywords),
        };
        self.depth -= 1;
        copy
    }

    fn referred(
        &mut self,
        keywords: &'a Map<String, Value>,
        reference: &str,
    ) -> Map<String, Value> {
        let mut own = self.keywords(keywords);
        if self.references.ignore_siblings() {
            own.retain(|keyword, _| only_describes(keyword));
        }
        let inlined = match self.references.target(reference) {
            Some(target) => self.target(target),
            None => one("description", json!("Anything: its schema is not known.")),
        };
        joined(inlined, own)
    }

    fn target(&mut self, target: &'a Value) -> Map<String, Value> {
        const MOST: usize = 32;
        let same = |outer: &&&Value| std::ptr::eq(**outer, target);
        let repeats = self.within.iter().filter(same).count();
        if (repeats >= self.detail.repeats || self.within.len() > MOST)
            && let Value::Object(keywords) = target
        {
            return self.outline(keywords, "Nested in the same way.");
        }
        self.within.push(target);
        let copy = self.schema(target);
        self.within.pop();
        copy
    }

    fn outline(&mut self, keywords: &'a Map<String, Value>, note: &str) -> Map<String, Value> {
        let mut outline = Map::new();
        if let Some(value) = keywords
            .get("type")
            .filter(|value| is_sound(Holds::Type, value))
        {
            outline.insert("type".to_owned(), value.clone());
        }
        let description = keywords.get("description").and_then(Value::as_str);
        let mut description = shown(description.unwrap_or_default()).into_owned();
        add(&mut description, note);
        self.spent += description.len() + 40;
        outline.insert("description".to_owned(), description.into());
        if names(&outline, "array") {
            outline.insert("items".to_owned(), json!({}));
        }
        outline
    }

    fn keywords(&mut self, keywords: &'a Map<String, Value>) -> Map<String, Value> {
        let mut copy = Map::with_capacity(keywords.len());
        for (keyword, value) in keywords {
            let kept = match holds(keyword) {
                Holds::Schema => self.part(value),
                Holds::SchemaOrFlag => match value {
                    Value::Bool(_) => Some(value.clone()),
                    Value::Array(tuple) if keyword == "items" => {
                        self.old_tuple(keywords, tuple, &mut copy);
                        None
                    }
                    _ => self.part(value),
                },
                Holds::Schemas => self.list(value),
                Holds::Named => self.named(keyword, value),
                Holds::Reference | Holds::Itself => None,
                Holds::Old => {
                    self.old(keyword, value, &mut copy);
                    None
                }
                holds => self.leaf(keywords, keyword, holds, value),
            };
            if let Some(value) = kept {
                self.spent += keyword.len() + 4;
                copy.insert(keyword.clone(), value);
            }
        }
        if names(&copy, "array") && !copy.contains_key("items") {
            // One provider refuses the whole request without it.
            copy.insert("items".to_owned(), json!({}));
        }
        self.leave_out_names(&mut copy);
        copy
    }

    fn part(&mut self, value: &'a Value) -> Option<Value> {
        let is_schema = value.is_object() || value.is_boolean();
        is_schema.then(|| self.schema(value).into())
    }

    fn list(&mut self, value: &'a Value) -> Option<Value> {
        let list = value.as_array().filter(|list| !list.is_empty())?;
        let list = list.iter().map(|schema| self.schema(schema).into());
        Some(Value::Array(list.collect()))
    }

    fn named(&mut self, keyword: &str, value: &'a Value) -> Option<Value> {
        let mut copy = Map::with_capacity(value.as_object()?.len());
        let is_kept = |name: &str| keyword == "properties" || is_shown(name);
        for (name, schema) in value.as_object()?.iter().filter(|(name, _)| is_kept(name)) {
            self.spent += name.len() + 4;
            copy.insert(name.clone(), self.schema(schema).into());
        }
        Some(copy.into())
    }

    /// A keyword without sub-schemas. Values are never changed: one that can not be shown is not shown at all.
    fn leaf(
        &mut self,
        keywords: &Map<String, Value>,
        keyword: &str,
        holds: Holds,
        value: &Value,
    ) -> Option<Value> {
        let kept = match (holds, value) {
            _ if is_sound(holds, value) => value.clone(),
            (Holds::Prose, Value::String(text)) => shown(text).into(),
            (Holds::Type, Value::Array(list)) => {
                let mut list: Vec<&Value> = list.iter().collect();
                list.retain(|name| name.as_str().is_some_and(is_type_name));
                Some(unique(&list)).filter(|list| !list.is_empty())?.into()
            }
            (Holds::Names, Value::Array(names)) => unique(&shown_names(names)).into(),
            (Holds::NamesByName, Value::Object(all)) => {
                let sound = all.iter().filter(|(name, _)| is_shown(name));
                let sound = sound.filter(|(_, names)| is_sound(Holds::Names, names));
                let sound = sound.map(|(name, names)| (name.clone(), names.clone()));
                Value::Object(sound.collect())
            }
            // Draft 4 said with a flag that the number beside it is excluded.
            (Holds::Number, Value::Bool(true)) => {
                let beside = match keyword {
                    "exclusiveMinimum" => "minimum",
                    _ => "maximum",
                };
                keywords
                    .get(beside)
                    .filter(|number| number.is_number())?
                    .clone()
            }
            _ => return None,
        };
        self.spent += size(&kept);
        Some(kept)
    }

    fn old(&mut self, keyword: &str, value: &'a Value, copy: &mut Map<String, Value>) {
        let ("dependencies", Value::Object(all)) = (keyword, value) else {
            return;
        };
        for (name, value) in all.iter().filter(|(name, _)| is_shown(name)) {
            self.spent += name.len() + 24;
            let (keyword, value) = match value {
                Value::Array(names) => {
                    let names = unique(&shown_names(names));
                    ("dependentRequired", Value::Array(names))
                }
                _ => ("dependentSchemas", self.schema(value).into()),
            };
            let all = copy.entry(keyword).or_insert_with(|| json!({}));
            if let Value::Object(all) = all {
                all.insert(name.clone(), value);
            }
        }
    }

    /// `items` as a list, and `additionalItems` for the rest.
    fn old_tuple(
        &mut self,
        keywords: &'a Map<String, Value>,
        tuple: &'a [Value],
        copy: &mut Map<String, Value>,
    ) {
        if keywords.contains_key("prefixItems") {
            return;
        }
        let list = tuple.iter().map(|schema| self.schema(schema).into());
        let list: Vec<Value> = list.collect();
        if !list.is_empty() {
            copy.insert("prefixItems".to_owned(), list.into());
        }
        let rest = match keywords.get("additionalItems") {
            Some(Value::Bool(any)) => Some(Value::Bool(*any)),
            Some(schema) => self.part(schema),
            None => None,
        };
        if let Some(rest) = rest {
            copy.insert("items".to_owned(), rest);
        }
    }

    /// Properties that the provider would refuse by their names alone are told of in words. An argument may be given without
    /// being declared, as long as nothing forbids others.
    fn leave_out_names(&self, copy: &mut Map<String, Value>) {
        let legal = |name: &str| is_shown(name) && (self.rules.is_parameter_name)(name);
        let Some(Value::Object(properties)) = copy.get_mut("properties") else {
            return;
        };
        if properties.keys().all(|name| legal(name)) {
            return;
        }
        let (kept, illegal): (Map<_, _>, Map<_, _>) = std::mem::take(properties)
            .into_iter()
            .partition(|(name, _)| legal(name));
        *properties = kept;
        let is_required = |name: &str| {
            let names = copy.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|other| other == name))
        };
        let told: Vec<String> = illegal
            .iter()
            .filter(|(name, _)| is_shown(name))
            .map(|(name, schema)| phrase::parameter(name, schema, is_required(name)))
            .collect();
        if let Some(Value::Array(required)) = copy.get_mut("required") {
            required.retain(|name| !name.as_str().is_some_and(|name| illegal.contains_key(name)));
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            copy.shift_remove(keyword);
        }
        if !told.is_empty() {
            words::describe(copy, &format!("Also takes {}.", told.join("; ")));
        }
    }
}

fn one(keyword: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(keyword.to_owned(), value)])
}

fn shown_names(names: &[Value]) -> Vec<&Value> {
    let shown = |name: &&Value| name.as_str().is_some_and(is_shown);
    names.iter().filter(shown).collect()
}

fn unique(texts: &[&Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let first = texts.iter().filter(|text| seen.insert(text.as_str()));
    first.map(|text| (*text).clone()).collect()
}

/// Both apply: what a reference means, and what stands beside it. What the latter says for a reader wins.
fn joined(mut target: Map<String, Value>, own: Map<String, Value>) -> Map<String, Value> {
    let (said, ruled): (Map<_, _>, Map<_, _>) = own
        .into_iter()
        .partition(|(keyword, _)| only_describes(keyword));
    let clash = |(keyword, value): (&String, &Value)| {
        let bound = ["if", "then", "else", "minContains", "maxContains"];
        bound.contains(&keyword.as_str()) || target.get(keyword).is_some_and(|has| has != value)
    };
    if ruled.iter().any(clash) {
        let mut both = said;
        let parts = vec![target.into(), ruled.into()];
        both.insert("allOf".to_owned(), Value::Array(parts));
        return both;
    }
    target.extend(ruled);
    target.extend(said);
    target
}
