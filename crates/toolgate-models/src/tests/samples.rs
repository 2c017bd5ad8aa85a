//! Tools and messages for the tests of every client.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use toolgate_core::{CallContext, Tool, ToolDefinition, ToolFuture, ToolOutput, ValidArguments};

use crate::{
    AssistantMessage, CallArguments, Message, MessagePart, ModelCall, ModelRequest, OfferedTools,
    ToolResult,
};

struct SampleTool(ToolDefinition);

impl Tool for SampleTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

pub(crate) fn tool(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, description, parameters).build();
    Arc::new(SampleTool(definition.unwrap()))
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    MessagePart::Call(ModelCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: CallArguments::parse(arguments),
    })
}

pub(crate) fn result(id: &str, text: &str) -> ToolResult {
    ToolResult {
        id: id.to_owned(),
        name: String::new(),
        text: text.to_owned(),
        images: Vec::new(),
        is_error: false,
        call_id: None,
    }
}

pub(crate) fn ask<'a>(
    system: &'a str,
    messages: &'a [Message],
    tools: &'a OfferedTools,
) -> ModelRequest<'a> {
    ModelRequest::new(system, messages, tools, Instant::now())
}

pub(crate) fn user(text: &str) -> Message {
    Message::User {
        text: text.to_owned(),
    }
}

pub(crate) fn assistant(parts: Vec<MessagePart>) -> Message {
    Message::Assistant(AssistantMessage { parts })
}

pub(crate) fn said(text: &str) -> MessagePart {
    MessagePart::Text {
        text: text.to_owned(),
    }
}

pub(crate) fn results(results: Vec<ToolResult>) -> Message {
    Message::Tool { results }
}
