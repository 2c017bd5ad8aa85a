//! JSON Schemas that are safe to use: measured first, then compiled, then asked in the contract's words.

mod cost;
mod keywords;
mod pattern;
mod violation;

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::arguments::Size;
use crate::{SchemaLimits, ToolError, ValidArguments};

use cost::Cost;
pub use violation::Violation;

/// A schema for the arguments of a tool: the document as it was given, and the validator made of it.
#[derive(Clone)]
pub struct Schema {
    document: Arc<Value>,
    validator: Arc<Validator>,
    cost: Cost,
    most_steps: u64,
}

/// Why a schema was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Absent, or not even a JSON object.
    #[error("must be a JSON Schema object, not {found}")]
    NotAnObject {
        /// What stands there instead.
        found: &'static str,
    },
    /// Arguments have names, so nothing but an object will do.
    #[error("must describe an object, but its type is {found}")]
    NotObjectType {
        /// The `type` it declares.
        found: String,
    },
    /// A keyword that would reach outside, never end, or cost too much.
    #[error("'{keyword}' at '{path}' {problem}")]
    Keyword {
        /// Which one.
        keyword: String,
        /// Where, as a JSON pointer.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Not a valid JSON Schema.
    #[error("is no valid JSON Schema: {problem}")]
    Invalid {
        /// What the compiler said.
        problem: String,
    },
}

impl Schema {
    /// Measures and compiles a schema. Nothing is fetched or read: a reference must stay inside the document.
    pub fn compile(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        expect_object(&document)?;
        let cost = Cost::measure(&document, limits)?;
        let validator = jsonschema::options()
            // Its engine is linear in the input: no pattern can make it backtrack.
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(false)
            .build(&without_identity(&document))
            .map_err(|error| SchemaError::Invalid {
                problem: crate::redact::cut(&error.to_string(), 300),
            })?;
        Ok(Self {
            document: Arc::new(document),
            validator: Arc::new(validator),
            cost,
            most_steps: limits.steps,
        })
    }

    /// The document as it was given.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks arguments. What counts as not given is left out: an optional `null` that the schema does not allow, and a
    /// name it does not know where it allows no others.
    pub fn check(&self, arguments: Value) -> Result<ValidArguments, ToolError> {
        let size = Size::of(&arguments, crate::Limits::default().max_depth)?;
        self.check_sized(Arc::new(arguments), size)
    }

    pub(crate) fn check_sized(
        &self,
        arguments: Arc<Value>,
        size: Size,
    ) -> Result<ValidArguments, ToolError> {
        if self.cost.steps(size) > self.most_steps {
            return Err(ToolError::invalid(
                "arguments",
                "are too large to be checked against this schema",
            ));
        }
        if self.validator.is_valid(&arguments) {
            return Ok(ValidArguments::new(arguments, Vec::new()));
        }
        let (arguments, dropped) =
            violation::without_the_not_given(&self.validator, &self.document, arguments);
        if !dropped.is_empty() && self.validator.is_valid(&arguments) {
            return Ok(ValidArguments::new(arguments, dropped));
        }
        Err(ToolError::InvalidArguments {
            violations: violation::all(&self.validator, &self.document, &arguments),
            required: self.required(),
        })
    }

    /// Every required parameter with its type.
    pub fn required(&self) -> Vec<(String, String)> {
        let names = self
            .document
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let typed = |name: &str| {
            let declared = self
                .document
                .get("properties")
                .and_then(|all| all.get(name));
            (
                name.to_owned(),
                declared.map_or_else(|| "any".to_owned(), type_of),
            )
        };
        names.filter_map(Value::as_str).map(typed).collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.document).finish()
    }
}

/// The type a schema declares, for a person: `string`, `string or null`, `one of: on, off`.
pub(crate) fn type_of(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return format!("one of: {}", violation::options(options));
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    }
}

fn expect_object(document: &Value) -> Result<(), SchemaError> {
    let Value::Object(schema) = document else {
        return Err(SchemaError::NotAnObject {
            found: json_type(document),
        });
    };
    let describes_object = match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if describes_object {
        return Ok(());
    }
    Err(SchemaError::NotObjectType {
        found: crate::redact::cut(&schema["type"].to_string(), 100),
    })
}

/// A copy to compile. An unknown `$schema` would be refused, and an `$id` would move the base of the references that were
/// measured; neither says anything about arguments.
fn without_identity(document: &Value) -> Value {
    let mut copy = document.clone();
    if let Value::Object(schema) = &mut copy {
        let known = |uri: &Value| {
            let uri = uri.as_str().unwrap_or_default().trim_end_matches('#');
            ["draft-04", "draft-06", "draft-07"]
                .iter()
                .any(|draft| uri == format!("http://json-schema.org/{draft}/schema"))
                || ["2019-09", "2020-12"]
                    .iter()
                    .any(|draft| uri == format!("https://json-schema.org/draft/{draft}/schema"))
        };
        if !schema.get("$schema").is_some_and(known) {
            schema.shift_remove("$schema");
        }
        schema.shift_remove("$id");
        schema.shift_remove("id");
    }
    copy
}

pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
