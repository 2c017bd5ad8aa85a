//! What a validation can cost at worst, found out without running one.
//!
//! A validator visits, for each value of an instance, every sub-schema that applies to it: the one at that place, what its
//! references and combinators add, and so on down. A schema of 2 KB can make that 2³⁰ visits. So the validation is rehearsed
//! here on an instance of every possible shape at once: a *state* is the list of all sub-schemas that meet in one value, and
//! the states that follow are those of its properties and items. Equal states are looked at once, so recursion ends; a
//! schema in which the same sub-schema meets a value in more and more ways grows past the limit and is refused.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::keywords::{
    by_pattern, child, in_place, names_in, other_items, other_properties, own_cost, tuple,
};
use super::{SchemaError, pattern};
use crate::SchemaLimits;
use crate::arguments::Size;

/// The most that one value and one byte of an instance can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    per_value: u64,
    per_byte: u64,
}

impl Cost {
    /// Refuses what can not be bounded, naming the keyword.
    pub(super) fn measure(document: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        expect_shallow(document, limits.depth)?;
        let mut rehearsal = Rehearsal {
            document,
            anchors: HashMap::new(),
            limits,
            visits: 0,
            seen: HashSet::new(),
            ahead: Vec::new(),
        };
        rehearsal.find_anchors(document);
        rehearsal.enter(&[document])?;
        let mut cost = Self::default();
        while let Some(state) = rehearsal.ahead.pop() {
            cost.per_value = cost
                .per_value
                .max(state.iter().map(|schema| own_cost(schema)).sum());
            cost.per_byte = cost.per_byte.max(pattern_cost(&state, limits)?);
            rehearsal.follow(&state)?;
        }
        Ok(cost)
    }

    /// The steps that validating an instance of this size can take.
    pub(super) fn steps(self, size: Size) -> u64 {
        let values = self.per_value.saturating_mul(size.values);
        values.saturating_add(self.per_byte.saturating_mul(size.bytes))
    }
}

type State<'a> = Vec<&'a Value>;

struct Rehearsal<'a> {
    document: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    limits: &'a SchemaLimits,
    visits: usize,
    seen: HashSet<Vec<usize>>,
    ahead: Vec<State<'a>>,
}

impl<'a> Rehearsal<'a> {
    /// A value meets these sub-schemas: adds what they bring along, and puts the state ahead if it is a new one.
    fn enter(&mut self, schemas: &[&'a Value]) -> Result<(), SchemaError> {
        let mut state = State::new();
        for schema in schemas {
            self.gather(schema, &mut Vec::new(), &mut state)?;
        }
        let mut key: Vec<usize> = state.iter().map(|schema| address(schema)).collect();
        key.sort_unstable();
        if !state.is_empty() && self.seen.insert(key) {
            self.ahead.push(state);
        }
        Ok(())
    }

    /// One sub-schema and all that apply to the same value because of it. `within` is the way that led here.
    fn gather(
        &mut self,
        schema: &'a Value,
        within: &mut Vec<&'a Value>,
        state: &mut State<'a>,
    ) -> Result<(), SchemaError> {
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        self.visits += 1;
        if self.visits > self.limits.subschemas {
            let problem = format!(
                "makes more than {} sub-schemas once references and combinators are expanded",
                self.limits.subschemas
            );
            return Err(self.refuse(
                within.last().copied().unwrap_or(schema),
                widest(within, keywords),
                problem,
            ));
        }
        if within.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            return Err(self.refuse(
                schema,
                "$ref",
                "leads back to itself without consuming any input",
            ));
        }
        self.expect_plain(schema, keywords)?;
        state.push(schema);
        within.push(schema);
        for next in in_place(keywords) {
            self.gather(next, within, state)?;
        }
        if let Some(target) = self.referred(schema, keywords)? {
            self.gather(target, within, state)?;
        }
        within.pop();
        Ok(())
    }

