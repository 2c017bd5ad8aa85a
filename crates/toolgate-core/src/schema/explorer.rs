//! [`SchemaExplorer`]: finds every combination of sub-schemas that can apply to one value.
//!
//! A *state* is the list of all sub-schemas that apply to one value; its successors are the states
//! of that value's properties and items. Equal states are explored once, so recursion ends. A
//! schema with ever more combinations exceeds the limit and is rejected.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::cost::{CostPosition, UnitCost};
use super::keywords::{
    in_place_schemas, named_entries, other_items, other_properties, subschema_cost, tuple,
};
use super::references::SchemaReferences;
use super::{SchemaError, pattern};
use crate::SchemaLimits;

#[derive(Clone, Default)]
struct ExplorerState<'a> {
    schemas: Vec<&'a Map<String, Value>>,
    stack_depth: u64,
}

pub(super) struct SchemaExplorer<'a> {
    document: &'a Value,
    limits: &'a SchemaLimits,
    references: SchemaReferences<'a>,
    visits: usize,
    patterns: HashMap<&'a str, u64>,
    spent_on_patterns: u64,
    numbers: HashMap<Vec<usize>, usize>,
    states: Vec<ExplorerState<'a>>,
}

impl<'a> SchemaExplorer<'a> {
    /// Returns one position per state; the first belongs to the whole instance. Fails with the
    /// responsible keyword if the cost can't be bounded.
    pub(super) fn explore(
        document: &'a Value,
        limits: &'a SchemaLimits,
    ) -> Result<Vec<CostPosition>, SchemaError> {
        let mut explorer = Self {
            document,
            limits,
            references: SchemaReferences::new(document)?,
            visits: 0,
            patterns: HashMap::new(),
            spent_on_patterns: 0,
            numbers: HashMap::new(),
            states: Vec::new(),
        };
        explorer.add_state(&[document])?;
        let mut positions = Vec::new();
        while let Some(state) = explorer.states.get(positions.len()).cloned() {
            positions.push(explorer.explore_state(&state)?);
        }
        Ok(positions)
    }

    /// Returns the number of the state of a value that these sub-schemas apply to, and adds the
    /// state if it is new. `None` if there is nothing to check.
    fn add_state(&mut self, schemas: &[&'a Value]) -> Result<Option<usize>, SchemaError> {
        let mut state = ExplorerState::default();
        for schema in schemas {
            self.collect_schemas(schema, &mut Vec::new(), &mut state)?;
        }
        let address = |schema: &&Map<_, _>| std::ptr::from_ref(*schema).addr();
        let mut key: Vec<usize> = state.schemas.iter().map(address).collect();
        if key.is_empty() {
            return Ok(None);
        }
        // The order of the sub-schemas doesn't matter for the cost.
        key.sort_unstable();
        let next = self.states.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.states.push(state);
        }
        Ok(Some(number))
    }

