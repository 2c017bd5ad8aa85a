//! Violations of a schema in the contract's words.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use crate::text::cut;

/// More than this many violations help nobody; the rest is counted.
const MOST: usize = 50;

/// One thing that is wrong with arguments.
///
/// ```
/// use toolgate_core::Violation;
///
/// assert_eq!(Violation::missing("city").to_string(), "missing 'city'");
/// assert_eq!(Violation::new("level", "must be at most 100").to_string(), "'level' must be at most 100");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    parameter: String,
    /// `None`: the parameter is missing.
    text: Option<String>,
}

impl Violation {
    /// `text` continues the parameter's name: `must be string`.
    pub fn new(parameter: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            parameter: parameter.into(),
            text: Some(text.into()),
        }
    }

    /// A parameter that is required and not there.
    pub fn missing(parameter: impl Into<String>) -> Self {
        Self {
            parameter: parameter.into(),
            text: None,
        }
    }

    /// Path of the parameter: `level`, `o.inner.depth`, `a[1]`, or `arguments` for all of them.
    pub fn parameter(&self) -> &str {
        &self.parameter
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) if self.parameter.is_empty() => f.write_str(text),
            Some(text) => write!(f, "'{}' {text}", self.parameter),
            None => write!(f, "missing '{}'", self.parameter),
        }
    }
}

/// All violations: missing ones first, then in the order of the arguments.
pub(super) fn all(
    errors: Vec<ValidationError<'_>>,
    schema: &Value,
    arguments: &Value,
) -> Vec<Violation> {
    let mut found: Vec<(Vec<usize>, Violation)> = Vec::new();
    for error in errors {
        let violation = describe(&error, schema);
        let mut last = found.iter().rev().take(MOST);
        if !last.any(|(_, other)| *other == violation) {
            found.push((position(arguments, error.instance_path()), violation));
        }
        if found.len() > 10 * MOST {
            break;
        }
    }
    found.sort_by(|(a, first), (b, second)| {
        (first.text.is_some(), a).cmp(&(second.text.is_some(), b))
    });
    let more = found.len().saturating_sub(MOST);
    let mut violations: Vec<Violation> = found
        .into_iter()
        .take(MOST)
        .map(|(_, violation)| violation)
        .collect();
    if more > 0 {
        violations.push(Violation::new("", format!("and {more} more")));
    }
    violations
}

/// Names that count as not given, by the object they are in.
pub(super) type Spare = BTreeMap<Location, HashSet<String>>;

pub(super) fn not_given(errors: &[ValidationError<'_>], schema: &Value) -> Spare {
    let mut spare = Spare::new();
    for error in errors {
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected }
                if forbids_all(error, schema) =>
            {
                let names = spare.entry(error.instance_path().clone()).or_default();
                names.extend(unexpected.iter().cloned());
            }
            _ => {
                if let Some(name) = optional_null(error, schema) {
                    spare.entry(Location::new()).or_default().insert(name);
                }
            }
        }
    }
    spare
}

/// True if the keyword allows no others at all, rather than only others of some form.
fn forbids_all(error: &ValidationError<'_>, schema: &Value) -> bool {
    schema.pointer(error.schema_path().as_str()) == Some(&Value::Bool(false))
}

/// The arguments without these names, and what was left out: names, or paths if they are deeper inside.
pub(super) fn without(arguments: Arc<Value>, spare: &Spare) -> (Value, Vec<String>) {
    let mut kept = Arc::unwrap_or_clone(arguments);
    let mut dropped = Vec::new();
    // Inner objects first: an outer one may be left out as a whole.
    for (object, names) in spare.iter().rev() {
        if let Some(Value::Object(properties)) = kept.pointer_mut(object.as_str()) {
            properties.retain(|name, _| {
                let leave_out = names.contains(name);
                if leave_out {
                    let is_parameter = object.as_str().is_empty();
                    dropped.push(if is_parameter {
                        name.clone()
                    } else {
                        path(object, Some(name))
                    });
                }
                !leave_out
            });
        }
    }
    (kept, dropped)
}

/// The name of a parameter that was given as `null`, does not allow it, and need not be given.
fn optional_null(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let name = null_parameter(error)?;
    (!is_required(schema, &name)).then_some(name)
}

