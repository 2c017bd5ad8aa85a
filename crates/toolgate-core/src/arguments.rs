//! Arguments before and after they are checked.

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::ToolError;
use crate::text::cut;

/// Named values for a tool's parameters, in the order they were given.
///
/// ```
/// use toolgate_core::Arguments;
///
/// let arguments: Arguments = serde_json::from_str(r#"{"b": 1, "a": 2}"#).unwrap();
/// assert!(arguments.keys().eq(["b", "a"]));
/// ```
pub type Arguments = serde_json::Map<String, Value>;

/// Arguments that passed a schema. Only [`Schema::check`](crate::Schema::check) makes one; its values are what the tool gets,
/// to the byte. Cheap to clone.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Schema, SchemaLimits};
///
/// let schema = Schema::compile(json!({ "properties": { "n": { "type": "integer" } } }), &SchemaLimits::default())?;
/// let arguments = schema.check(json!({ "n": 5, "unit": "cm" })).unwrap();
/// assert_eq!(arguments.get("n"), Some(&json!(5)));
///
/// #[derive(serde::Deserialize)]
/// struct Typed { n: u8 }
/// assert_eq!(arguments.parse::<Typed>().unwrap().n, 5);
/// # Ok::<_, toolgate_core::SchemaError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ValidArguments {
    object: Arc<Value>,
    dropped: Vec<String>,
}

impl ValidArguments {
    pub(crate) fn new(object: Arc<Value>, dropped: Vec<String>) -> Self {
        Self { object, dropped }
    }

    /// Under the names that the server is sent, where those aren't the names that its schema declares. The values stay.
    pub(crate) fn renamed(self, names: Vec<(String, String)>) -> Self {
        if names.is_empty() {
            return self;
        }
        let mut names: HashMap<String, String> = names.into_iter().collect();
        let dropped = self.dropped.clone();
        let map = self.into_map().into_iter();
        let map = map.map(|(name, value)| (names.remove(&name).unwrap_or(name), value));
        Self::new(Arc::new(Value::Object(map.collect())), dropped)
    }

    /// The arguments as a JSON object.
    pub fn as_value(&self) -> &Value {
        &self.object
    }

    /// One argument.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.object.get(name)
    }

    /// Names that were left out because they count as not given: optional ones that were `null`, and unknown ones where the
    /// schema allows no others.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// The arguments as an owned map; copies only if someone else still holds them.
    pub fn into_map(self) -> Arguments {
        match Arc::unwrap_or_clone(self.object) {
            Value::Object(map) => map,
            _ => Arguments::new(),
        }
    }

    /// The arguments as a type. What the schema let through and the type does not, is refused in the type's words.
    ///
    /// To a schema `5.0` is an integer, to serde it is not: whole numbers are offered as integers where that helps.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let parsed = T::deserialize(self.as_value());
        let parsed = parsed
            .or_else(|error| T::deserialize(with_integers(self.as_value())).map_err(|_| error));
        parsed.map_err(|error| {
            ToolError::invalid(
                "arguments",
                format!("do not fit: {}", cut(&error.to_string(), 300)),
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
            // Beyond 2⁵³ a float no longer tells which integer was meant.
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
pub(crate) struct Size {
    /// Objects, arrays and scalars.
    pub(crate) values: u64,
    /// Bytes as compact JSON, not counting escapes.
    pub(crate) bytes: u64,
    /// Objects and arrays inside of each other.
    pub(crate) depth: u64,
}

impl Size {
    /// Measures, and refuses what is nested deeper than everything after this may recurse.
    pub(crate) fn of(value: &Value, deepest: usize) -> Result<Self, ToolError> {
        let mut size = Self::default();
        if size.add(value, 0, deepest as u64) {
            return Ok(size);
        }
        Err(ToolError::invalid(
            "arguments",
            format!("must not be nested deeper than {deepest}"),
        ))
    }

    /// Returns false if the value is too deep.
    fn add(&mut self, value: &Value, depth: u64, deepest: u64) -> bool {
        const BRACKETS: u64 = 2;
        self.values += 1;
        match value {
            Value::Null | Value::Bool(true) => self.bytes += 4,
            Value::Bool(false) => self.bytes += 5,
            Value::Number(number) => self.bytes += digits(number),
            Value::String(text) => self.bytes += text.len() as u64 + BRACKETS,
            Value::Array(array) => {
                self.depth = self.depth.max(depth + 1);
                self.bytes += BRACKETS + (array.len() as u64).saturating_sub(1);
                return depth < deepest
                    && array
                        .iter()
                        .all(|value| self.add(value, depth + 1, deepest));
            }
            Value::Object(object) => {
                self.depth = self.depth.max(depth + 1);
                self.bytes += BRACKETS + (object.len() as u64).saturating_sub(1);
                return depth < deepest
                    && object.iter().all(|(name, value)| {
                        self.bytes += name.len() as u64 + BRACKETS + 1;
                        self.add(value, depth + 1, deepest)
                    });
            }
        }
        true
    }
}

fn digits(number: &Number) -> u64 {
    /// Most fractions that people write are shorter; the longest have 24.
    const FRACTION: u64 = 8;
    let sign = u64::from(number.is_i64() && !number.is_u64());
    let whole = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    whole.map_or(FRACTION, |whole| {
        sign + 1 + u64::from(whole.checked_ilog10().unwrap_or_default())
    })
}
