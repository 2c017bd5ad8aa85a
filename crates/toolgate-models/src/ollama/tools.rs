//! The Qwen form of tools: what Ollama's models are told of them.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::Tool;

use crate::Catalog;
use crate::catalog::Dialect;
use crate::lowering::{Rules, lower};
use crate::openai::form;

impl Rules {
    /// Ollama reads a schema into a structure and loses what that has no place for.
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

/// What Ollama accepts. It has no rule for names: they are only kept as short as the rest of the house keeps them.
pub(super) const QWEN: Dialect = Dialect {
    longest_name: 128,
    original_names: true,
    convert: |definition, wire_name| form(&lower(definition, &Rules::OLLAMA)?, wire_name),
};

/// Tools in the Qwen form, sorted by name. One that can not be put into it is left out. The tools stay as they are.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{FunctionTool, Tool, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
///
/// let dice = FunctionTool::new("dice", "Rolls a die", async |_: Nothing, _context| Ok::<_, ToolError>(4))?;
/// let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(dice)];
/// assert_eq!(
///     toolgate_models::ollama::to_qwen(&tools),
///     [json!({ "type": "function", "function": {
///         "name": "dice", "description": "Rolls a die", "parameters": { "type": "object", "properties": {} } } })]
/// );
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
pub fn to_qwen(tools: &[Arc<dyn Tool>]) -> Vec<Value> {
    let catalog = Catalog::build(tools, &QWEN);
    log_converted(&catalog);
    let values = catalog.tools().iter().map(|tool| &tool.json);
    values
        .filter_map(|json| serde_json::from_str(json.get()).ok())
        .collect()
}

/// The wording is fixed by the specification.
pub(super) fn log_converted(catalog: &Catalog) {
    let count = catalog.tools().len();
    tracing::debug!("🔧 Converted {count} tools from LangChain to Qwen format");
}

#[cfg(test)]
mod tests;
