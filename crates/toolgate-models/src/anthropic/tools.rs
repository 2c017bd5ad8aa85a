//! A tool as the Messages API wants it.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use toolgate_core::ToolDefinition;

use crate::catalog::Dialect;
use crate::lowering::{Rules, lower};

/// The API takes names of up to 128 characters, other programs that speak it only of 64.
pub(super) const DIALECT: Dialect = Dialect {
    longest_name: 64,
    original_names: false,
    convert,
};

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
}

fn convert(definition: &ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String> {
    let lowered = lower(definition, &Rules::ANTHROPIC)?;
    let tool = Tool {
        name: wire_name,
        description: &lowered.description,
        input_schema: &lowered.schema,
    };
    to_raw_value(&tool).map_err(|error| error.to_string())
}
