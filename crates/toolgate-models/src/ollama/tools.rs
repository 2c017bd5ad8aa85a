//! Converts tools to the Qwen form, which Ollama's API uses.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::Tool;

use crate::Catalog;
use crate::catalog::ToolDialect;
use crate::lowering::{SchemaRules, lower};
use crate::openai::encode_tool;

impl SchemaRules {
    // Ollama parses a schema into a struct, and drops all keywords without a field.
    pub(crate) const OLLAMA: Self = Self {
        keywords: Some(&[
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
        ]),
        is_parameter_name: |_| true,
        longest_description: 4 << 10,
        continued: false,
    };
}

// Ollama doesn't restrict names. The length is bounded anyway, because names cost tokens.
pub(super) const QWEN: ToolDialect = ToolDialect {
    longest_name: 128,
    original_names: true,
    convert: |definition, wire_name| {
        encode_tool(&lower(definition, &SchemaRules::OLLAMA)?, wire_name)
    },
};

/// Tools in the Qwen form, sorted by name. Tools that can't be converted are left out.
pub fn to_qwen(tools: &[Arc<dyn Tool>]) -> Vec<Value> {
    let catalog = Catalog::build(tools, &QWEN);
    log_converted(&catalog);
    let values = catalog.tools().iter().map(|tool| &tool.json);
    values
        .filter_map(|json| serde_json::from_str(json.get()).ok())
        .collect()
}

// A requirement fixes the wording.
pub(super) fn log_converted(catalog: &Catalog) {
    let count = catalog.tools().len();
    tracing::debug!("🔧 Converted {count} tools from LangChain to Qwen format");
}

#[cfg(test)]
mod tests;
