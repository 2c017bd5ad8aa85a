//! `echo`: returns its arguments, to check that tool calls arrive.

use std::sync::Arc;

use serde_json::json;
use toolgate_core::{Annotations, CallContext, Handler, ToolFuture, ToolOutput, ValidArguments};

use super::BuiltinTool;

pub(super) fn builtin() -> BuiltinTool {
    BuiltinTool {
        name: "echo",
        description: "Returns the arguments it was called with, unchanged. Use it to check that tool calls arrive.",
        parameters: json!({ "type": "object", "additionalProperties": true }),
        annotations: Annotations::READ_ONLY,
        handler: Arc::new(EchoTool),
    }
}

struct EchoTool;

impl Handler for EchoTool {
    fn call<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { Ok(ToolOutput::json(json!({ "echo": arguments.into_map() }))) })
    }
}
