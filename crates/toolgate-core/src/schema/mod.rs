//! [`Schema`]: compiles JSON Schemas and validates arguments, both in bounded time.

mod cost;
mod declared_names;
mod explorer;
mod identity;
mod keywords;
mod pattern;
mod references;
mod violation;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::arguments::JsonSize;
use crate::text::{join, nearest_names};
use crate::{SchemaLimits, ToolError, ValidArguments};

use cost::{MAX_ERRORS, MAX_STACK_DEPTH, SchemaCost};
pub(crate) use declared_names::DeclaredNames;
pub use violation::Violation;

/// The JSON Schema of a tool's arguments: the original document, and its compiled form. Validation
/// takes bounded time, even with a hostile schema.
#[derive(Clone)]
pub struct Schema {
    document: Arc<Value>,
    required: Arc<[(String, String)]>,
    // `None` accepts any arguments.
    checker: Option<Arc<LazyChecker>>,
}

struct LazyChecker {
    limits: SchemaLimits,
    // Set from the start, unless the schema is deferred. `None` inside means that it can't be
    // compiled, so that any arguments are accepted.
    checker: OnceLock<Option<SchemaChecker>>,
}

struct SchemaChecker {
    validator: Validator,
    cost: SchemaCost,
    max_steps: u64,
}

/// Why a schema can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    #[error("must be a JSON Schema object, not {found}")]
    NotAnObject { found: &'static str },
    /// The schema describes something other than an object, but arguments have names.
    #[error("must describe an object, but its type is {found}")]
    NotObjectType { found: String },
    #[error("'{keyword}' is nested deeper than {max_depth} schemas")]
    TooDeep { keyword: String, max_depth: usize },
    /// A keyword would reach outside the document, never end, or cost too much.
    #[error("'{keyword}' at '{path}' {problem}")]
    Keyword {
        keyword: String,
        /// Its position as a JSON pointer.
        path: String,
        /// Completes the sentence that begins with the keyword.
        problem: String,
    },
    #[error("is not a valid JSON Schema: {problem}")]
    Invalid { problem: String },
}

impl Schema {
    /// Checks that validation takes bounded time, and compiles the schema. Every reference must
    /// stay inside the document: nothing is fetched or read from disk.
    pub fn compile(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        require_object(&document)?;
        require_shallow(&document, limits.depth)?;
        let checker = SchemaChecker::compile(&document, limits)?;
        let checker = OnceLock::from(Some(checker));
        let limits = *limits;
        Ok(Self::new(document, Some(LazyChecker { limits, checker })))
    }

    /// Like [`compile`](Self::compile), but compiles the schema when arguments are first checked,
    /// because most tools of a long list are never called. Use it for schemas that have compiled
    /// before: one that no longer compiles accepts any arguments.
    pub fn deferred(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        require_object(&document)?;
        require_shallow(&document, limits.depth)?;
        let (limits, checker) = (*limits, OnceLock::new());
        Ok(Self::new(document, Some(LazyChecker { limits, checker })))
    }

    /// Creates a schema that is only shown: it must describe an object, but
    /// accepts any arguments. For tools that validate their own arguments, and
    /// schemas that [`compile`](Self::compile) rejects.
    pub fn unchecked(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        require_object(&document)?;
        require_shallow(&document, limits.depth)?;
        Ok(Self::new(document, None))
    }

    fn new(document: Value, checker: Option<LazyChecker>) -> Self {
        Self {
            required: required(&document).collect(),
            document: Arc::new(document),
            checker: checker.map(Arc::new),
        }
    }

    /// False if the schema accepts any arguments.
    pub fn is_checked(&self) -> bool {
        self.checker().is_some()
    }

