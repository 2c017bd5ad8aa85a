//! A validation played through in advance, on an instance of every possible shape at once.
//!
//! A *state* is the list of all sub-schemas that meet in one value; the states that follow are those of its properties and
//! items. Equal states are looked at once, so recursion ends; a schema in which the same sub-schema meets a value in more and
//! more ways grows past the limit and is refused.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::cost::{Place, Price};
use super::keywords::{in_place, named, other_items, other_properties, own_cost, tuple};
use super::references::References;
use super::{SchemaError, pattern};
use crate::SchemaLimits;

/// All sub-schemas that meet in one value, and how deep they are stacked.
#[derive(Clone, Default)]
struct State<'a> {
    schemas: Vec<&'a Map<String, Value>>,
    stacked: u64,
}

pub(super) struct Rehearsal<'a> {
    document: &'a Value,
    limits: &'a SchemaLimits,
    references: References<'a>,
    visits: usize,
    patterns: HashMap<&'a str, u64>,
    spent_on_patterns: u64,
    numbers: HashMap<Vec<usize>, usize>,
    states: Vec<State<'a>>,
}

impl<'a> Rehearsal<'a> {
    /// One place per state; the first is that of the whole instance. Refuses what can not be bounded, naming the keyword.
    pub(super) fn play(
        document: &'a Value,
        limits: &'a SchemaLimits,
    ) -> Result<Vec<Place>, SchemaError> {
        let mut rehearsal = Self {
            document,
            limits,
            references: References::of(document)?,
            visits: 0,
            patterns: HashMap::new(),
            spent_on_patterns: 0,
            numbers: HashMap::new(),
            states: Vec::new(),
        };
        rehearsal.enter(&[document])?;
        let mut places = Vec::new();
        while let Some(state) = rehearsal.states.get(places.len()).cloned() {
            places.push(rehearsal.follow(&state)?);
        }
        Ok(places)
    }

    /// A value meets these sub-schemas: the number of its state, if there is anything to check at all.
    fn enter(&mut self, schemas: &[&'a Value]) -> Result<Option<usize>, SchemaError> {
        let mut state = State::default();
        for schema in schemas {
            self.gather(schema, &mut Vec::new(), &mut state)?;
        }
        let address = |schema: &&Map<_, _>| std::ptr::from_ref(*schema).addr();
        let mut key: Vec<usize> = state.schemas.iter().map(address).collect();
        if key.is_empty() {
            return Ok(None);
        }
        key.sort_unstable();
        let next = self.states.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.states.push(state);
        }
        Ok(Some(number))
    }

