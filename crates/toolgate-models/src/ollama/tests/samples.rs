//! Tools and answers for the tests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, Tool, ToolDefinition, ToolFuture, ToolOutput, ToolSource, ValidArguments,
};

use crate::ollama::tools::QWEN;
use crate::{Catalog, ModelEvent, ModelListener, OfferedTools};

struct OllamaEchoTool(ToolDefinition);

impl Tool for OllamaEchoTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { Ok(ToolOutput::json(Value::Object(arguments.into_map()))) })
    }
}

pub(in crate::ollama) fn local(name: &str, parameters: Value) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, format!("What {name} does"), parameters);
    Arc::new(OllamaEchoTool(definition.build().unwrap()))
}

/// A tool of an MCP server whose listed name differs from its original name.
pub(in crate::ollama) fn remote(name: &str, server: &str, original: &str) -> Arc<dyn Tool> {
    let parameters = json!({ "type": "object", "properties": { "on": { "type": "boolean" } } });
    let definition = ToolDefinition::builder(name, format!("What {original} does"), parameters)
        .source(ToolSource::Mcp(server.to_owned()))
        .original_name(original);
    Arc::new(OllamaEchoTool(definition.build().unwrap()))
}

pub(in crate::ollama) fn weather() -> Arc<dyn Tool> {
    let city = json!({ "type": "string" });
    local(
        "weather",
        json!({ "type": "object", "properties": { "city": city }, "required": ["city"] }),
    )
}

pub(in crate::ollama) fn offer_of(tools: &[Arc<dyn Tool>]) -> OfferedTools {
    OfferedTools::all(Arc::new(Catalog::build(tools, &QWEN)))
}

/// `weather` with a city, and `house__lamp`, whose wire name is `lamp`.
pub(in crate::ollama) fn offer() -> OfferedTools {
    offer_of(&[weather(), remote("house__lamp", "house", "lamp")])
}

#[derive(Default)]
pub(in crate::ollama) struct OllamaEventLog(pub(in crate::ollama) Vec<String>);

impl ModelListener for OllamaEventLog {
    fn event(&mut self, event: ModelEvent<'_>) {
        self.0.push(match event {
            ModelEvent::Text(text) => format!("text {text}"),
            ModelEvent::Thinking(text) => format!("thinking {text}"),
            ModelEvent::Void => "void".to_owned(),
            ModelEvent::Notice(text) => format!("notice {text}"),
            other => format!("{other:?}"),
        });
    }
}
