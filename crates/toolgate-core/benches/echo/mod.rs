//! The tool that all call benchmarks use.

use serde_json::json;
use toolgate_core::{
    CallContext, DefinitionError, Tool, ToolDefinition, ToolFuture, ToolOutput, ValidArguments,
};

pub(crate) const ARGUMENTS: &str =
    r#"{"message":"hello from the benchmark","count":3,"loud":false}"#;

pub(crate) struct Echo(ToolDefinition);

impl Echo {
    pub(crate) fn named(name: &str) -> Result<Self, DefinitionError> {
        let parameters = json!({
            "type": "object",
            "properties": {
                "message": { "type": "string" },
                "count": { "type": "integer" },
                "loud": { "type": "boolean" },
            },
            "required": ["message", "count", "loud"],
        });
        let definition = ToolDefinition::builder(name, "Returns the message", parameters);
        Ok(Self(definition.build()?))
    }
}

impl Tool for Echo {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let message = arguments.get("message").cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(ToolOutput::json(message))))
    }
}
