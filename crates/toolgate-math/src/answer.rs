use std::fmt;

use serde_json::{Map, Number, Value as Json};

use crate::budget::{Budget, Meter};
use crate::error::{Error, Result};
use crate::format::{self, Style};
use crate::unit::System;
use crate::value::Value;

/// The value of an expression: of its last statement, or of all statements that are shown.
///
/// Its text ([`fmt::Display`]) is what mathjs' `format` gives; several statements are a list of the ones that do not end with `;`.
///
/// ```
/// use toolgate_math::{Budget, evaluate};
///
/// let answer = evaluate("{sum: 1 + 2, share: 1 / 3}", &Budget::default())?;
/// assert_eq!(answer.to_string(), r#"{"sum": 3, "share": 0.3333333333333333}"#);
/// # Ok::<(), toolgate_math::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Answer {
    value: Value,
    system: System,
    budget: Budget,
}

impl Answer {
    pub(crate) fn new(value: Value, system: System, budget: Budget) -> Self {
        Self {
            value,
            system,
            budget,
        }
    }

    /// The answer as JSON: whole numbers as integers, matrices as nested arrays, objects as objects; complex numbers, quantities,
    /// fractions and big numbers as their text. Of several statements the only one shown, or a list of all that are.
    ///
    /// # Errors
    /// The answer is, or contains, what JSON cannot carry: Infinity, NaN, a function, nothing at all. Or it is too large.
    ///
    /// ```
    /// # use toolgate_math::{Budget, evaluate};
    /// let answer = evaluate("[4 / 2, 5 cm]", &Budget::default())?;
    /// assert_eq!(answer.to_json()?.to_string(), r#"[2,"5 cm"]"#);
    /// assert!(evaluate("1 / 0", &Budget::default())?.to_json().is_err());
    /// # Ok::<(), toolgate_math::Error>(())
    /// ```
    pub fn to_json(&self) -> std::result::Result<Json, Error> {
        let mut meter = Meter::for_output(&self.budget);
        match &self.value {
            Value::Results(values) => match values.as_slice() {
                [] => Err(Error::new(
                    "The expression shows no result; remove the ; behind the last statement",
                )),
                [only] => self.json(&mut meter, only),
                several => self.cells(&mut meter, &[several.len()], several),
            },
            Value::Undefined => Err(Error::new("The expression has no value")),
            value => self.json(&mut meter, value),
        }
    }

    fn json(&self, meter: &mut Meter, value: &Value) -> Result<Json> {
        meter.step(1)?;
        match value {
            Value::Null | Value::Undefined => Ok(Json::Null),
            Value::Bool(value) => Ok(Json::Bool(*value)),
            Value::Number(value) => number(*value),
            Value::Text(text) => {
                meter.text(text.len())?;
                Ok(Json::String(text.as_ref().into()))
            }
            Value::Matrix(matrix) => self.cells(meter, &matrix.size, &matrix.data),
            Value::Object(object) => {
                let mut map = Map::new();
                meter.cells(OBJECT_CELLS)?;
                for (key, value) in &object.entries {
                    meter.cells(2 * JSON_CELLS + key.len() / 32)?;
                    map.insert(key.as_ref().into(), self.json(meter, value)?);
                }
                Ok(Json::Object(map))
            }
            Value::Results(values) => self.cells(meter, &[values.len()], values),
            Value::Builtin(_) | Value::Closure(_) => Err(Error::new(
                "The result is a function, which JSON cannot carry; call it with arguments",
            )),
            Value::Complex(_) | Value::Big(_) | Value::Fraction(_) | Value::Unit(_) => {
                format::value(meter, &self.system, value, &Style::default()).map(Json::String)
            }
        }
    }

    fn cells(&self, meter: &mut Meter, size: &[usize], data: &[Value]) -> Result<Json> {
        let [length, inner @ ..] = size else {
            return Ok(Json::Array(Vec::new()));
        };
        meter.cells(length * JSON_CELLS)?;
        let step = data.len().checked_div(*length).unwrap_or(0);
        let mut list = Vec::with_capacity(*length);
        for i in 0..*length {
            list.push(if inner.is_empty() {
                self.json(meter, &data[i])?
            } else {
                self.cells(meter, inner, &data[i * step..(i + 1) * step])?
            });
        }
        Ok(Json::Array(list))
    }
}

/// What a value of JSON takes, in cells of the budget: it is two to three times as large as one.
const JSON_CELLS: usize = 3;
/// What an object of JSON takes before it has an entry.
const OBJECT_CELLS: usize = 8;

/// Whole numbers that a double holds exactly are integers.
fn number(value: f64) -> Result<Json> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Json::from(value as i64));
    }
    Number::from_f64(value).map(Json::Number).ok_or_else(|| {
        Error::new(format!(
            "The result is {}, which JSON cannot carry",
            crate::number::real::to_text(value)
        ))
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut meter = Meter::for_output(&self.budget);
        match format::value(&mut meter, &self.system, &self.value, &Style::default()) {
            Ok(text) => f.write_str(&text),
            // A text too long to write is replaced by the sentence that says so.
            Err(error) => write!(f, "{error}"),
        }
    }
}
