//! The [`Tool`] trait, which all tools implement.

use futures::future::BoxFuture;

use crate::{CallContext, ToolDefinition, ToolError, ToolOutput, ValidArguments};

/// The future that [`Tool::invoke`] returns.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolOutput, ToolError>>;

/// Something that a model can call: a function, a canned answer, or a tool of an MCP server.
///
/// Only [`ToolExecutor`](crate::ToolExecutor) invokes tools. It validates the arguments,
/// enforces the deadline and contains panics, so an implementation only does its work. The
/// future is dropped on timeout and cancellation. It must not block its thread: wrap
/// blocking work with [`FunctionTool::blocking`](crate::FunctionTool::blocking).
///
/// To make a tool from one function, [`FunctionTool`](crate::FunctionTool) is shorter.
///
/// ```
/// # use {serde_json::json, std::time::Instant, toolgate_core::*};
/// struct UptimeTool { definition: ToolDefinition, started: Instant }
///
/// impl UptimeTool {
///     fn new() -> Result<Self, DefinitionError> {
///         let parameters = json!({ "type": "object" });
///         let definition = ToolDefinition::builder("uptime", "Returns the uptime", parameters);
///         Ok(Self { definition: definition.build()?, started: Instant::now() })
///     }
/// }
///
/// impl Tool for UptimeTool {
///     fn definition(&self) -> &ToolDefinition {
///         &self.definition
///     }
///     fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
///         let seconds = self.started.elapsed().as_secs();
///         Box::pin(async move { Ok(ToolOutput::json(json!({ "seconds": seconds }))) })
///     }
/// }
/// # assert_eq!(UptimeTool::new()?.definition().name(), "uptime");
/// # Ok::<_, DefinitionError>(())
/// ```
pub trait Tool: Send + Sync {
    /// The name, the description, the schema, and everything else known before a call.
    fn definition(&self) -> &ToolDefinition;

    /// Does the work. `arguments` satisfy the definition's schema.
    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a>;
}