    /// The states of the properties and items of a value in this state.
    fn follow(&mut self, state: &State<'a>) -> Result<(), SchemaError> {
        let objects = || state.iter().filter_map(|schema| schema.as_object());
        let names: BTreeSet<&str> = objects()
            .flat_map(|keywords| names_in(keywords, "properties"))
            .collect();
        for name in names {
            let here = objects().flat_map(|keywords| match child(keywords, "properties", name) {
                Some(declared) => [Some(declared)]
                    .into_iter()
                    .flatten()
                    .chain(by_pattern(keywords)),
                None => [None].into_iter().flatten().chain(by_pattern(keywords)),
            });
            let elsewhere = objects()
                .filter(|keywords| child(keywords, "properties", name).is_none())
                .flat_map(other_properties);
            self.enter(&here.chain(elsewhere).collect::<Vec<_>>())?;
        }
        let others: Vec<&Value> = objects()
            .flat_map(|keywords| by_pattern(keywords).chain(other_properties(keywords)))
            .collect();
        self.enter(&others)?;
        self.enter(
            &objects()
                .filter_map(|keywords| keywords.get("propertyNames"))
                .collect::<Vec<_>>(),
        )?;

        let longest = objects()
            .map(|keywords| tuple(keywords).len())
            .max()
            .unwrap_or_default();
        for index in 0..=longest {
            let items = objects().flat_map(|keywords| {
                tuple(keywords)
                    .get(index)
                    .into_iter()
                    .chain(other_items(keywords))
            });
            self.enter(&items.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn referred(
        &self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
    ) -> Result<Option<&'a Value>, SchemaError> {
        let Some(Value::String(reference)) = keywords.get("$ref") else {
            return Ok(None);
        };
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(self.refuse(
                schema,
                "$ref",
                format!(
                    "to '{}' does not stay inside the schema",
                    crate::redact::cut(reference, 100)
                ),
            ));
        };
        let fragment = percent_decoded(fragment);
        let target = match fragment.as_str() {
            pointer if pointer.is_empty() || pointer.starts_with('/') => {
                self.document.pointer(pointer)
            }
            anchor => self.anchors.get(anchor).copied(),
        };
        match target {
            Some(target) => Ok(Some(target)),
            None => Err(self.refuse(
                schema,
                "$ref",
                format!("to '{}' finds nothing", crate::redact::cut(reference, 100)),
            )),
        }
    }

    /// Refuses keywords that would make references mean something else than what is measured here.
    fn expect_plain(
        &self,
        schema: &'a Value,
        keywords: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if keywords.contains_key(keyword) {
                return Err(self.refuse(schema, keyword, "is not supported; use '$ref'"));
            }
        }
        let moves_base = |id: &Value| id.as_str().is_some_and(|id| !id.starts_with('#'));
        if !std::ptr::eq(schema, self.document) && keywords.get("$id").is_some_and(moves_base) {
            return Err(self.refuse(schema, "$id", "inside a schema is not supported"));
        }
        Ok(())
    }

    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(keywords) => {
                if let Some(Value::String(name)) = keywords.get("$anchor") {
                    self.anchors.insert(name, value);
                }
                if let Some(name) = keywords
                    .get("$id")
                    .and_then(Value::as_str)
                    .and_then(|id| id.strip_prefix('#'))
                {
                    self.anchors.insert(name, value);
                }
                keywords.values().for_each(|value| self.find_anchors(value));
            }
            Value::Array(values) => values.iter().for_each(|value| self.find_anchors(value)),
            _ => {}
        }
    }

    fn refuse(&self, at: &Value, keyword: &str, problem: impl Into<String>) -> SchemaError {
        let path = path_to(self.document, at).unwrap_or_default();
        SchemaError::Keyword {
            keyword: keyword.to_owned(),
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path
            },
            problem: problem.into(),
        }
    }
}

fn pattern_cost(state: &State<'_>, limits: &SchemaLimits) -> Result<u64, SchemaError> {
    let mut total = 0_u64;
    for keywords in state.iter().filter_map(|schema| schema.as_object()) {
        let patterns = keywords
            .get("pattern")
            .and_then(Value::as_str)
            .into_iter()
            .map(|pattern| ("pattern", pattern));
        for (keyword, text) in patterns
            .chain(names_in(keywords, "patternProperties").map(|name| ("patternProperties", name)))
        {
            let refused = |problem: String| SchemaError::Keyword {
                keyword: keyword.to_owned(),
                path: crate::redact::cut(text, 100),
                problem,
            };
            let size = pattern::size(text, limits.pattern)
                .map_err(|problem| refused(problem.to_owned()))?;
            if size > limits.pattern {
                return Err(refused(
                    "is too expensive: its repetitions multiply".to_owned(),
                ));
            }
            total = total.saturating_add(size);
        }
    }
    Ok(total)
}

/// The keyword to name when a schema grows too wide: the innermost one that multiplies.
fn widest<'k>(within: &[&'k Value], keywords: &'k Map<String, Value>) -> &'k str {
    let multiplies = |keywords: &'k Map<String, Value>| {
        [
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "$ref",
            "dependentSchemas",
        ]
        .into_iter()
        .find(|keyword| keywords.contains_key(*keyword))
    };
    let inside_out = within.iter().rev().filter_map(|schema| schema.as_object());
    std::iter::once(keywords)
        .chain(inside_out)
        .find_map(multiplies)
        .unwrap_or("properties")
}

/// Before anything recurses over the document.
fn expect_shallow(document: &Value, deepest: usize) -> Result<(), SchemaError> {
    let mut ahead = vec![(document, 0, "")];
    while let Some((value, depth, keyword)) = ahead.pop() {
        if depth > deepest * 2 {
            let problem = format!("is nested deeper than {deepest} schemas");
            return Err(SchemaError::Keyword {
                keyword: keyword.to_owned(),
                path: "…".to_owned(),
                problem,
            });
        }
        match value {
            Value::Object(object) => ahead.extend(
                object
                    .iter()
                    .map(|(name, value)| (value, depth + 1, name.as_str())),
            ),
            Value::Array(array) => {
                ahead.extend(array.iter().map(|value| (value, depth + 1, keyword)));
            }
            _ => {}
        }
    }
    Ok(())
}

fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

fn path_to(from: &Value, to: &Value) -> Option<String> {
    if std::ptr::eq(from, to) {
        return Some(String::new());
    }
    let step = |name: &str, value| {
        path_to(value, to).map(|rest| format!("/{}{rest}", crate::redact::cut(name, 60)))
    };
    match from {
        Value::Object(object) => object.iter().find_map(|(name, value)| step(name, value)),
        Value::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(index, value)| step(&index.to_string(), value)),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
