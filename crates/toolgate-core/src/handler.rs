//! What stands behind a name in `implementation.handler`.

use crate::{CallContext, ToolFuture, ValidArguments};

/// A builtin function or a service inside the program, found by name when a definition refers to it.
///
/// It is a [`Tool`](crate::Tool) without a definition: several definitions may share one handler, each with a name,
/// description and schema of its own.
///
/// ```
/// use toolgate_core::{CallContext, Handler, ToolFuture, ToolOutput, ValidArguments};
///
/// struct Ping;
///
/// impl Handler for Ping {
///     fn call<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
///         Box::pin(async { Ok(ToolOutput::text("pong")) })
///     }
/// }
/// ```
pub trait Handler: Send + Sync {
    /// Answers one call. The arguments satisfy the schema of the definition that led here.
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a>;
}