    /// One sub-schema and all that apply to the same value because of it. `within` is the way that led here.
    fn gather(
        &mut self,
        schema: &'a Value,
        within: &mut Vec<&'a Value>,
        state: &mut State<'a>,
    ) -> Result<(), SchemaError> {
        self.visits += 1;
        let from = within.last().copied().unwrap_or(schema);
        self.expect_few(0, from, from.as_object().map_or("properties", multiplier))?;
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if within.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            let problem = "leads back to itself without consuming any input";
            return Err(self.references.refuse(schema, "$ref", problem));
        }
        if within.len() >= self.limits.depth {
            let problem = format!("stacks more than {} schemas", self.limits.depth);
            return Err(self
                .references
                .refuse(schema, multiplier(keywords), problem));
        }
        self.expect_plain(schema, keywords)?;
        state.schemas.push(keywords);
        within.push(schema);
        state.stacked = state.stacked.max(within.len() as u64);
        for next in self.beside(schema, keywords)? {
            self.gather(next, within, state)?;
        }
        if keywords.contains_key("unevaluatedProperties")
            || keywords.contains_key("unevaluatedItems")
        {
            self.gather_evaluated(schema, keywords, within, state)?;
        }
        within.pop();
        Ok(())
    }

    /// To know what is not evaluated, a validator asks every sub-schema beside once more, and all that are beside those.
    fn gather_evaluated(
        &mut self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
        within: &mut Vec<&'a Value>,
        state: &mut State<'a>,
    ) -> Result<(), SchemaError> {
        state.schemas.push(keywords);
        for next in self.beside(schema, keywords)? {
            self.gather(next, within, state)?;
            if let Value::Object(keywords) = next {
                within.push(next);
                self.gather_evaluated(next, keywords, within, state)?;
                within.pop();
            }
        }
        Ok(())
    }

    fn beside(
        &self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
    ) -> Result<Vec<&'a Value>, SchemaError> {
        let referred = self.references.target(schema, keywords)?;
        Ok(in_place(keywords).chain(referred).collect())
    }

    /// The price of a value in this state, and the states of its properties and items.
    fn follow(&mut self, state: &State<'a>) -> Result<Place, SchemaError> {
        let mut price = Price {
            stacked: state.stacked,
            ..Price::default()
        };
        for keywords in &state.schemas {
            let patterns = named(keywords, "patternProperties").count() as u64;
            price.value = price.value.saturating_add(own_cost(keywords));
            price.member = price.member.saturating_add(1 + patterns);
            price.unique += u64::from(keywords.get("uniqueItems") == Some(&Value::Bool(true)));
            price.byte = price.byte.saturating_add(self.pattern_cost(keywords)?);
        }
        let mut place = Place {
            price,
            ..Place::default()
        };
        self.follow_properties(&state.schemas, &mut place)?;
        self.follow_items(&state.schemas, &mut place)?;
        Ok(place)
    }

    fn follow_properties(
        &mut self,
        schemas: &[&'a Map<String, Value>],
        place: &mut Place,
    ) -> Result<(), SchemaError> {
        let by_pattern = |keywords| named(keywords, "patternProperties").map(|(_, schema)| schema);
        let declares = |keywords: &Map<String, Value>, name: &str| {
            keywords
                .get("properties")
                .is_some_and(|all| all.get(name).is_some())
        };
        let mut declared: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for keywords in schemas {
            let more = named(keywords, "properties").count();
            self.expect_few(more, self.document, "properties")?;
            for (name, schema) in named(keywords, "properties") {
                declared.entry(name).or_default().push(schema);
            }
        }
        let mut open: Vec<&Map<String, Value>> = schemas.to_vec();
        open.retain(|keywords| {
            by_pattern(keywords)
                .chain(other_properties(keywords))
                .next()
                .is_some()
        });
        for (name, mut meeting) in declared {
            for keywords in &open {
                meeting.extend(by_pattern(keywords));
                if !declares(keywords, name) {
                    meeting.extend(other_properties(keywords));
                }
            }
            place.named.insert(name.into(), self.enter(&meeting)?);
        }
        let others = |keywords| by_pattern(keywords).chain(other_properties(keywords));
        place.other = self.enter(&open.into_iter().flat_map(others).collect::<Vec<_>>())?;
        let names = schemas
            .iter()
            .filter_map(|keywords| keywords.get("propertyNames"));
        place.name = self.enter(&names.collect::<Vec<_>>())?;
        Ok(())
    }

    fn follow_items(
        &mut self,
        schemas: &[&'a Map<String, Value>],
        place: &mut Place,
    ) -> Result<(), SchemaError> {
        let lengths = schemas.iter().map(|keywords| tuple(keywords).len());
        let longest = lengths.max().unwrap_or_default();
        self.expect_few(longest, self.document, "prefixItems")?;
        let others: Vec<&Value> = schemas
            .iter()
            .flat_map(|keywords| other_items(keywords))
            .collect();
        for index in 0..longest {
            let here = schemas
                .iter()
                .filter_map(|keywords| tuple(keywords).get(index));
            let here: Vec<&Value> = here.chain(others.iter().copied()).collect();
            place.tuple.push(self.enter(&here)?);
        }
        place.item = self.enter(&others)?;
        Ok(())
    }

    fn pattern_cost(&mut self, keywords: &'a Map<String, Value>) -> Result<u64, SchemaError> {
        let patterns = keywords.get("pattern").and_then(Value::as_str).into_iter();
        let patterns = patterns.map(|text| ("pattern", text));
        let of_names =
            named(keywords, "patternProperties").map(|(text, _)| ("patternProperties", text));
        let mut total = 0_u64;
        for (keyword, text) in patterns.chain(of_names) {
            let size = match self.patterns.get(text) {
                Some(known) => *known,
                None => self.new_pattern(keyword, text)?,
            };
            total = total.saturating_add(size);
        }
        Ok(total)
    }

    fn new_pattern(&mut self, keyword: &str, text: &'a str) -> Result<u64, SchemaError> {
        let refused = |problem: &str| SchemaError::Keyword {
            keyword: keyword.to_owned(),
            path: crate::text::cut(text, 100),
            problem: problem.to_owned(),
        };
        let size = pattern::size(text).map_err(refused)?;
        let spent = size.saturating_add(pattern::translation(text));
        self.spent_on_patterns = self.spent_on_patterns.saturating_add(spent);
        if self.spent_on_patterns > self.limits.pattern {
            return Err(refused("is too expensive: its parts multiply"));
        }
        self.patterns.insert(text, size);
        Ok(size)
    }

    fn expect_plain(
        &self,
        schema: &'a Value,
        keywords: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if keywords.contains_key(keyword) {
                return Err(self.references.refuse(
                    schema,
                    keyword,
                    "is not supported; use '$ref'",
                ));
            }
        }
        // Schemas were settled before; only a value, such as an example, can still say who it is.
        let says = |keyword| keywords.get(keyword).and_then(Value::as_str);
        let mut identity = ["$schema", "$id", "id"].into_iter().filter_map(says);
        if !std::ptr::eq(schema, self.document) && identity.any(|id| !id.starts_with('#')) {
            return Err(self.references.refuse(
                schema,
                "$ref",
                "leads to a value that is no schema",
            ));
        }
        Ok(())
    }

    /// Refuses if there were too many visits with `more` of them.
    fn expect_few(&self, more: usize, at: &Value, keyword: &str) -> Result<(), SchemaError> {
        if self.visits.saturating_add(more) <= self.limits.subschemas {
            return Ok(());
        }
        let problem = format!(
            "makes more than {} sub-schemas once references and combinators are expanded",
            self.limits.subschemas
        );
        Err(self.references.refuse(at, keyword, problem))
    }
}

/// The keyword to name when a schema grows too wide: the one that multiplies.
fn multiplier(keywords: &Map<String, Value>) -> &'static str {
    [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "unevaluatedProperties",
        "unevaluatedItems",
        "$ref",
    ]
    .into_iter()
    .find(|keyword| keywords.contains_key(*keyword))
    .unwrap_or("properties")
}
