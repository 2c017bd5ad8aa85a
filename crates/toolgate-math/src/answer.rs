//! The answer to an expression, as text and as JSON.

use std::fmt;

use serde_json::{Map, Number, Value as Json};

use crate::budget::{Budget, BudgetTracker};
use crate::error::{MathError, Result, fail};
use crate::format::{self, FormatStyle};
use crate::unit::UnitSystem;
use crate::value::Value;

/// The value of an expression, or the values of all its statements that are shown.
///
/// Its text ([`fmt::Display`]) is what mathjs' `format` returns. An answer to several statements is
/// a list of the values of those that don't end with `;`.
#[derive(Clone, Debug)]
pub struct MathAnswer {
    value: Value,
    system: UnitSystem,
    budget: Budget,
}

impl MathAnswer {
    pub(crate) fn new(value: Value, system: UnitSystem, budget: Budget) -> Self {
        Self {
            value,
            system,
            budget,
        }
    }

    /// The answer as JSON: whole numbers as integers, matrices as nested arrays, objects as
    /// objects, and complex numbers, quantities, fractions and big numbers as their text. If only
    /// one of several statements shows its value, the result is that value, otherwise a list.
    ///
    /// # Errors
    /// Fails if the answer is or contains something that JSON can't represent (infinity, NaN, a
    /// function, nothing), or is too large.
    pub fn to_json(&self) -> std::result::Result<Json, MathError> {
        let mut budget = BudgetTracker::for_output(&self.budget);
        match &self.value {
            Value::Results(values) => match values.as_slice() {
                [] => {
                    fail("The expression shows no result; remove the ; behind the last statement")
                }
                [only] => self.value_to_json(&mut budget, only),
                several => self.cells_to_json(&mut budget, &[several.len()], several),
            },
            Value::Undefined => fail("The expression has no value"),
            value => self.value_to_json(&mut budget, value),
        }
    }

    fn value_to_json(&self, budget: &mut BudgetTracker, value: &Value) -> Result<Json> {
        budget.charge_steps(1)?;
        match value {
            Value::Null | Value::Undefined => Ok(Json::Null),
            Value::Bool(value) => Ok(Json::Bool(*value)),
            Value::Number(value) => number_to_json(*value),
            Value::Text(text) => {
                budget.charge_text(text.len())?;
                Ok(Json::String(text.as_ref().into()))
            }
            Value::Matrix(matrix) => self.cells_to_json(budget, &matrix.size, &matrix.data),
            Value::Object(object) => {
                let mut map = Map::new();
                budget.charge_cells(CELLS_PER_JSON_OBJECT)?;
                for (key, value) in &object.entries {
                    budget.charge_cells(2 * CELLS_PER_JSON_VALUE + key.len() / 32)?;
                    map.insert(key.as_ref().into(), self.value_to_json(budget, value)?);
                }
                Ok(Json::Object(map))
            }
            Value::Results(values) => self.cells_to_json(budget, &[values.len()], values),
            Value::Builtin(_) | Value::Closure(_) => {
                fail("The result is a function, which JSON can't represent; call it with arguments")
            }
            Value::Complex(_) | Value::Big(_) | Value::Fraction(_) | Value::Unit(_) => {
                format::format_value(budget, &self.system, value, &FormatStyle::default())
                    .map(Json::String)
            }
        }
    }

    fn cells_to_json(
        &self,
        budget: &mut BudgetTracker,
        size: &[usize],
        data: &[Value],
    ) -> Result<Json> {
        let [length, inner @ ..] = size else {
            return Ok(Json::Array(Vec::new()));
        };
        budget.charge_cells(length * CELLS_PER_JSON_VALUE)?;
        let step = data.len().checked_div(*length).unwrap_or(0);
        let mut list = Vec::with_capacity(*length);
        for i in 0..*length {
            list.push(if inner.is_empty() {
                self.value_to_json(budget, &data[i])?
            } else {
                self.cells_to_json(budget, inner, &data[i * step..(i + 1) * step])?
            });
        }
        Ok(Json::Array(list))
    }
}

// A JSON value takes two to three times the memory of a cell.
const CELLS_PER_JSON_VALUE: usize = 3;
// The memory of an empty JSON object, in cells.
const CELLS_PER_JSON_OBJECT: usize = 8;

// Whole numbers that a double holds exactly become integers, so that clients don't read `2.0`.
fn number_to_json(value: f64) -> Result<Json> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Json::from(value as i64));
    }
    Number::from_f64(value).map(Json::Number).ok_or_else(|| {
        MathError::new(format!(
            "The result is {}, which JSON can't represent",
            crate::number::real::to_text(value)
        ))
    })
}

impl fmt::Display for MathAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut budget = BudgetTracker::for_output(&self.budget);
        match format::format_value(
            &mut budget,
            &self.system,
            &self.value,
            &FormatStyle::default(),
        ) {
            Ok(text) => f.write_str(&text),
            // A text that is too long is replaced by the error that says so.
            Err(error) => write!(f, "{error}"),
        }
    }
}
