//! JSON Schemas that are safe to use: measured first, then compiled, then asked in the contract's words.

mod cost;
mod declared;
mod identity;
mod keywords;
mod pattern;
mod references;
mod rehearsal;
mod violation;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::arguments::Size;
use crate::{SchemaLimits, ToolError, ValidArguments, nearest};

use cost::{Cost, MOST_ERRORS, MOST_STACKED};
pub(crate) use declared::DeclaredNames;
pub use violation::Violation;

/// A schema for the arguments of a tool: the document as it was given, and what checks arguments against it.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Schema, SchemaLimits};
///
/// let schema = Schema::compile(json!({ "type": "object", "required": ["city"] }), &SchemaLimits::default())?;
/// assert_eq!(schema.check(json!({})).unwrap_err().to_string(), "Invalid parameters: missing 'city'");
/// # Ok::<_, toolgate_core::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema {
    document: Arc<Value>,
    required: Arc<[(String, String)]>,
    checking: Checking,
}

#[derive(Clone)]
enum Checking {
    /// Any arguments will do.
    Nothing,
    Compiled(Arc<Checker>),
    Deferred(Arc<DeferredChecker>),
}

/// Compiled when it is first asked.
struct DeferredChecker {
    limits: SchemaLimits,
    /// `None` inside: it can't be compiled, so any arguments will do.
    checker: OnceLock<Option<Checker>>,
}

struct Checker {
    validator: Validator,
    cost: Cost,
    most_steps: u64,
}

