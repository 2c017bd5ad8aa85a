//! Converts tools to the JSON of the Gemini API.
//!
//! Schemas are sent as `parametersJsonSchema`. The older `parameters` isn't JSON Schema: its `type`
//! is a single word, and one unknown keyword makes the API refuse the whole request.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::ToolDialect;
use crate::lowering::{LoweredTool, SchemaRules, lower};

impl SchemaRules {
    // The keywords in the API's documentation, except references, which are inlined, and `format`,
    // because only some of its values are accepted.
    pub(crate) const GEMINI: Self = Self {
        keywords: Some(&[
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
        ]),
        is_parameter_name: |name| {
            let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            (1..=64).contains(&name.len()) && name.bytes().all(usual)
        },
        longest_description: 4 << 10,
        continued: false,
    };
}

pub(super) const DIALECT: ToolDialect = ToolDialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| {
        encode_tool(&lower(definition, &SchemaRules::GEMINI)?, wire_name)
    },
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

// The API refuses the whole request if a name begins differently, so such a tool is left out.
pub(super) fn encode_tool(
    lowered: &LoweredTool<'_>,
    wire_name: &str,
) -> Result<Box<RawValue>, String> {
    if !wire_name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Err("its name doesn't begin with a letter, which Gemini asks for".to_owned());
    }
    let declaration = FunctionDeclaration {
        name: wire_name,
        description: &lowered.description,
        parameters_json_schema: &lowered.schema,
    };
    to_raw_value(&declaration).map_err(|error| error.to_string())
}
