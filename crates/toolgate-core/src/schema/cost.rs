//! [`SchemaCost`]: the worst-case cost of a validation, computed without running it.
//!
//! For each value of an instance, a validator visits every sub-schema that applies to it: the one
//! at that position, and recursively those that its references and combinators add. A schema of 2
//! KB can cause 2³⁰ visits. The [explorer](super::explorer) finds all positions and the cost of a
//! value in each; this module adds up the costs of an instance.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use super::explorer::SchemaExplorer;
use crate::SchemaLimits;
use crate::arguments::JsonSize;

// Each error takes half a kilobyte of memory.
pub(super) const MAX_ERRORS: u64 = 100_000;

// This many nested calls fit on a thread's stack.
pub(super) const MAX_STACK_DEPTH: u64 = 1_000;

// The first position belongs to the whole instance.
#[derive(Debug)]
pub(super) struct SchemaCost {
    positions: Vec<CostPosition>,
    // The maximum of each unit cost, for a quick upper bound.
    worst: UnitCost,
}

#[derive(Debug, Default)]
pub(super) struct CostPosition {
    pub(super) unit_cost: UnitCost,
    // The positions of inner values: declared properties, other properties, property names, items
    // with a schema of their own, other items. `None` if nothing is checked there.
    pub(super) properties: HashMap<Box<str>, Option<usize>>,
    pub(super) other_properties: Option<usize>,
    pub(super) property_names: Option<usize>,
    pub(super) tuple_items: Vec<Option<usize>>,
    pub(super) other_items: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnitCost {
    // Steps for any value.
    pub(super) value: u64,
    // Steps for each property or item.
    pub(super) member: u64,
    // Steps for each byte of a string or a property's name.
    pub(super) byte: u64,
    // The number of `uniqueItems`, each of which compares the items with each other.
    pub(super) unique: u64,
    pub(super) stack_depth: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CostEstimate {
    pub(super) steps: u64,
    // Checks that can fail. Each failure is an error that takes memory.
    pub(super) errors: u64,
    pub(super) stack_depth: u64,
}

impl SchemaCost {
    /// Fails with the responsible keyword if the cost can't be bounded.
    pub(super) fn measure(document: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let positions = SchemaExplorer::explore(document, limits)?;
        let mut worst = UnitCost::default();
        for CostPosition { unit_cost, .. } in &positions {
            worst.value = worst.value.max(unit_cost.value);
            worst.member = worst.member.max(unit_cost.member);
            worst.byte = worst.byte.max(unit_cost.byte);
            worst.unique = worst.unique.max(unit_cost.unique);
            worst.stack_depth = worst.stack_depth.max(unit_cost.stack_depth);
        }
        Ok(Self { positions, worst })
    }

    // Walks the instance only if a cheap upper bound is too high.
    pub(super) fn estimate(&self, instance: &Value, size: JsonSize) -> CostEstimate {
        let worst = self.worst;
        // Property names are validated like values.
        let values = size.values.saturating_mul(2);
        let members = (worst.value.saturating_add(worst.member)).saturating_mul(values);
        let unique = worst.unique.saturating_mul(values.saturating_mul(values));
        let bytes = worst.byte.saturating_mul(size.bytes);
        let stack_depth = worst.stack_depth.saturating_mul(size.depth);
        let rough = members.saturating_add(unique).saturating_add(bytes);
        let mut estimate = CostEstimate {
            steps: rough,
            errors: rough,
            stack_depth,
        };
        if rough > MAX_ERRORS || stack_depth > MAX_STACK_DEPTH {
            estimate = CostEstimate::default();
            self.add(&mut estimate, instance, Some(0), 0);
        }
        estimate
    }

    fn add(
        &self,
        estimate: &mut CostEstimate,
        value: &Value,
        position: Option<usize>,
        stack_depth: u64,
    ) {
        let Some(position) = position.and_then(|number| self.positions.get(number)) else {
            return;
        };
        let unit_cost = position.unit_cost;
        let stack_depth = stack_depth + unit_cost.stack_depth;
        estimate.stack_depth = estimate.stack_depth.max(stack_depth);
        estimate.errors = estimate.errors.saturating_add(unit_cost.value);
        estimate.add_steps(unit_cost.value, 1);
        match value {
            Value::String(text) => estimate.add_steps(unit_cost.byte, text.len()),
            Value::Array(items) => {
                estimate.add_steps(unit_cost.member, items.len());
                if unit_cost.unique > 0 {
                    estimate.add_steps(unit_cost.unique, count_comparisons(value, items));
                }
                let at = |index| {
                    position
                        .tuple_items
                        .get(index)
                        .copied()
                        .unwrap_or(position.other_items)
                };
                for (index, item) in items.iter().enumerate() {
                    self.add(estimate, item, at(index), stack_depth);
                }
            }
            Value::Object(properties) => {
                let name_cost = position
                    .property_names
                    .and_then(|number| self.positions.get(number));
                let name_cost = name_cost
                    .map(|position| position.unit_cost)
                    .unwrap_or_default();
                estimate.errors = estimate.errors.saturating_add(name_cost.value);
                for (name, value) in properties {
                    estimate.add_steps(unit_cost.member.saturating_add(name_cost.value), 1);
                    estimate.add_steps(unit_cost.byte.saturating_add(name_cost.byte), name.len());
                    let at = position.properties.get(name.as_str()).copied();
                    self.add(
                        estimate,
                        value,
                        at.unwrap_or(position.other_properties),
                        stack_depth,
                    );
                }
            }
            _ => {}
        }
    }
}

impl CostEstimate {
    fn add_steps(&mut self, unit_cost: u64, times: usize) {
        let sum = unit_cost.saturating_mul(times as u64);
        self.steps = self.steps.saturating_add(sum);
    }
}

// Scalars are compared by hash. Nested values may all have the same hash, so each may be compared
// with every other.
fn count_comparisons(array: &Value, items: &[Value]) -> usize {
    let is_nested = |item: &Value| item.is_array() || item.is_object();
    let values = || {
        JsonSize::measure(array, usize::MAX)
            .unwrap_or_default()
            .values as usize
    };
    if items.iter().any(is_nested) {
        items.len().saturating_mul(values())
    } else {
        items.len()
    }
}