/// Why a schema was refused.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Schema, SchemaLimits};
///
/// let error = Schema::compile(json!({ "$ref": "https://example.org/s.json" }), &SchemaLimits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "'$ref' at '/' to 'https://example.org/s.json' does not stay inside the schema");
/// ```
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
    /// Too much of it to even walk through.
    #[error("'{keyword}' is nested deeper than {deepest} schemas")]
    TooDeep {
        /// What is nested.
        keyword: String,
        /// How deep a schema may be.
        deepest: usize,
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
        expect_shallow(&document, limits.depth)?;
        let checker = Checker::compile(&document, limits)?;
        Ok(Self::new(document, Checking::Compiled(Arc::new(checker))))
    }

    /// Like [`compile`](Self::compile), but measured and compiled only when arguments are first checked, as most tools of a long
    /// list are never called. For schemas that have been compiled before: one that can't be, after all, lets any arguments pass.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::{Schema, SchemaLimits};
    ///
    /// let schema = Schema::deferred(json!({ "type": "object", "required": ["city"] }), &SchemaLimits::default())?;
    /// assert!(schema.check(json!({})).is_err());
    /// # Ok::<_, toolgate_core::SchemaError>(())
    /// ```
    pub fn deferred(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        expect_object(&document)?;
        expect_shallow(&document, limits.depth)?;
        let deferred = DeferredChecker {
            limits: *limits,
            checker: OnceLock::new(),
        };
        Ok(Self::new(document, Checking::Deferred(Arc::new(deferred))))
    }

    /// A schema that is only shown: it must describe an object, but any arguments will do. For tools that check their
    /// arguments themselves, and for schemas that [`compile`](Self::compile) refuses to run.
    pub fn unchecked(document: Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        expect_object(&document)?;
        expect_shallow(&document, limits.depth)?;
        Ok(Self::new(document, Checking::Nothing))
    }

    fn new(document: Value, checking: Checking) -> Self {
        Self {
            required: required(&document).collect(),
            document: Arc::new(document),
            checking,
        }
    }

    /// False if any arguments will do.
    pub fn is_checked(&self) -> bool {
        self.checker().is_some()
    }

    fn checker(&self) -> Option<&Checker> {
        match &self.checking {
            Checking::Nothing => None,
            Checking::Compiled(checker) => Some(checker),
            Checking::Deferred(deferred) => {
                let compile = || Checker::compile(&self.document, &deferred.limits).ok();
                deferred.checker.get_or_init(compile).as_ref()
            }
        }
    }

    /// The document as it was given.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks arguments. What counts as not given is left out: an optional `null` that the schema does not allow, and a
    /// name it does not know where it allows no others.
    pub fn check(&self, arguments: Value) -> Result<ValidArguments, ToolError> {
        self.check_shared(Arc::new(arguments))
    }

    /// The same for arguments that others hold too; they are copied only if something is left out.
    pub fn check_shared(&self, arguments: Arc<Value>) -> Result<ValidArguments, ToolError> {
        let size = Size::of(&arguments, crate::Limits::default().max_depth)?;
        self.check_sized(arguments, size)
    }

    pub(crate) fn check_sized(
        &self,
        arguments: Arc<Value>,
        size: Size,
    ) -> Result<ValidArguments, ToolError> {
        let Some(checker) = self.checker() else {
            return Ok(ValidArguments::new(arguments, Vec::new()));
        };
        let bill = checker.cost.bill(&arguments, size);
        if bill.steps > checker.most_steps || bill.stacked > MOST_STACKED {
            return Err(ToolError::too_large_to_check());
        }
        if checker.validator.is_valid(&*arguments) {
            return Ok(ValidArguments::new(arguments, Vec::new()));
        }
        if bill.errors > MOST_ERRORS {
            return Err(ToolError::invalid(
                "arguments",
                "do not fit the schema, and are too large to say where",
            ));
        }
        self.check_again(&checker.validator, &arguments)
    }

    /// Leaves out what counts as not given; says what is wrong if that does not help.
    #[cold]
    fn check_again(
        &self,
        validator: &Validator,
        arguments: &Arc<Value>,
    ) -> Result<ValidArguments, ToolError> {
        let errors: Vec<_> = validator.iter_errors(&**arguments).collect();
        let spare = violation::not_given(&errors, &self.document);
        if spare.is_empty() {
            let violations = violation::all(errors, &self.document, arguments);
            return Err(self.invalid(violations, arguments));
        }
        drop(errors);
        let (kept, dropped) = violation::without(Arc::clone(arguments), &spare);
        if validator.is_valid(&kept) {
            return Ok(ValidArguments::new(Arc::new(kept), dropped));
        }
        let errors = validator.iter_errors(&kept).collect();
        let violations = violation::all(errors, &self.document, &kept);
        // A misspelt name is among those left out where the schema is closed.
        Err(self.invalid(violations, arguments))
    }

    fn invalid(&self, violations: Vec<Violation>, arguments: &Value) -> ToolError {
        ToolError::InvalidArguments {
            violations,
            required: self.required.to_vec(),
            misspelt: self.misspelt(arguments),
        }
    }

    /// Given names that the schema does not know, with the parameter that looks like it and was not given.
    fn misspelt(&self, arguments: &Value) -> Vec<(String, String)> {
        /// Whoever gets more wrong than this looks at the parameters anyway.
        const MOST: usize = 3;
        let (Some(declared), Some(given)) = (
            self.document.get("properties").and_then(Value::as_object),
            arguments.as_object(),
        ) else {
            return Vec::new();
        };
        let free = || declared.keys().filter(|name| !given.contains_key(*name));
        let unknown = given.keys().filter(|name| !declared.contains_key(*name));
        unknown
            .filter_map(|name| {
                let meant = nearest(name, free().map(String::as_str), 1).pop()?;
                Some((name.clone(), meant))
            })
            .take(MOST)
            .collect()
    }

    /// Every required parameter with its type.
    pub fn required(&self) -> &[(String, String)] {
        &self.required
    }
}

impl Checker {
    fn compile(document: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let plain = identity::plain(document)?;
        let cost = Cost::measure(&plain, limits)?;
        let validator = build(&plain).map_err(|error| SchemaError::Invalid {
            problem: crate::text::cut(&error.to_string(), 300),
        })?;
        Ok(Self {
            validator,
            cost,
            most_steps: limits.steps,
        })
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

fn required(document: &Value) -> impl Iterator<Item = (String, String)> {
    let names = document.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| {
        let declared = document.get("properties").and_then(|all| all.get(name));
        let declared = declared.map_or_else(|| "any".to_owned(), type_of);
        (name.to_owned(), declared)
    })
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
        found: crate::text::cut(&schema["type"].to_string(), 100),
    })
}

/// Before anything recurses over the document.
fn expect_shallow(document: &Value, deepest: usize) -> Result<(), SchemaError> {
    let mut ahead = vec![(document, 0, "")];
    while let Some((value, depth, keyword)) = ahead.pop() {
        if depth > deepest * 2 {
            return Err(SchemaError::TooDeep {
                keyword: crate::text::cut(keyword, 60),
                deepest,
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

/// Compiles by the draft that the schema declares. One that declares none is read by the newest that it is valid in.
fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let options = || {
        jsonschema::options()
            // Its engine is linear in the input: no pattern can make it backtrack.
            .with_pattern_options(PatternOptions::regex())
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