fn null_parameter(error: &ValidationError<'_>) -> Option<String> {
    let mut way = error.instance_path().segments();
    match (way.next(), way.next()) {
        (Some(LocationSegment::Property(name)), None) if error.instance().is_null() => {
            Some(name.into_owned())
        }
        _ => None,
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

fn describe(error: &ValidationError<'_>, schema: &Value) -> Violation {
    use ValidationErrorKind as Kind;
    let at = error.instance_path();
    if let Kind::Required { property } = error.kind() {
        return Violation::missing(path(at, property.as_str()));
    }
    if let Some(name) = null_parameter(error).filter(|name| is_required(schema, name)) {
        return Violation::missing(cut(&name, 100));
    }
    Violation::new(path(at, None), text_of(error.kind()))
}

fn text_of(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    let at_least = |n, one, many| format!("must have at least {}", count(n, one, many));
    let at_most = |n, one, many| format!("must have at most {}", count(n, one, many));
    match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Enum { options: list } => format!(
            "must be one of: {}",
            list.as_array()
                .map(|list| options(list))
                .unwrap_or_default()
        ),
        Kind::Constant { expected_value } => format!("must be one of: {}", option(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("must match {}", cut(pattern, 200)),
        Kind::MinItems { limit } => at_least(*limit, "item", "items"),
        Kind::MaxItems { limit } => at_most(*limit, "item", "items"),
        Kind::AdditionalItems { limit } => at_most(*limit as u64, "item", "items"),
        Kind::MinLength { limit } => at_least(*limit, "character", "characters"),
        Kind::MaxLength { limit } => at_most(*limit, "character", "characters"),
        Kind::MinProperties { limit } => at_least(*limit, "property", "properties"),
        Kind::MaxProperties { limit } => at_most(*limit, "property", "properties"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!(
                "has unknown properties: {}",
                cut(&unexpected.join(", "), 200)
            )
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "matches none of the allowed forms".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => "matches more than one of the allowed forms".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::UniqueItems => "must not have an item twice".to_owned(),
        Kind::Contains => "must contain an item of the required form".to_owned(),
        Kind::PropertyNames { .. } => "has a property name that is not allowed".to_owned(),
        other => format!("is not valid ({})", other.keyword()),
    }
}

/// Types in the order people say them; `null` comes last.
fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            let (null, mut names): (Vec<_>, Vec<_>) = several
                .iter()
                .map(|one| one.to_string())
                .partition(|name| name == "null");
            names.extend(null);
            names.join(" or ")
        }
    }
}

pub(super) fn options(list: &[Value]) -> String {
    let shown = list
        .iter()
        .take(MOST)
        .map(option)
        .collect::<Vec<_>>()
        .join(", ");
    if list.len() > MOST {
        format!("{shown}, … ({} in all)", list.len())
    } else {
        shown
    }
}

fn option(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    cut(&text, 100)
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `o.inner.depth`, `a[1]`; at the root `arguments`. `last` is one more name at the end.
fn path(at: &Location, last: Option<&str>) -> String {
    let last = last.map(|name| LocationSegment::Property(name.into()));
    let mut path = String::new();
    for segment in at.segments().chain(last) {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&cut(&name, 100)),
            LocationSegment::Property(name) => path.push_str(&format!(".{}", cut(&name, 100))),
        }
    }
    if path.is_empty() {
        "arguments".to_owned()
    } else {
        path
    }
}

/// Where a path lies in the order of the arguments.
fn position(arguments: &Value, at: &Location) -> Vec<usize> {
    let mut value = Some(arguments);
    let mut positions = Vec::new();
    for segment in at.segments() {
        let (index, next) = match (segment, value) {
            (LocationSegment::Property(name), Some(Value::Object(object))) => (
                object
                    .keys()
                    .position(|key| *key == *name)
                    .unwrap_or_default(),
                object.get(&*name),
            ),
            (LocationSegment::Index(index), Some(Value::Array(array))) => (index, array.get(index)),
            _ => (0, None),
        };
        positions.push(index);
        value = next;
    }
    positions
}
