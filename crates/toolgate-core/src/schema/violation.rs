//! [`Violation`]: describes errors in arguments in the exact words of the requirements.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use crate::text::{escape_truncated, join};

// Nobody reads longer lists, so the rest is only counted.
const MAX_LISTED: usize = 50;

/// One way in which arguments violate their schema. Its `Display` is a phrase such as
/// `'level' must be integer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    parameter: String,
    // `None` if the parameter is missing.
    text: Option<String>,
}

impl Violation {
    /// `text` completes the sentence that begins with the parameter: `must be string`.
    pub fn new(parameter: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            parameter: parameter.into(),
            text: Some(text.into()),
        }
    }

    /// A required parameter is missing.
    pub fn missing(parameter: impl Into<String>) -> Self {
        Self {
            parameter: parameter.into(),
            text: None,
        }
    }

    /// The parameter's path: `level`, `o.inner.depth` or `a[1]`. The root is `arguments`.
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

// Sorted: missing parameters come first, the others in the order of the arguments.
pub(super) fn collect_violations(
    errors: Vec<ValidationError<'_>>,
    schema: &Value,
    arguments: &Value,
) -> Vec<Violation> {
    let mut found: Vec<(Vec<usize>, Violation)> = Vec::new();
    for error in errors {
        let violation = describe(&error, schema);
        let mut recent = found.iter().rev().take(MAX_LISTED);
        if !recent.any(|(_, other)| *other == violation) {
            found.push((
                argument_position(arguments, error.instance_path()),
                violation,
            ));
        }
        // Arguments can contain thousands of mistakes. A few hundred are enough to
        // report the first ones.
        if found.len() > 10 * MAX_LISTED {
            break;
        }
    }
    found.sort_by(|(a, first), (b, second)| {
        (first.text.is_some(), a).cmp(&(second.text.is_some(), b))
    });
    let more = found.len().saturating_sub(MAX_LISTED);
    let listed = found.into_iter().take(MAX_LISTED);
    let mut violations: Vec<Violation> = listed.map(|(_, violation)| violation).collect();
    if more > 0 {
        violations.push(Violation::new("", format!("and {more} more")));
    }
    violations
}

/// Names to treat as if the caller had left them out, by the object that contains them.
pub(super) type DroppableNames = BTreeMap<Location, HashSet<String>>;

pub(super) fn droppable_names(errors: &[ValidationError<'_>], schema: &Value) -> DroppableNames {
    let mut droppable = DroppableNames::new();
    for error in errors {
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected }
                if forbids_all(error, schema) =>
            {
                let names = droppable.entry(error.instance_path().clone()).or_default();
                names.extend(unexpected.iter().cloned());
            }
            _ => {
                if let Some(name) = optional_null(error, schema) {
                    droppable.entry(Location::new()).or_default().insert(name);
                }
            }
        }
    }
    droppable
}

// True if the keyword is `false`. A schema there would only restrict the form of other names.
fn forbids_all(error: &ValidationError<'_>, schema: &Value) -> bool {
    schema.pointer(error.schema_path().as_str()) == Some(&Value::Bool(false))
}

/// Returns the arguments without these names, and the removed names, as paths if they are nested.
pub(super) fn drop_names(
    arguments: Arc<Value>,
    droppable: &DroppableNames,
) -> (Value, Vec<String>) {
    let mut kept = Arc::unwrap_or_clone(arguments);
    let mut dropped = Vec::new();
    // Inner objects first, because an outer one may be removed as a whole.
    for (object, names) in droppable.iter().rev() {
        if let Some(Value::Object(properties)) = kept.pointer_mut(object.as_str()) {
            properties.retain(|name, _| {
                let stays = !names.contains(name);
                if !stays {
                    dropped.push(match object.as_str() {
                        "" => name.clone(),
                        _ => format_path(object, Some(name)),
                    });
                }
                stays
            });
        }
    }
    (kept, dropped)
}

fn optional_null(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let name = null_parameter(error)?;
    (!is_required(schema, &name)).then_some(name)
}

fn null_parameter(error: &ValidationError<'_>) -> Option<String> {
    let mut segments = error.instance_path().segments();
    match (segments.next(), segments.next()) {
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
        return Violation::missing(format_path(at, property.as_str()));
    }
    if let Some(name) = null_parameter(error).filter(|name| is_required(schema, name)) {
        return Violation::missing(escape_truncated(&name, 100));
    }
    Violation::new(format_path(at, None), describe_kind(error.kind()))
}

fn describe_kind(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    let at_least = |n, one, many| format!("must have at least {}", pluralize(n, one, many));
    let at_most = |n, one, many| format!("must have at most {}", pluralize(n, one, many));
    match kind {
        Kind::Type { kind } => format!("must be {}", describe_types(kind)),
        Kind::Enum { options: list } => {
            let list = list.as_array().map_or(&[][..], Vec::as_slice);
            format!("must be one of: {}", describe_options(list))
        }
        Kind::Constant { expected_value } => {
            format!("must be one of: {}", describe_option(expected_value))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("must match {}", escape_truncated(pattern, 200)),
        Kind::MinItems { limit } => at_least(*limit, "item", "items"),
        Kind::MaxItems { limit } => at_most(*limit, "item", "items"),
        Kind::AdditionalItems { limit } => at_most(*limit as u64, "item", "items"),
        Kind::MinLength { limit } => at_least(*limit, "character", "characters"),
        Kind::MaxLength { limit } => at_most(*limit, "character", "characters"),
        Kind::MinProperties { limit } => at_least(*limit, "property", "properties"),
        Kind::MaxProperties { limit } => at_most(*limit, "property", "properties"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = escape_truncated(&unexpected.join(", "), 200);
            format!("has unknown properties: {names}")
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "matches none of the allowed forms".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => "matches more than one of the allowed forms".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::UniqueItems => "must not contain duplicate items".to_owned(),
        Kind::Contains => "must contain an item of the required form".to_owned(),
        Kind::PropertyNames { .. } => "has a property name that is not allowed".to_owned(),
        other => format!("is not valid ({})", other.keyword()),
    }
}

// People say `string or null`, so `null` comes last.
fn describe_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            let names = several.iter().map(|one| one.to_string());
            let (null, names): (Vec<_>, Vec<_>) = names.partition(|name| name == "null");
            join(names.into_iter().chain(null), " or ")
        }
    }
}

pub(super) fn describe_options(list: &[Value]) -> String {
    let shown = join(list.iter().take(MAX_LISTED).map(describe_option), ", ");
    match list.len() {
        0..=MAX_LISTED => shown,
        all => format!("{shown}, … ({all} in all)"),
    }
}

fn describe_option(value: &Value) -> String {
    match value.as_str() {
        Some(text) => escape_truncated(text, 100),
        None => escape_truncated(&value.to_string(), 100),
    }
}

fn pluralize(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Formats `o.inner.depth`, `a[1]`, or `arguments` for the root. `last` is an additional
/// name at the end.
fn format_path(at: &Location, last: Option<&str>) -> String {
    let last = last.map(|name| LocationSegment::Property(name.into()));
    let mut path = String::new();
    for segment in at.segments().chain(last) {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) if path.is_empty() => {
                path.push_str(&escape_truncated(&name, 100));
            }
            LocationSegment::Property(name) => {
                path.push_str(&format!(".{}", escape_truncated(&name, 100)));
            }
        }
    }
    match path.as_str() {
        "" => "arguments".to_owned(),
        _ => path,
    }
}

fn argument_position(arguments: &Value, at: &Location) -> Vec<usize> {
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
