//! A tool as the chat completions want it. `strict` is not sent: it would ask for schemas that foreign tools do not have.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::Dialect;
use crate::lowering::{Lowered, Rules, lower};

impl Rules {
    /// Chat completions without `strict`, of OpenAI and the many that speak them.
    pub(crate) const OPENAI: Self = Self {
        keywords: None,
        is_parameter_name: |_| true,
        longest_description: 1024,
        continued: true,
    };
}

pub(super) const DIALECT: Dialect = Dialect {
    longest_name: 64,
    original_names: false,
    convert: |definition, wire_name| form(&lower(definition, &Rules::OPENAI)?, wire_name),
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

pub(crate) fn form(lowered: &Lowered<'_>, wire_name: &str) -> Result<Box<RawValue>, String> {
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
