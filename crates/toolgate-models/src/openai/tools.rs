//! Converts tools to the JSON of chat completions.
//!
//! `strict` is not sent, because it requires schemas in a form that other
//! people's tools don't have.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::ToolDialect;
use crate::lowering::{LoweredTool, SchemaRules, lower};

impl SchemaRules {
    // Without `strict`, OpenAI and servers like it accept nearly any schema.
    pub(crate) const OPENAI: Self = Self {
        keywords: None,
        is_parameter_name: |_| true,
        longest_description: 1024,
        continued: true,
    };
}

pub(super) const DIALECT: ToolDialect = ToolDialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| {
        encode_tool(&lower(definition, &SchemaRules::OPENAI)?, wire_name)
    },
};

#[derive(Serialize)]
struct OpenAiTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: OpenAiDeclaration<'a>,
}

#[derive(Serialize)]
struct OpenAiDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

pub(crate) fn encode_tool(
    lowered: &LoweredTool<'_>,
    wire_name: &str,
) -> Result<Box<RawValue>, String> {
    let tool = OpenAiTool {
        kind: "function",
        function: OpenAiDeclaration {
            name: wire_name,
            description: &lowered.description,
            parameters: &lowered.schema,
        },
    };
    to_raw_value(&tool).map_err(|error| error.to_string())
}
