//! A tool as the chat completions want it. `strict` is not sent: it would ask for schemas that foreign tools do not have.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use toolgate_core::ToolDefinition;

use crate::catalog::Dialect;
use crate::lowering::{Rules, lower};

pub(super) const DIALECT: Dialect = Dialect {
    longest_name: 64,
    original_names: false,
    convert,
};

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

fn convert(definition: &ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String> {
    let lowered = lower(definition, &Rules::OPENAI)?;
    let tool = Tool {
        kind: "function",
        function: Function {
            name: wire_name,
            description: &lowered.description,
            parameters: &lowered.schema,
        },
    };
    to_raw_value(&tool).map_err(|error| error.to_string())
}
