//! Arguments before and after validation.

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::ToolError;
use crate::text::escape_truncated;

/// Arguments by parameter name, in the order they were given.
pub type Arguments = serde_json::Map<String, Value>;

/// Arguments that satisfy a tool's schema. Only [`Schema::check`](crate::Schema::check) creates
/// them, and the tool receives exactly these values. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidArguments {
    object: Arc<Value>,
    dropped: Vec<String>,
}

impl ValidArguments {
    pub(crate) fn new(object: Arc<Value>, dropped: Vec<String>) -> Self {
        Self { object, dropped }
    }

    /// Renames arguments to what the server expects, where that differs from the
    /// names its schema declares.
    pub(crate) fn rename(self, names: Vec<(String, String)>) -> Self {
        if names.is_empty() {
            return self;
        }
        let mut names: HashMap<String, String> = names.into_iter().collect();
        let dropped = self.dropped.clone();
        let map = self.into_map().into_iter();
        let map = map.map(|(name, value)| (names.remove(&name).unwrap_or(name), value));
        Self::new(Arc::new(Value::Object(map.collect())), dropped)
    }

    pub fn as_value(&self) -> &Value {
        &self.object
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.object.get(name)
    }

    /// Names of the arguments that validation left out: optional ones that were `null`, and unknown
    /// ones if the schema allows only the names it declares.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Returns an owned map; copies only if the arguments are shared.
    pub fn into_map(self) -> Arguments {
        match Arc::unwrap_or_clone(self.object) {
            Value::Object(map) => map,
            _ => Arguments::new(),
        }
    }

    /// Deserializes the arguments. Fails with serde's message if the type is
    /// stricter than the schema.
    ///
    /// JSON Schema counts `5.0` as an integer and serde doesn't, so whole numbers
    /// are retried as integers.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let parsed = T::deserialize(self.as_value());
        let parsed = parsed
            .or_else(|error| T::deserialize(with_integers(self.as_value())).map_err(|_| error));
        parsed.map_err(|error| {
            ToolError::invalid(
                "arguments",
                format!("don't match: {}", escape_truncated(&error.to_string(), 300)),
            )
        })
    }

    pub(crate) fn shared(&self) -> Arc<Value> {
        Arc::clone(&self.object)
    }
}

fn with_integers(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Beyond 2⁵³ a float can't tell which integer was meant.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(array) => array.iter().map(with_integers).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), with_integers(value)))
            .collect(),
        other => other.clone(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JsonSize {
    pub(crate) values: u64,
    /// Bytes as compact JSON, without escapes.
    pub(crate) bytes: u64,
    pub(crate) depth: u64,
}

impl JsonSize {
    // Everything that runs later may recurse over the value, so deeper ones are rejected here.
    pub(crate) fn measure(value: &Value, max_depth: usize) -> Result<Self, ToolError> {
        let mut size = Self::default();
        if size.add(value, 0, max_depth as u64) {
            return Ok(size);
        }
        Err(ToolError::invalid(
            "arguments",
            format!("must not be nested deeper than {max_depth}"),
        ))
    }

    /// Returns false if the value is too deep.
    fn add(&mut self, value: &Value, depth: u64, max_depth: u64) -> bool {
        // Brackets, or the quotes of a string.
        const DELIMITERS: u64 = 2;
        self.values += 1;
        match value {
            Value::Null | Value::Bool(true) => self.bytes += 4,
            Value::Bool(false) => self.bytes += 5,
            Value::Number(number) => self.bytes += digits(number),
            Value::String(text) => self.bytes += text.len() as u64 + DELIMITERS,
            Value::Array(array) => {
                self.depth = self.depth.max(depth + 1);
                self.bytes += DELIMITERS + (array.len() as u64).saturating_sub(1);
                return depth < max_depth
                    && array
                        .iter()
                        .all(|value| self.add(value, depth + 1, max_depth));
            }
            Value::Object(object) => {
                self.depth = self.depth.max(depth + 1);
                self.bytes += DELIMITERS + (object.len() as u64).saturating_sub(1);
                return depth < max_depth
                    && object.iter().all(|(name, value)| {
                        self.bytes += name.len() as u64 + DELIMITERS + 1;
                        self.add(value, depth + 1, max_depth)
                    });
            }
        }
        true
    }
}

fn digits(number: &Number) -> u64 {
    // An estimate: most fractions are shorter, the longest have 24 digits.
    const FRACTION: u64 = 8;
    let sign = u64::from(number.is_i64() && !number.is_u64());
    let whole = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    whole.map_or(FRACTION, |whole| {
        sign + 1 + u64::from(whole.checked_ilog10().unwrap_or_default())
    })
}
