//! What stands behind a name in `implementation.handler`.

use crate::{CallContext, ToolFuture, ValidArguments};

/// A builtin function or a service inside the program, found by name when a definition refers to it.
///
/// It is a [`Tool`](crate::Tool) without a definition: several definitions may share one handler, each with a name,
/// description and schema of its own.
pub trait Handler: Send + Sync {
    /// Answers one call. The arguments satisfy the schema of the definition that led here.
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a>;
}
