//! Converts tools to the JSON of the Messages API.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::ToolDialect;
use crate::lowering::{LoweredTool, SchemaRules, lower};

impl SchemaRules {
    // The Messages API refuses the whole request if one tool has a combinator at the root of its
    // schema, or a property whose name has other characters.
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

// Anthropic accepts names of up to 128 characters, but other servers that speak its API only 64.
pub(super) const DIALECT: ToolDialect = ToolDialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| {
        encode_tool(&lower(definition, &SchemaRules::ANTHROPIC)?, wire_name)
    },
};

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
}

pub(super) fn encode_tool(
    lowered: &LoweredTool<'_>,
    wire_name: &str,
) -> Result<Box<RawValue>, String> {
    let tool = AnthropicTool {
        name: wire_name,
        description: &lowered.description,
        input_schema: &lowered.schema,
    };
    to_raw_value(&tool).map_err(|error| error.to_string())
}
