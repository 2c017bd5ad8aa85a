//! A tool as the Messages API wants it.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::Dialect;
use crate::lowering::{Lowered, Rules, lower};

impl Rules {
    /// The Messages API refuses a request whole if one tool has a combinator at its root or a property with an unusual name.
    pub(crate) const ANTHROPIC: Self = Self {
        keywords: None,
        is_parameter_name: |name| {
            let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            (1..=64).contains(&name.len()) && name.bytes().all(usual)
        },
        longest_description: 16 << 10,
        continued: false,
    };
}

/// The API takes names of up to 128 characters, other programs that speak it only of 64.
pub(super) const DIALECT: Dialect = Dialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| form(&lower(definition, &Rules::ANTHROPIC)?, wire_name),
};

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
}

pub(super) fn form(lowered: &Lowered<'_>, wire_name: &str) -> Result<Box<RawValue>, String> {
    let tool = Tool {
        name: wire_name,
        description: &lowered.description,
        input_schema: &lowered.schema,
    };
    to_raw_value(&tool).map_err(|error| error.to_string())
}
