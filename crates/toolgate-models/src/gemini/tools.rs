//! Converts a tool into the form of the Gemini API.
//!
//! Schemas are sent as `parametersJsonSchema`. The older `parameters` has a structure of its own
//! whose `type` is a single word, and one keyword too many makes the API refuse the whole request.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::ToolDialect;
use crate::lowering::{LoweredTool, SchemaRules, lower};

impl SchemaRules {
    // The keywords that the API documents, except references, which are inlined, and `format`, of
    // which only some values are accepted.
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

// A name that begins differently costs the whole request.
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
