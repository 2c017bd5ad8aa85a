//! Evaluates expressions with our own evaluator.

use std::fmt;
use std::panic::catch_unwind;
use std::time::Duration;

use serde_json::Value;
use toolgate_math::{Budget, evaluate};

/// Our own answer to one expression.
pub(crate) enum OwnAnswer {
    Value {
        format: String,
        json: Result<Value, String>,
    },
    Error(String),
    /// A panic is a difference like any other, and the report should still name the expression.
    Panic,
}

pub(crate) fn answer(expression: &str) -> OwnAnswer {
    // A generous limit, so that a busy machine doesn't change the answer.
    let patient = Budget {
        time: Duration::from_secs(10),
        ..Budget::default()
    };
    let outcome = catch_unwind(|| match evaluate(expression, &patient) {
        Ok(value) => OwnAnswer::Value {
            format: value.to_string(),
            json: value.to_json().map_err(|error| error.to_string()),
        },
        Err(error) => OwnAnswer::Error(error.to_string()),
    });
    outcome.unwrap_or(OwnAnswer::Panic)
}

impl fmt::Display for OwnAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { format, .. } => formatter.write_str(format),
            Self::Error(error) => write!(formatter, "error: {error}"),
            Self::Panic => formatter.write_str("a panic"),
        }
    }
}