    /// Adds a sub-schema, and all that apply to the same value because of it, to `state`. `within`
    /// is the path that led here.
    fn collect_schemas(
        &mut self,
        schema: &'a Value,
        within: &mut Vec<&'a Value>,
        state: &mut ExplorerState<'a>,
    ) -> Result<(), SchemaError> {
        self.visits += 1;
        let from = within.last().copied().unwrap_or(schema);
        self.check_visit_limit(
            0,
            from,
            from.as_object().map_or("properties", multiplying_keyword),
        )?;
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if within.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            let problem = "leads back to itself without consuming any input";
            return Err(self.references.error_at(schema, "$ref", problem));
        }
        if within.len() >= self.limits.depth {
            let problem = format!("stacks more than {} schemas", self.limits.depth);
            return Err(self
                .references
                .error_at(schema, multiplying_keyword(keywords), problem));
        }
        self.check_supported(schema, keywords)?;
        state.schemas.push(keywords);
        within.push(schema);
        state.stack_depth = state.stack_depth.max(within.len() as u64);
        for next in self.adjacent(schema, keywords)? {
            self.collect_schemas(next, within, state)?;
        }
        if keywords.contains_key("unevaluatedProperties")
            || keywords.contains_key("unevaluatedItems")
        {
            self.collect_evaluated(schema, keywords, within, state)?;
        }
        within.pop();
        Ok(())
    }

    // To find unevaluated properties or items, a validator visits every adjacent sub-schema once
    // more, and all that are adjacent to those.
    fn collect_evaluated(
        &mut self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
        within: &mut Vec<&'a Value>,
        state: &mut ExplorerState<'a>,
    ) -> Result<(), SchemaError> {
        state.schemas.push(keywords);
        for next in self.adjacent(schema, keywords)? {
            self.collect_schemas(next, within, state)?;
            if let Value::Object(keywords) = next {
                within.push(next);
                self.collect_evaluated(next, keywords, within, state)?;
                within.pop();
            }
        }
        Ok(())
    }

    fn adjacent(
        &self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
    ) -> Result<Vec<&'a Value>, SchemaError> {
        let referred = self.references.target(schema, keywords)?;
        Ok(in_place_schemas(keywords).chain(referred).collect())
    }

    fn explore_state(&mut self, state: &ExplorerState<'a>) -> Result<CostPosition, SchemaError> {
        let mut unit_cost = UnitCost {
            stack_depth: state.stack_depth,
            ..UnitCost::default()
        };
        for keywords in &state.schemas {
            let patterns = named_entries(keywords, "patternProperties").count() as u64;
            unit_cost.value = unit_cost.value.saturating_add(subschema_cost(keywords));
            unit_cost.member = unit_cost.member.saturating_add(1 + patterns);
            unit_cost.unique += u64::from(keywords.get("uniqueItems") == Some(&Value::Bool(true)));
            unit_cost.byte = unit_cost.byte.saturating_add(self.pattern_cost(keywords)?);
        }
        let mut position = CostPosition {
            unit_cost,
            ..CostPosition::default()
        };
        self.explore_properties(&state.schemas, &mut position)?;
        self.explore_items(&state.schemas, &mut position)?;
        Ok(position)
    }

    fn explore_properties(
        &mut self,
        schemas: &[&'a Map<String, Value>],
        position: &mut CostPosition,
    ) -> Result<(), SchemaError> {
        let by_pattern =
            |keywords| named_entries(keywords, "patternProperties").map(|(_, schema)| schema);
        let declares = |keywords: &Map<String, Value>, name: &str| {
            keywords
                .get("properties")
                .is_some_and(|all| all.get(name).is_some())
        };
        let mut declared: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for keywords in schemas {
            let more = named_entries(keywords, "properties").count();
            self.check_visit_limit(more, self.document, "properties")?;
            for (name, schema) in named_entries(keywords, "properties") {
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
        for (name, mut applying) in declared {
            for keywords in &open {
                applying.extend(by_pattern(keywords));
                if !declares(keywords, name) {
                    applying.extend(other_properties(keywords));
                }
            }
            position
                .properties
                .insert(name.into(), self.add_state(&applying)?);
        }
        let others = |keywords| by_pattern(keywords).chain(other_properties(keywords));
        position.other_properties =
            self.add_state(&open.into_iter().flat_map(others).collect::<Vec<_>>())?;
        let names = schemas
            .iter()
            .filter_map(|keywords| keywords.get("propertyNames"));
        position.property_names = self.add_state(&names.collect::<Vec<_>>())?;
        Ok(())
    }

    fn explore_items(
        &mut self,
        schemas: &[&'a Map<String, Value>],
        position: &mut CostPosition,
    ) -> Result<(), SchemaError> {
        let lengths = schemas.iter().map(|keywords| tuple(keywords).len());
        let longest = lengths.max().unwrap_or_default();
        self.check_visit_limit(longest, self.document, "prefixItems")?;
        let others: Vec<&Value> = schemas
            .iter()
            .flat_map(|keywords| other_items(keywords))
            .collect();
        for index in 0..longest {
            let here = schemas
                .iter()
                .filter_map(|keywords| tuple(keywords).get(index));
            let here: Vec<&Value> = here.chain(others.iter().copied()).collect();
            position.tuple_items.push(self.add_state(&here)?);
        }
        position.other_items = self.add_state(&others)?;
        Ok(())
    }

    fn pattern_cost(&mut self, keywords: &'a Map<String, Value>) -> Result<u64, SchemaError> {
        let patterns = keywords.get("pattern").and_then(Value::as_str).into_iter();
        let patterns = patterns.map(|text| ("pattern", text));
        let of_names = named_entries(keywords, "patternProperties")
            .map(|(text, _)| ("patternProperties", text));
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
            path: crate::text::escape_truncated(text, 100),
            problem: problem.to_owned(),
        };
        let size = pattern::state_count(text).map_err(refused)?;
        let spent = size.saturating_add(pattern::translation_cost(text));
        self.spent_on_patterns = self.spent_on_patterns.saturating_add(spent);
        if self.spent_on_patterns > self.limits.pattern {
            return Err(refused("is too expensive: its parts multiply"));
        }
        self.patterns.insert(text, size);
        Ok(size)
    }

    fn check_supported(
        &self,
        schema: &'a Value,
        keywords: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if keywords.contains_key(keyword) {
                return Err(self.references.error_at(
                    schema,
                    keyword,
                    "is not supported; use '$ref'",
                ));
            }
        }
        // Schemas have been stripped of their identity. Only a value, such as an example, can still
        // have one.
        let text = |keyword| keywords.get(keyword).and_then(Value::as_str);
        let mut identity = ["$schema", "$id", "id"].into_iter().filter_map(text);
        if !std::ptr::eq(schema, self.document) && identity.any(|id| !id.starts_with('#')) {
            return Err(self.references.error_at(
                schema,
                "$ref",
                "leads to a value that is not a schema",
            ));
        }
        Ok(())
    }

    // Checked before the work is done, so that a huge list isn't even walked.
    fn check_visit_limit(&self, more: usize, at: &Value, keyword: &str) -> Result<(), SchemaError> {
        if self.visits.saturating_add(more) <= self.limits.subschemas {
            return Ok(());
        }
        let problem = format!(
            "makes more than {} sub-schemas once references and combinators are expanded",
            self.limits.subschemas
        );
        Err(self.references.error_at(at, keyword, problem))
    }
}

// The keyword to blame in the error if a schema has too many combinations.
fn multiplying_keyword(keywords: &Map<String, Value>) -> &'static str {
    "allOf anyOf oneOf not if dependentSchemas unevaluatedProperties unevaluatedItems $ref"
        .split(' ')
        .find(|keyword| keywords.contains_key(*keyword))
        .unwrap_or("properties")
}