    fn checker(&self) -> Option<&SchemaChecker> {
        let lazy = self.checker.as_ref()?;
        let compile = || SchemaChecker::compile(&self.document, &lazy.limits).ok();
        lazy.checker.get_or_init(compile).as_ref()
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Validates arguments. It is lenient in two ways: an optional argument that is `null` against
    /// the schema is left out, and so is an unknown one if the schema allows only the names it
    /// declares. Arguments in an `Arc` are copied only if something is left out.
    pub fn check(&self, arguments: impl Into<Arc<Value>>) -> Result<ValidArguments, ToolError> {
        let arguments = arguments.into();
        let size = JsonSize::measure(&arguments, crate::Limits::default().max_depth)?;
        self.check_sized(arguments, size)
    }

    pub(crate) fn check_sized(
        &self,
        arguments: Arc<Value>,
        size: JsonSize,
    ) -> Result<ValidArguments, ToolError> {
        let Some(checker) = self.checker() else {
            return Ok(ValidArguments::new(arguments, Vec::new()));
        };
        let estimate = checker.cost.estimate(&arguments, size);
        if estimate.steps > checker.max_steps || estimate.stack_depth > MAX_STACK_DEPTH {
            return Err(ToolError::too_large_to_check());
        }
        if checker.validator.is_valid(&*arguments) {
            return Ok(ValidArguments::new(arguments, Vec::new()));
        }
        if estimate.errors > MAX_ERRORS {
            return Err(ToolError::invalid(
                "arguments",
                "don't match the schema, and are too large to say where",
            ));
        }
        self.check_leniently(&checker.validator, &arguments)
    }

    // Collecting errors is slow, so this runs only after plain validation has failed.
    #[cold]
    fn check_leniently(
        &self,
        validator: &Validator,
        arguments: &Arc<Value>,
    ) -> Result<ValidArguments, ToolError> {
        let errors: Vec<_> = validator.iter_errors(&**arguments).collect();
        let droppable = violation::droppable_names(&errors, &self.document);
        if droppable.is_empty() {
            let violations = violation::collect_violations(errors, &self.document, arguments);
            return Err(self.invalid(violations, arguments));
        }
        drop(errors);
        let (kept, dropped) = violation::drop_names(Arc::clone(arguments), &droppable);
        if validator.is_valid(&kept) {
            return Ok(ValidArguments::new(Arc::new(kept), dropped));
        }
        let errors = validator.iter_errors(&kept).collect();
        let violations = violation::collect_violations(errors, &self.document, &kept);
        // The original arguments, because a misspelled name may just have been left out.
        Err(self.invalid(violations, arguments))
    }

    fn invalid(&self, violations: Vec<Violation>, arguments: &Value) -> ToolError {
        ToolError::InvalidArguments {
            violations,
            required: self.required.to_vec(),
            misspelled: self.misspelled_names(arguments),
        }
    }

    /// Unknown names, each with the unused parameter that resembles it.
    fn misspelled_names(&self, arguments: &Value) -> Vec<(String, String)> {
        // With more mistakes, a caller has to read the list of parameters anyway.
        const MAX_SUGGESTED: usize = 3;
        let (Some(declared), Some(given)) = (
            self.document.get("properties").and_then(Value::as_object),
            arguments.as_object(),
        ) else {
            return Vec::new();
        };
        let unused = || declared.keys().filter(|name| !given.contains_key(*name));
        let unknown = given.keys().filter(|name| !declared.contains_key(*name));
        unknown
            .filter_map(|name| {
                let meant = nearest_names(name, unused().map(String::as_str), 1).pop()?;
                Some((name.clone(), meant))
            })
            .take(MAX_SUGGESTED)
            .collect()
    }

    /// The required parameters, each with its type for a person, such as `string or null`.
    pub fn required(&self) -> &[(String, String)] {
        &self.required
    }
}

impl SchemaChecker {
    fn compile(document: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let plain = identity::without_identity(document)?;
        let cost = SchemaCost::measure(&plain, limits)?;
        let validator = build_validator(&plain).map_err(|error| SchemaError::Invalid {
            problem: crate::text::escape_truncated(&error.to_string(), 300),
        })?;
        Ok(Self {
            validator,
            cost,
            max_steps: limits.steps,
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.document).finish()
    }
}

/// Describes the declared type for a person: `string`, `string or null`, `one of: on, off`.
pub(crate) fn describe_type(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return format!("one of: {}", violation::describe_options(options));
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => join(names.iter().filter_map(Value::as_str), " or "),
        _ => "any".to_owned(),
    }
}

fn required(document: &Value) -> impl Iterator<Item = (String, String)> {
    let names = document.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| {
        let declared = document.get("properties").and_then(|all| all.get(name));
        let declared = declared.map_or_else(|| "any".to_owned(), describe_type);
        (name.to_owned(), declared)
    })
}

fn require_object(document: &Value) -> Result<(), SchemaError> {
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
        found: crate::text::escape_truncated(&schema["type"].to_string(), 100),
    })
}

// Iterative, because only a document that passes this check is safe to recurse over.
fn require_shallow(document: &Value, max_depth: usize) -> Result<(), SchemaError> {
    let mut pending = vec![(document, 0, "")];
    while let Some((value, depth, keyword)) = pending.pop() {
        if depth > max_depth * 2 {
            return Err(SchemaError::TooDeep {
                keyword: crate::text::escape_truncated(keyword, 60),
                max_depth,
            });
        }
        match value {
            Value::Object(object) => pending.extend(
                object
                    .iter()
                    .map(|(name, value)| (value, depth + 1, name.as_str())),
            ),
            Value::Array(array) => {
                pending.extend(array.iter().map(|value| (value, depth + 1, keyword)));
            }
            _ => {}
        }
    }
    Ok(())
}

// A schema that declares no draft is compiled with the newest one that accepts it.
fn build_validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let options = || {
        jsonschema::options()
            // This regex engine never backtracks, so it takes linear time.
            .with_pattern_options(PatternOptions::regex())
            // A `format` is only a hint to the model.
            .should_validate_formats(false)
    };
    options().build(schema).or_else(|error| {
        let older = [Draft::Draft7, Draft::Draft4].into_iter();
        let mut older = older.filter(|_| schema.get("$schema").is_none());
        older
            .find_map(|draft| options().with_draft(draft).build(schema).ok())
            .ok_or(error)
    })
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
