//! Tools and answers for the tests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, Source, Tool, ToolDefinition, ToolFuture, ToolOutput, ValidArguments,
};

use crate::ollama::tools::QWEN;
use crate::{Catalog, Event, Listener, Offer};

struct Echo(ToolDefinition);

impl Tool for Echo {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { Ok(ToolOutput::json(Value::Object(arguments.into_map()))) })
    }
}

pub(in crate::ollama) fn local(name: &str, parameters: Value) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, format!("What {name} does"), parameters);
    Arc::new(Echo(definition.build().unwrap()))
}

/// Of an MCP server, listed under another name than it has there.
pub(in crate::ollama) fn remote(name: &str, server: &str, original: &str) -> Arc<dyn Tool> {
    let parameters = json!({ "type": "object", "properties": { "on": { "type": "boolean" } } });
    let definition = ToolDefinition::builder(name, format!("What {original} does"), parameters)
        .source(Source::Mcp(server.to_owned()))
        .original_name(original);
    Arc::new(Echo(definition.build().unwrap()))
}

pub(in crate::ollama) fn weather() -> Arc<dyn Tool> {
    let city = json!({ "type": "string" });
    local(
        "weather",
        json!({ "type": "object", "properties": { "city": city }, "required": ["city"] }),
    )
}

pub(in crate::ollama) fn offer_of(tools: &[Arc<dyn Tool>]) -> Offer {
    Offer::all(Arc::new(Catalog::build(tools, &QWEN)))
}

/// `weather` with a city, and `house__lamp`, which is `lamp` on the wire.
pub(in crate::ollama) fn offer() -> Offer {
    offer_of(&[weather(), remote("house__lamp", "house", "lamp")])
}

#[derive(Default)]
pub(in crate::ollama) struct Heard(pub(in crate::ollama) Vec<String>);

impl Listener for Heard {
    fn event(&mut self, event: Event<'_>) {
        self.0.push(match event {
            Event::Text(text) => format!("text {text}"),
            Event::Thinking(text) => format!("thinking {text}"),
            Event::Void => "void".to_owned(),
            Event::Notice(text) => format!("notice {text}"),
            other => format!("{other:?}"),
        });
    }
}
